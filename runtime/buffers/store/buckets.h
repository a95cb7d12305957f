/* SPDX-License-Identifier: MIT */
/* Which sizes there are: a policy turns a number of bytes into a bucket and a bucket into a number
 * of bytes. Both are arithmetic; nothing is searched. */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_STORE_BUCKETS_H
#define TIDEPOOL_RUNTIME_BUFFERS_STORE_BUCKETS_H

#include <tidepool/buffers.h>

#include "runtime/base/assert.h"

enum {
    TIDE_BUCKET_MIN = 64,         /* bytes; every size is a multiple of it */
    TIDE_BUCKET_SMALL = 16 << 10, /* bytes: up to here an instance has a table */
    TIDE_BUCKETS = 156 /* as many as the policy with the most has up to TIDE_BUCKET_MAX */
};

#define TIDE_BUCKET_MAX ((size_t)1 << 46) /* bytes */

_Static_assert(TIDE_BUCKET_MAX % TIDE_BUCKET_MIN == 0, "every size is a multiple of the least");

/* Bits that it takes to write n. */
static inline unsigned tide_bits(size_t n)
{
    return n == 0 ? 0 : 64 - (unsigned)__builtin_clzll(n);
}

/* Four steps to an octave: 256 × (1, 1¼, 1½, 1¾), 512 × … Below 256, such steps would be no
 * multiples of 64: there each multiple is a bucket. */
static inline unsigned tide_bucket_steps(size_t bytes)
{
    size_t last = bytes - (bytes != 0);
    if (last < 256)
        return (unsigned)(last / 64);
    unsigned octave = tide_bits(last) - 1;
    return 4 + (octave - 8) * 4 + (unsigned)(last >> (octave - 2)) - 4;
}

/* Powers of two, from 64 on. */
static inline unsigned tide_bucket_powers(size_t bytes)
{
    return bytes <= 64 ? 0 : tide_bits(bytes - 1) - 6;
}

/* Powers of four from 1 KiB to 256 MiB, then powers of two. */
static inline unsigned tide_bucket_list(size_t bytes)
{
    unsigned bits = bytes <= 1024 ? 10 : tide_bits(bytes - 1);
    return bits <= 28 ? (bits - 10 + 1) / 2 : 9 + bits - 28;
}

/* The smallest bucket that holds so many bytes, at most TIDE_BUCKET_MAX. */
static inline unsigned tide_bucket_of(tide_buffers_policy policy, size_t bytes)
{
    tide_assert(bytes <= TIDE_BUCKET_MAX);
    if (TIDE_LIKELY(policy == TIDE_BUFFERS_STEPS))
        return tide_bucket_steps(bytes);
    return policy == TIDE_BUFFERS_POWERS ? tide_bucket_powers(bytes) : tide_bucket_list(bytes);
}

/* Buckets that a policy has. The others are never used, and have no size. */
static inline unsigned tide_bucket_count(tide_buffers_policy policy)
{
    return tide_bucket_of(policy, TIDE_BUCKET_MAX) + 1;
}

static inline size_t tide_bucket_bytes(tide_buffers_policy policy, unsigned bucket)
{
    tide_assert(bucket < tide_bucket_count(policy));
    if (policy == TIDE_BUFFERS_POWERS)
        return (size_t)64 << bucket;
    if (policy == TIDE_BUFFERS_LIST)
        return bucket <= 9 ? (size_t)1024 << 2 * bucket : (size_t)1 << (19 + bucket);
    if (bucket < 4)
        return (size_t)64 * (bucket + 1);
    return (size_t)(5 + bucket % 4) << (bucket / 4 - 1 + 6);
}

#endif
