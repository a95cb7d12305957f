/* SPDX-License-Identifier: MIT */
/* Two CUDA devices: copies between pools of both. */
#include <tidepool/device.h>

#include "support.h"

enum { BYTES = 4096 };

typedef struct pair {
    bench b;
    tide_device *device;
    void *stream;
    tide_pool *pool;
} pair;

static pair begin(uint32_t seed)
{
    pair p = {.b = bench_start(seed)};
    p.device = tide_device_open("cuda:1");
    p.stream = fake_stream_create(1);
    p.pool = tide_pool_create(&(tide_pool_options){.device = p.device, .stream = p.stream});
    assert_non_null(p.pool);
    return p;
}

static void end(pair *p)
{
    expect_ok(tide_pool_destroy(p->pool));
    fake_synchronise_all();
    expect_ok(tide_device_close(p->device));
    fake_stream_destroy(p->stream);
    bench_end(&p->b);
}

/* (In which order both streams go on: failing.c.) */
TEST(nothing_copies_between_a_device_and_the_host)
{
    pair p = begin(3);
    tide_pool *host = tide_pool_local();
    {
        TIDE_SCOPE(p.b.pool);
        TIDE_SCOPE(host);
        uint8_t *x = tide_acquire(p.b.pool, uint8_t, BYTES),
                *z = tide_acquire(host, uint8_t, BYTES);
        expect_status(tide_copy_from(p.b.pool, x, host, z, BYTES), TIDE_ERROR_ARGUMENT);
        expect_said("download and upload");
        expect_status(tide_copy_from(host, z, p.b.pool, x, BYTES), TIDE_ERROR_ARGUMENT);
        expect_ok(tide_copy_from(p.pool, NULL, p.b.pool, NULL, 0));
    }
    end(&p);
}

/* ---- captures (of one of the two alone: ../gpu_captures.c) ---------------------------------- */

TEST(a_copy_is_captured_where_both_streams_are)
{
    pair p = begin(8);
    {
        TIDE_SCOPE(p.b.pool);
        TIDE_SCOPE(p.pool);
        uint8_t *x = tide_acquire(p.b.pool, uint8_t, BYTES);
        uint8_t *y = tide_acquire(p.pool, uint8_t, BYTES);
        put(p.b.stream, x, BYTES, 6);
        fake_synchronise_all();
        fake_capture_begin(p.b.stream);
        fake_order(p.b.stream, p.stream);
        expect_ok(tide_copy_from(p.pool, y, p.b.pool, x, BYTES));
        fake_order(p.stream, p.b.stream);
        void *graph = take_graph(p.b.stream);
        fake_graph_launch(graph, p.b.stream);
        fake_graph_destroy(graph);
        fake_order(p.b.stream, p.stream);
        expect(p.stream, y, BYTES, 6);
        fake_order(p.stream, p.b.stream);
    }
    end(&p);
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* A pool that is not checked asks nobody, and the driver copies. */
TEST(a_checked_pool_tells_memory_of_another_device)
{
    pair p = begin(7);
    tide_pool *checked = tide_pool_create(&(tide_pool_options){
        .device = p.b.device, .stream = p.b.stream, .check = TIDE_CHECK_POISON});
    {
        TIDE_SCOPE(checked);
        TIDE_SCOPE(p.pool);
        uint8_t *x = tide_acquire(checked, uint8_t, BYTES),
                *y = tide_acquire(p.pool, uint8_t, BYTES);
        uint8_t bytes[BYTES] = {0};
        expect_ok(tide_upload(checked, x, bytes, BYTES));
        expect_status(tide_copy(checked, x, y, BYTES), TIDE_ERROR_ARGUMENT);
        expect_said("is no memory of the device");
        expect_status(tide_upload(checked, y, bytes, BYTES), TIDE_ERROR_ARGUMENT);
        expect_status(tide_upload(checked, x, y, BYTES), TIDE_ERROR_ARGUMENT);
        expect_said("is memory of a device on the side of the host");
        expect_status(tide_download(checked, y, x, BYTES), TIDE_ERROR_ARGUMENT);
        expect_ok(tide_copy_from(checked, x, p.pool, y, BYTES));
    }
    expect_ok(tide_pool_destroy(checked));
    end(&p);
}

int main(void)
{
    return RUN_TESTS("peers");
}
