/* SPDX-License-Identifier: MIT */
/* Packed bits: where they lie, what is counted, and nothing beyond the last word. */
#include <tidepool/array.h>
#include <tidepool/bits.h>
#include <tidepool/dynamic.h>
#include <tidepool/scope.h>
#include <tidepool/upkeep.h>

#include "arrays_support.h"
#include "random.h"

static const size_t lengths[] = {0, 1, 2, 63, 64, 65, 100, 127, 128, 129, 191, 192, 1000};
enum { LENGTHS = sizeof lengths / sizeof lengths[0], WORDS = 16 };

static size_t words_of(size_t n)
{
    return (n + 63) / 64;
}

/* Of the n bits that begin a row of words, what this word holds. */
static uint64_t mask_of(size_t n, size_t word)
{
    size_t before = word * 64;
    if (n <= before)
        return 0;
    return n - before >= 64 ? UINT64_MAX : ((uint64_t)1 << (n - before)) - 1;
}

static void expect_bits(const uint64_t *words, size_t n, bool value)
{
    assert_non_null(words);
    for (size_t i = 0; i < words_of(n); i++)
        assert_int_equal(words[i], value ? mask_of(n, i) : 0);
    assert_int_equal(tide_bits_count(words, n), value ? n : 0);
}

/* ---- packed, and filled ---- */

static void fill_bits(tide_pool *pool, void *state)
{
    (void)state;
    const bool on = true, off = false;
    for (size_t i = 0; i < LENGTHS; i++) {
        expect_bits(tide_ones_type(pool, TIDE_BIT, lengths[i]), lengths[i], true);
        expect_bits(tide_zeros_type(pool, TIDE_BIT, lengths[i]), lengths[i], false);
        expect_bits(tide_fill_type(pool, TIDE_BIT, lengths[i], &on), lengths[i], true);
        expect_bits(tide_fill_type(pool, TIDE_BIT, lengths[i], &off), lengths[i], false);
    }
}

static void dirty_bits(tide_pool *pool, void *state)
{
    (void)state;
    for (unsigned i = 0; i < 4 * LENGTHS; i++)
        fill_bytes(tide_acquire_bits(pool, 64 * WORDS), 8 * WORDS, i + 1);
}

static void ones_and_zeros_right_to_the_last_word_whatever_was_there(const scene *s)
{
    form_run(s->form, s->pool, fill_bits, NULL);
    form_run(s->form, s->pool, dirty_bits, NULL);
    form_repeat(s->form, s->pool, 3, fill_bits, NULL);
}

static void a_hundred_bits_are_packed(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    uint64_t *bits = tide_acquire_bits(pool, 100);
    assert_int_equal((uintptr_t)bits % 64, 0);
    assert_int_equal(stats_of(pool).bytes_held, 64);
    tide_acquire_bits(pool, 6400);
    assert_in_range(stats_of(pool).bytes_held, 64 + 800, 64 + 832);
    tide_acquire(pool, bool, 6400);
    assert_in_range(stats_of(pool).bytes_held, 64 + 800 + 6400, 64 + 832 + 6400);
    expect_ok(tide_pool_reset(pool));
    assert_ptr_equal(tide_acquire_bits(pool, 512), bits); /* there is room for them */
    expect_ok(tide_pool_destroy(pool));
}

static void take_too_many(tide_pool *pool, void *state)
{
    (void)state;
    const size_t many[] = {SIZE_MAX,      SIZE_MAX - 1, SIZE_MAX - 62, SIZE_MAX - 63,
                           SIZE_MAX - 64, SIZE_MAX / 2, (size_t)-100};
    tide_pool_statistics before = stats_of(pool);
    for (size_t i = 0; i < sizeof many / sizeof many[0]; i++) {
        assert_null(tide_acquire_bits(pool, many[i]));
        assert_true(tide_error_status() == TIDE_ERROR_SIZE ||
                    tide_error_status() == TIDE_ERROR_MEMORY);
    }
    assert_null(tide_acquire_bits(NULL, 100));
    expect_error(TIDE_ERROR_ARGUMENT, "pool");
    assert_int_equal(stats_of(pool).slots_live, before.slots_live);
    assert_int_equal(stats_of(pool).bytes_held, before.bytes_held);
}

static void more_bits_than_there_can_be_are_refused(const scene *s)
{
    form_run(s->form, s->pool, take_too_many, NULL);
}

/* ---- of several dimensions ---- */

/* Every third bit, by its index, and by counting along the words. */
static void expect_pattern(const tide_array *array)
{
    int64_t index[TIDE_NDIM_MAX] = {0};
    uint64_t *bits = tide_array_data(array);
    size_t i = 0, set = 0;
    do {
        assert_int_equal(tide_array_bit(array, index), i); /* row-major, without gaps */
        tide_bit_put(bits, i, i % 3 == 0);
        set += i++ % 3 == 0;
    } while (next_index(array, index));
    assert_int_equal(i, array->length);
    assert_int_equal(tide_bits_count(bits, array->length), set);
}

static tide_array *expect_shape(tide_array *array, int ndim, const int64_t *shape)
{
    size_t length = 1;
    assert_non_null(array);
    for (int d = 0; d < ndim; d++) {
        assert_int_equal(array->tensor.shape[d], shape[d]);
        length *= (size_t)shape[d];
    }
    assert_int_equal(array->tensor.ndim, ndim);
    assert_int_equal(array->length, length);
    assert_int_equal(array->type, TIDE_BIT);
    assert_int_equal(array->tensor.dtype.bits, 1);
    assert_int_equal(tide_array_bit(array, SHAPE(0, 0, 0, 0, 0, 0, 0, 0)), 0);
    return array;
}

static void take_bit_arrays(tide_pool *pool, void *state)
{
    const bool on = true;
    (void)state;
    expect_pattern(
        expect_shape(tide_array_acquire(pool, TIDE_BIT, 3, SHAPE(5, 7, 11)), 3, SHAPE(5, 7, 11)));
    expect_pattern(
        expect_shape(tide_array_acquire(pool, TIDE_BIT, 2, SHAPE(9, 100)), 2, SHAPE(9, 100)));
    tide_array *ones =
        expect_shape(tide_array_ones(pool, TIDE_BIT, 2, SHAPE(7, 11)), 2, SHAPE(7, 11));
    expect_bits(tide_array_data(ones), 77, true);
    tide_array *zeros = tide_array_zeros(pool, TIDE_BIT, 2, SHAPE(7, 11));
    expect_bits(tide_array_data(zeros), 77, false);
    tide_array *filled = tide_array_fill(pool, TIDE_BIT, 1, SHAPE(129), &on);
    expect_bits(tide_array_data(filled), 129, true);
    expect_pattern(
        expect_shape(tide_array_acquire(pool, TIDE_BIT, 2, SHAPE(4, 6)), 2, SHAPE(4, 6)));
    tide_array *columns =
        tide_array_acquire_order(pool, TIDE_BIT, TIDE_COLUMN_MAJOR, 2, SHAPE(3, 5));
    assert_int_equal(tide_array_bit(columns, SHAPE(2, 4)), 14);
    assert_int_equal(tide_array_bit(columns, SHAPE(1, 2)), 7);
    expect_ok(tide_array_grow(pool, ones, 700));
    assert_int_equal(tide_bits_count(tide_array_data(ones), 77), 77);
    expect_shape(tide_array_acquire(pool, TIDE_BIT, 2, SHAPE(0, 9)), 2, SHAPE(0, 9));
    assert_null(tide_array_export(pool, zeros));
    expect_error(TIDE_ERROR_TYPE, "bit");
    assert_null(tide_array_acquire(pool, TIDE_BIT, 2, SHAPE(INT64_MAX, 4)));
    CHECK_POOL(pool);
}

static void arrays_of_bits_have_any_number_of_dimensions(const scene *s)
{
    counts before = counts_of(s->pool);
    for (int i = 0; i < 3; i++)
        form_run(s->form, s->pool, take_bit_arrays, NULL);
    counts_same(before, s->pool);
}

static void view_bits(tide_pool *pool, void *state)
{
    (void)state;
    tide_array *array = tide_array_zeros(pool, TIDE_BIT, 2, SHAPE(10, 128));
    tide_array *rows = tide_array_view(pool, array, SHAPE(3, 64), SHAPE(4, 50), SHAPE(2, 1));
    assert_non_null(rows);
    assert_ptr_equal(tide_array_data(rows), (uint64_t *)tide_array_data(array) + 3 * 2 + 1);
    tide_bit_set(tide_array_data(rows), tide_array_bit(rows, SHAPE(3, 49)));
    assert_true(tide_bit_test(tide_array_data(array), tide_array_bit(array, SHAPE(9, 113))));
    assert_int_equal(tide_bits_count(tide_array_data(array), 1280), 1);
    assert_null(tide_array_view(pool, array, SHAPE(0, 1), SHAPE(1, 1), NULL));
    expect_error(TIDE_ERROR_SIZE, "starts with a word");
    assert_null(tide_array_view(pool, array, SHAPE(9, 0), SHAPE(4, 64), SHAPE(-2, 1)));
    expect_error(TIDE_ERROR_SIZE, "goes forward, not by -2");
    assert_non_null(tide_array_view(pool, array, SHAPE(9, 0), SHAPE(1, 64), SHAPE(-2, 1)));
    tide_array *flat = tide_array_reshape(pool, array, 1, SHAPE(1280));
    assert_true(tide_bit_test(tide_array_data(flat), 9 * 128 + 113));
    uint64_t words[2] = {0, UINT64_C(1) << 3};
    tide_array *outside = tide_array_wrap(
        pool,
        &(tide_array_source){.data = words, .type = TIDE_BIT, .ndim = 2, .shape = SHAPE(2, 64)});
    assert_true(tide_bit_test(tide_array_data(outside), tide_array_bit(outside, SHAPE(1, 3))));
    assert_null(tide_array_wrap(pool, &(tide_array_source){.data = words,
                                                           .type = TIDE_BIT,
                                                           .ndim = 2,
                                                           .shape = SHAPE(2, 64),
                                                           .strides = SHAPE(64, -1)}));
    expect_error(TIDE_ERROR_SIZE, "bits go forward, not by -1");
}

static void views_of_bits_begin_with_a_word(const scene *s)
{
    form_run(s->form, s->pool, view_bits, NULL);
}

/* ---- counted ---- */

static void counting_looks_at_no_bit_beyond_the_length(void **state)
{
    (void)state;
    uint64_t words[5];
    fill_bytes(words, sizeof words, 77);
    size_t count = 0;
    for (size_t n = 0; n < 5 * 64; n++) {
        assert_int_equal(tide_bits_count(words, n), count);
        uint64_t kept = words[n / 64];
        words[n / 64] |= ~mask_of(n, n / 64); /* everything from n on */
        assert_int_equal(tide_bits_count(words, n), count);
        words[n / 64] = kept;
        count += tide_bit_test(words, n);
    }
    assert_int_equal(tide_bits_count(words, 5 * 64), count);
    assert_int_equal(tide_bits_count(words + 5, 0), 0); /* not even the first word */
}

static const form_case cases[] = {
    CASE(ones_and_zeros_right_to_the_last_word_whatever_was_there),
    CASE(more_bits_than_there_can_be_are_refused),
    CASE(arrays_of_bits_have_any_number_of_dimensions),
    CASE(views_of_bits_begin_with_a_word),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(a_hundred_bits_are_packed),
    cmocka_unit_test(counting_looks_at_no_bit_beyond_the_length),
};

int main(void)
{
    return FORMS_MAIN("bits", cases, others);
}
