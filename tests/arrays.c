/* SPDX-License-Identifier: MIT */
/* Headers of N-D arrays: one for each rank of a slot, always saying what was asked for, and
 * nothing allocated for a shape seen before. */
#include "arrays_support.h"
#include "hooks.h"

#include <limits.h>
#include <pthread.h>

#include <tidepool/array.h>
#include <tidepool/check.h>
#include <tidepool/dynamic.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

enum { RANKS = TIDE_NDIM_MAX + 1 };

/* ---- which header ---- */

struct asked {
    tide_type type;
    tide_order order;
    int ndim;
    const int64_t *shape;
    tide_array *array; /* what came */
};

static void ask(tide_pool *pool, void *state)
{
    struct asked *asked = state;
    asked->array = take_array(pool, asked->type, asked->order, asked->ndim, asked->shape);
    fill_bytes(tide_array_data(asked->array), bytes_of(asked->array), 3);
}

static tide_array *ask_in(const scene *s, tide_type type, tide_order order, int ndim,
                          const int64_t *shape)
{
    struct asked asked = {type, order, ndim, shape, NULL};
    form_run(s->form, s->pool, ask, &asked);
    return asked.array;
}

static void same_rank_again_gives_the_same_header_and_another_rank_another(const scene *s)
{
    tide_type type = fresh_type();
    const tide_type types[] = {TIDE_F64, TIDE_I32, TIDE_BF16, type};
    for (size_t t = 0; t < 4; t++) {
        tide_array *two = ask_in(s, types[t], TIDE_ROW_MAJOR, 2, SHAPE(3, 4));
        assert_ptr_equal(ask_in(s, types[t], TIDE_ROW_MAJOR, 2, SHAPE(3, 4)), two);
        assert_ptr_equal(ask_in(s, types[t], TIDE_ROW_MAJOR, 2, SHAPE(4, 3)), two);
        assert_ptr_equal(ask_in(s, types[t], TIDE_COLUMN_MAJOR, 2, SHAPE(4, 3)), two);
        assert_ptr_equal(ask_in(s, types[t], TIDE_ROW_MAJOR, 2, SHAPE(50, 70)), two);
        tide_array *three = ask_in(s, types[t], TIDE_ROW_MAJOR, 3, SHAPE(2, 3, 4));
        assert_ptr_not_equal(three, two);
        tide_array *none = ask_in(s, types[t], TIDE_ROW_MAJOR, 0, NULL);
        assert_true(none != two && none != three);
        assert_ptr_equal(ask_in(s, types[t], TIDE_ROW_MAJOR, 2, SHAPE(3, 4)), two);
        assert_ptr_equal(ask_in(s, types[t], TIDE_COLUMN_MAJOR, 3, SHAPE(7, 1, 9)), three);
        assert_ptr_equal(ask_in(s, types[t], TIDE_COLUMN_MAJOR, 0, NULL), none);
    }
}

static void ask_every_rank(tide_pool *pool, void *state)
{
    static const int64_t extents[2][TIDE_NDIM_MAX] = {{2, 3, 1, 4, 2, 1, 3, 2},
                                                      {1, 5, 2, 2, 3, 4, 1, 1}};
    tide_type type = *(const tide_type *)state;
    tide_array *all[RANKS * 4];
    size_t count = 0;
    for (int ndim = 0; ndim < RANKS; ndim++)
        for (int i = 0; i < 4; i++) {
            tide_order order = i % 2 == 0 ? TIDE_ROW_MAJOR : TIDE_COLUMN_MAJOR;
            all[count] = take_array(pool, type, order, ndim, extents[i / 2]);
            fill_bytes(tide_array_data(all[count]), bytes_of(all[count]), (unsigned)count);
            count++;
        }
    for (size_t i = 0; i < count; i++) { /* still so, now that all are there */
        const tide_array *array = all[i];
        expect_array(array, type, i % 2 == 0 ? TIDE_ROW_MAJOR : TIDE_COLUMN_MAJOR, (int)(i / 4),
                     extents[i % 4 / 2]);
        expect_bytes(tide_array_data(array), bytes_of(array), (unsigned)i);
    }
}

static void up_to_eight_dimensions_in_both_orders(const scene *s)
{
    const tide_type types[] = {TIDE_F64, TIDE_U8, TIDE_C128, TIDE_F16, fresh_type()};
    for (int round = 0; round < 2; round++)
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            tide_type type = types[t];
            form_run(s->form, s->pool, ask_every_rank, &type);
            form_repeat(s->form, s->pool, 3, ask_every_rank, &type);
        }
}

static void number_by_index(tide_pool *pool, void *state)
{
    (void)state;
    tide_array *rows = TAKE(pool, TIDE_I32, 3, 4, 5);
    tide_array *columns = TAKE_COLUMNS(pool, TIDE_I32, 3, 4, 5);
    int64_t index[3] = {0};
    do {
        int32_t number = (int32_t)(index[0] * 20 + index[1] * 5 + index[2]);
        *(int32_t *)element(rows, index) = number;
        *(int32_t *)element(columns, index) = number;
    } while (next_index(rows, index));
    const int32_t *row_data = tide_array_data(rows), *column_data = tide_array_data(columns);
    for (int32_t i = 0; i < 60; i++) {
        assert_int_equal(row_data[i], i);
        assert_int_equal(column_data[i], i % 3 * 20 + i / 3 % 4 * 5 + i / 12);
    }
}

static void the_last_index_runs_fastest_in_row_order_and_the_first_in_column_order(const scene *s)
{
    form_run(s->form, s->pool, number_by_index, NULL);
    form_repeat(s->form, s->pool, 2, number_by_index, NULL);
}

/* ---- memory ---- */

static void a_header_follows_its_slot_when_that_grows(const scene *s)
{
    tide_array *small = ask_in(s, TIDE_F32, TIDE_ROW_MAJOR, 2, SHAPE(2, 5));
    tide_array *large = ask_in(s, TIDE_F32, TIDE_ROW_MAJOR, 2, SHAPE(300, 400));
    assert_ptr_equal(small, large);
    void *data = large->tensor.data;
    assert_ptr_equal(ask_in(s, TIDE_F32, TIDE_ROW_MAJOR, 2, SHAPE(2, 5)), large);
    assert_ptr_equal(large->tensor.data, data);
    assert_ptr_equal(ask_in(s, TIDE_F32, TIDE_ROW_MAJOR, 2, SHAPE(300, 400)), large);
    assert_ptr_equal(large->tensor.data, data);
}

static void raw_then_array(tide_pool *pool, void *state)
{
    int turn = *(const int *)state;
    for (int i = 0; i < 6; i++)
        if ((i + turn) % 2 == 0)
            take(pool, TIDE_F64, (size_t)(10 + 100 * i * turn), (unsigned)i);
        else
            ask(pool, &(struct asked){TIDE_F64, TIDE_ROW_MAJOR, 2, SHAPE(turn + 1, i * 50 + 1), 0});
    CHECK_POOL(pool);
}

static void a_position_serves_arrays_and_plain_acquires_in_turn(const scene *s)
{
    for (int turn = 0; turn < 4; turn++)
        form_run(s->form, s->pool, raw_then_array, &turn);
}

static const struct {
    int ndim;
    int64_t shape[4];
} patterns[5] = {{1, {60}}, {2, {3, 20}}, {3, {2, 5, 6}}, {4, {2, 2, 3, 5}}, {2, {20, 3}}};

static void ask_pattern(tide_pool *pool, void *state)
{
    int i = *(const int *)state;
    ask(pool, &(struct asked){TIDE_F32, TIDE_ROW_MAJOR, patterns[i].ndim, patterns[i].shape, 0});
}

static void rotate(const scene *s, size_t rounds)
{
    for (size_t round = 0; round < rounds; round++)
        for (int i = 0; i < 5; i++)
            form_run(s->form, s->pool, ask_pattern, &i);
}

static void take_five_positions(tide_pool *pool, void *state)
{
    size_t turn = (*(size_t *)state)++;
    for (size_t i = 0; i < 5; i++) {
        int pattern = (int)((i + turn) % 5);
        ask_pattern(pool, &pattern);
    }
}

static void shapes_that_wander_over_positions_allocate_nothing_either(const scene *s)
{
    size_t turn = 0;
    form_repeat(s->form, s->pool, 5, take_five_positions, &turn);
    if (s->form->repeat == NULL)
        assert_int_equal(turn, 5);
    count_allocations();
    form_repeat(s->form, s->pool, 20, take_five_positions, &turn);
    assert_int_equal(allocations_counted(), 0);
}

static void trim_frees_headers_with_their_slots(const scene *s)
{
    rotate(s, 2);
    for (int i = 0; i < 3; i++)
        form_run(s->form, s->pool, ask_pattern, &(int){1});
    tide_pool_trim(s->pool, TIDE_ALL_TYPES);
    CHECK_POOL(s->pool);
    rotate(s, 2);
    expect_ok(tide_pool_empty(s->pool));
    rotate(s, 1);
}

/* ---- refused ---- */

struct bad {
    tide_type type;
    int order, ndim;
    const int64_t *shape;
    tide_status why;
    const char *words;
};

#define HALF (INT64_C(1) << 62)

/* The first touch of the shelf may stay in the log; nothing else may change. */
static void expect_bad(tide_pool *pool, const struct bad *bad)
{
    note("%d dimensions, '%s'", bad->ndim, bad->words);
    tide_pool_statistics before = stats_of(pool);
    assert_null(
        tide_array_acquire_order(pool, bad->type, (tide_order)bad->order, bad->ndim, bad->shape));
    expect_error(bad->why, bad->words);
    expect_error(bad->why, "tide_array_acquire");
    CHECK_POOL(pool);
    tide_pool_statistics after = stats_of(pool);
    after.log_entries = before.log_entries;
    after.shelves = before.shelves;
    assert_memory_equal(&after, &before, sizeof after);
}

static void ask_badly(tide_pool *pool, void *state)
{
    (void)state;
    const struct bad all[] = {
        {TIDE_F64, 0, 1, SHAPE(-1), TIDE_ERROR_SIZE, "-1"},
        {TIDE_F64, 0, 3, SHAPE(2, -7, 0), TIDE_ERROR_SIZE, "-7"},
        {TIDE_F64, 0, 3, SHAPE(0, 2, INT64_MIN), TIDE_ERROR_SIZE, "extent 2"},
        {TIDE_F64, 1, 2, SHAPE(INT64_MAX, 2), TIDE_ERROR_SIZE, "overflows"},
        {TIDE_U8, 0, 2, SHAPE(INT64_C(1) << 32, INT64_C(1) << 32), TIDE_ERROR_SIZE, "overflows"},
        {TIDE_U8, 0, 3, SHAPE(INT64_C(1) << 32, INT64_C(1) << 32, 0), TIDE_ERROR_SIZE, "overflows"},
        {TIDE_U8, 0, 3, SHAPE(0, INT64_MAX, 3), TIDE_ERROR_SIZE, "overflows"},
        {TIDE_U8, 1, 3, SHAPE(HALF, 0, 2), TIDE_ERROR_SIZE, "overflows"},
        {TIDE_U8, 0, 3, SHAPE(HALF, 4, 4), TIDE_ERROR_SIZE, "overflows"},
        {TIDE_F64, 0, 1, SHAPE(HALF), TIDE_ERROR_SIZE, "f64"},
        {TIDE_C128, 0, 2, SHAPE(INT64_C(1) << 31, INT64_C(1) << 29), TIDE_ERROR_SIZE, "c128"},
        {TIDE_F64, 0, 9, SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1), TIDE_ERROR_SIZE, "9 dimensions"},
        {TIDE_F64, 0, -1, SHAPE(1), TIDE_ERROR_SIZE, "-1 dimensions"},
        {TIDE_F64, 0, INT_MAX, SHAPE(1), TIDE_ERROR_SIZE, "limit 8"},
        {TIDE_F64, 0, INT_MIN, SHAPE(1), TIDE_ERROR_SIZE, "limit 8"},
        {TIDE_F64, 0, 2, NULL, TIDE_ERROR_ARGUMENT, "NULL"},
        {TIDE_F64, 2, 1, SHAPE(3), TIDE_ERROR_ARGUMENT, "order is 2"},
        {TIDE_F64, -1, 1, SHAPE(3), TIDE_ERROR_ARGUMENT, "order is -1"},
        {TIDE_NO_TYPE, 0, 1, SHAPE(3), TIDE_ERROR_TYPE, "no type 0"},
        {tide_type_count() + 1, 0, 1, SHAPE(3), TIDE_ERROR_TYPE, "no type"},
        {TIDE_TYPE_LIMIT, 0, 1, SHAPE(3), TIDE_ERROR_TYPE, "no type"},
        {UINT32_MAX, 0, 1, SHAPE(3), TIDE_ERROR_TYPE, "no type"},
    };
    tide_array *kept = TAKE(pool, TIDE_F64, 5, 5);
    fill_bytes(tide_array_data(kept), bytes_of(kept), 4);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        expect_bad(pool, &all[i]);
    expect_array(kept, TIDE_F64, TIDE_ROW_MAJOR, 2, SHAPE(5, 5));
    expect_bytes(tide_array_data(kept), bytes_of(kept), 4);
    TAKE(pool, TIDE_F64, 2, 3); /* whatever was refused, the next one works */
}

static void take_ten(tide_pool *pool, void *state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        TAKE(pool, TIDE_F64, 2, 3);
}

/* Cold, then with headers of that rank ready where the refused array would have come. */
static void bad_shapes_and_types_are_refused_and_change_nothing(const scene *s)
{
    for (int round = 0; round < 3; round++) {
        counts before = counts_of(s->pool);
        form_run(s->form, s->pool, ask_badly, NULL);
        counts_same(before, s->pool);
        note("warming");
        form_run(s->form, s->pool, ask_every_rank, &(tide_type){TIDE_F64});
        form_run(s->form, s->pool, take_ten, NULL);
    }
}

static void a_null_pool_is_refused(void **state)
{
    (void)state;
    assert_null(tide_array_acquire(NULL, TIDE_F64, 1, SHAPE(3)));
    expect_error(TIDE_ERROR_ARGUMENT, "tide_array_acquire");
    TIDE_SCOPE(NULL);
    assert_null(tide_array_acquire(NULL, TIDE_F64, 0, NULL));
}

/* The header stays with its slot when the memory goes: it must not vouch for smaller memory. */
static void a_ready_header_over_smaller_memory_is_not_enough(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    set_constant("compact_factor", 1);
    set_constant("compact_gain", 0);
    tide_array *array = TAKE(pool, TIDE_U8, 65);
    expect_ok(tide_pool_reset(pool));
    assert_int_equal(tide_pool_compact(pool, TIDE_U8).slots, 1);
    assert_non_null(tide_acquire(pool, uint8_t, 64));
    assert_int_equal(stats_of(pool).bytes_held, 64);
    expect_ok(tide_pool_reset(pool));
    assert_ptr_equal(TAKE(pool, TIDE_U8, 65), array);
    assert_int_equal(stats_of(pool).bytes_live, 128);
    set_constant("compact_factor", 10);
    set_constant("compact_gain", 1024);
    expect_ok(tide_pool_destroy(pool));
}

/* A slot that has headers of other ranks, and no memory for one more. */
static void a_new_rank_without_memory_keeps_the_old_ones(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    tide_array *two = TAKE(pool, TIDE_F64, 3, 4);
    expect_ok(tide_pool_reset(pool));
    fail_allocation(0, true);
    assert_null(tide_array_acquire(pool, TIDE_F64, 3, SHAPE(1, 3, 4)));
    expect_error(TIDE_ERROR_MEMORY, "3 dimensions");
    assert_int_equal(tide_pool_active(pool, TIDE_F64), 0);
    assert_ptr_equal(TAKE(pool, TIDE_F64, 3, 4), two);
    expect_ok(tide_pool_reset(pool));
    assert_ptr_equal(TAKE(pool, TIDE_F64, 2, 6), two); /* another shape needs none */
    assert_true(allocation_failed());
    expect_ok(tide_pool_destroy(pool));
}

static const form_case cases[] = {
    CASE(same_rank_again_gives_the_same_header_and_another_rank_another),
    CASE(up_to_eight_dimensions_in_both_orders),
    CASE(the_last_index_runs_fastest_in_row_order_and_the_first_in_column_order),
    CASE_SLOTS(a_header_follows_its_slot_when_that_grows),
    CASE(a_position_serves_arrays_and_plain_acquires_in_turn),
    CASE_SLOTS(shapes_that_wander_over_positions_allocate_nothing_either),
    CASE(trim_frees_headers_with_their_slots),
    CASE(bad_shapes_and_types_are_refused_and_change_nothing),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(a_null_pool_is_refused),
    cmocka_unit_test(a_ready_header_over_smaller_memory_is_not_enough),
    cmocka_unit_test(a_new_rank_without_memory_keeps_the_old_ones),
};

int main(void)
{
    return FORMS_MAIN("arrays", cases, others);
}
