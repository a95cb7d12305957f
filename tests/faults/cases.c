/* SPDX-License-Identifier: MIT */
/* The public functions but for those of arrays, each as a call that can be made to fail. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/dynamic.h>
#include <tidepool/limit.h>
#include <tidepool/profile.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

#include "sweep.h"
#include "tests/hooks.h"

struct novel { /* a type that no process has met before its case */
    double parts[3];
};

void need(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "faults: %s: %s\n", what, tide_error_message());
    exit(3);
}

void replace_pool(struct fixture *fixture, tide_pool_options options)
{
    need(tide_pool_destroy(fixture->pool) == TIDE_OK, "destroy");
    options.name = "faults";
    fixture->pool = tide_pool_create(&options);
    need(fixture->pool != NULL, "pool");
}

void prepare_poison(struct fixture *fixture)
{
    replace_pool(fixture, (tide_pool_options){.check = TIDE_CHECK_POISON});
}

void prepare_disabled(struct fixture *fixture)
{
    replace_pool(fixture, (tide_pool_options){.disabled = true});
}

void prepare_guard(struct fixture *fixture)
{
    replace_pool(fixture, (tide_pool_options){.check = TIDE_CHECK_GUARD});
}

/* ---- types ------------------------------------------------------------------------------ */

static tide_status type_register(struct fixture *fixture)
{
    (void)fixture;
    tide_type type = tide_type_register("novel", 24, 8);
    return type != TIDE_NO_TYPE ? TIDE_OK : tide_error_status();
}

static tide_status type_of(struct fixture *fixture)
{
    (void)fixture;
    return tide_type_of(struct novel) != TIDE_NO_TYPE ? TIDE_OK : tide_error_status();
}

/* The ids of types stand in chunks of 1024: the last of the first chunk is there already. */
static void prepare_many_types(struct fixture *fixture)
{
    (void)fixture;
    char name[16];
    while (tide_type_count() < 1023) {
        snprintf(name, sizeof name, "t%u", tide_type_count());
        need(tide_type_register(name, 8, 8) != TIDE_NO_TYPE, "a type");
    }
}

/* ---- pools ------------------------------------------------------------------------------ */

static tide_status pool_create(struct fixture *fixture)
{
    (void)fixture;
    tide_pool *pool = tide_pool_create(NULL);
    return pool != NULL ? tide_pool_destroy(pool) : tide_error_status();
}

static tide_status pool_create_named(struct fixture *fixture)
{
    (void)fixture;
    tide_pool_options options = {.name = "another", .check = TIDE_CHECK_POISON, .limit_bytes = 1};
    tide_pool *pool = tide_pool_create(&options);
    return pool != NULL ? tide_pool_destroy(pool) : tide_error_status();
}

static uint8_t given[4096];
static const tide_pool_options in_memory = {.memory = given, .memory_bytes = sizeof given};

static tide_status pool_create_in_memory(struct fixture *fixture)
{
    (void)fixture;
    tide_pool *pool = tide_pool_create(&in_memory);
    return pool != NULL ? tide_pool_destroy(pool) : tide_error_status();
}

static void prepare_in_memory(struct fixture *fixture)
{
    replace_pool(fixture, in_memory);
}

static tide_status acquire_in_memory(struct fixture *fixture)
{
    uint8_t *data = tide_acquire(fixture->pool, uint8_t, 100);
    return data == NULL || (data >= given && data < given + sizeof given) ? status_of(data)
                                                                          : TIDE_ERROR_STATE;
}

static tide_status thread_pool(struct fixture *fixture)
{
    (void)fixture;
    tide_pool *pool = tide_pool_local();
    return pool == NULL ? tide_error_status() : status_of(tide_acquire(pool, double, 4));
}

/* Live arrays, free arrays and an open mark. */
static void prepare_mixed(struct fixture *fixture)
{
    need(tide_acquire(fixture->pool, double, 100) != NULL, "acquire");
    tide_mark mark = tide_checkpoint(fixture->pool);
    for (unsigned i = 0; i < 4; i++)
        need(tide_acquire(fixture->pool, float, 100 << i) != NULL, "acquire");
    need(tide_rewind(fixture->pool, mark) == TIDE_OK, "rewind");
    fixture->mark = tide_checkpoint(fixture->pool);
    need(tide_acquire(fixture->pool, float, 10) != NULL, "acquire");
}

/* Giving back must not need anything. */
static tide_status pool_trim(struct fixture *fixture)
{
    return tide_pool_trim(fixture->pool, TIDE_ALL_TYPES).slots == 3 ? TIDE_OK : TIDE_ERROR_STATE;
}

static tide_status pool_compact(struct fixture *fixture)
{
    tide_pool_compact(fixture->pool, TIDE_ALL_TYPES);
    return TIDE_OK;
}

static tide_status pool_reset(struct fixture *fixture)
{
    return tide_pool_reset(fixture->pool);
}

static tide_status pool_empty(struct fixture *fixture)
{
    return tide_pool_empty(fixture->pool);
}

/* The run needs a pool afterwards: the new one is what may be refused. */
static tide_status pool_destroy(struct fixture *fixture)
{
    tide_pool *fresh = tide_pool_create(NULL);
    if (fresh == NULL)
        return tide_error_status();
    tide_status status = tide_pool_destroy(fixture->pool);
    fixture->pool = fresh;
    return status;
}

/* ---- acquire ---------------------------------------------------------------------------- */

static tide_status acquire(struct fixture *fixture)
{
    return status_of(tide_acquire(fixture->pool, double, 100));
}

static tide_status acquire_nothing(struct fixture *fixture)
{
    return status_of(tide_acquire_type(fixture->pool, TIDE_U8, 0));
}

static tide_status acquire_much(struct fixture *fixture)
{
    return status_of(tide_acquire_type(fixture->pool, TIDE_C128, 1 << 18));
}

static tide_status acquire_bits(struct fixture *fixture)
{
    return status_of(tide_acquire_type(fixture->pool, TIDE_BIT, 1000));
}

static tide_status acquire_novel(struct fixture *fixture)
{
    return status_of(tide_acquire(fixture->pool, struct novel, 10));
}

static tide_status acquire_zeros(struct fixture *fixture)
{
    return status_of(tide_zeros(fixture->pool, double, 100));
}

static tide_status acquire_ones(struct fixture *fixture)
{
    return status_of(tide_ones(fixture->pool, int32_t, 100));
}

static tide_status acquire_filled(struct fixture *fixture)
{
    return status_of(tide_fill(fixture->pool, float, 100, 2.5f));
}

/* A free array that is too small, so that it must grow; and content that must survive. */
static void prepare_small(struct fixture *fixture)
{
    need(tide_acquire(fixture->pool, int32_t, 10) != NULL, "acquire");
    tide_mark mark = tide_checkpoint(fixture->pool);
    need(tide_acquire(fixture->pool, double, 10) != NULL, "acquire");
    need(tide_rewind(fixture->pool, mark) == TIDE_OK, "rewind");
}

/* As many arrays of one type as there is room to remember without asking for more. */
static void prepare_eight(struct fixture *fixture)
{
    for (unsigned i = 0; i < 8; i++)
        need(tide_acquire(fixture->pool, double, 10) != NULL, "acquire");
}

/* As many types as there are rows reserved at once. */
static void prepare_all_builtin(struct fixture *fixture)
{
    for (tide_type type = 1; type <= TIDE_BUILTIN_COUNT; type++)
        need(tide_acquire_type(fixture->pool, type, 10) != NULL, "acquire");
    need(tide_type_of(struct novel) != TIDE_NO_TYPE, "type");
}

static bool fail_always(size_t bytes)
{
    (void)bytes;
    return true;
}

/* What was there before the failure is still there: a smaller acquire needs no memory. */
static tide_status acquire_smaller_after(struct fixture *fixture)
{
    memory_fault *fault = get_memory_fault();
    tide_mark mark = tide_checkpoint(fixture->pool);
    tide_status status = status_of(tide_acquire(fixture->pool, double, 100000));
    if (status != TIDE_OK) {
        set_memory_fault(fail_always);
        need(tide_pool_active(fixture->pool, TIDE_F64) == 0, "nothing is live");
        need(tide_acquire(fixture->pool, double, 5) != NULL, "a smaller acquire");
        need(tide_pool_active(fixture->pool, TIDE_F64) == 1, "it is live");
        set_memory_fault(fault);
    }
    need(tide_rewind(fixture->pool, mark) == TIDE_OK, "rewind");
    return status;
}

/* ---- marks ------------------------------------------------------------------------------ */

static tide_status rewind_mark(struct fixture *fixture)
{
    return tide_rewind(fixture->pool, fixture->mark);
}

/* ---- scopes: each acquires two arrays, of which the second may fail ----------------------- */

static void prepare_novel(struct fixture *fixture)
{
    (void)fixture;
    need(tide_type_of(struct novel) != TIDE_NO_TYPE, "type");
}

static void prepare_poison_novel(struct fixture *fixture)
{
    prepare_novel(fixture);
    prepare_poison(fixture);
}

static void prepare_disabled_novel(struct fixture *fixture)
{
    prepare_novel(fixture);
    prepare_disabled(fixture);
}

static void prepare_guard_novel(struct fixture *fixture)
{
    prepare_novel(fixture);
    prepare_guard(fixture);
}

static tide_status acquire_two(tide_pool *pool)
{
    if (tide_acquire(pool, double, 100) == NULL || tide_acquire(pool, struct novel, 10) == NULL)
        return tide_error_status();
    return TIDE_OK;
}

static tide_status scope(struct fixture *fixture)
{
    TIDE_SCOPE_NAMED(fixture->pool, "faults-scope");
    return acquire_two(fixture->pool);
}

static bool find_scope(tide_site *site, void *user)
{
    struct fixture *fixture = user;
    tide_site_information info;
    need(tide_site_info(site, &info) == TIDE_OK, "info");
    if (strcmp(info.name, "faults-scope") == 0)
        fixture->site = site;
    return fixture->site == NULL;
}

static void prepare_table_site(struct fixture *fixture)
{
    tide_site_each(find_scope, fixture);
    const tide_type types[] = {TIDE_F64, tide_type_of(struct novel)};
    need(tide_site_declare(fixture->site, types, 2) == TIDE_OK, "declare");
    need(tide_site_pin(fixture->site, TIDE_TIER_TABLE) == TIDE_OK, "pin");
}

static void prepare_observed(struct fixture *fixture)
{
    prepare_novel(fixture);
    need(tide_profile_observe(true) == TIDE_OK, "observe");
}

static tide_status scope_types(struct fixture *fixture)
{
    TIDE_SCOPE_TYPES(fixture->pool, double, struct novel);
    return acquire_two(fixture->pool);
}

static tide_status scope_frame(struct fixture *fixture)
{
    TIDE_FRAME(fixture->pool, (double, a, 100), (double, b, 200), (int32_t, c, 10),
               (struct novel, d, 10));
    unsigned have = (a != NULL) + (b != NULL) + (c != NULL) + (d != NULL);
    if (have != 0 && have != 4)
        return TIDE_ERROR_STATE;
    return status_of(a);
}

static tide_status scope_loop(struct fixture *fixture)
{
    TIDE_LOOP(fixture->pool, i, 3)
    {
        tide_status status = acquire_two(fixture->pool);
        if (status != TIDE_OK)
            return status;
    }
    return TIDE_OK;
}

static tide_status scope_ffi(struct fixture *fixture)
{
    tide_scope scope;
    tide_status status = tide_scope_enter(fixture->pool, NULL, &scope);
    if (status != TIDE_OK)
        return status;
    status = acquire_two(fixture->pool);
    tide_status left = tide_scope_leave(&scope);
    return left != TIDE_OK ? TIDE_ERROR_STATE : status;
}

/* Its site is listed on first use, or not: that is no failure. */
static tide_status scope_ffi_first(struct fixture *fixture)
{
    tide_scope scope;
    tide_status status = tide_scope_enter(fixture->pool, NULL, &scope);
    return status != TIDE_OK ? status : tide_scope_leave(&scope);
}

static void prepare_ffi(struct fixture *fixture)
{
    prepare_novel(fixture);
    need(scope_ffi_first(fixture) == TIDE_OK, "a first scope");
}

/* ---- sites ------------------------------------------------------------------------------ */

static tide_status site_register(struct fixture *fixture)
{
    fixture->site = tide_site_register("faults-by-name");
    return status_of(fixture->site);
}

static void prepare_site(struct fixture *fixture)
{
    need(site_register(fixture) == TIDE_OK, "site");
}

static tide_status site_declare(struct fixture *fixture)
{
    const tide_type types[] = {TIDE_F64, TIDE_I8, TIDE_F64};
    return tide_site_declare(fixture->site, types, 3);
}

static tide_status site_pin_table(struct fixture *fixture)
{
    return tide_site_pin(fixture->site, TIDE_TIER_TABLE);
}

/* ---- settings and profiles ---------------------------------------------------------------- */

static tide_status observe(struct fixture *fixture)
{
    (void)fixture;
    return tide_profile_observe(true);
}

/* ---- the table -------------------------------------------------------------------------- */

static const struct fault_case cases[] = {
    {"tide_type_register", NULL, type_register, ASKS, "tide_type_register", 0},
    {"tide_type_register, second chunk", prepare_many_types, type_register, ASKS, NULL, 0},
    {"tide_type_of", NULL, type_of, ASKS, NULL, 0},

    {"tide_pool_create", NULL, pool_create, ASKS, "tide_pool_create", 0},
    {"tide_pool_create with options", NULL, pool_create_named, ASKS, "tide_pool_create", 0},
    {"tide_pool_create in memory", NULL, pool_create_in_memory, ASKS, "tide_pool_create", 0},
    {"tide_acquire in memory", prepare_in_memory, acquire_in_memory, ASKS, "tide_acquire", 0},
    {"tide_pool_destroy", prepare_small, pool_destroy, ASKS, NULL, 0},
    {"tide_pool_local", NULL, thread_pool, ASKS, NULL, 0},
    {"tide_pool_trim", prepare_mixed, pool_trim, NEVER, NULL, 0},
    {"tide_pool_compact", prepare_mixed, pool_compact, NEVER, NULL, 0},
    {"tide_pool_reset", prepare_mixed, pool_reset, NEVER, NULL, 0},
    {"tide_pool_empty", prepare_mixed, pool_empty, NEVER, NULL, 0},

    {"tide_acquire", NULL, acquire, ASKS, "tide_acquire", 0},
    {"tide_acquire, poison", prepare_poison, acquire, ASKS, "tide_acquire", 0},
    {"tide_acquire, disabled", prepare_disabled, acquire, ASKS, "tide_acquire", 0},
    {"tide_acquire, guard", prepare_guard, acquire, ASKS, "tide_acquire", 0},
    {"tide_acquire, nothing", NULL, acquire_nothing, ASKS, "tide_acquire", 0},
    {"tide_acquire, much", NULL, acquire_much, ASKS, "tide_acquire", 0},
    {"tide_acquire, bits", NULL, acquire_bits, ASKS, "tide_acquire", 0},
    {"tide_acquire, grow", prepare_small, acquire, ASKS, "tide_acquire", 0},
    {"tide_acquire, ninth slot", prepare_eight, acquire, ASKS, "tide_acquire", 0},
    {"tide_acquire, seventeenth type", prepare_all_builtin, acquire_novel, ASKS, "tide_acquire", 0},
    {"tide_acquire, new type", NULL, acquire_novel, ASKS, NULL, REGISTERS},
    {"tide_acquire, then a smaller one", prepare_small, acquire_smaller_after, ASKS, NULL, 0},
    {"tide_zeros", NULL, acquire_zeros, ASKS, "tide_acquire", 0},
    {"tide_ones", NULL, acquire_ones, ASKS, "tide_acquire", 0},
    {"tide_fill", NULL, acquire_filled, ASKS, "tide_acquire", 0},

    {"tide_rewind", prepare_mixed, rewind_mark, NEVER, NULL, 0},

    {"TIDE_SCOPE, full", prepare_novel, scope, ASKS, "tide_acquire", 0},
    {"TIDE_SCOPE, table", prepare_table_site, scope, ASKS, "tide_acquire", 0},
    {"TIDE_SCOPE, observed", prepare_observed, scope, ASKS, "tide_acquire", 0},
    {"TIDE_SCOPE, poison", prepare_poison_novel, scope, ASKS, "tide_acquire", 0},
    {"TIDE_SCOPE, disabled", prepare_disabled_novel, scope, ASKS, "tide_acquire", 0},
    {"TIDE_SCOPE, guard", prepare_guard_novel, scope, ASKS, "tide_acquire", 0},
    {"TIDE_SCOPE_TYPES", prepare_novel, scope_types, ASKS, "tide_acquire", 0},
    {"TIDE_FRAME", prepare_novel, scope_frame, ASKS, "tide_acquire", 0},
    {"TIDE_FRAME, guard", prepare_guard_novel, scope_frame, ASKS, "tide_acquire", 0},
    {"TIDE_LOOP, guard", prepare_guard_novel, scope_loop, ASKS, "tide_acquire", 0},
    {"TIDE_LOOP", prepare_novel, scope_loop, ASKS, "tide_acquire", 0},
    {"tide_scope_enter, leave", prepare_ffi, scope_ffi, ASKS, "tide_acquire", 0},

    {"tide_site_register", NULL, site_register, ASKS, "tide_site_register", 0},
    {"tide_site_declare", prepare_site, site_declare, ASKS, "tide_site_declare", 0},
    {"tide_site_pin to table", prepare_site, site_pin_table, ASKS, "tide_site_pin", 0},

    {"tide_profile_observe", NULL, observe, ASKS, "tide_profile_observe", 0},
};

const struct fault_list fault_basics = {cases, sizeof cases / sizeof *cases};
