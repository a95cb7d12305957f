/* SPDX-License-Identifier: MIT */
/* The hash of bytes: the sum of its words, each mixed with its position, so that exchanged
 * words are noticed. */
#include "runtime/base/hash.h"

#include <string.h>

#include "runtime/base/assert.h"

#define HASH_STEP UINT64_C(0x9E3779B97F4A7C15) /* 2^64 over the golden ratio */

/* MurmurHash3's last step, by Austin Appleby: each bit of x changes about half of the result's bits. */
static uint64_t hash_mix(uint64_t x)
{
    x ^= x >> 33;
    x *= UINT64_C(0xFF51AFD7ED558CCD);
    x ^= x >> 33;
    x *= UINT64_C(0xC4CEB9FE1A85EC53);
    return x ^ x >> 33;
}

uint64_t tide_hash_bytes(const void *data, size_t bytes)
{
    uint64_t sum = 0;
    tide_assert(data != NULL || bytes == 0);
    for (size_t at = 0; at < bytes; at += sizeof sum) {
        uint64_t word = 0; /* beyond the end bytes are 0 */
        size_t rest = bytes - at;
        memcpy(&word, (const char *)data + at, rest < sizeof word ? rest : sizeof word);
        sum += hash_mix(word + (at / sizeof word + 1) * HASH_STEP);
    }
    return hash_mix(sum + bytes * HASH_STEP);
}
