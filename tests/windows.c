/* SPDX-License-Identifier: MIT */
/* Windows: a site is watched for so many uses, of whatever kind it is, and then runs its plain
 * plan. */
#define _GNU_SOURCE
#include "forms.h"
#include "hooks.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>

#include <tidepool/dynamic.h>
#include <tidepool/generic.h>
#include <tidepool/profile.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>

#include "profiler/add.h"
#include "profiler/window.h"
#include "runtime/base/registry.h"
#include "runtime/scope/plan.h"
#include "runtime/scope/site.h"

/* ---- sites of each kind ------------------------------------------------------------------ */

static tide_generic *generic;

static void method(void *args)
{
    ++*(unsigned *)args;
}

/* One use: a double, and where there is room for more an int32_t. False: it did not go well. */
static bool use_site(tide_site *site, tide_pool *pool)
{
    unsigned called = 0;
    tide_scope scope;
    tide_mark mark = tide_checkpoint(pool);
    bool well = true;
    if (site->kind == TIDE_KIND_SCOPE) {
        well = tide_scope_enter(pool, site, &scope) == TIDE_OK;
        well = well && tide_acquire(pool, double, 4) != NULL &&
               tide_acquire(pool, int32_t, 4) != NULL && tide_acquire(pool, double, 4) != NULL;
        well = well && tide_scope_leave(&scope) == TIDE_OK;
    } else {
        tide_site_dispatch(site, generic, TIDE_F64, &called);
        well = called == 1;
    }
    return tide_rewind(pool, mark) == TIDE_OK && well;
}

static void use_times(tide_site *site, tide_pool *pool, size_t times)
{
    for (size_t i = 0; i < times; i++)
        assert_true(use_site(site, pool));
}

/* A site that has run its first use, so that it has its plain plan. */
static tide_site *site_of_kind(tide_kind kind, const char *purpose, tide_pool *pool)
{
    char name[64];
    snprintf(name, sizeof name, "%s: %s", tide_kind_name(kind), purpose);
    tide_site *site = tide_site_register_kind(name, kind);
    assert_non_null(site);
    use_times(site, pool, 1);
    assert_ptr_equal(site->plan, &tide_plans_general[kind]);
    return site;
}

static void open_window(tide_site *site, uint64_t uses)
{
    tide_registry_lock();
    assert_true(tide_window_begin(site, uses));
    tide_site_publish(site);
    assert_true(tide_window_open(site));
    tide_registry_unlock();
}

static bool is_open(const tide_site *site)
{
    tide_registry_lock();
    bool open = tide_window_open(site);
    tide_registry_unlock();
    return open;
}

static tide_site_profile take_window(tide_site *site)
{
    tide_site_profile profile;
    tide_registry_lock();
    tide_window_take(site, &profile);
    tide_registry_unlock();
    return profile;
}

static uint64_t samples_of(const tide_site *site)
{
    tide_site_information info;
    expect_ok(tide_site_info(site, &info));
    return info.samples;
}

static void expect_type(const tide_site_profile *profile, tide_type type, uint64_t scopes,
                        uint64_t slots, uint32_t most)
{
    for (uint32_t i = 0; i < profile->type_count; i++) {
        if (profile->types[i].type != type)
            continue;
        assert_int_equal(profile->types[i].scopes, scopes);
        assert_int_equal(profile->types[i].slots, slots);
        assert_int_equal(profile->types[i].slots_max, most);
        return;
    }
    assert_int_equal(scopes, 0);
}

/* What `uses` uses by use_site look like. */
static void expect_uses(const tide_site *site, const tide_site_profile *profile, uint64_t uses)
{
    bool two = site->kind == TIDE_KIND_SCOPE;
    assert_int_equal(profile->scopes, uses);
    assert_int_equal(profile->type_count, two ? 2 : 1);
    expect_type(profile, TIDE_F64, uses, two ? 2 * uses : uses, two ? 2 : 1);
    expect_type(profile, TIDE_I32, two ? uses : 0, two ? uses : 0, 1);
    assert_ptr_equal(profile->generic, two ? NULL : generic);
    assert_int_equal(profile->bytes, two ? uses * 80 : 0);
    assert_int_equal(profile->other, 0);
}

#define EACH_KIND(kind) for (tide_kind kind = 0; kind < TIDE_KIND_COUNT; kind++)

/* ---- opening and closing ----------------------------------------------------------------- */

static unsigned filled;

static void count_filled(tide_site *unused)
{
    (void)unused;
    __atomic_fetch_add(&filled, 1, __ATOMIC_RELAXED);
}

static void a_window_closes_by_itself_after_so_many_uses(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    EACH_KIND(kind)
    {
        enum { USES = 7 };
        tide_site *site = site_of_kind(kind, "closes", pool);
        open_window(site, USES);
        filled = 0;
        use_times(site, pool, USES - 1);
        assert_ptr_not_equal(site->plan, &tide_plans_general[kind]);
        assert_true(is_open(site));
        assert_int_equal(filled, 0);
        use_times(site, pool, 1);
        assert_ptr_equal(site->plan, &tide_plans_general[kind]);
        assert_false(is_open(site));
        assert_int_equal(filled, 1);
        use_times(site, pool, 10);
        tide_site_profile profile = take_window(site);
        expect_uses(site, &profile, USES);
        assert_int_equal(samples_of(site), USES);
    }
    expect_ok(tide_pool_destroy(pool));
}

static void a_scope_that_outlasts_its_window_is_not_counted(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    tide_site *site = site_of_kind(TIDE_KIND_SCOPE, "outlasts", pool);
    tide_scope outer;
    open_window(site, 2);
    expect_ok(tide_scope_enter(pool, site, &outer));
    take(pool, TIDE_U8, 3, 1);
    use_times(site, pool, 2);
    assert_ptr_equal(site->plan, &tide_plans_general[TIDE_KIND_SCOPE]);
    expect_ok(tide_scope_leave(&outer));
    tide_site_profile profile = take_window(site);
    expect_uses(site, &profile, 2);
    expect_ok(tide_pool_destroy(pool));
}

static void a_reset_closes_the_window_and_forgets(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    EACH_KIND(kind)
    {
        tide_site *site = site_of_kind(kind, "reset", pool);
        open_window(site, 10);
        use_times(site, pool, 3);
        expect_ok(tide_site_reset(site));
        assert_ptr_equal(site->plan, &tide_plans_general[kind]);
        assert_false(is_open(site));
        assert_int_equal(samples_of(site), 0);
        open_window(site, 2);
        use_times(site, pool, 3);
        tide_site_profile profile = take_window(site);
        expect_uses(site, &profile, 2);
    }
    expect_ok(tide_pool_destroy(pool));
}

/* ---- threads ----------------------------------------------------------------------------- */

enum { THREADS = 8 };

struct crew {
    tide_site *site;
    size_t uses;
    unsigned failures;
    uint64_t taken;
    bool stop;
};

static void *work(void *state)
{
    struct crew *crew = state;
    tide_pool *pool = tide_pool_create(NULL);
    for (size_t i = 0; i < crew->uses; i++)
        if (!use_site(crew->site, pool))
            __atomic_fetch_add(&crew->failures, 1, __ATOMIC_RELAXED);
    tide_pool_destroy(pool);
    return NULL;
}

static void run_crew(struct crew *crew, void *(*reader)(void *))
{
    pthread_t threads[THREADS], reading;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, crew), 0);
    if (reader != NULL)
        assert_int_equal(pthread_create(&reading, NULL, reader, crew), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    __atomic_store_n(&crew->stop, true, __ATOMIC_RELAXED);
    if (reader != NULL)
        assert_int_equal(pthread_join(reading, NULL), 0);
    assert_int_equal(crew->failures, 0);
}

static void threads_fill_a_window_exactly(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    EACH_KIND(kind)
    {
        struct crew crew = {.site = site_of_kind(kind, "threads", pool), .uses = scaled(2000, 200)};
        uint64_t uses = crew.uses * THREADS / 2;
        filled = 0;
        open_window(crew.site, uses);
        run_crew(&crew, NULL);
        assert_ptr_equal(crew.site->plan, &tide_plans_general[kind]);
        assert_int_equal(filled, 1);
        tide_site_profile profile = take_window(crew.site);
        expect_uses(crew.site, &profile, uses);
    }
    expect_ok(tide_pool_destroy(pool));
}

/* ---- places ------------------------------------------------------------------------------ */

static void types_beyond_the_places_count_as_others(void **state)
{
    (void)state;
    enum { BEYOND = 3 };
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    tide_site *site = site_of_kind(TIDE_KIND_SCOPE, "many types", pool);
    tide_type types[TIDE_PROFILE_TYPES + BEYOND];
    for (size_t i = 0; i < TIDE_PROFILE_TYPES + BEYOND; i++) {
        char name[32];
        snprintf(name, sizeof name, "type %zu of windows", i);
        types[i] = tide_type_register(name, 8, 8);
    }
    open_window(site, 2);
    for (size_t use = 0; use < 2; use++) {
        tide_scope scope;
        expect_ok(tide_scope_enter(pool, site, &scope));
        for (size_t i = 0; i < TIDE_PROFILE_TYPES + BEYOND; i++)
            assert_non_null(tide_acquire_type(pool, types[i], 1));
        expect_ok(tide_scope_leave(&scope));
    }
    tide_site_profile profile = take_window(site);
    assert_int_equal(profile.type_count, TIDE_PROFILE_TYPES);
    assert_int_equal(profile.other, 2 * BEYOND);
    expect_ok(tide_pool_destroy(pool));
}

/* ---- generic functions ------------------------------------------------------------------- */

static void a_dispatch_has_one_generic_function_or_several(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    tide_generic *other = tide_generic_create("windows: another");
    expect_ok(tide_generic_add(other, TIDE_F64, method));
    tide_site *site = site_of_kind(TIDE_KIND_DISPATCH, "generics", pool);
    open_window(site, 3);
    use_times(site, pool, 2);
    unsigned called = 0;
    tide_site_dispatch(site, other, TIDE_F64, &called);
    assert_int_equal(called, 1);
    tide_site_profile profile = take_window(site);
    assert_int_equal(profile.scopes, 3);
    assert_null(profile.generic);
    open_window(site, 2);
    tide_site_dispatch(site, other, TIDE_F64, &called);
    tide_site_dispatch(site, other, TIDE_F64, &called);
    profile = take_window(site);
    assert_ptr_equal(profile.generic, other);
    expect_ok(tide_pool_destroy(pool));
}

/* ---- adding ------------------------------------------------------------------------------ */

static void adding_weighs_and_matches(void **state)
{
    (void)state;
    tide_site_profile into = {.scopes = 10,
                              .other = 1,
                              .generic = generic,
                              .type_count = 1,
                              .types = {{TIDE_F64, 2, 10, 15}}};
    const tide_site_profile from = {
        .scopes = 9,
        .other = 3,
        .generic = generic,
        .type_count = 3,
        .types = {{TIDE_I32, 1, 9, 9}, {TIDE_F64, 7, 8, 40}, {TIDE_U8, 1, 1, 1}}};
    tide_profile_add(&into, &from, 0.5);
    assert_int_equal(into.scopes, 14);
    assert_int_equal(into.other, 2);
    assert_ptr_equal(into.generic, generic);
    assert_int_equal(into.type_count, 2); /* half a use of u8 is none */
    expect_type(&into, TIDE_F64, 14, 35, 7);
    expect_type(&into, TIDE_I32, 4, 4, 1);
    tide_site_profile gone = {0};
    tide_profile_add(&gone, &into, 0);
    assert_int_equal(gone.scopes + gone.type_count, 0);
    assert_null(gone.generic);
    tide_profile_add(&gone, &into, 1);
    assert_ptr_equal(gone.generic, generic);
    tide_site_profile much = {.scopes = UINT64_MAX - 3};
    tide_profile_add(&much, &into, 1);
    assert_true(much.scopes == UINT64_MAX);
    assert_null(much.generic); /* another's before: several */
}

static const struct CMUnitTest others[] = {
    cmocka_unit_test(a_window_closes_by_itself_after_so_many_uses),
    cmocka_unit_test(a_scope_that_outlasts_its_window_is_not_counted),
    cmocka_unit_test(a_reset_closes_the_window_and_forgets),
    cmocka_unit_test(threads_fill_a_window_exactly),
    cmocka_unit_test(types_beyond_the_places_count_as_others),
    cmocka_unit_test(a_dispatch_has_one_generic_function_or_several),
    cmocka_unit_test(adding_weighs_and_matches),
};

/* Windows are opened by hand here, not by what the library learns. */
int main(void)
{
    if (tide_tune_set("learn", 0) != TIDE_OK)
        return EXIT_FAILURE;
    generic = tide_generic_create("windows");
    if (generic == NULL || tide_generic_add(generic, TIDE_F64, method) != TIDE_OK)
        return EXIT_FAILURE;
    tide_window_filled = count_filled;
    return cmocka_run_group_tests_name("windows", others, NULL, NULL);
}
