/* SPDX-License-Identifier: MIT */
/* Acquires, arrays and frames as call sites: as macros, by calls, in C and C++; at first as they
 * come, then all once more when they have been compiled. They do what the plain calls do. */
#include "callsites.h"

#include <pthread.h>
#include <stdio.h>

#include <tidepool/array.h>
#include <tidepool/callsite.h>
#include <tidepool/dynamic.h>
#include <tidepool/learn.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

/* ---- ways --------------------------------------------------------------------------------- */

static void *acquire_by_macro(tide_pool *pool, tide_type type, size_t n)
{
    return TIDE_ACQUIRE_SITE(pool, type, n);
}

static void *acquire_by_call(tide_pool *pool, tide_type type, size_t n)
{
    return tide_site_acquire(tide_site_register_kind("callsites: acquire", TIDE_KIND_ACQUIRE), pool,
                             type, n);
}

static tide_array *array_by_macro(tide_pool *pool, tide_type type, int ndim, const int64_t *shape)
{
    return TIDE_ARRAY_SITE(pool, type, ndim, shape);
}

static tide_array *array_by_call(tide_pool *pool, tide_type type, int ndim, const int64_t *shape)
{
    return tide_site_acquire_array(tide_site_register_kind("callsites: array", TIDE_KIND_ARRAY),
                                   pool, type, ndim, shape);
}

static tide_status frame_by_macro(tide_pool *pool, size_t n, frame_body *body, void *state)
{
    TIDE_FRAME_SITE(pool, (double, a, n), (int32_t, b, n), (double, c, n));
    void *const data[] = {a, b, c};
    body(pool, data, n, state);
    return TIDE_OK;
}

static tide_site *frame_site(void)
{
    return tide_site_register_kind("callsites: frame", TIDE_KIND_FRAME);
}

static tide_status frame_by_call(tide_pool *pool, size_t n, frame_body *body, void *state)
{
    static const tide_type types[] = {TIDE_F64, TIDE_I32, TIDE_F64};
    const size_t sizes[] = {n, n, n};
    void *data[3];
    tide_scope scope;
    tide_status status = tide_scope_enter_frame(pool, frame_site(), 3, types, sizes, data, &scope);
    if (status != TIDE_OK && data[0] != NULL)
        return TIDE_ERROR_STATE;
    body(pool, data, n, state);
    tide_status left = tide_scope_leave(&scope);
    return status != TIDE_OK ? status : left;
}

static const acquire_way acquire_ways_c[] = {
    {"c macro", acquire_by_macro}, {"c call", acquire_by_call}, {NULL, NULL}};
static const array_way array_ways_c[] = {
    {"c macro", array_by_macro}, {"c call", array_by_call}, {NULL, NULL}};
static const frame_way frame_ways_c[] = {
    {"c macro", frame_by_macro}, {"c call", frame_by_call}, {NULL, NULL}};

static const acquire_way *const acquire_ways[] = {acquire_ways_c, acquire_ways_cpp};
static const array_way *const array_ways[] = {array_ways_c, array_ways_cpp};
static const frame_way *const frame_ways[] = {frame_ways_c, frame_ways_cpp};

#define EACH_WAY(type, way)                          \
    for (size_t way##_t = 0; way##_t < 2; way##_t++) \
        for (const type##_way *way = type##_ways[way##_t]; way->name != NULL; way++)

/* ---- learning ----------------------------------------------------------------------------- */

static const int64_t usual_shape[] = {4, 5}, other_shape[] = {2, 3, 4};

static void nothing(tide_pool *pool, void *const *data, size_t n, void *state)
{
    (void)pool, (void)data, (void)n, (void)state;
}

/* First touches are not theirs: they would take the general path. */
static void use_all(tide_pool *pool)
{
    for (size_t i = 0; i < 250; i++) {
        tide_mark mark = tide_checkpoint(pool);
        take(pool, TIDE_F64, 1, 1);
        take(pool, TIDE_I32, 1, 1);
        tide_type type = i % 4 != 0 ? TIDE_F64 : TIDE_I32;
        EACH_WAY(acquire, way)
        assert_non_null(way->acquire(pool, type, 10));
        EACH_WAY(array, way)
        assert_non_null(i % 4 != 0 ? way->acquire(pool, TIDE_F64, 2, usual_shape)
                                   : way->acquire(pool, TIDE_I32, 3, other_shape));
        EACH_WAY(frame, way)
        expect_ok(way->run(pool, 10, nothing, NULL));
        expect_ok(tide_rewind(pool, mark));
    }
}

struct tally {
    size_t sites, compiled;
    uint64_t runs, misses;
    bool pin;
};

static bool is_ours(const tide_site_information *info)
{
    return info->kind != TIDE_KIND_SCOPE &&
           (strstr(info->file, "callsites") != NULL || strncmp(info->name, "callsites", 9) == 0);
}

static bool count_ours(tide_site *site, void *user)
{
    struct tally *tally = user;
    tide_site_information info;
    expect_ok(tide_site_info(site, &info));
    if (!is_ours(&info))
        return true;
    note("%s, a site of kind %s: %s", info.name, tide_kind_name(info.kind), info.reason);
    if (tally->pin)
        expect_ok(tide_site_pin(site, TIDE_TIER_COMPILED));
    tally->sites++;
    tally->compiled += info.tier == TIDE_TIER_COMPILED;
    tally->runs += info.runs;
    tally->misses += info.misses;
    return true;
}

static struct tally count_sites(bool pin)
{
    struct tally tally = {.pin = pin};
    tide_site_each(count_ours, &tally);
    return tally;
}

/* Those of C are known from the start, those of C++ once they were used; the two calls' are
 * named. */
static void each_way_is_a_site_of_its_own(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    use_all(pool);
    size_t ways = 0;
    EACH_WAY(acquire, way)
    ways++;
    EACH_WAY(array, way)
    ways++;
    EACH_WAY(frame, way)
    ways++;
    assert_int_equal(count_sites(false).sites, ways);
    assert_int_equal(count_sites(false).compiled, 0);
    expect_ok(tide_pool_destroy(pool));
}

static void used_often_they_are_all_compiled(void **state)
{
    (void)state;
    if (!have_stager())
        skip();
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    expect_ok(tide_tune_set("learn", 1));
    struct tally tally = {0};
    for (int i = 0; i < 500 && (i == 0 || tally.compiled < tally.sites); i++) {
        expect_ok(tide_settle(60000));
        use_all(pool);
        tally = count_sites(false);
    }
    assert_int_equal(tally.compiled, tally.sites);
    count_sites(true);
    use_all(pool);
    struct tally before = count_sites(false);
    use_all(pool);
    assert_int_equal(count_sites(false).runs, before.runs + 250 * before.sites);
    assert_int_equal(count_sites(false).misses, before.misses);
    expect_ok(tide_pool_destroy(pool));
}

/* ---- acquires ----------------------------------------------------------------------------- */

static void expect_acquired(tide_pool *pool, const acquire_way *way, tide_type type, size_t n)
{
    size_t live = tide_pool_active(pool, type);
    uint8_t *data = way->acquire(pool, type, n);
    assert_non_null(data);
    assert_int_equal((uintptr_t)data % 64, 0);
    fill_bytes(data, n * tide_type_size(type), 3);
    assert_int_equal(tide_pool_active(pool, type), live + 1);
}

static void each_type_and_size_is_given(tide_pool *pool)
{
    static const size_t sizes[] = {10, 0, 1, 1000, 10, 70000};
    tide_type fresh = fresh_type();
    EACH_WAY(acquire, way)
    {
        note("%s", way->name);
        uint8_t *outer = take(pool, TIDE_F64, 10, 1);
        counts before = counts_of(pool);
        for (int round = 0; round < 3; round++) {
            TIDE_SCOPE(pool);
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                expect_acquired(pool, way, TIDE_F64, sizes[i]);
                expect_acquired(pool, way, TIDE_I32, sizes[i]);
                expect_acquired(pool, way, TIDE_U8, sizes[i]);
                expect_acquired(pool, way, fresh, sizes[i]);
            }
            CHECK_POOL(pool);
        }
        counts_same(before, pool);
        expect_bytes(outer, 10 * sizeof(double), 1);
    }
}

static void expect_refused(tide_pool *pool, const void *got, tide_status status,
                           const snapshot *before)
{
    assert_null(got);
    assert_int_equal(tide_error_status(), status);
    snapshot_same(before, pool);
}

static void a_refused_acquire_changes_nothing(tide_pool *pool)
{
    take(pool, TIDE_F64, 10, 1);
    EACH_WAY(acquire, way)
    {
        note("%s", way->name);
        TIDE_SCOPE(pool);
        expect_acquired(pool, way, TIDE_F64, 10);
        snapshot before = snapshot_take(pool);
        const tide_type bad[] = {TIDE_NO_TYPE, tide_type_count() + 1, TIDE_TYPE_LIMIT - 1,
                                 TIDE_TYPE_LIMIT, UINT32_MAX};
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
            expect_refused(pool, way->acquire(pool, bad[i], 10), TIDE_ERROR_TYPE, &before);
        expect_refused(pool, way->acquire(pool, TIDE_F64, SIZE_MAX), TIDE_ERROR_SIZE, &before);
        expect_refused(pool, way->acquire(pool, TIDE_F64, SIZE_MAX / 8 + 1), TIDE_ERROR_SIZE,
                       &before);
        expect_refused(pool, way->acquire(NULL, TIDE_F64, 10), TIDE_ERROR_ARGUMENT, &before);
        snapshot_drop(&before);
        CHECK_POOL(pool);
    }
}

/* ---- arrays ------------------------------------------------------------------------------- */

static void expect_array(tide_pool *pool, const array_way *way, tide_type type, int ndim,
                         const int64_t *shape)
{
    size_t live = tide_pool_active(pool, type);
    tide_array *array = way->acquire(pool, type, ndim, shape);
    assert_non_null(array);
    assert_int_equal(array->tensor.ndim, ndim);
    size_t elements = 1;
    for (int d = ndim; d-- > 0;) {
        assert_int_equal(array->tensor.shape[d], shape[d]);
        if (elements > 1)
            assert_int_equal(array->tensor.strides[d], elements);
        elements *= (size_t)shape[d];
    }
    assert_true(tide_array_contiguous(array, TIDE_ROW_MAJOR));
    fill_bytes(tide_array_data(array), elements * tide_type_size(type), 5);
    assert_int_equal(tide_pool_active(pool, type), live + 1);
}

static void each_shape_is_given(tide_pool *pool)
{
    static const int64_t shapes[][3] = {{4, 5, 1}, {5, 4, 1}, {4, 5, 6}, {2, 3, 4}, {100, 7, 9}};
    EACH_WAY(array, way)
    {
        note("%s", way->name);
        counts before = counts_of(pool);
        for (int round = 0; round < 3; round++) {
            TIDE_SCOPE(pool);
            expect_array(pool, way, TIDE_F64, 2, usual_shape);
            expect_array(pool, way, TIDE_I32, 3, other_shape);
            expect_array(pool, way, TIDE_F64, 3, other_shape);
            expect_array(pool, way, TIDE_I32, 2, usual_shape);
            for (size_t i = 0; i < 5; i++)
                for (int ndim = 0; ndim <= 3; ndim++)
                    expect_array(pool, way, TIDE_F64, ndim, shapes[i]);
            CHECK_POOL(pool);
        }
        counts_same(before, pool);
    }
}

static void a_refused_array_changes_nothing(tide_pool *pool)
{
    static const int64_t negative[] = {4, -5}, vast[] = {INT64_MAX, 4},
                         ones[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    EACH_WAY(array, way)
    {
        note("%s", way->name);
        TIDE_SCOPE(pool);
        expect_array(pool, way, TIDE_F64, 2, usual_shape);
        snapshot before = snapshot_take(pool);
        expect_refused(pool, way->acquire(pool, TIDE_F64, 2, negative), TIDE_ERROR_SIZE, &before);
        expect_refused(pool, way->acquire(pool, TIDE_F64, 2, vast), TIDE_ERROR_SIZE, &before);
        expect_refused(pool, way->acquire(pool, TIDE_F64, -1, ones), TIDE_ERROR_SIZE, &before);
        expect_refused(pool, way->acquire(pool, TIDE_F64, TIDE_NDIM_MAX + 1, ones), TIDE_ERROR_SIZE,
                       &before);
        expect_refused(pool, way->acquire(pool, TIDE_F64, 2, NULL), TIDE_ERROR_ARGUMENT, &before);
        expect_refused(pool, way->acquire(pool, TIDE_TYPE_LIMIT, 2, usual_shape), TIDE_ERROR_TYPE,
                       &before);
        expect_refused(pool, way->acquire(NULL, TIDE_F64, 2, usual_shape), TIDE_ERROR_ARGUMENT,
                       &before);
        snapshot_drop(&before);
        CHECK_POOL(pool);
    }
}

/* ---- frames ------------------------------------------------------------------------------- */

static void use_frame(tide_pool *pool, void *const *data, size_t n, void *state)
{
    size_t *depth = state;
    *depth = tide_pool_depth(pool);
    for (int i = 0; i < 3; i++) {
        assert_non_null(data[i]);
        assert_int_equal((uintptr_t)data[i] % 64, 0);
        fill_bytes(data[i], n * (i == 1 ? 4 : 8), (unsigned)i);
    }
    take(pool, TIDE_F64, n, 7);
    take(pool, TIDE_U16, n, 8);
    for (int i = 0; i < 3; i++)
        expect_bytes(data[i], n * (i == 1 ? 4 : 8), (unsigned)i);
    assert_int_equal(tide_pool_active(pool, TIDE_I32), 1);
    CHECK_POOL(pool);
}

static void a_frame_has_all_its_arrays_and_gives_them_back(tide_pool *pool)
{
    static const size_t sizes[] = {10, 0, 1, 1000, 70000, 10};
    uint8_t *outer = take(pool, TIDE_F64, 10, 1);
    EACH_WAY(frame, way)
    {
        note("%s", way->name);
        counts before = counts_of(pool);
        for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
            size_t depth = 0;
            expect_ok(way->run(pool, sizes[i / 2], use_frame, &depth));
            assert_int_equal(depth, before.depth + 1);
            counts_same(before, pool);
        }
    }
    expect_bytes(outer, 10 * sizeof(double), 1);
}

static void expect_none(tide_pool *pool, void *const *data, size_t n, void *state)
{
    (void)n;
    for (int i = 0; i < 3; i++)
        assert_null(data[i]);
    *(bool *)state = true;
    if (pool != NULL)
        assert_int_equal(tide_pool_active(pool, TIDE_I32), 0);
}

static void a_frame_that_cannot_be_had_is_empty(tide_pool *pool)
{
    EACH_WAY(frame, way)
    {
        note("%s", way->name);
        bool called = false, block = strstr(way->name, "call") == NULL;
        counts before = counts_of(pool);
        tide_status status = way->run(pool, SIZE_MAX / 16, expect_none, &called);
        assert_true(called);
        counts_same(before, pool);
        assert_true(block || status == TIDE_ERROR_SIZE || status == TIDE_ERROR_MEMORY);
        if (block) {
            called = false;
            expect_ok(way->run(NULL, 10, expect_none, &called));
            assert_true(called);
        }
    }
}

/* ---- wrong calls -------------------------------------------------------------------------- */

static void the_wrong_kind_of_site_is_refused(tide_pool *pool)
{
    static const tide_type types[] = {TIDE_F64};
    static const size_t sizes[] = {1};
    tide_site *scopes = tide_site_register("a scope's"), *frames = frame_site();
    void *data[1];
    tide_scope scope;
    counts before = counts_of(pool);
    expect_status(tide_scope_enter_frame(pool, scopes, 1, types, sizes, data, &scope),
                  TIDE_ERROR_ARGUMENT);
    expect_status(tide_scope_enter(pool, frames, &scope), TIDE_ERROR_ARGUMENT);
    counts_same(before, pool);
}

static void a_wrong_frame_is_refused(tide_pool *pool)
{
    static const tide_type types[9] = {TIDE_F64};
    static const size_t sizes[9] = {1};
    void *data[9];
    tide_scope scope;
    counts before = counts_of(pool);
    tide_site *site = frame_site();
    expect_status(tide_scope_enter_frame(pool, NULL, 1, types, sizes, data, &scope),
                  TIDE_ERROR_ARGUMENT);
    expect_status(tide_scope_enter_frame(pool, site, 1, NULL, sizes, data, &scope),
                  TIDE_ERROR_ARGUMENT);
    expect_status(tide_scope_enter_frame(pool, site, 1, types, NULL, data, &scope),
                  TIDE_ERROR_ARGUMENT);
    expect_status(tide_scope_enter_frame(pool, site, 1, types, sizes, NULL, &scope),
                  TIDE_ERROR_ARGUMENT);
    expect_status(tide_scope_enter_frame(pool, site, 1, types, sizes, data, NULL),
                  TIDE_ERROR_ARGUMENT);
    expect_status(tide_scope_enter_frame(NULL, site, 1, types, sizes, data, &scope),
                  TIDE_ERROR_ARGUMENT);
    expect_status(tide_scope_enter_frame(pool, site, 9, types, sizes, data, &scope),
                  TIDE_ERROR_LIMIT);
    assert_non_null(strstr(tide_error_message(), "9 arrays"));
    counts_same(before, pool);
    CHECK_POOL(pool);
}

/* ---- the run ------------------------------------------------------------------------------ */

typedef void behaviour(tide_pool *pool);

static const struct {
    const char *name;
    behaviour *run;
} behaviours[] = {
/* clang-format off */
#define B(function) {#function, function}
    /* clang-format on */
    B(each_type_and_size_is_given),
    B(a_refused_acquire_changes_nothing),
    B(each_shape_is_given),
    B(a_refused_array_changes_nothing),
    B(a_frame_has_all_its_arrays_and_gives_them_back),
    B(a_frame_that_cannot_be_had_is_empty),
    B(the_wrong_kind_of_site_is_refused),
    B(a_wrong_frame_is_refused),
};
enum { BEHAVIOURS = sizeof behaviours / sizeof *behaviours, KINDS = 4, ROUNDS = 2 };

static const tide_pool_options pools[KINDS] = {{.name = "unchecked"},
                                               {.name = "poison", .check = TIDE_CHECK_POISON},
                                               {.name = "guarded", .check = TIDE_CHECK_GUARD},
                                               {.name = "disabled", .disabled = true}};

static struct planned {
    behaviour *run;
    const tide_pool_options *pool;
    char name[120];
} planned[ROUNDS * BEHAVIOURS * KINDS];

static void run_planned(void **state)
{
    const struct planned *p = *state;
    tide_pool *pool = tide_pool_create(p->pool);
    assert_non_null(pool);
    p->run(pool);
    CHECK_POOL(pool);
    assert_int_equal(tide_pool_depth(pool), 0);
    expect_ok(tide_pool_destroy(pool));
}

static size_t plan(struct CMUnitTest *tests, size_t count, struct planned *next, const char *tier)
{
    for (size_t b = 0; b < BEHAVIOURS; b++)
        for (size_t k = 0; k < KINDS; k++, next++) {
            next->run = behaviours[b].run;
            next->pool = &pools[k];
            snprintf(next->name, sizeof next->name, "%s [%s, %s]", behaviours[b].name, tier,
                     pools[k].name);
            tests[count++] = (struct CMUnitTest){next->name, run_planned, NULL, NULL, next};
        }
    return count;
}

/* Before they learn the sites run as they come. */
static bool set_up(void)
{
    return tide_tune_set("background", 0) == TIDE_OK && tide_tune_set("trial", 0) == TIDE_OK &&
           tide_tune_set("count_runs", 1) == TIDE_OK && tide_tune_set("learn", 0) == TIDE_OK;
}

int main(void)
{
    static struct CMUnitTest tests[ROUNDS * BEHAVIOURS * KINDS + 2];
    size_t count = 0;
    if (!set_up())
        return EXIT_FAILURE;
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(each_way_is_a_site_of_its_own);
    count = plan(tests, count, planned, "general");
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(used_often_they_are_all_compiled);
    if (have_stager())
        count = plan(tests, count, planned + BEHAVIOURS * KINDS, "compiled");
    return _cmocka_run_group_tests("callsites", tests, count, NULL, NULL);
}
