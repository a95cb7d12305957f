/* SPDX-License-Identifier: MIT */
/* The hash of bytes. */
#include "runtime/base/hash.h"

#include <string.h>

#include "runtime/base/assert.h"

/* MurmurHash3's last step: each bit of x changes about half of the result's bits. */
static uint64_t hash_mix(uint64_t x)
{
    x ^= x >> 33;
    x *= UINT64_C(0xFF51AFD7ED558CCD);
    x ^= x >> 33;
    x *= UINT64_C(0xC4CEB9FE1A85EC53);
    return x ^ x >> 33;
}

/* What word i adds to the sum. */
static uint64_t hash_term(uint64_t word, size_t i)
{
    return hash_mix(word + ((uint64_t)i + 1) * TIDE_HASH_STEP);
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are little-endian");
_Static_assert(TIDE_HASH_STEP % 2 == 1, "no two positions add the same multiple of the step");

void tide_hash_more(tide_hash *hash, const void *data, size_t bytes)
{
    const char *from = data;
    uint64_t sum = hash->sum, word;
    size_t before = hash->bytes / sizeof word, whole = bytes / sizeof word;
    tide_assert(hash->bytes % sizeof word == 0); /* only the last piece may end inside a word */
    tide_assert(data != NULL || bytes == 0);
    for (size_t i = 0; i < whole; i++) {
        memcpy(&word, from + i * sizeof word, sizeof word);
        sum += hash_term(word, before + i);
    }
    if (bytes % sizeof word != 0) {
        word = 0;
        memcpy(&word, from + whole * sizeof word, bytes % sizeof word);
        sum += hash_term(word, before + whole);
    }
    hash->sum = sum;
    hash->bytes += bytes;
}

uint64_t tide_hash_end(const tide_hash *hash)
{
    return hash_mix(hash->sum + (uint64_t)hash->bytes * TIDE_HASH_STEP);
}

uint64_t tide_hash_bytes(const void *data, size_t bytes)
{
    tide_hash hash = {0};
    tide_hash_more(&hash, data, bytes);
    return tide_hash_end(&hash);
}
