/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "learning.h"

#include <stdio.h>
#include <unistd.h>

#include "tests/hooks.h"

#include <tidepool/array.h>
#include <tidepool/dlpack.h>
#include <tidepool/generic.h>
#include <tidepool/learn.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

/* ---- settings --------------------------------------------------------------------------- */

void set(const char *name, double value)
{
    set_either(name, value);
}

/* But for the background thread: what a test before has left would start it. */
static bool set_initial(const tide_tune_entry *entry, void *user)
{
    (void)user;
    set(entry->name, strcmp(entry->name, "background") == 0 ? 0 : entry->initial);
    return true;
}

void settings_of_tests(void)
{
    reset_constants();
    set("background", 0);
    tide_tune_each(set_initial, NULL);
    set("trial", 0);
    set("break_even", 0);
    set("adapt", 0);
    set("window_calls", 200);
    set("sample_min", 50);
    set("misses", 53);
    set("count_runs", 1);
}

void set_quick(void)
{
    set("window_calls", 10);
    set("sample_min", 5);
    set("window_every", 1);
    set("decay", 0);
    set("misses", 1);
    set("back_off_max", 1);
}

int learning_setup(void **state)
{
    (void)state;
    settings_of_tests();
    return 0;
}

int learning_teardown(void **state)
{
    (void)state;
    tide_event_set_handler(NULL, NULL);
    settle();
    return 0;
}

tide_pool *learning_pool;

int learning_make_pool(void **state)
{
    (void)state;
    settings_of_tests(); /* the first pool of a program may start the background thread */
    learning_pool = pool_of(TIDE_CHECK_NONE);
    return 0;
}

int learning_drop_pool(void **state)
{
    (void)state;
    CHECK_POOL(learning_pool);
    expect_ok(tide_pool_destroy(learning_pool));
    return 0;
}

static bool stager_built(void)
{
    const char *stager = getenv("TIDEPOOL_STAGER");
    return stager == NULL || strcmp(stager, "none") != 0;
}

void need_stager(void)
{
    if (stager_built())
        return;
    print_message("no stager in this build\n");
    skip();
}

/* ---- uses ------------------------------------------------------------------------------- */

static void count_call(void *args)
{
    ++*(unsigned *)args;
}

/* Every type there is has a method of its own. */
static tide_generic *generic_named(const char *name)
{
    tide_generic *generic = tide_generic_create(name);
    assert_non_null(generic);
    for (tide_type type = 0; type < TIDE_TYPE_LIMIT; type++)
        if (tide_type_size(type) != 0)
            expect_ok(tide_generic_add(generic, type, count_call));
    return generic;
}

use use_of(const char *name, tide_kind kind, tide_pool *pool, uint32_t count, ...)
{
    va_list types;
    use u = {.site = tide_site_register_kind(name, kind), .pool = pool, .count = count};
    assert_non_null(u.site);
    assert_true(count <= USE_TYPES);
    va_start(types, count);
    for (uint32_t i = 0; i < count; i++)
        u.types[i] = va_arg(types, tide_type);
    va_end(types);
    if (kind == TIDE_KIND_DISPATCH)
        u.generic = generic_named(name);
    return u;
}

/* Writes to all of it, so that a wrong address is found by whoever watches memory. */
static bool fill(void *data, tide_type type, size_t n)
{
    if (data != NULL)
        memset(data, 0x5a, n * tide_type_size(type));
    return data != NULL;
}

static bool use_scope(const use *u)
{
    enum { N = 4 };
    tide_scope scope;
    bool well = true;
    tide_site_enter(&scope, u->pool, u->site);
    for (uint32_t i = 0; i < u->count; i++)
        well = fill(tide_acquire_type(u->pool, u->types[i], N), u->types[i], N) && well;
    tide_site_leave(&scope);
    return well;
}

static bool use_dispatch(const use *u)
{
    unsigned calls = 0;
    tide_site_dispatch(u->site, u->generic, u->types[0], &calls);
    return calls == 1;
}

bool use_once(const use *u)
{
    if (u->site->kind == TIDE_KIND_DISPATCH)
        return use_dispatch(u);
    uint64_t tag = u->pool->tag;
    const tide_entry *top = u->pool->log_top;
    bool well = use_scope(u);
    /* Below the root a use may have the level around save types that it needs. */
    return well && u->pool->tag == tag &&
           (u->pool->log_top == top || (u->pool->log_top > top && (tag & TIDE_TAG_DEPTH) != 1));
}

void use_times(const use *u, size_t times)
{
    for (size_t i = 0; i < times; i++)
        if (!use_once(u))
            fail_msg("use %zu of site '%s': %s", i, u->site->name, tide_error_message());
}

/* ---- what became of it ------------------------------------------------------------------ */

tide_site_information info_of(const tide_site *site)
{
    tide_site_information info;
    expect_ok(tide_site_info(site, &info));
    return info;
}

tide_tier tier_of(const tide_site *site)
{
    return info_of(site).tier;
}

uint64_t runs_of(const tide_site *site)
{
    return info_of(site).runs;
}

uint64_t misses_of(const tide_site *site)
{
    return info_of(site).misses;
}

const char *reason_of(const tide_site *site)
{
    return info_of(site).reason;
}

tide_learning_statistics learned(void)
{
    tide_learning_statistics statistics;
    expect_ok(tide_learning_stats(&statistics));
    return statistics;
}

void expect_types(const tide_site *site, uint32_t count, ...)
{
    tide_site_information info = info_of(site);
    va_list types;
    assert_int_equal(info.type_count, count);
    va_start(types, count);
    for (uint32_t i = 0; i < count; i++) {
        tide_type wanted = va_arg(types, tide_type);
        uint32_t at = 0;
        while (at < count && info.types[at] != wanted)
            at++;
        if (at == count)
            fail_msg("the plan of '%s' has no %s", info.name, tide_type_name(wanted));
    }
    va_end(types);
}

/* ---- going on --------------------------------------------------------------------------- */

void settle(void)
{
    check_status(tide_settle(PATIENCE_MS), TIDE_OK, "tide_settle", __FILE__, __LINE__);
}

static size_t window_calls(void)
{
    return (size_t)get_constant("window_calls");
}

void learn_windows(const use *u, unsigned windows)
{
    for (unsigned i = 0; i < windows; i++) {
        use_times(u, window_calls());
        settle();
    }
}

tide_tier best_tier(tide_kind kind)
{
    return kind != TIDE_KIND_DISPATCH ? TIDE_TIER_COMPILED : TIDE_TIER_TABLE;
}

void until(const use *u, tide_tier tier)
{
    enum { WINDOWS = 400 };
    if (tier == TIDE_TIER_COMPILED)
        tier = best_tier(u->site->kind);
    for (unsigned i = 0; i < WINDOWS; i++) {
        tide_site_information info = info_of(u->site);
        if (i > 0 && info.tier == tier && !info.observed)
            return;
        learn_windows(u, 1);
        expect_ok(tide_step());
    }
    fail_msg("site '%s' is not at tier %s but %s: %s", u->site->name, tide_tier_name(tier),
             tide_tier_name(tier_of(u->site)), reason_of(u->site));
}

void expect_executed(const use *u, size_t times)
{
    use_times(u, 1); /* serves what rounds asked the pool for: that is cold code */
    uint64_t runs = runs_of(u->site), misses = misses_of(u->site);
    use_times(u, times);
    if (u->site->kind != TIDE_KIND_DISPATCH)
        assert_int_equal(runs_of(u->site) - runs, times);
    assert_int_equal(misses_of(u->site), misses);
}
