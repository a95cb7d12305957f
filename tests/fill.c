/* SPDX-License-Identifier: MIT */
/* Arrays that come with content: zeros, ones, copies of a value. */
#include <tidepool/dynamic.h>
#include <tidepool/upkeep.h>

#include "forms.h"

static void expect_each(const void *data, size_t n, size_t size, const void *value)
{
    for (size_t i = 0; i < n; i++)
        assert_memory_equal((const uint8_t *)data + i * size, value, size);
}

/* After dirt of the same type in the same slots. */
#define FILLS(pool, T, one_value, some_value)                                 \
    do {                                                                      \
        const T zero_ = 0, one_ = (one_value), some_ = (some_value);          \
        T *zeros_ = tide_zeros(pool, T, 37), *ones_ = tide_ones(pool, T, 37); \
        T *some__ = tide_fill(pool, T, 37, some_value);                       \
        expect_each(zeros_, 37, sizeof(T), &zero_);                           \
        expect_each(ones_, 37, sizeof(T), &one_);                             \
        expect_each(some__, 37, sizeof(T), &some_);                           \
    } while (0)

static void fill_integers_and_reals(tide_pool *pool, void *state)
{
    (void)state;
    FILLS(pool, double, 1.0, -2.5);
    FILLS(pool, float, 1.0f, 1e30f);
    FILLS(pool, int8_t, 1, -7);
    FILLS(pool, int16_t, 1, -700);
    FILLS(pool, int32_t, 1, 70000);
    FILLS(pool, int64_t, 1, INT64_MIN);
    FILLS(pool, uint8_t, 1, 255);
    FILLS(pool, uint16_t, 1, 65535);
    FILLS(pool, uint32_t, 1, UINT32_MAX);
    FILLS(pool, uint64_t, 1, UINT64_MAX);
    FILLS(pool, bool, true, true);
    FILLS(pool, tide_c64, 1.0f, 2.0f);
    FILLS(pool, tide_c128, 1.0, 2.0);
    CHECK_POOL(pool);
}

static void make_dirt(tide_pool *pool, void *state)
{
    (void)state;
    for (tide_type type = 1; type < TIDE_BIT; type++)
        for (unsigned i = 0; i < 3; i++)
            take(pool, type, 40, i + 5);
}

static void every_element_is_set_whatever_was_there(const scene *s)
{
    form_run(s->form, s->pool, fill_integers_and_reals, NULL);
    form_run(s->form, s->pool, make_dirt, NULL);
    form_run(s->form, s->pool, fill_integers_and_reals, NULL);
    form_repeat(s->form, s->pool, 2, fill_integers_and_reals, NULL);
}

static void small_floats_have_their_own_one(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_POISON);
    tide_f16 *half = tide_ones(pool, tide_f16, 3);
    tide_bf16 *brain = tide_ones(pool, tide_bf16, 3);
    assert_int_equal(half[2].bits, 0x3c00);
    assert_int_equal(brain[2].bits, 0x3f80);
    assert_int_equal(tide_zeros(pool, tide_f16, 3)[2].bits, 0);
    tide_f16 *copies = tide_fill(pool, tide_f16, 5, ((tide_f16){0x1234}));
    assert_int_equal(copies[4].bits, 0x1234);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

struct triple {
    int32_t a, b, c;
};

static void structures_are_zeroed_and_copied_but_have_no_one(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_POISON);
    const struct triple zero = {0, 0, 0}, value = {1, 2, 3};
    expect_each(tide_zeros(pool, struct triple, 9), 9, sizeof zero, &zero);
    expect_each(tide_fill(pool, struct triple, 9, value), 9, sizeof value, &value);
    size_t live = tide_pool_active(pool, tide_type_of(struct triple));
    assert_int_equal(live, 2);
    assert_null(tide_ones(pool, struct triple, 9));
    assert_int_equal(tide_error_status(), TIDE_ERROR_TYPE);
    assert_int_equal(tide_pool_active(pool, tide_type_of(struct triple)), live);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

static void filling_nothing_or_from_nothing(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_POISON);
    assert_non_null(tide_zeros(pool, double, 0));
    assert_non_null(tide_ones(pool, double, 0));
    size_t live = tide_pool_active(pool, TIDE_F64);
    assert_null(tide_fill_type(pool, TIDE_F64, 10, NULL));
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    assert_null(tide_zeros(pool, double, SIZE_MAX));
    assert_int_equal(tide_error_status(), TIDE_ERROR_SIZE);
    assert_int_equal(tide_pool_active(pool, TIDE_F64), live);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

static const form_case cases[] = {
    CASE(every_element_is_set_whatever_was_there),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(small_floats_have_their_own_one),
    cmocka_unit_test(structures_are_zeroed_and_copied_but_have_no_one),
    cmocka_unit_test(filling_nothing_or_from_nothing),
};

int main(void)
{
    return FORMS_MAIN("fill", cases, others);
}
