/* SPDX-License-Identifier: MIT */
/* Counting packed bits. */
#include <tidepool/bits.h>

size_t tide_bits_count(const uint64_t *bits, size_t n)
{
    size_t count = 0, whole = n / 64, rest = n % 64;
    for (size_t i = 0; i < whole; i++)
        count += (size_t)__builtin_popcountll(bits[i]);
    if (rest != 0)
        count += (size_t)__builtin_popcountll(bits[whole] & (((uint64_t)1 << rest) - 1));
    return count;
}
