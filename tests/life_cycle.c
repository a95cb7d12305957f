/* SPDX-License-Identifier: MIT */
/* The life of an array: acquired, used, rewound, acquired again. */
#include <tidepool/dynamic.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

#include "forms.h"
#include "hooks.h"

/* ---- the same slots again ---- */

struct addresses {
    void *first[5];
    size_t rounds;
};

/* Two types that the form knows, two it does not, in a fixed order. */
static void acquire_five(tide_pool *pool, void *state)
{
    struct addresses *seen = state;
    void *now[5] = {take(pool, TIDE_F64, 100, 1), take(pool, TIDE_F32, 50, 2),
                    take(pool, TIDE_F64, 10, 3), take(pool, TIDE_I32, 1, 4),
                    take(pool, TIDE_U8, 3000, 5)};
    CHECK_POOL(pool);
    for (size_t i = 0; i < 5; i++)
        for (size_t j = 0; j < i; j++)
            assert_ptr_not_equal(now[i], now[j]);
    if (seen->rounds++ == 0)
        memcpy(seen->first, now, sizeof now);
    assert_memory_equal(seen->first, now, sizeof now);
}

static void a_rewound_pool_gives_the_same_memory_in_the_same_order(const scene *s)
{
    struct addresses seen = {.rounds = 0};
    counts before = counts_of(s->pool);
    form_run(s->form, s->pool, acquire_five, &seen);
    counts_same(before, s->pool);
    form_run(s->form, s->pool, acquire_five, &seen);
    form_repeat(s->form, s->pool, 5, acquire_five, &seen);
    counts_same(before, s->pool);
    assert_int_equal(seen.rounds, 7);
}

/* ---- nesting ---- */

static void acquire_and_overwrite(tide_pool *pool, void *state)
{
    (void)state;
    take(pool, TIDE_F64, 40, 11);
    take(pool, TIDE_I32, 400, 12);
    take(pool, TIDE_F32, 4000, 13);
    CHECK_POOL(pool);
}

static void nest_in_each_form(tide_pool *pool, void *state)
{
    (void)state;
    double *reals = take(pool, TIDE_F64, 30, 1);
    float *floats = take(pool, TIDE_F32, 300, 2);
    EACH_FORM(inner)
    {
        note("inner %s", inner->name);
        counts before = counts_of(pool);
        form_run(inner, pool, acquire_and_overwrite, NULL);
        counts_same(before, pool);
        expect_bytes(reals, 30 * sizeof *reals, 1);
        expect_bytes(floats, 300 * sizeof *floats, 2);
    }
}

static void the_end_of_an_inner_scope_leaves_outer_arrays_intact(const scene *s)
{
    form_run(s->form, s->pool, nest_in_each_form, NULL);
    form_run(s->form, s->pool, nest_in_each_form, NULL);
}

static void every_form_nests_in_every_other_to_depth_40(const scene *s)
{
    counts before = counts_of(s->pool);
    form_nest(s->form, 40, s->pool, acquire_and_overwrite, NULL);
    counts_same(before, s->pool);
}

/* ---- nothing ---- */

static void nothing(tide_pool *pool, void *state)
{
    (void)state;
    CHECK_POOL(pool);
}

static void an_empty_scope_leaves_every_field_as_it_was(const scene *s)
{
    form_run(s->form, s->pool, acquire_and_overwrite, NULL);
    form_run(s->form, s->pool, nothing, NULL);
    take(s->pool, TIDE_F64, 3, 1);
    take(s->pool, TIDE_U16, 3, 1);
    form_run(s->form, s->pool, nothing, NULL); /* a frame may need another slot, this once */
    snapshot before = snapshot_take(s->pool);
    form_run(s->form, s->pool, nothing, NULL);
    form_repeat(s->form, s->pool, 3, nothing, NULL);
    snapshot_same(&before, s->pool);
    snapshot_drop(&before);
    expect_ok(tide_pool_reset(s->pool));
}

/* ---- reset and empty ---- */

static void reset_here(tide_pool *pool, void *state)
{
    (void)state;
    acquire_and_overwrite(pool, NULL);
    assert_true(tide_pool_active(pool, TIDE_F64) > 0);
    expect_ok(tide_pool_reset(pool));
    counts_same((counts){0, 0, 0, 0}, pool);
    assert_int_equal(tide_pool_active(pool, TIDE_F64), 0);
    assert_int_equal(tide_pool_active(pool, TIDE_F32), 0);
}

static tide_status run_to_be_reset(const form *f, tide_pool *pool, form_body *body, void *state)
{
    tide_status status = f->run(pool, body, state);
    if (f->block)
        assert_int_equal(status, TIDE_OK);
    else
        assert_int_equal(status, TIDE_ERROR_STALE);
    return status;
}

static void reset_keeps_the_memory(const scene *s)
{
    run_to_be_reset(s->form, s->pool, reset_here, NULL);
    tide_pool_statistics before = stats_of(s->pool);
    assert_true(before.bytes_held > 0);
    run_to_be_reset(s->form, s->pool, reset_here, NULL);
    tide_pool_statistics after = stats_of(s->pool);
    assert_int_equal(after.bytes_held, before.bytes_held);
    assert_int_equal(after.allocations, before.allocations);
    assert_int_equal(after.releases, before.releases);
}

static void empty_here(tide_pool *pool, void *state)
{
    (void)state;
    acquire_and_overwrite(pool, NULL);
    expect_ok(tide_pool_empty(pool));
    counts_same((counts){0, 0, 0, 0}, pool);
    tide_pool_statistics stats = stats_of(pool);
    assert_int_equal(stats.bytes_held, 0);
    assert_int_equal(stats.slots, 0);
    assert_true(stats.bytes_peak > 0);
}

static void empty_gives_all_memory_back_and_the_pool_works_on(const scene *s)
{
    for (size_t i = 0; i < 3; i++) {
        form_run(s->form, s->pool, acquire_and_overwrite, NULL);
        take(s->pool, TIDE_I64, 100, 1);
        expect_ok(tide_pool_empty(s->pool));
        assert_int_equal(stats_of(s->pool).bytes_held, 0);
        assert_int_equal(stats_of(s->pool).slots, 0);
        counts_same((counts){0, 0, 0, 0}, s->pool);
        run_to_be_reset(s->form, s->pool, empty_here, NULL);
        assert_int_equal(stats_of(s->pool).bytes_held, 0);
        CHECK_POOL(s->pool);
    }
    form_run(s->form, s->pool, acquire_and_overwrite, NULL);
}

/* ---- no allocation when warm ---- */

struct alternation {
    size_t round;
    tide_type type;
};

static void take_small_and_large(tide_pool *pool, void *state)
{
    struct alternation *now = state;
    bool large_first = now->round++ % 2 == 1;
    uint8_t *first = tide_acquire_type(pool, now->type, large_first ? 1000000 : 10);
    uint8_t *second = tide_acquire_type(pool, now->type, large_first ? 10 : 1000000);
    assert_non_null(first);
    assert_non_null(second);
    uint8_t *large = large_first ? first : second, *small = large_first ? second : first;
    fill_bytes(small, 10 * tide_type_size(now->type), 3);
    large[0] = large[1000000 * tide_type_size(now->type) - 1] = 0;
    expect_bytes(small, 10 * tide_type_size(now->type), 3);
    CHECK_POOL(pool);
}

static void alternating_sizes_take_two_allocations_in_all(const scene *s)
{
    static const tide_type types[] = {TIDE_I32, TIDE_F32};
    expect_ok(tide_pool_empty(s->pool)); /* a warm pool's slots are none of the two */
    for (size_t i = 0; i < 2; i++) {
        struct alternation now = {0, types[i]};
        form_run(s->form, s->pool, nothing, NULL); /* a frame's own arrays */
        uint64_t before = stats_of(s->pool).allocations;
        form_repeat(s->form, s->pool, 8, take_small_and_large, &now);
        tide_pool_statistics after = stats_of(s->pool);
        assert_int_equal(after.allocations, before + 2);
        assert_true(after.exchanges > 0);
        assert_true(after.bytes_held < (i + 1) * 6000000); /* of 4 MB each: one, not two */
    }
}

/* ---- n = 0 ---- */

static void acquire_nothing(tide_pool *pool, void *state)
{
    (void)state;
    tide_type types[] = {TIDE_F64, TIDE_I32, TIDE_F32};
    for (size_t t = 0; t < 3; t++) {
        uint8_t *some = take(pool, types[t], 4, 1);
        uint8_t *none[3];
        for (size_t i = 0; i < 3; i++) {
            none[i] = tide_acquire_type(pool, types[t], 0);
            assert_non_null(none[i]);
            assert_int_equal((uintptr_t)none[i] % 64, 0);
            assert_ptr_not_equal(none[i], some);
            assert_true(i == 0 || none[i] != none[i - 1]);
            assert_true(i < 2 || none[i] != none[0]);
        }
        expect_bytes(some, 4 * tide_type_size(types[t]), 1);
    }
    CHECK_POOL(pool);
}

static void no_elements_give_a_pointer_of_their_own(const scene *s)
{
    counts before = counts_of(s->pool);
    form_run(s->form, s->pool, acquire_nothing, NULL);
    counts_same(before, s->pool);
}

/* ---- without forms ---- */

/* Pools are made where others were: the first mark of the next one lies just where the old one
 * lay. */
static void a_mark_of_a_pool_that_is_gone_fits_no_other(void **state)
{
    (void)state;
    bool met = false;
    for (unsigned i = 0; i < 100 && !met; i++) {
        tide_pool *gone = pool_of(TIDE_CHECK_NONE);
        tide_mark old = tide_checkpoint(gone);
        expect_ok(tide_rewind(gone, old));
        expect_ok(tide_pool_destroy(gone));
        tide_pool *pool = pool_of(TIDE_CHECK_NONE);
        tide_mark mark = tide_checkpoint(pool);
        met = pool == old.pool;
        if (met)
            expect_status(tide_rewind(pool, old), TIDE_ERROR_STALE);
        expect_ok(tide_rewind(pool, mark));
        expect_ok(tide_pool_destroy(pool));
    }
    if (!met)
        skip(); /* an allocator that gives no address twice */
}

static unsigned counted;

static int count_once(int value)
{
    counted++;
    return value;
}

/* A count is often a difference of ints. */
static void a_loop_runs_as_often_as_its_count_says(void **state)
{
    (void)state;
    static const int wanted[] = {-1000, -1, 0, 1, 3};
    tide_pool *pool = pool_of(TIDE_CHECK_POISON);
    for (size_t c = 0; c < sizeof wanted / sizeof *wanted; c++) {
        int runs = 0;
        counted = 0;
        TIDE_LOOP(pool, i, count_once(wanted[c]))
        {
            runs++;
            assert_true((int)i < wanted[c]);
        }
        assert_int_equal(runs, wanted[c] > 0 ? wanted[c] : 0);
        assert_int_equal(counted, 1);
    }
    expect_ok(tide_pool_destroy(pool));
}

static const form_case cases[] = {
    CASE_SLOTS(a_rewound_pool_gives_the_same_memory_in_the_same_order),
    CASE(the_end_of_an_inner_scope_leaves_outer_arrays_intact),
    CASE(every_form_nests_in_every_other_to_depth_40),
    CASE_SLOTS(an_empty_scope_leaves_every_field_as_it_was),
    CASE_SLOTS(reset_keeps_the_memory),
    CASE(empty_gives_all_memory_back_and_the_pool_works_on),
    CASE_SLOTS(alternating_sizes_take_two_allocations_in_all),
    CASE(no_elements_give_a_pointer_of_their_own),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(a_mark_of_a_pool_that_is_gone_fits_no_other),
    cmocka_unit_test(a_loop_runs_as_often_as_its_count_says),
};

int main(void)
{
    return FORMS_MAIN("life cycle", cases, others);
}
