/* SPDX-License-Identifier: MIT */
/* Pools on the fake driver: what the tests share. */
#ifndef CUDA_SUPPORT_H
#define CUDA_SUPPORT_H

#include <string.h>

#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/device_memory.h>
#include <tidepool/tidepool.h>

#include "fake_cuda.h"
#include "tests/device/tests.h"
#include "tests/support.h"

/* A driver as new, its first device, a stream and a pool on it. */
typedef struct bench {
    tide_device *device;
    void *stream;
    tide_pool *pool;
} bench;

bench bench_start(uint32_t seed);
bench bench_start_with(uint32_t seed, tide_pool_options options);
bench bench_start_without(uint32_t seed, unsigned what); /* FAKE_…: what the driver lacks */

/* Another pool of its device; with buffers, its slots are those. */
tide_pool *bench_pool(const bench *b, void *stream, tide_buffers *buffers);

/* Buffers of this kind on the bench's stream. */
tide_buffers *bench_buffers(const bench *b, uint32_t kind);

/* Everything goes back; nothing may have gone wrong on the way, nothing be left. */
void bench_end(bench *b);

/* So far nothing has gone wrong. */
void expect_order(void);

/* Kernels that write a value to each byte, and that expect one there; how often it was not. */
void put(void *stream, void *data, size_t bytes, uint8_t value);
void expect(void *stream, void *data, size_t bytes, uint8_t value);
unsigned unexpected(void);

/* The same of a repeated pattern, in one kernel. */
void expect_pattern(void *stream, void *data, const void *pattern, size_t bytes, size_t count);

#define expect_ok(call)           assert_int_equal(call, TIDE_OK)
#define expect_status(call, what) assert_int_equal(call, what)
#define expect_said(words)        assert_non_null(strstr(tide_error_message(), words))

/* Calls that make the host wait. */
unsigned waits(void);

/* The graph of the stream's capture, which nothing has ended; the same, and the graph goes. */
void *take_graph(void *stream);
void expect_capture_whole(void *stream);

/* What it returns on a thread of its own. */
void *on_thread(void *(*run)(void *), void *user);

/* Loads the fake's one kernel and launches it on 128 bytes: each becomes 5 more. */
tide_status try_bump(tide_device *device, void *stream, uint8_t *data);

tide_device_information info_of(const tide_device *device);
tide_device_memory memory_of(tide_device *device);
tide_pool_statistics stats_of(const tide_pool *pool);
tide_buffers_statistics cache_of(tide_buffers *buffers);

#endif
