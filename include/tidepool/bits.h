/* SPDX-License-Identifier: MIT */
/* Packed bits: 64 to a word, bit i in word i / 64 at position i % 64.
 *
 * An array of bits ends in a whole word. After tide_zeros_type, tide_ones_type and tide_fill_type
 * the bits beyond its length are 0, and the functions here keep them 0. In an uninitialised array
 * they are arbitrary. tide_bits_count does not count them. No index is checked.
 *
 * N-D arrays of bits are arrays of type TIDE_BIT (tidepool/array.h). Their strides count bits, and
 * there are no gaps: row 1 begins with the bit after the last of row 0, which may be in the middle
 * of a word. So the whole array can be counted, copied and combined word by word. Rows of a multiple of
 * 64 bits begin with a word each; a view must begin with one and go forward (TIDE_ERROR_SIZE). DLPack
 * consumers do not know packed bits: they are not exported. */
#ifndef TIDEPOOL_BITS_H
#define TIDEPOOL_BITS_H

#include <tidepool/acquire.h>
#include <tidepool/array.h>

TIDE_BEGIN_DECLS

/* Acquires n bits, uninitialised; type TIDE_BIT. Fails as any acquire does (tidepool/acquire.h). */
#define tide_acquire_bits(pool, ...) \
    TIDE_AS(uint64_t *,              \
            tide_acquire_inline((pool), TIDE_BIT, TIDE_AS(size_t, __VA_ARGS__), TIDE_HERE))

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

/* Where an element of an N-D array of bits is: the i to pass with tide_array_data(array). The index
 * has as many parts as the array dimensions. */
TIDE_INLINE size_t tide_array_bit(const tide_array *array, const int64_t *index)
{
    int64_t bit = 0;
    for (int d = 0; d < array->tensor.ndim; d++)
        bit += index[d] * array->tensor.strides[d];
    return (size_t)bit;
}

/* How many of the first n bits are 1. */
TIDE_API size_t tide_bits_count(const uint64_t *bits, size_t n);

TIDE_END_DECLS

#endif
