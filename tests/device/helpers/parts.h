/* SPDX-License-Identifier: MIT */
/* What the tests of frames' kernels share: numbers to draw sizes and values from, and the bytes of
 * a part. */
#ifndef TIDEPOOL_TESTS_DEVICE_HELPERS_PARTS_H
#define TIDEPOOL_TESTS_DEVICE_HELPERS_PARTS_H

#include <tidepool/device.h>

#include "runtime/base/type.h"
#include "tests/random.h"

static rng draws = {1}; /* of this program, from its start */

static inline uint64_t chance(uint64_t limit)
{
    return rng_below(&draws, limit);
}

static inline size_t bytes_of(const tide_part *part)
{
    size_t bytes = 0;
    assert_true(tide_type_bytes(tide_type_facts_of(part->type), part->count, &bytes));
    return bytes;
}

#endif
