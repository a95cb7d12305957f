/* SPDX-License-Identifier: MIT */
/* A 64-bit hash of content. It finds differences that happen, not those that somebody makes on
 * purpose.
 *
 *   mix(x)  = x ^= x >> 33; x *= 0xFF51AFD7ED558CCD; x ^= x >> 33; x *= 0xC4CEB9FE1A85EC53;
 *             x ^= x >> 33                          (MurmurHash3's last step, by Austin Appleby)
 *   word i  = bytes 8 i to 8 i + 7, little-endian; beyond the end bytes are 0
 *   step    = 0x9E3779B97F4A7C15                    (2^64 over the golden ratio)
 *   sum     = Σ mix(word i + (i + 1) · step), i < ceil(bytes / 8), modulo 2^64
 *   hash    = mix(sum + bytes · step)
 *
 * The position is part of each term, so exchanged words are noticed. */
#ifndef TIDEPOOL_RUNTIME_BASE_HASH_H
#define TIDEPOOL_RUNTIME_BASE_HASH_H

#include <tidepool/inline/config.h>

#define TIDE_HASH_STEP UINT64_C(0x9E3779B97F4A7C15)

uint64_t tide_hash_bytes(const void *data, size_t bytes);

/* The same piece by piece; every piece but the last is of whole words. Begins all zero. */
typedef struct tide_hash {
    uint64_t sum;
    size_t bytes;
} tide_hash;

void tide_hash_more(tide_hash *hash, const void *data, size_t bytes);
uint64_t tide_hash_end(const tide_hash *hash);

#endif
