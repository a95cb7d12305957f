/* SPDX-License-Identifier: MIT */
/* Integers and bits. Inputs come extended by their type; what is above the type's bits in an output
 * is cut off by the caller. Division by zero gives all ones, a remainder the dividend, as on
 * NVIDIA's devices. */
#include "warp.h"

__extension__ typedef unsigned __int128 product_bits;

static bool is_real(const instruction *one)
{
    return one->type.kind == KIND_FLOAT;
}

static bool is_signed(const instruction *one)
{
    return one->type.kind == KIND_SIGNED;
}

uint64_t alu_add(const instruction *one, const uint64_t *in)
{
    return is_real(one) ? real_binary(one, in[0], in[1], '+') : in[0] + in[1];
}

uint64_t alu_sub(const instruction *one, const uint64_t *in)
{
    return is_real(one) ? real_binary(one, in[0], in[1], '-') : in[0] - in[1];
}

uint64_t alu_mul(const instruction *one, const uint64_t *in)
{
    if (is_real(one))
        return real_binary(one, in[0], in[1], '*');
    if (one->half != HALF_HIGH)
        return in[0] * in[1];
    product_bits left = in[0], right = in[1];
    if (is_signed(one) && (int64_t)in[0] < 0)
        left |= (product_bits)UINT64_MAX << 64;
    if (is_signed(one) && (int64_t)in[1] < 0)
        right |= (product_bits)UINT64_MAX << 64;
    product_bits product = left * right;
    return (uint64_t)(product >> one->type.bits);
}

uint64_t alu_mad(const instruction *one, const uint64_t *in)
{
    return alu_mul(one, in) + in[2];
}

uint64_t alu_div(const instruction *one, const uint64_t *in)
{
    if (is_real(one))
        return real_binary(one, in[0], in[1], '/');
    if (in[1] == 0)
        return UINT64_MAX;
    if (!is_signed(one))
        return in[0] / in[1];
    return (int64_t)in[1] == -1 ? 0 - in[0] : (uint64_t)((int64_t)in[0] / (int64_t)in[1]);
}

uint64_t alu_rem(const instruction *one, const uint64_t *in)
{
    if (in[1] == 0)
        return in[0];
    if (!is_signed(one))
        return in[0] % in[1];
    return (int64_t)in[1] == -1 ? 0 : (uint64_t)((int64_t)in[0] % (int64_t)in[1]);
}

static bool is_below(const instruction *one, uint64_t a, uint64_t b)
{
    return is_signed(one) ? (int64_t)a < (int64_t)b : a < b;
}

uint64_t alu_min(const instruction *one, const uint64_t *in)
{
    if (is_real(one))
        return real_binary(one, in[0], in[1], '<');
    return is_below(one, in[0], in[1]) ? in[0] : in[1];
}

uint64_t alu_max(const instruction *one, const uint64_t *in)
{
    if (is_real(one))
        return real_binary(one, in[0], in[1], '>');
    return is_below(one, in[0], in[1]) ? in[1] : in[0];
}

uint64_t alu_neg(const instruction *one, const uint64_t *in)
{
    return is_real(one) ? in[0] ^ (uint64_t)1 << (one->type.bits - 1) : 0 - in[0];
}

uint64_t alu_abs(const instruction *one, const uint64_t *in)
{
    if (is_real(one))
        return in[0] & ~((uint64_t)1 << (one->type.bits - 1));
    return (int64_t)in[0] < 0 ? 0 - in[0] : in[0];
}

uint64_t alu_and(const instruction *one, const uint64_t *in)
{
    (void)one;
    return in[0] & in[1];
}

uint64_t alu_or(const instruction *one, const uint64_t *in)
{
    (void)one;
    return in[0] | in[1];
}

uint64_t alu_xor(const instruction *one, const uint64_t *in)
{
    (void)one;
    return in[0] ^ in[1];
}

/* The upper bits of a predicate's register are cut off: !1 is 0. */
uint64_t alu_not(const instruction *one, const uint64_t *in)
{
    (void)one;
    return ~in[0];
}

uint64_t alu_shl(const instruction *one, const uint64_t *in)
{
    return in[1] >= one->type.bits ? 0 : in[0] << in[1];
}

uint64_t alu_shr(const instruction *one, const uint64_t *in)
{
    uint64_t by = in[1] >= one->type.bits ? 63 : in[1];
    if (is_signed(one))
        return (uint64_t)((int64_t)in[0] >> by);
    return in[1] >= one->type.bits ? 0 : in[0] >> by;
}

/* Two words side by side, moved; the upper (left) or the lower (right) half of that. */
uint64_t alu_shf(const instruction *one, const uint64_t *in)
{
    uint64_t both = in[1] << 32 | in[0], by = one->wrap ? in[2] % 32 : in[2] < 32 ? in[2] : 32;
    return one->funnel == FUNNEL_LEFT ? (both << by) >> 32 : both >> by;
}

uint64_t alu_brev(const instruction *one, const uint64_t *in)
{
    uint64_t turned = 0;
    for (unsigned i = 0; i < one->type.bits; i++)
        turned |= (in[0] >> i & 1) << (one->type.bits - 1 - i);
    return turned;
}

uint64_t alu_popc(const instruction *one, const uint64_t *in)
{
    (void)one;
    return (uint64_t)__builtin_popcountll(in[0]);
}

uint64_t alu_clz(const instruction *one, const uint64_t *in)
{
    return in[0] == 0 ? one->type.bits : (uint64_t)__builtin_clzll(in[0]) - (64 - one->type.bits);
}

/* The highest bit that differs from the sign; with shiftamt, how far it is from the top. */
uint64_t alu_bfind(const instruction *one, const uint64_t *in)
{
    uint64_t value = is_signed(one) && (int64_t)in[0] < 0 ? ~in[0] : in[0];
    if (value == 0)
        return UINT32_MAX;
    uint64_t highest = 63 - (uint64_t)__builtin_clzll(value);
    return one->shift_amount ? one->type.bits - 1 - highest : highest;
}

uint64_t alu_bfe(const instruction *one, const uint64_t *in)
{
    unsigned from = in[1] & 0xFF, length = in[2] & 0xFF, bits = one->type.bits;
    uint64_t whole = type_extend(in[0], (ptx_type){KIND_UNSIGNED, (uint8_t)bits});
    if (length == 0)
        return 0;
    uint64_t high = from + length - 1 < bits ? from + length - 1 : bits - 1;
    uint64_t sign = is_signed(one) ? whole >> high & 1 : 0;
    uint64_t field = from >= bits ? 0 : whole >> from,
             keep = length >= 64 ? UINT64_MAX : ((uint64_t)1 << length) - 1;
    unsigned have = from >= bits ? 0 : from + length <= bits ? length : bits - from;
    uint64_t below = have >= 64 ? UINT64_MAX : ((uint64_t)1 << have) - 1;
    field &= keep;
    return sign != 0 ? field | ~below : field;
}

uint64_t alu_bfi(const instruction *one, const uint64_t *in)
{
    unsigned to = in[2] & 0xFF, length = in[3] & 0xFF, bits = one->type.bits;
    uint64_t keep = length >= 64 ? UINT64_MAX : ((uint64_t)1 << length) - 1;
    if (to >= bits || length == 0)
        return in[1];
    return (in[1] & ~(keep << to)) | (in[0] & keep) << to;
}

uint64_t alu_prmt(const instruction *one, const uint64_t *in)
{
    uint64_t both = in[1] << 32 | in[0], made = 0;
    (void)one;
    for (unsigned i = 0; i < 4; i++) {
        uint64_t choice = in[2] >> 4 * i & 15, byte = both >> (choice & 7) * 8 & 0xFF;
        made |= ((choice & 8) == 0 ? byte : (byte & 0x80) != 0 ? 0xFF : 0) << 8 * i;
    }
    return made;
}

/* Each bit by a table of eight. */
uint64_t alu_lop3(const instruction *one, const uint64_t *in)
{
    uint64_t made = 0;
    for (unsigned i = 0; i < one->type.bits; i++) {
        unsigned row = (unsigned)((in[0] >> i & 1) << 2 | (in[1] >> i & 1) << 1 | (in[2] >> i & 1));
        made |= (in[3] >> row & 1) << i;
    }
    return made;
}

uint64_t alu_selp(const instruction *one, const uint64_t *in)
{
    (void)one;
    return in[2] != 0 ? in[0] : in[1];
}
