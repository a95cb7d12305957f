/* SPDX-License-Identifier: MIT */
/* A pool whose stream is gone while a graph is captured: what it gives up is put off. Of the tests
 * of what is put off (later.c) and of shortages, which take it (shortage.c). */
#ifndef CUDA_LATER_H
#define CUDA_LATER_H

#include "support.h"

#include <pthread.h>
#include <sched.h>

#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/device_memory.h>
#include <tidepool/dlpack.h>

enum { BYTES = 4096, WORK = 50, TRANSIENT = 2 /* out of memory: it passes */ };

typedef struct scene {
    bench b; /* its pool notes the capture, on its stream */
    tide_buffers *buffers;
    tide_pool *pool; /* on the stream that goes */
    void *stream, *graph;
    tide_dl_managed *consumer;
} scene;

static inline scene begin(bool drawing)
{
    scene s = {.b = bench_start(41)};
    s.stream = fake_stream_create(0);
    if (drawing)
        s.buffers = tide_buffers_create(s.b.device, &(tide_buffers_options){.stream = s.b.stream});
    s.pool = tide_pool_create(
        &(tide_pool_options){.device = s.b.device, .stream = s.stream, .buffers = s.buffers});
    assert_non_null(s.pool);
    return s;
}

static inline void work_on(const scene *s, void *data)
{
    for (uint8_t i = 0; i < WORK; i++)
        put(s->stream, data, BYTES, i);
    assert_true(fake_pending() > 0);
}

/* The handle means another stream from now on. */
static inline void stream_goes(scene *s)
{
    fake_stream_destroy(s->stream);
    assert_ptr_equal(fake_stream_create(0), s->stream);
    expect_ok(tide_capture_begin(s->b.pool));
    fake_capture_begin(s->b.stream);
}

/* The pool ends, with memory and what it staged, while a graph is captured on a blocking stream: of
 * that the library knows, but nobody tells when it is over. Returns the blocking stream. */
static inline void *end_beside_a_capture(scene *s)
{
    void *beside = fake_stream_create_blocking(0);
    const char bytes[BYTES] = {1};
    {
        TIDE_SCOPE(s->pool);
        uint8_t *x = tide_acquire(s->pool, uint8_t, BYTES);
        work_on(s, x);
        expect_ok(tide_upload(s->pool, x, bytes, BYTES));
    }
    fake_stream_destroy(s->stream);
    assert_ptr_equal(fake_stream_create(0), s->stream);
    fake_capture_begin(beside);
    expect_ok(tide_pool_destroy(s->pool));
    assert_true(fake_pending() > 0);
    assert_int_equal(fake_calls("cuCtxSynchronize"), 0);
    return beside;
}

/* The pool's memory is put off, by a capture that is over: nobody knows that. */
static inline scene put_off(bool drawing)
{
    scene s = begin(drawing);
    void *beside = end_beside_a_capture(&s);
    assert_int_equal(fake_capture_end(beside, &s.graph), 0);
    fake_graph_destroy(s.graph);
    fake_stream_destroy(beside);
    fake_stream_destroy(s.stream);
    assert_true(fake_pending() > 0);
    assert_int_equal(fake_calls("cuCtxSynchronize"), 0);
    return s;
}

static inline void *trim_device(void *device)
{
    expect_ok(tide_device_memory_trim(device, 0));
    return NULL;
}

/* Another thread lets go of what was put off, and is held up at that entry of the driver. */
static inline pthread_t trim_held_up(const scene *s, const char *entry)
{
    pthread_t other;
    fake_hold_up(entry);
    assert_int_equal(pthread_create(&other, NULL, trim_device, s->b.device), 0);
    while (fake_held_up() == 0)
        sched_yield();
    return other;
}

#endif
