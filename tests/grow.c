/* SPDX-License-Identifier: MIT */
/* Arrays made longer while they are live: what was in them stays, whoever grows them and wherever
 * they were acquired; a refusal changes nothing. */
#define _GNU_SOURCE
#include "arrays_support.h"

#include <errno.h>
#include <unistd.h>

#include <tidepool/array.h>
#include <tidepool/bits.h>
#include <tidepool/buffers.h>
#include <tidepool/check.h>
#include <tidepool/dlpack.h>
#include <tidepool/dynamic.h>
#include <tidepool/upkeep.h>

/* Grows, fails the test if that failed or is misaligned. */
static void *longer(tide_pool *pool, tide_type type, void *array, size_t n)
{
    void *grown = tide_grow_type(pool, type, array, n);
    if (grown == NULL)
        fail_msg("grow to %zu: %s", n, tide_error_message());
    assert_int_equal((uintptr_t)grown % 64, 0);
    CHECK_POOL(pool);
    return grown;
}

static size_t bytes_in(tide_type type, size_t n)
{
    return type == TIDE_BIT ? (n + 63) / 64 * 8 : n * tide_type_size(type);
}

/* ---- content ---- */

/* From 3 elements to 1500, which is several pages of each type; each step at once filled to its
 * end. */
static void grow_from_little(tide_pool *pool, tide_type type)
{
    uint8_t *beside = take(pool, type, 40, 90);
    uint8_t *array = take(pool, type, 3, 3);
    size_t had = 3, live = tide_pool_active(pool, type);
    for (size_t n = 4; n < 1500; n += n / 2) {
        array = longer(pool, type, array, n);
        expect_bytes(array, bytes_in(type, had), (unsigned)had);
        fill_bytes(array, bytes_in(type, n), (unsigned)n);
        had = n;
    }
    assert_int_equal(tide_pool_active(pool, type), live);
    assert_ptr_equal(longer(pool, type, array, 5), array); /* it is longer than that */
    expect_bytes(array, bytes_in(type, had), (unsigned)had);
    expect_bytes(beside, bytes_in(type, 40), 90);
    uint8_t *next = take(pool, type, 3, 91);
    array = longer(pool, type, array, had * 2); /* no longer the last one */
    expect_bytes(array, bytes_in(type, had), (unsigned)had);
    expect_bytes(next, bytes_in(type, 3), 91);
}

static void grow_types(tide_pool *pool, void *state)
{
    static const tide_type types[] = {TIDE_F64, TIDE_I32, TIDE_U8, TIDE_C128};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        grow_from_little(pool, types[i]);
    grow_from_little(pool, *(const tide_type *)state);
}

static void what_was_in_it_stays_and_what_is_beside_it_too(const scene *s)
{
    tide_type type = fresh_type();
    counts before = counts_of(s->pool);
    form_run(s->form, s->pool, grow_types, &type);
    counts_same(before, s->pool);
    form_repeat(s->form, s->pool, 2, grow_types, &type);
    counts_same(before, s->pool);
}

/* ---- rounds ---- */

static void push_a_thousand(tide_pool *pool, void *state)
{
    (void)state;
    size_t room = 4;
    int32_t *found = tide_acquire(pool, int32_t, room);
    for (int32_t i = 0; i < 1000; i++) {
        if ((size_t)i == room)
            found = tide_grow(pool, int32_t, found, room *= 2);
        assert_non_null(found);
        found[i] = i;
    }
    for (int32_t i = 0; i < 1000; i++)
        assert_int_equal(found[i], i);
}

static void from_the_second_round_on_nothing_is_allocated(const scene *s)
{
    form_repeat(s->form, s->pool, 2, push_a_thousand, NULL);
    count_allocations();
    form_repeat(s->form, s->pool, 5, push_a_thousand, NULL);
    assert_int_equal(allocations_counted(), 0);
}

static void grow_where_there_is_room(tide_pool *pool, void *state)
{
    (void)state;
    float *large = take(pool, TIDE_F32, 4000, 1);
    tide_mark mark = tide_checkpoint(pool);
    expect_ok(tide_rewind(pool, mark));
    assert_ptr_equal(longer(pool, TIDE_F32, large, 4001 - 1), large);
}

static void take_once(tide_pool *pool, void *state)
{
    take(pool, TIDE_F32, *(const size_t *)state, 1);
}

static void grow_into_the_slot(tide_pool *pool, void *state)
{
    float *array = take(pool, TIDE_F32, 5, 2),
          *grown = longer(pool, TIDE_F32, array, *(const size_t *)state);
    assert_ptr_equal(grown, array);
    expect_bytes(grown, 5 * sizeof *grown, 2);
}

static void it_stays_where_it_is_while_its_slot_has_room(const scene *s)
{
    size_t n = 4000;
    form_run(s->form, s->pool, grow_where_there_is_room, NULL);
    form_run(s->form, s->pool, take_once, &n);
    form_run(s->form, s->pool, grow_into_the_slot, &n);
}

/* ---- levels ---- */

struct held {
    const form *inner;
    double *array;
    size_t n;
};

static void grow_the_outer(tide_pool *pool, void *state)
{
    struct held *held = state;
    take(pool, TIDE_F64, 20, 1);
    held->array = longer(pool, TIDE_F64, held->array, held->n * 3);
    expect_bytes(held->array, held->n * sizeof(double), 7);
    held->n *= 3;
    fill_bytes(held->array, held->n * sizeof(double), 7);
    take(pool, TIDE_F64, 3000, 2);
}

static void grow_in_an_inner_scope(tide_pool *pool, void *state)
{
    struct held *held = state;
    held->n = 100;
    held->array = take(pool, TIDE_F64, held->n, 7);
    for (int i = 0; i < 2; i++)
        form_run(held->inner, pool, grow_the_outer, held);
    expect_bytes(held->array, held->n * sizeof(double), 7);
    take(pool, TIDE_F64, 10, 3);
    expect_bytes(held->array, held->n * sizeof(double), 7);
}

static void an_inner_scope_grows_what_an_outer_one_acquired(const scene *s)
{
    counts before = counts_of(s->pool);
    EACH_FORM(inner)
    {
        struct held held = {.inner = inner};
        form_run(s->form, s->pool, grow_in_an_inner_scope, &held);
        counts_same(before, s->pool);
    }
}

/* ---- N-D ---- */

static void grow_rows(tide_pool *pool, void *state)
{
    (void)state;
    tide_array *array = TAKE(pool, TIDE_I32, 2, 3, 5);
    fill_bytes(tide_array_data(array), 30 * 4, 4);
    for (int64_t rows = 3; rows < 2000; rows += rows) {
        expect_ok(tide_array_grow(pool, array, rows));
        expect_array(array, TIDE_I32, TIDE_ROW_MAJOR, 3, SHAPE(rows, 3, 5));
        expect_bytes(tide_array_data(array), 30 * 4, 4);
        CHECK_POOL(pool);
    }
    tide_array *columns = TAKE_COLUMNS(pool, TIDE_F32, 4, 2);
    fill_bytes(tide_array_data(columns), 8 * 4, 5);
    expect_ok(tide_array_grow(pool, columns, 700));
    expect_array(columns, TIDE_F32, TIDE_COLUMN_MAJOR, 2, SHAPE(4, 700));
    expect_bytes(tide_array_data(columns), 8 * 4, 5);
    assert_int_equal(tide_array_grow(pool, columns, 699), TIDE_ERROR_SIZE);
    expect_array(columns, TIDE_F32, TIDE_COLUMN_MAJOR, 2, SHAPE(4, 700));
    tide_array *raw = TAKE(pool, TIDE_F64, 6);
    void *data = longer(pool, TIDE_F64, tide_array_data(raw), 5000);
    assert_ptr_equal(tide_array_data(raw), data);
    fill_bytes(data, 5000 * 8, 1);
}

static void n_d_arrays_grow_along_their_slowest_dimension(const scene *s)
{
    counts before = counts_of(s->pool);
    for (int i = 0; i < 3; i++)
        form_run(s->form, s->pool, grow_rows, NULL);
    counts_same(before, s->pool);
}

static void refuse_arrays(tide_pool *pool, void *state)
{
    (void)state;
    tide_array *array = TAKE(pool, TIDE_F64, 4, 6),
               *scalar = take_array(pool, TIDE_F64, TIDE_ROW_MAJOR, 0, NULL);
    tide_array *view = tide_array_view(pool, array, SHAPE(0, 0), SHAPE(2, 2), NULL);
    assert_int_equal(tide_array_grow(pool, view, 9), TIDE_ERROR_STATE);
    assert_int_equal(tide_array_grow(pool, scalar, 9), TIDE_ERROR_SIZE);
    assert_int_equal(tide_array_grow(pool, NULL, 9), TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_array_grow(NULL, array, 9), TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_array_grow(pool, array, INT64_MAX), TIDE_ERROR_SIZE);
    tide_dl_managed *managed = tide_array_export(pool, array);
    if (managed != NULL) { /* a guarded one stays */
        assert_int_equal(tide_array_grow(pool, array, 9), TIDE_ERROR_STATE);
        managed->deleter(managed);
    }
    expect_array(array, TIDE_F64, TIDE_ROW_MAJOR, 2, SHAPE(4, 6));
    CHECK_POOL(pool);
}

static void arrays_that_cannot_grow_are_refused(const scene *s)
{
    form_run(s->form, s->pool, refuse_arrays, NULL);
}

/* ---- refused ---- */

static bool quiet(tide_report_kind kind, const char *text, void *user)
{
    (void)text;
    *(unsigned *)user += kind == TIDE_REPORT_MISUSE;
    return false;
}

static void refuse(tide_pool *pool, void *state)
{
    double *array = take(pool, TIDE_F64, 10, 1);
    size_t held = stats_of(pool).bytes_held;
    (void)state;
    assert_null(tide_grow(pool, double, array + 1, 100));
    expect_error(TIDE_ERROR_STALE, "no live array of f64");
    assert_null(tide_grow_type(pool, TIDE_C64, array, 100));
    expect_error(TIDE_ERROR_STALE, "no live array of c64");
    assert_null(tide_grow_type(pool, TIDE_F64, NULL, 100));
    expect_error(TIDE_ERROR_STALE, "live array");
    assert_null(tide_grow_type(pool, 60000, array, 100));
    assert_int_equal(tide_error_status(), TIDE_ERROR_TYPE);
    assert_null(tide_grow(pool, double, array, SIZE_MAX));
    expect_error(TIDE_ERROR_SIZE, "overflow");
    assert_null(tide_grow(pool, double, array, -5));
    assert_null(tide_grow(NULL, double, array, 20));
    expect_error(TIDE_ERROR_ARGUMENT, "pool");
    expect_bytes(array, 10 * sizeof *array, 1);
    assert_int_equal(stats_of(pool).bytes_held, held);
    CHECK_POOL(pool);
}

static void what_is_not_live_or_too_large_is_refused(const scene *s)
{
    unsigned reports = 0;
    tide_report_set_handler(quiet, &reports);
    form_run(s->form, s->pool, refuse, NULL);
    tide_report_set_handler(NULL, NULL);
    assert_true(s->kind->check >= TIDE_CHECK_POISON ? reports >= 3 : reports == 0);
}

/* ---- checks ---- */

/* Can the kernel read there for us? */
static bool readable(const void *at)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    bool can = write(ends[1], at, 1) == 1;
    assert_true(can || errno == EFAULT);
    close(ends[0]);
    close(ends[1]);
    return can;
}

static void at_level_2_the_old_address_faults_and_so_does_the_new_end(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_GUARD);
    uint8_t *old = take(pool, TIDE_U8, 128, 1), *array = longer(pool, TIDE_U8, old, 8192);
    assert_ptr_not_equal(array, old);
    assert_false(readable(old));
    assert_true(readable(array + 8191));
    assert_false(readable(array + 8192));
    expect_bytes(array, 128, 1);
    expect_ok(tide_pool_reset(pool));
    assert_false(readable(array));
    expect_ok(tide_pool_destroy(pool));
}

static void what_was_grown_is_poisoned_to_its_new_end(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_POISON);
    take(pool, TIDE_U8, 1000, 1);
    expect_ok(tide_pool_reset(pool));
    uint8_t *array = take(pool, TIDE_U8, 10, 1), seen[1000];
    assert_ptr_equal(longer(pool, TIDE_U8, array, 1000), array);
    fill_bytes(array, 1000, 2);
    expect_ok(tide_pool_reset(pool));
    read_behind(array, seen, sizeof seen);
    for (size_t i = 0; i < sizeof seen; i++)
        assert_int_equal(seen[i], 0xFF);
    expect_ok(tide_pool_destroy(pool));
}

/* ---- frames, buffers ---- */

static void memory_that_is_drawn_from_buffers_grows_likewise(void **state)
{
    (void)state;
    tide_buffers *buffers = tide_buffers_create(NULL, NULL);
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.buffers = buffers});
    grow_from_little(pool, TIDE_F64);
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_buffers_destroy(buffers));
}

static const form_case cases[] = {
    CASE(what_was_in_it_stays_and_what_is_beside_it_too),
    CASE_SLOTS(from_the_second_round_on_nothing_is_allocated),
    CASE_SLOTS(it_stays_where_it_is_while_its_slot_has_room),
    CASE(an_inner_scope_grows_what_an_outer_one_acquired),
    CASE(n_d_arrays_grow_along_their_slowest_dimension),
    CASE(arrays_that_cannot_grow_are_refused),
    CASE(what_is_not_live_or_too_large_is_refused),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(at_level_2_the_old_address_faults_and_so_does_the_new_end),
    cmocka_unit_test(what_was_grown_is_poisoned_to_its_new_end),
    cmocka_unit_test(memory_that_is_drawn_from_buffers_grows_likewise),
};

int main(void)
{
    return FORMS_MAIN("grow", cases, others);
}
