/* SPDX-License-Identifier: MIT */
/* Packed bits: 64 to a word, bit i in word i / 64 at position i % 64.
 *
 * An array of bits ends in a whole word. After tide_zeros_type, tide_ones_type and tide_fill_type
 * the bits beyond its length are 0, and the functions here keep them 0. In an uninitialised array
 * they are arbitrary. tide_bits_count does not count them. No index is checked. */
#ifndef TIDEPOOL_BITS_H
#define TIDEPOOL_BITS_H

#include <tidepool/acquire.h>

TIDE_BEGIN_DECLS

/* Acquires n bits, uninitialised; type TIDE_BIT. Fails as any acquire does (tidepool/acquire.h). */
#define tide_acquire_bits(pool, n) \
    ((uint64_t *)tide_acquire_inline((pool), TIDE_BIT, (size_t)(n), TIDE_HERE))

TIDE_INLINE bool tide_bit_test(const uint64_t *bits, size_t i)
{
    return bits[i / 64] >> (i % 64) & 1;
}

TIDE_INLINE void tide_bit_set(uint64_t *bits, size_t i)
{
    bits[i / 64] |= (uint64_t)1 << (i % 64);
}

TIDE_INLINE void tide_bit_clear(uint64_t *bits, size_t i)
{
    bits[i / 64] &= ~((uint64_t)1 << (i % 64));
}

TIDE_INLINE void tide_bit_put(uint64_t *bits, size_t i, bool value)
{
    bits[i / 64] = (bits[i / 64] & ~((uint64_t)1 << (i % 64))) | (uint64_t)value << (i % 64);
}

/* How many of the first n bits are 1. */
TIDE_API size_t tide_bits_count(const uint64_t *bits, size_t n);

TIDE_END_DECLS

#endif
