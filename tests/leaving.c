/* SPDX-License-Identifier: MIT */
/* Every way out of a scope: return, break, continue, goto, longjmp; and marks used twice, late
 * or out of order. */
#include <tidepool/dynamic.h>
#include <tidepool/site.h>
#include <tidepool/upkeep.h>

#include "forms.h"

/* ---- jumps that the block sees ---- */

static double use(tide_pool *pool)
{
    double *reals = take(pool, TIDE_F64, 20, 1);
    take(pool, TIDE_F32, 20, 2);
    CHECK_POOL(pool);
    return reals[0];
}

/* clang-format off */
#define IN_SCOPE(k, ...) {TIDE_SCOPE(pool); use(pool); __VA_ARGS__}
#define IN_TYPES(k, ...) {TIDE_SCOPE_TYPES(pool, double, int32_t); use(pool); __VA_ARGS__}
#define IN_FRAME(k, ...) {TIDE_FRAME(pool, (double, TIDE_PASTE(a, k), 9), (int32_t, TIDE_PASTE(b, k), 9)); TIDE_PASTE(a, k)[8] = TIDE_PASTE(b, k)[8] = 1; use(pool); __VA_ARGS__}
/* clang-format on */
#define IN_LOOP(k, ...)                  \
    TIDE_LOOP(pool, TIDE_PASTE(i, k), 2) \
    {                                    \
        use(pool);                       \
        __VA_ARGS__                      \
    }

/* Ways out of `IN`, from inside one scope and from inside three. */
#define EXITS(form, IN)                               \
    static void form##_falls_off(tide_pool *pool)     \
    {                                                 \
        IN(1, IN(2, IN(3, use(pool);)))               \
    }                                                 \
    static void form##_return_1(tide_pool *pool)      \
    {                                                 \
        IN(1, return;)                                \
    }                                                 \
    static void form##_return_3(tide_pool *pool)      \
    {                                                 \
        IN(1, IN(2, IN(3, return;)))                  \
    }                                                 \
    static void form##_break_1(tide_pool *pool)       \
    {                                                 \
        for (int i = 0; i < 3; i++)                   \
            IN(1, break;)                             \
    }                                                 \
    static void form##_break_3(tide_pool *pool)       \
    {                                                 \
        for (int i = 0; i < 3; i++)                   \
            IN(1, IN(2, IN(3, if (i == 1) break;)))   \
    }                                                 \
    static void form##_continue_1(tide_pool *pool)    \
    {                                                 \
        for (int i = 0; i < 3; i++)                   \
            IN(1, if (i < 2) continue;)               \
    }                                                 \
    static void form##_continue_3(tide_pool *pool)    \
    {                                                 \
        for (int i = 0; i < 3; i++)                   \
            IN(1, IN(2, IN(3, if (i < 2) continue;))) \
    }                                                 \
    static void form##_goto_1(tide_pool *pool)        \
    {                                                 \
        IN(1, goto out;)                              \
    out:                                              \
        CHECK_POOL(pool);                             \
    }                                                 \
    static void form##_goto_3(tide_pool *pool)        \
    {                                                 \
        IN(1, IN(2, IN(3, goto out;)))                \
    out:                                              \
        CHECK_POOL(pool);                             \
    }                                                 \
    static void form##_goto_back(tide_pool *pool)     \
    {                                                 \
        int times = 0;                                \
    again:                                            \
        assert_int_equal(tide_pool_depth(pool), 1);   \
        IN(1, IN(2, if (times++ < 3) goto again;))    \
    }                                                 \
    static void form##_switch(tide_pool *pool)        \
    {                                                 \
        for (int i = 0; i < 3; i++) {                 \
            switch (i) {                              \
            case 0: IN(1, break;) break;              \
            case 1: IN(1, IN(2, continue;)) break;    \
            default: IN(1, return;)                   \
            }                                         \
        }                                             \
    }

EXITS(scope, IN_SCOPE)
EXITS(types, IN_TYPES)
EXITS(frame, IN_FRAME)
EXITS(loop, IN_LOOP)

static void mixed_return(tide_pool *pool)
{
    IN_SCOPE(1, IN_FRAME(2, IN_LOOP(3, IN_TYPES(4, IN_SCOPE(5, IN_LOOP(6, return;))))))
}

static void mixed_break(tide_pool *pool)
{
    for (int i = 0; i < 2; i++)
        IN_LOOP(1, IN_TYPES(2, IN_SCOPE(3, IN_FRAME(4, break;))))
}

static void mixed_goto(tide_pool *pool)
{
    IN_FRAME(1, IN_SCOPE(2, IN_TYPES(3, IN_LOOP(4, goto out;))))
out:
    CHECK_POOL(pool);
}

struct way_out {
    const char *name;
    void (*run)(tide_pool *pool);
};
/* clang-format off */
#define WAY(name) {#name, name}
/* clang-format on */
#define WAYS(form)                                                                               \
    WAY(form##_falls_off), WAY(form##_return_1), WAY(form##_return_3), WAY(form##_break_1),      \
        WAY(form##_break_3), WAY(form##_continue_1), WAY(form##_continue_3), WAY(form##_goto_1), \
        WAY(form##_goto_3), WAY(form##_goto_back), WAY(form##_switch)

static const struct way_out ways[] = {
    WAYS(scope),       WAYS(types),      WAYS(frame),     WAYS(loop),
    WAY(mixed_return), WAY(mixed_break), WAY(mixed_goto),
};

struct tier_of_file {
    tide_tier tier;
    size_t sites, pinned; /* of this file; of those, at the tier */
    bool pin;
};

/* The sites of this file that stand for TIDE_SCOPE; with `pin`, pins them first. */
static bool count_at_tier(tide_site *site, void *user)
{
    static const tide_type known[] = {TIDE_F64, TIDE_I32};
    struct tier_of_file *wanted = user;
    tide_site_information info;
    if (site->place.file == NULL || strcmp(site->place.file, __FILE__) != 0)
        return true;
    if (wanted->pin) {
        expect_ok(tide_site_declare(site, known, 2));
        expect_ok(tide_site_pin(site, wanted->tier));
    }
    expect_ok(tide_site_info(site, &info));
    wanted->sites++;
    wanted->pinned += info.tier == wanted->tier && info.pinned;
    return true;
}

static void expect_file_at(tide_tier tier, bool pin)
{
    struct tier_of_file wanted = {tier, 0, 0, pin};
    tide_site_each(count_at_tier, &wanted);
    assert_true(wanted.sites >= 20);
    assert_int_equal(wanted.pinned, wanted.sites);
}

static void leave_each_way(tide_pool *pool)
{
    double *outer = take(pool, TIDE_F64, 33, 7);
    tide_mark mark = tide_checkpoint(pool);
    float *middle = take(pool, TIDE_F32, 44, 8);
    counts before = counts_of(pool);
    for (size_t i = 0; i < 3 * sizeof ways / sizeof ways[0]; i++) {
        note("%s", ways[i / 3].name);
        ways[i / 3].run(pool);
        counts_same(before, pool);
        expect_bytes(outer, 33 * sizeof *outer, 7);
        expect_bytes(middle, 44 * sizeof *middle, 8);
    }
    expect_ok(tide_rewind(pool, mark));
    expect_ok(tide_pool_reset(pool));
}

static void every_jump_out_of_a_scope_rewinds_it(void **state)
{
    static const tide_tier tiers[] = {TIDE_TIER_FULL, TIDE_TIER_TABLE};
    static const tide_check checks[] = {TIDE_CHECK_NONE, TIDE_CHECK_POISON};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        expect_file_at(tiers[i / 2], true);
        tide_pool *pool = pool_of(checks[i % 2]);
        leave_each_way(pool);
        expect_file_at(tiers[i / 2], false);
        expect_ok(tide_pool_destroy(pool));
    }
}

static double result_of_scope(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    double *r = tide_fill(pool, double, 3, 42.5);
    return r[2];
}

static double result_of_types(tide_pool *pool)
{
    TIDE_SCOPE_TYPES(pool, double);
    double *r = tide_fill(pool, double, 3, 43.5);
    return r[2];
}

static double result_of_frame(tide_pool *pool)
{
    TIDE_FRAME(pool, (double, r, 3));
    r[2] = 44.5;
    return r[2];
}

static double result_of_loop(tide_pool *pool)
{
    TIDE_LOOP(pool, i, 3)
    {
        double *r = tide_fill(pool, double, 3, 45.5);
        if (i == 1)
            return r[2];
    }
    return 0;
}

static void a_result_is_computed_before_the_rewind(void **state)
{
    (void)state;
    EACH_CHECK_LEVEL(check, TIDE_CHECK_POISON)
    {
        tide_pool *pool = pool_of((tide_check)check);
        for (int i = 0; i < 3; i++) {
            assert_true(result_of_scope(pool) == 42.5);
            assert_true(result_of_types(pool) == 43.5);
            assert_true(result_of_frame(pool) == 44.5);
            assert_true(result_of_loop(pool) == 45.5);
            counts_same((counts){0, 0, 0, 0}, pool);
        }
        expect_ok(tide_pool_destroy(pool));
    }
}

/* ---- longjmp ---- */

struct leap {
    jmp_buf landing;
    const form *inner;
    size_t depth;   /* levels to open before the leap */
    size_t outside; /* the depth at the landing place */
};

static void leap_out(tide_pool *pool, void *state)
{
    struct leap *leap = state;
    take(pool, TIDE_F64, 25, 5);
    take(pool, TIDE_U16, 25, 6);
    CHECK_POOL(pool);
    assert_int_equal(tide_pool_depth(pool), leap->outside + leap->depth);
    longjmp(leap->landing, 1);
}

static void land(tide_pool *pool, void *state)
{
    struct leap *leap = state;
    uint8_t *volatile reals = take(pool, TIDE_F64, 12, 1);
    uint8_t *volatile shorts = take(pool, TIDE_U16, 120, 2);
    leap->outside = tide_pool_depth(pool);
    assert_int_equal(leap->outside, 1);
    if (setjmp(leap->landing) == 0)
        form_nest(leap->inner, leap->depth, pool, leap_out, leap);
    expect_bytes(reals, 12 * sizeof(double), 1);
    expect_bytes(shorts, 120 * sizeof(uint16_t), 2);
    CHECK_POOL(pool);
    uint8_t *more = take(pool, TIDE_F64, 50, 3);
    expect_bytes(reals, 12 * sizeof(double), 1);
    expect_bytes(more, 50 * sizeof(double), 3);
}

static void leap_from_each_inner_form(const scene *s, size_t depth)
{
    counts before = counts_of(s->pool);
    EACH_FORM(inner)
    {
        struct leap leap = {.inner = inner, .depth = depth};
        note("inner %s", inner->name);
        form_run(s->form, s->pool, land, &leap);
        counts_same(before, s->pool);
        form_repeat(s->form, s->pool, 3, land, &leap);
        counts_same(before, s->pool);
    }
}

static void a_scope_cleans_up_an_inner_one_skipped_by_longjmp(const scene *s)
{
    leap_from_each_inner_form(s, 1);
}

static void a_scope_cleans_up_two_leaked_levels(const scene *s)
{
    leap_from_each_inner_form(s, 2);
}

/* ---- marks ---- */

static void refuse(tide_pool *pool, tide_mark mark, tide_status why)
{
    snapshot before = snapshot_take(pool);
    expect_status(tide_rewind(pool, mark), why);
    assert_int_equal(tide_error_status(), why);
    assert_non_null(strstr(tide_error_message(), "tide_rewind"));
    snapshot_same(&before, pool);
    snapshot_drop(&before);
    CHECK_POOL(pool);
}

static void reset_makes_marks_stale(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    tide_mark outer = tide_checkpoint(pool), inner = tide_checkpoint(pool);
    expect_ok(tide_pool_reset(pool));
    refuse(pool, inner, TIDE_ERROR_STALE);
    refuse(pool, outer, TIDE_ERROR_STALE);
    tide_mark fresh = tide_checkpoint(pool);
    refuse(pool, outer, TIDE_ERROR_STALE);
    expect_ok(tide_rewind(pool, fresh));
    expect_status(tide_rewind(NULL, fresh), TIDE_ERROR_ARGUMENT);
    expect_ok(tide_pool_destroy(pool));
}

/* ---- scopes that are left by a call ---- */

static void refuse_leave(tide_pool *pool, tide_scope *scope, tide_status why)
{
    snapshot before = snapshot_take(pool);
    expect_status(tide_scope_leave(scope), why);
    assert_non_null(strstr(tide_error_message(), "tide_scope_leave"));
    snapshot_same(&before, pool);
    snapshot_drop(&before);
}

static void a_scope_left_twice_or_too_late_is_refused(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    tide_scope outer, inner;
    tide_mark mark = tide_checkpoint(pool);
    expect_ok(tide_scope_enter(pool, NULL, &outer));
    expect_ok(tide_scope_enter(pool, NULL, &inner));
    take(pool, TIDE_F64, 9, 1);
    expect_ok(tide_scope_leave(&inner));
    refuse_leave(pool, &inner, TIDE_ERROR_STALE);
    expect_ok(tide_scope_enter(pool, NULL, &inner));
    take(pool, TIDE_F64, 9, 1);
    expect_ok(tide_scope_leave(&outer));
    assert_int_equal(tide_pool_depth(pool), 1);
    refuse_leave(pool, &inner, TIDE_ERROR_STALE);
    refuse_leave(pool, &outer, TIDE_ERROR_STALE);
    expect_ok(tide_scope_enter(pool, NULL, &outer));
    expect_ok(tide_rewind(pool, mark));
    refuse_leave(pool, &outer, TIDE_ERROR_STALE);
    expect_ok(tide_scope_enter(pool, NULL, &inner));
    expect_ok(tide_pool_reset(pool));
    refuse_leave(pool, &inner, TIDE_ERROR_STALE);
    counts_same((counts){0, 0, 0, 0}, pool);
    expect_ok(tide_pool_destroy(pool));
}

static void entering_nothing_is_refused(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    tide_scope scope;
    expect_status(tide_scope_enter(NULL, NULL, &scope), TIDE_ERROR_ARGUMENT);
    assert_null(scope.pool);
    assert_int_not_equal(tide_scope_leave(&scope), TIDE_OK);
    expect_status(tide_scope_enter(pool, NULL, NULL), TIDE_ERROR_ARGUMENT);
    expect_status(tide_scope_leave(NULL), TIDE_ERROR_ARGUMENT);
    counts_same((counts){0, 0, 0, 0}, pool);
    expect_ok(tide_pool_destroy(pool));
}

static const form_case cases[] = {
    CASE(a_scope_cleans_up_an_inner_one_skipped_by_longjmp),
    CASE(a_scope_cleans_up_two_leaked_levels),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(every_jump_out_of_a_scope_rewinds_it),
    cmocka_unit_test(a_result_is_computed_before_the_rewind),
    cmocka_unit_test(reset_makes_marks_stale),
    cmocka_unit_test(a_scope_left_twice_or_too_late_is_refused),
    cmocka_unit_test(entering_nothing_is_refused),
};

int main(void)
{
    return FORMS_MAIN("leaving", cases, others);
}
