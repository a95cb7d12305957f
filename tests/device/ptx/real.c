/* SPDX-License-Identifier: MIT */
/* Floating point: f32 and f64 as IEEE 754 has them, rounded as the instruction says. What PTX calls
 * approximate is computed exactly and rounded once: results are at least as good as a device's. */
#include <fenv.h>
#include <math.h>
#include <string.h>

#include "warp.h"

double real_value(ptx_type type, uint64_t bits)
{
    double wide;
    float narrow;
    uint32_t half = (uint32_t)bits;
    if (type.bits == 64) {
        memcpy(&wide, &bits, sizeof wide);
        return wide;
    }
    memcpy(&narrow, &half, sizeof narrow);
    return (double)narrow;
}

/* Rounds as the thread's mode is now. */
uint64_t real_bits(ptx_type type, double value)
{
    uint64_t bits = 0;
    volatile float narrow = (float)value;
    float copy = narrow;
    if (type.bits == 64)
        memcpy(&bits, &value, sizeof value);
    else
        memcpy(&bits, &copy, sizeof copy);
    return bits;
}

int real_rounding(const instruction *one)
{
    switch (one->round & ~ROUND_INTEGER) {
    case ROUND_ZERO: return FE_TOWARDZERO;
    case ROUND_DOWN: return FE_DOWNWARD;
    case ROUND_UP: return FE_UPWARD;
    default: return FE_TONEAREST;
    }
}

static double flushed(const instruction *one, double value)
{
    bool small = one->ftz && one->type.bits == 32 && fabs(value) < 0x1p-126;
    return small ? copysign(0, value) : value;
}

/* Without a sign and quiet, as devices make them. */
static uint64_t finished(const instruction *one, double value)
{
    if (one->saturate)
        value = isnan(value) || value < 0 ? 0 : value > 1 ? 1 : value;
    if (isnan(value))
        return one->type.bits == 64 ? 0x7FF8000000000000 : 0x7FFFFFFF;
    return real_bits(one->type, flushed(one, value));
}

static double least(double a, double b, bool most)
{
    if (isnan(a) || isnan(b))
        return isnan(a) ? b : a;
    if (a == b)
        return signbit(a) != most ? a : b;
    return (a < b) != most ? a : b;
}

/* f32 is computed as float: double would round twice in sums of some values. */
static double compute_narrow(float a, float b, char what)
{
    volatile float x = a, y = b, made;
    switch (what) {
    case '+': made = x + y; break;
    case '-': made = x - y; break;
    case '*': made = x * y; break;
    default: made = x / y; break;
    }
    return (double)made;
}

static double compute_wide(double a, double b, char what)
{
    volatile double x = a, y = b, made;
    switch (what) {
    case '+': made = x + y; break;
    case '-': made = x - y; break;
    case '*': made = x * y; break;
    default: made = x / y; break;
    }
    return made;
}

uint64_t real_binary(const instruction *one, uint64_t a, uint64_t b, char what)
{
    double x = flushed(one, real_value(one->type, a)), y = flushed(one, real_value(one->type, b));
    if (what == '<' || what == '>')
        return finished(one, least(x, y, what == '>'));
    (void)fesetround(real_rounding(one));
    double made =
        one->type.bits == 32 ? compute_narrow((float)x, (float)y, what) : compute_wide(x, y, what);
    (void)fesetround(FE_TONEAREST);
    return finished(one, made);
}

uint64_t real_fma(const instruction *one, const uint64_t *in)
{
    volatile double x = flushed(one, real_value(one->type, in[0])),
                    y = flushed(one, real_value(one->type, in[1]));
    volatile double z = flushed(one, real_value(one->type, in[2])), made;
    (void)fesetround(real_rounding(one));
    if (one->type.bits == 32)
        made = (double)fmaf((float)x, (float)y, (float)z);
    else
        made = fma(x, y, z);
    (void)fesetround(FE_TONEAREST);
    return finished(one, made);
}

static uint64_t unary(const instruction *one, uint64_t in, double (*what)(double))
{
    return finished(one, what(flushed(one, real_value(one->type, in))));
}

uint64_t real_rcp(const instruction *one, const uint64_t *in)
{
    return real_binary(one, real_bits(one->type, 1), in[0], '/');
}

uint64_t real_sqrt(const instruction *one, const uint64_t *in)
{
    volatile double x = flushed(one, real_value(one->type, in[0])), made;
    (void)fesetround(real_rounding(one));
    if (one->type.bits == 32)
        made = (double)sqrtf((float)x);
    else
        made = sqrt(x);
    (void)fesetround(FE_TONEAREST);
    return finished(one, made);
}

static double rsqrt(double x)
{
    return 1 / sqrt(x);
}

uint64_t real_rsqrt(const instruction *one, const uint64_t *in)
{
    return unary(one, in[0], rsqrt);
}

uint64_t real_ex2(const instruction *one, const uint64_t *in)
{
    return unary(one, in[0], exp2);
}

uint64_t real_lg2(const instruction *one, const uint64_t *in)
{
    return unary(one, in[0], log2);
}

uint64_t real_sin(const instruction *one, const uint64_t *in)
{
    return unary(one, in[0], sin);
}

uint64_t real_cos(const instruction *one, const uint64_t *in)
{
    return unary(one, in[0], cos);
}

bool real_compare(const instruction *one, uint64_t a, uint64_t b)
{
    double x = flushed(one, real_value(one->type, a)), y = flushed(one, real_value(one->type, b));
    bool unordered = isnan(x) || isnan(y);
    switch (one->compare & ~COMPARE_UNORDERED) {
    case COMPARE_NUM: return !unordered;
    case COMPARE_NAN: return unordered;
    default: break;
    }
    if (unordered)
        return (one->compare & COMPARE_UNORDERED) != 0;
    switch (one->compare & ~COMPARE_UNORDERED) {
    case COMPARE_EQ: return x == y;
    case COMPARE_NE: return x != y;
    case COMPARE_LT: return x < y;
    case COMPARE_LE: return x <= y;
    case COMPARE_GT: return x > y;
    default: return x >= y;
    }
}
