/* SPDX-License-Identifier: MIT */
/* Which sizes there are: four to each power of two, so that at most a quarter more is given than was
 * asked for. Arithmetic; nothing is searched. */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_STORE_BUCKETS_H
#define TIDEPOOL_RUNTIME_BUFFERS_STORE_BUCKETS_H

#include <tidepool/buffers.h>

#include "runtime/base/assert.h"

enum {
    TIDE_BUCKET_MIN = 64,         /* bytes; every size is a multiple of it */
    TIDE_BUCKET_SMALL = 16 << 10, /* bytes: up to here an instance has a table */
    TIDE_BUCKETS = 156            /* sizes up to TIDE_BUCKET_MAX */
};

#define TIDE_BUCKET_MAX ((size_t)1 << 46) /* bytes */

/* The smallest bucket that holds so many bytes: 256 × (1, 1¼, 1½, 1¾), 512 × … Below 256, such
 * steps would be no multiples of 64: there each multiple is a bucket. */
static inline unsigned tide_bucket_of(size_t bytes)
{
    size_t last = bytes - (bytes != 0);
    tide_assert(bytes <= TIDE_BUCKET_MAX);
    if (last < 256)
        return (unsigned)(last / 64);
    unsigned octave = 63 - (unsigned)__builtin_clzll(last);
    return (octave - 8) * 4 + (unsigned)(last >> (octave - 2));
}

static inline size_t tide_bucket_bytes(unsigned bucket)
{
    tide_assert(bucket < TIDE_BUCKETS);
    if (bucket < 4)
        return (size_t)64 * (bucket + 1);
    return (size_t)(5 + bucket % 4) << (bucket / 4 - 1 + 6);
}

#endif
