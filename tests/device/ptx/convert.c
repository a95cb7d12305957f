/* SPDX-License-Identifier: MIT */
/* From type to type, from space to space, from register to register. */
#include <fenv.h>
#include <math.h>

#include "warp.h"

/* ---- cvt ------------------------------------------------------------------------------------ */

static double rounded(const instruction *one, double value)
{
    (void)fesetround(real_rounding(one));
    volatile double whole = rint(value);
    (void)fesetround(FE_TONEAREST);
    return whole;
}

/* What does not fit becomes the nearest that does; what is no number becomes 0. */
static uint64_t real_to_integer(const instruction *one, uint64_t in)
{
    double value = rounded(one, real_value(one->from, in));
    unsigned bits = one->type.bits;
    if (isnan(value))
        return 0;
    if (one->type.kind == KIND_SIGNED) {
        double most = ldexp(1, (int)bits - 1);
        return value >= most    ? ((uint64_t)1 << (bits - 1)) - 1
               : value <= -most ? (uint64_t)1 << (bits - 1)
                                : (uint64_t)(int64_t)value;
    }
    double most = ldexp(1, (int)bits);
    return value >= most ? UINT64_MAX : value <= 0 ? 0 : (uint64_t)value;
}

static uint64_t to_real(const instruction *one, uint64_t in)
{
    volatile float narrow = 0;
    volatile double wide = 0;
    bool has_sign = one->from.kind == KIND_SIGNED, from_real = one->from.kind == KIND_FLOAT;
    double given = from_real ? real_value(one->from, in) : 0;
    (void)fesetround(from_real && (one->round & ROUND_INTEGER) != 0 ? FE_TONEAREST
                                                                    : real_rounding(one));
    if (one->type.bits == 32)
        narrow = from_real ? (float)given : has_sign ? (float)(int64_t)in : (float)in;
    else
        wide = from_real ? given : has_sign ? (double)(int64_t)in : (double)in;
    (void)fesetround(FE_TONEAREST);
    double made = one->type.bits == 32 ? (double)narrow : wide;
    if ((one->round & ROUND_INTEGER) != 0)
        made = rounded(one, made);
    if (one->saturate)
        made = isnan(made) || made < 0 ? 0 : made > 1 ? 1 : made;
    if (one->ftz && one->type.bits == 32 && fabs(made) < 0x1p-126)
        made = copysign(0, made);
    return real_bits(one->type, made);
}

static uint64_t integer_to_integer(const instruction *one, uint64_t in)
{
    unsigned bits = one->type.bits;
    bool from_signed = one->from.kind == KIND_SIGNED, negative = from_signed && (int64_t)in < 0;
    if (!one->saturate)
        return in;
    uint64_t most =
        one->type.kind == KIND_SIGNED ? ((uint64_t)1 << (bits - 1)) - 1 : UINT64_MAX >> (64 - bits);
    if (!negative)
        return in > most ? most : in;
    int64_t least = one->type.kind == KIND_SIGNED ? -(int64_t)most - 1 : 0;
    return (int64_t)in < least ? (uint64_t)least : in;
}

uint64_t convert_any(const instruction *one, const uint64_t *in)
{
    if (one->type.kind == KIND_FLOAT)
        return to_real(one, in[0]);
    return one->from.kind == KIND_FLOAT ? real_to_integer(one, in[0])
                                        : integer_to_integer(one, in[0]);
}

/* ---- cvta ----------------------------------------------------------------------------------- */

/* Global memory is where it is; the others begin at windows of their own. */
uint64_t convert_address(const instruction *one, const uint64_t *in)
{
    uint64_t window = one->space == SPACE_SHARED  ? PTX_WINDOW_SHARED
                      : one->space == SPACE_LOCAL ? PTX_WINDOW_LOCAL
                      : one->space == SPACE_PARAM ? PTX_WINDOW_PARAM
                                                  : 0;
    return one->to ? in[0] - window : in[0] + window;
}

/* ---- mov ------------------------------------------------------------------------------------ */

/* Several registers on one side are the parts of the one on the other. */
bool move_any(warp *w, const instruction *one, uint32_t lanes)
{
    unsigned ins = one->in_count,
             part = one->type.bits / (one->out_count > ins ? one->out_count : ins);
    for (; lanes != 0; lanes &= lanes - 1) {
        unsigned lane = (unsigned)__builtin_ctz(lanes);
        uint64_t whole = 0;
        for (unsigned i = 0; i < ins; i++) {
            uint64_t value = warp_read(w, &one->in[i], lane);
            whole |= ins == 1 ? value : (value & (((uint64_t)1 << part) - 1)) << i * part;
        }
        for (unsigned i = 0; i < one->out_count; i++)
            warp_write(w, &one->out[i], lane, whole >> i * part);
    }
    return true;
}

/* ---- setp ----------------------------------------------------------------------------------- */

static bool integers_compare(const instruction *one, uint64_t a, uint64_t b)
{
    bool has_sign = one->type.kind == KIND_SIGNED,
         less = has_sign ? (int64_t)a < (int64_t)b : a < b;
    switch (one->compare) {
    case COMPARE_EQ: return a == b;
    case COMPARE_NE: return a != b;
    case COMPARE_LT: return less;
    case COMPARE_LE: return less || a == b;
    case COMPARE_GT: return !less && a != b;
    default: return !less;
    }
}

static bool combine(const instruction *one, bool a, bool b)
{
    return one->combine == COMBINE_AND   ? a && b
           : one->combine == COMBINE_OR  ? a || b
           : one->combine == COMBINE_XOR ? a != b
                                         : a;
}

bool compare_set(warp *w, const instruction *one, uint32_t lanes)
{
    for (; lanes != 0; lanes &= lanes - 1) {
        unsigned lane = (unsigned)__builtin_ctz(lanes);
        uint64_t a = type_extend(warp_read(w, &one->in[0], lane), one->type);
        uint64_t b = type_extend(warp_read(w, &one->in[1], lane), one->type);
        bool third = one->in_count > 2 && (warp_read(w, &one->in[2], lane) & 1) != 0;
        bool holds =
            one->type.kind == KIND_FLOAT ? real_compare(one, a, b) : integers_compare(one, a, b);
        warp_write(w, &one->out[0], lane, combine(one, holds, third));
        if (one->out_count > 1)
            warp_write(w, &one->out[1], lane, combine(one, !holds, third));
    }
    return true;
}
