/* SPDX-License-Identifier: MIT */
/* 16-bit floats: every one of them, and the floats around every border between two of them,
 * against the definition in double arithmetic. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <tidepool/half.h>
#include <tidepool/tidepool.h>

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- the definition ---- */

/* A format of 16 bits: how many are of the fraction, and the exponent's bias. */
typedef struct format {
    int fraction, bias;
} format;

static const format f16 = {10, 15}, bf16 = {7, 127};

static double value_of(format f, uint32_t bits)
{
    uint32_t exponent = (bits & 0x7FFF) >> f.fraction, ones = 0x7FFFu >> f.fraction;
    double fraction = bits & ((1u << f.fraction) - 1), sign = bits & 0x8000 ? -1 : 1;
    if (exponent == ones)
        return fraction != 0 ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - f.bias - f.fraction);
    return sign * ldexp(fraction + (double)(1u << f.fraction), (int)exponent - f.bias - f.fraction);
}

/* Nearest, ties to even: rint in the unit of the last place. Magnitudes only. */
static uint32_t nearest(format f, double magnitude)
{
    uint32_t infinity = (0x7FFFu >> f.fraction) << f.fraction;
    int exponent;
    frexp(magnitude, &exponent);
    exponent = magnitude == 0 || exponent - 1 < 1 - f.bias ? 1 - f.bias : exponent - 1;
    double units = rint(ldexp(magnitude, f.fraction - exponent));
    /* A carry out of the fraction lands in the exponent, where it belongs. */
    double bits = units + ldexp((double)(exponent + f.bias - 1), f.fraction);
    return bits >= infinity ? infinity : (uint32_t)bits;
}

static uint32_t rounded(format f, float value)
{
    return nearest(f, fabs((double)value)) | (signbit(value) ? 0x8000 : 0);
}

/* ---- each of 65536 ---- */

static void expect_same_float(float got, float expected)
{
    if (isnan(expected))
        assert_true(isnan(got) && !signbit(got) == !signbit(expected));
    else
        assert_int_equal(bits_of(got), bits_of(expected));
}

static void every_f16_is_the_float_of_its_definition_and_comes_back(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        tide_f16 half = {(uint16_t)i};
        float value = tide_f16_to_float(half);
        uint16_t back = tide_f16_from_float(value).bits;
        if (isnan(value_of(f16, i))) {
            assert_true(isnan(value));
            assert_int_equal(bits_of(value), /* quiet, the payload where it was */
                             (i & 0x8000) << 16 | 0x7FC00000 | (i & 0x3FF) << 13);
            assert_int_equal(back, i | 0x200);
        } else {
            expect_same_float(value, (float)value_of(f16, i));
            assert_int_equal(back, i);
        }
    }
}

static void every_bf16_is_the_float_of_its_definition_and_comes_back(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        float value = tide_bf16_to_float((tide_bf16){(uint16_t)i});
        uint16_t back = tide_bf16_from_float(value).bits;
        assert_int_equal(bits_of(value), i << 16);
        if (isnan(value_of(bf16, i))) {
            assert_true(isnan(value));
            assert_int_equal(back, i | 0x40);
        } else {
            expect_same_float(value, (float)value_of(bf16, i));
            assert_int_equal(back, i);
        }
    }
}

/* ---- rounding ---- */

static uint32_t f16_bits(float value)
{
    return tide_f16_from_float(value).bits;
}

static uint32_t bf16_bits(float value)
{
    return tide_bf16_from_float(value).bits;
}

static void expect_rounded(format f, uint32_t (*convert)(float), float value)
{
    if (isnan(value))
        return;
    if (convert(value) != rounded(f, value))
        fail_msg("%a gave %#x, not %#x", (double)value, convert(value), rounded(f, value));
    assert_int_equal(convert(-value), rounded(f, -value));
}

/* Half-way to the next one up, and the floats on both sides of that and of the number itself. */
static void expect_neighbours(format f, uint32_t (*convert)(float), uint32_t bits)
{
    double below = value_of(f, bits), above = value_of(f, bits + 1);
    if (isinf(above)) /* as if the format went on */
        above = below + (below - value_of(f, bits - 1));
    float number = (float)below, tie = (float)((below + above) / 2);
    for (int step = -2; step <= 2; step++) {
        expect_rounded(f, convert, float_of(bits_of(tie) + (uint32_t)step));
        if (bits_of(number) >= 2)
            expect_rounded(f, convert, float_of(bits_of(number) + (uint32_t)step));
    }
}

static void floats_around_every_border_round_to_nearest_ties_to_even(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 0x7C00; i++)
        expect_neighbours(f16, f16_bits, i);
    for (uint32_t i = 1; i < 0x7F80; i++)
        expect_neighbours(bf16, bf16_bits, i);
}

/* Written out, so that the definition above is checked by something else, too. */
static void known_roundings(void **state)
{
    (void)state;
    static const struct {
        float value;
        uint32_t f16, bf16;
    } known[] = {
        {0.0f, 0x0000, 0x0000},
        {1.0f, 0x3C00, 0x3F80},
        {-2.0f, 0xC000, 0xC000},
        {1.0f + 0x1p-11f, 0x3C00, 0x3F80},            /* tie: down to even */
        {1.0f + 0x3p-11f, 0x3C02, 0x3F80},            /* tie: up to even   */
        {1.0f + 0x1p-11f + 0x1p-23f, 0x3C01, 0x3F80}, /* just above a tie  */
        {1.0f + 0x1p-8f, 0x3C04, 0x3F80},
        {1.0f + 0x3p-8f, 0x3C0C, 0x3F82},
        {2049.0f, 0x6800, 0x4500},
        {2051.0f, 0x6802, 0x4500},
        {65504.0f, 0x7BFF, 0x4780}, /* the largest f16   */
        {65519.996f, 0x7BFF, 0x4780},
        {65520.0f, 0x7C00, 0x4780}, /* from here on infinite */
        {-65520.0f, 0xFC00, 0xC780},
        {1e10f, 0x7C00, 0x5015},
        {3.4028235e38f, 0x7C00, 0x7F80}, /* the largest float */
        {0x1p-14f, 0x0400, 0x3880},      /* the least normal  */
        {0x1p-24f, 0x0001, 0x3380},      /* the least of all  */
        {0x1p-25f, 0x0000, 0x3300},      /* tie: to zero      */
        {0x1.000002p-25f, 0x0001, 0x3300},
        {-0x1p-26f, 0x8000, 0xB280},
        {0x3p-25f, 0x0002, 0x33C0},     /* tie: to even      */
        {0x1.ff8p-15f, 0x03FF, 0x3880}, /* the largest subnormal */
        {0x1.ffcp-15f, 0x0400, 0x3880}, /* tie: up to normal */
        {0x1p-126f, 0x0000, 0x0080},
        {0x1p-133f, 0x0000, 0x0001},
        {0x1p-134f, 0x0000, 0x0000}, /* tie: to zero      */
        {0x1p-149f, 0x0000, 0x0000},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_int_equal(f16_bits(known[i].value), known[i].f16);
        assert_int_equal(bf16_bits(known[i].value), known[i].bf16);
    }
    assert_int_equal(f16_bits(-0.0f), 0x8000);
    assert_int_equal(bf16_bits(-0.0f), 0x8000);
    assert_int_equal(f16_bits(INFINITY), 0x7C00);
    assert_int_equal(f16_bits(-INFINITY), 0xFC00);
    assert_int_equal(bf16_bits(INFINITY), 0x7F80);
    assert_int_equal(bf16_bits(-INFINITY), 0xFF80);
}

/* ---- many at once ---- */

static void arrays_are_converted_like_single_values(void **state)
{
    (void)state;
    enum { N = 1027 };
    static float floats[N + 1], back[N + 1];
    static tide_f16 halves[N + 1];
    static tide_bf16 brains[N + 1];
    for (size_t i = 0; i < N; i++)
        floats[i] = float_of((uint32_t)i * 4183001u);
    for (size_t n = 0; n <= N; n = n < 20 ? n + 1 : n + 1007) {
        halves[n].bits = brains[n].bits = 0xABCD;
        back[n] = 77;
        tide_f16_from_floats(halves, floats, n);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(halves[i].bits, f16_bits(floats[i]));
        tide_f16_to_floats(back, halves, n);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(bits_of(back[i]), bits_of(tide_f16_to_float(halves[i])));
        tide_bf16_from_floats(brains, floats, n);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(brains[i].bits, bf16_bits(floats[i]));
        tide_bf16_to_floats(back, brains, n);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(bits_of(back[i]), bits_of(tide_bf16_to_float(brains[i])));
        assert_true(halves[n].bits == 0xABCD && brains[n].bits == 0xABCD && back[n] == 77);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_f16_is_the_float_of_its_definition_and_comes_back),
        cmocka_unit_test(every_bf16_is_the_float_of_its_definition_and_comes_back),
        cmocka_unit_test(floats_around_every_border_round_to_nearest_ties_to_even),
        cmocka_unit_test(known_roundings),
        cmocka_unit_test(arrays_are_converted_like_single_values),
    };
    return cmocka_run_group_tests_name("half", tests, NULL, NULL);
}
