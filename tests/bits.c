/* SPDX-License-Identifier: MIT */
/* Packed bits: where they lie, what is counted, and nothing beyond the last word. */
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

static void fill_a_hundred(tide_pool *pool, void *state)
{
    (void)state;
    uint64_t *words = tide_ones_type(pool, TIDE_BIT, 100);
    assert_int_equal(words[1], mask_of(100, 1));
    expect_bytes(words + 2, 8 * (WORDS - 2), 9);
}

/* 100 bits are two words: what lies behind them in a larger slot is not theirs. */
static void filling_stops_at_the_last_word(const scene *s)
{
    if (s->kind->check != TIDE_CHECK_NONE)
        return; /* poisoned meanwhile */
    uint64_t *words = tide_acquire_bits(s->pool, 64 * WORDS);
    fill_bytes(words + 2, 8 * (WORDS - 2), 9);
    expect_ok(tide_pool_reset(s->pool));
    form_run(s->form, s->pool, fill_a_hundred, NULL);
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

/* ---- with bools beside them ---- */

static void take_bits_and_bools(tide_pool *pool, void *state)
{
    (void)state;
    size_t bits_live = tide_pool_active(pool, TIDE_BIT),
           bools_live = tide_pool_active(pool, TIDE_BOOL);
    uint64_t *bits = tide_acquire_bits(pool, 100);
    assert_int_equal(tide_pool_active(pool, TIDE_BIT), bits_live + 1);
    assert_int_equal(tide_pool_active(pool, TIDE_BOOL), bools_live);
    bool *bools = tide_acquire(pool, bool, 100);
    assert_int_equal(tide_pool_active(pool, TIDE_BIT), bits_live + 1);
    assert_int_equal(tide_pool_active(pool, TIDE_BOOL), bools_live + 1);
    uint64_t *words = tide_acquire(pool, uint64_t, 2);
    assert_int_equal(tide_pool_active(pool, TIDE_BIT), bits_live + 1);
    fill_bytes(bits, 16, 1);
    memset(bools, 1, 100);
    fill_bytes(words, 16, 2);
    expect_bytes(bits, 16, 1);
    for (int i = 0; i < 100; i++)
        assert_true(bools[i]);
    void *none = tide_acquire_bits(pool, 0), *another = tide_acquire_bits(pool, 0);
    assert_true(none != NULL && another != NULL && none != another);
}

static void bools_and_bits_have_shelves_of_their_own(const scene *s)
{
    counts before = counts_of(s->pool);
    form_run(s->form, s->pool, take_bits_and_bools, NULL);
    counts_same(before, s->pool);
    form_repeat(s->form, s->pool, 3, take_bits_and_bools, NULL);
    counts_same(before, s->pool);
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

/* ---- one by one ---- */

struct shadow {
    uint64_t *bits;
    bool is[64 * WORDS];
};

static void expect_shadow(const struct shadow *shadow)
{
    size_t count = 0;
    for (size_t i = 0; i < 64 * WORDS; i++) {
        assert_int_equal(tide_bit_test(shadow->bits, i), shadow->is[i]);
        assert_int_equal(shadow->bits[i / 64] >> (i % 64) & 1, shadow->is[i]);
        count += shadow->is[i];
    }
    assert_int_equal(tide_bits_count(shadow->bits, 64 * WORDS), count);
}

static void set_clear_and_put(struct shadow *shadow, size_t i)
{
    tide_bit_set(shadow->bits, i);
    shadow->is[i] = true;
    expect_shadow(shadow);
    tide_bit_set(shadow->bits, i);
    expect_shadow(shadow);
    tide_bit_clear(shadow->bits, i);
    shadow->is[i] = false;
    expect_shadow(shadow);
    tide_bit_clear(shadow->bits, i);
    expect_shadow(shadow);
    tide_bit_put(shadow->bits, i, false);
    expect_shadow(shadow);
    tide_bit_put(shadow->bits, i, true);
    shadow->is[i] = true;
    tide_bit_put(shadow->bits, i, true);
    expect_shadow(shadow);
}

static void at_word_borders_one_bit_changes_and_no_other(void **state)
{
    (void)state;
    static const size_t places[] = {0, 1, 31, 32, 62, 63, 64, 65, 127, 128, 500, 64 * WORDS - 1};
    tide_pool *pool = pool_of(TIDE_CHECK_POISON);
    struct shadow shadow = {.bits = tide_zeros_type(pool, TIDE_BIT, 64 * WORDS)};
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
            set_clear_and_put(&shadow, places[i]);
        memset(shadow.is, 1, sizeof shadow.is);
        memset(shadow.bits, 0xFF, 8 * WORDS);
    }
    expect_ok(tide_pool_destroy(pool));
}

static void random_changes_are_those_of_an_array_of_bools(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_GUARD);
    struct shadow shadow = {.bits = tide_zeros_type(pool, TIDE_BIT, 64 * WORDS)};
    rng random = {1};
    for (int round = 0; round < 4000; round++) {
        size_t i = rng_below(&random, 64 * WORDS);
        unsigned what = (unsigned)rng_below(&random, 4);
        shadow.is[i] = what == 0 || what == 2;
        if (what == 0)
            tide_bit_set(shadow.bits, i);
        else if (what == 1)
            tide_bit_clear(shadow.bits, i);
        else
            tide_bit_put(shadow.bits, i, what == 2);
        if (round % 64 == 0)
            expect_shadow(&shadow);
    }
    expect_ok(tide_pool_destroy(pool));
}

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
    CASE_SLOTS(filling_stops_at_the_last_word),
    CASE(bools_and_bits_have_shelves_of_their_own),
    CASE(more_bits_than_there_can_be_are_refused),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(a_hundred_bits_are_packed),
    cmocka_unit_test(at_word_borders_one_bit_changes_and_no_other),
    cmocka_unit_test(random_changes_are_those_of_an_array_of_bools),
    cmocka_unit_test(counting_looks_at_no_bit_beyond_the_length),
};

int main(void)
{
    return FORMS_MAIN("bits", cases, others);
}
