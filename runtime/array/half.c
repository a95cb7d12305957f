/* SPDX-License-Identifier: MIT */
/* 16-bit floats in integer arithmetic: the same on every machine, with or without F16C. */
#include <string.h>

#include <tidepool/half.h>

#include "runtime/base/assert.h"

_Static_assert(sizeof(float) == sizeof(uint32_t), "a float's bits are taken as one word");
_Static_assert(sizeof(tide_f16) == 2 && sizeof(tide_bf16) == 2, "arrays of them have no gaps");

static uint32_t half_bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float half_float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A subnormal half is its fraction times 2^-24, which a float holds exactly. */
float tide_f16_to_float(tide_f16 value)
{
    uint32_t sign = (uint32_t)(value.bits & 0x8000) << 16;
    uint32_t exponent = value.bits >> 10 & 0x1F, fraction = value.bits & 0x3FF;
    if (exponent == 0x1F)
        return half_float_of(sign | 0x7F800000 | fraction << 13 | (fraction != 0 ? 0x400000 : 0));
    if (exponent != 0)
        return half_float_of(sign | (exponent + 112) << 23 | fraction << 13);
    float magnitude = (float)fraction * 0x1p-24f;
    return half_float_of(sign | half_bits_of(magnitude));
}

/* Drops the lowest `shift` bits, rounding to nearest, ties to even. A carry out of the fraction
 * raises the exponent: the number is rounded up to a power of two, as it should be. */
static uint32_t half_round_off(uint32_t value, uint32_t shift)
{
    tide_assert(shift >= 1 && shift < 32 && value <= UINT32_MAX - ((uint32_t)1 << (shift - 1)));
    uint32_t half = (uint32_t)1 << (shift - 1), odd = value >> shift & 1;
    return (value + half - 1 + odd) >> shift;
}

tide_f16 tide_f16_from_float(float value)
{
    uint32_t bits = half_bits_of(value), magnitude = bits & 0x7FFFFFFF;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (magnitude > 0x7F800000) /* NaN */
        return (tide_f16){(uint16_t)(sign | 0x7E00 | (magnitude >> 13 & 0x1FF))};
    if (magnitude >= 0x477FF000) /* 65520 and above round to infinity */
        return (tide_f16){(uint16_t)(sign | 0x7C00)};
    if (magnitude >= 0x38800000) /* 2^-14: normal; the exponent's bias moves from 127 to 15 */
        return (tide_f16){(uint16_t)(sign | half_round_off(magnitude - (112u << 23), 13))};
    if (magnitude < 0x33000000) /* below half of the least subnormal */
        return (tide_f16){sign};
    uint32_t exponent = magnitude >> 23, fraction = (magnitude & 0x7FFFFF) | 0x800000;
    tide_assert(exponent >= 102 && exponent < 113); /* 2^-25 to below 2^-14: subnormal */
    return (tide_f16){(uint16_t)(sign | half_round_off(fraction, 126 - exponent))};
}

float tide_bf16_to_float(tide_bf16 value)
{
    return half_float_of((uint32_t)value.bits << 16);
}

tide_bf16 tide_bf16_from_float(float value)
{
    uint32_t bits = half_bits_of(value);
    if ((bits & 0x7FFFFFFF) > 0x7F800000)
        return (tide_bf16){(uint16_t)(bits >> 16 | 0x40)};
    return (tide_bf16){(uint16_t)half_round_off(bits, 16)};
}

#define TIDE_EACH(name, target_type, source_type, convert)              \
    void name(target_type *target, const source_type *source, size_t n) \
    {                                                                   \
        for (size_t i = 0; i < n; i++)                                  \
            target[i] = convert(source[i]);                             \
    }

TIDE_EACH(tide_f16_to_floats, float, tide_f16, tide_f16_to_float)
TIDE_EACH(tide_f16_from_floats, tide_f16, float, tide_f16_from_float)
TIDE_EACH(tide_bf16_to_floats, float, tide_bf16, tide_bf16_to_float)
TIDE_EACH(tide_bf16_from_floats, tide_bf16, float, tide_bf16_from_float)
