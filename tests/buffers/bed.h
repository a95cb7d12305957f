/* SPDX-License-Identifier: MIT */
/* What the tests of buffers stand on: statistics as a value, faults, long runs that can be made
 * shorter. */
#ifndef TIDEPOOL_TESTS_BUFFERS_BED_H
#define TIDEPOOL_TESTS_BUFFERS_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support.h"

#include <tidepool/buffers.h>
#include <tidepool/tidepool.h>
#include <tidepool/tune.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

static inline void expect_ok(tide_status status)
{
    if (status != TIDE_OK)
        fail_msg("%s", tide_error_message());
}

/* Refused with this status and a message that contains these words. */
static inline void expect_refused(tide_status status, tide_status wanted, const char *words)
{
    assert_int_equal(status, wanted);
    if (strstr(tide_error_message(), words) == NULL)
        fail_msg("'%s' does not say '%s'", tide_error_message(), words);
}

/* No background thread ages what it caches, unless the test says so. */
static inline tide_buffers *made(const tide_buffers_options *options)
{
    expect_ok(tide_tune_set("background", 0));
    tide_buffers *buffers = tide_buffers_create(NULL, options);
    if (buffers == NULL)
        fail_msg("%s", tide_error_message());
    return buffers;
}

static inline tide_buffer acquired(tide_buffers *buffers, size_t bytes)
{
    tide_buffer buffer = tide_buffer_acquire(buffers, bytes);
    if (buffer.generation == 0)
        fail_msg("%s", tide_error_message());
    return buffer;
}

static inline tide_buffers_statistics stats_of(tide_buffers *buffers)
{
    tide_buffers_statistics stats;
    expect_ok(tide_buffers_stats(buffers, &stats, NULL, 0));
    return stats;
}

/* Every number of two moments is the same. */
static inline void expect_unchanged(tide_buffers *buffers, const tide_buffers_statistics *before)
{
    tide_buffers_statistics now = stats_of(buffers), was = *before;
    now.refused = was.refused = 0; /* it is counted */
    assert_memory_equal(&now, &was, sizeof now);
}

#endif
