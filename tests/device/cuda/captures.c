/* SPDX-License-Identifier: MIT */
/* What the library does beside a program's captures (call by call: ../gpu_captures.c), and the memory of graphs. */
#include "support.h"

#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/device_bump.h>
#include <tidepool/device_memory.h>
#include <tidepool/upkeep.h>

#include "runtime/device/cuda/cuda.h"
#include "runtime/device/device.h"
#include "runtime/pool/request.h"

enum { BYTES = 4096 };

/* A fill that the driver refuses is told. */
TEST(a_zeroed_buffer_that_is_refused_is_not_lost)
{
    bench own = bench_start(10);
    void *captured = fake_stream_create_blocking(0);
    tide_buffers *buffers = tide_buffers_create(own.device, NULL);
    expect_ok(tide_buffer_release(buffers, tide_buffer_acquire(buffers, BYTES)));
    fake_capture_begin(captured);
    assert_int_equal(tide_buffer_acquire_zeroed(buffers, BYTES).generation, 0);
    assert_int_equal(tide_error_status(), TIDE_ERROR_STATE);
    expect_capture_whole(captured);
    assert_int_equal(cache_of(buffers).bytes_live, 0);
    expect_ok(tide_buffer_release(buffers, tide_buffer_acquire_zeroed(buffers, BYTES)));
    expect_ok(tide_buffers_destroy(buffers));
    fake_stream_destroy(captured);
    bench_end(&own);
}

/* What cannot be read yet is left later: nothing has changed. */
TEST(memory_of_kernels_is_left_when_its_capture_is_over)
{
    bench own = bench_start(12);
    tide_bump_scope scope;
    expect_ok(tide_bump_enter(own.pool, BYTES, &scope));
    tide_bump *bump = scope.bump;
    fake_capture_begin(own.stream);
    expect_status(tide_bump_leave(&scope), TIDE_ERROR_STATE);
    assert_ptr_equal(scope.bump, bump);
    expect_order();
    expect_capture_whole(own.stream);
    expect_ok(tide_bump_leave(&scope));
    assert_int_equal(scope.asked, 0);
    bench_end(&own);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* Of work that the graph keeps: a scope's array, and one that is live. */
static void *capture_graph(const bench *own, uint8_t *live)
{
    fake_capture_begin(own->stream);
    {
        TIDE_SCOPE(own->pool);
        uint8_t *x = tide_acquire(own->pool, uint8_t, BYTES);
        put(own->stream, x, BYTES, 3);
        expect(own->stream, x, BYTES, 3);
        put(own->stream, live, BYTES, 4);
    }
    return take_graph(own->stream);
}

/* What the capture did not hand out stays the pool's. */
TEST(a_capture_takes_what_it_used_and_no_more)
{
    bench own = bench_start(6);
    uint8_t *live = tide_acquire(own.pool, uint8_t, BYTES), *first[2];
    {
        TIDE_SCOPE(own.pool);
        first[0] = tide_acquire(own.pool, uint8_t, BYTES);
        first[1] = tide_acquire(own.pool, uint8_t, BYTES);
    }
    assert_null(tide_capture_end(own.pool));
    expect_said("no capture");
    expect_ok(tide_capture_begin(own.pool));
    void *graph = capture_graph(&own, live);
    tide_capture *capture = tide_capture_end(own.pool);
    assert_non_null(capture);
    {
        TIDE_SCOPE(own.pool);
        assert_ptr_not_equal(tide_acquire(own.pool, uint8_t, BYTES), first[0]);
        assert_ptr_equal(tide_acquire(own.pool, uint8_t, BYTES), first[1]);
    }
    put(own.stream, live, BYTES, 9); /* live as ever */
    fake_capture_begin(own.stream);
    expect_status(tide_capture_drop(capture, own.stream), TIDE_ERROR_STATE);
    fake_graph_destroy(graph);
    expect_capture_whole(own.stream);
    expect_ok(tide_capture_drop(capture, own.stream));
    expect_ok(tide_capture_drop(NULL, own.stream));
    expect_ok(tide_pool_reset(own.pool));
    bench_end(&own);
}

/* (What it acquires, and how it grows: ../hazards.) */
TEST(a_captured_pool_gives_no_memory_up)
{
    bench own = bench_start(8);
    expect_ok(tide_capture_begin(own.pool));
    expect_status(tide_capture_begin(own.pool), TIDE_ERROR_STATE);
    fake_capture_begin(own.stream);
    assert_non_null(tide_acquire(own.pool, uint8_t, BYTES));
    expect_ok(tide_pool_reset(own.pool));
    assert_int_equal(tide_pool_trim(own.pool, TIDE_ALL_TYPES).slots, 0);
    expect_status(tide_pool_empty(own.pool), TIDE_ERROR_STATE);
    expect_said("tide_capture_end comes before");
    expect_capture_whole(own.stream);
    expect_ok(tide_capture_drop(tide_capture_end(own.pool), own.stream));
    bench_end(&own);
}

TEST(a_pool_may_end_in_the_middle_of_a_capture)
{
    bench own = bench_start(7);
    expect_ok(tide_capture_begin(own.pool));
    bench_end(&own);
    expect_status(tide_capture_begin(NULL), TIDE_ERROR_ARGUMENT);
    tide_pool *host = tide_pool_create(NULL);
    expect_status(tide_capture_begin(host), TIDE_ERROR_ARGUMENT);
    expect_ok(tide_pool_destroy(host));
}

/* ---- graphs that share memory ------------------------------------------------------------------ */

enum { SIZES = 4, LARGEST = 1 << 20 };

/* One graph of a batch size: two arrays, of which it writes the first and reads it. */
static void *capture_batch(const bench *own, size_t bytes, uint8_t value)
{
    fake_capture_begin(own->stream);
    {
        TIDE_SCOPE(own->pool);
        uint8_t *x = tide_acquire(own->pool, uint8_t, bytes);
        uint8_t *y = tide_acquire(own->pool, uint8_t, bytes / 2);
        assert_non_null(y);
        put(own->stream, x, bytes, value);
        put(own->stream, y, bytes / 2, (uint8_t)(value + 1));
        expect(own->stream, x, bytes, value);
        expect(own->stream, y, bytes / 2, (uint8_t)(value + 1));
    }
    return take_graph(own->stream);
}

/* Bytes of the device that the graphs of all batch sizes take; they are launched on two streams. */
static size_t serve_batches(uint32_t seed, bool largest_first, bool told)
{
    bench own = bench_start(seed);
    void *streams[2] = {own.stream, fake_stream_create(0)}, *graphs[SIZES];
    expect_ok(tide_capture_begin(own.pool));
    for (size_t i = 0; i < SIZES; i++)
        graphs[i] = capture_batch(&own, (size_t)LARGEST >> (largest_first ? i : SIZES - 1 - i),
                                  (uint8_t)(10 * i));
    tide_capture *capture = tide_capture_end(own.pool);
    size_t taken = fake_live_bytes();
    fake_order(own.stream, streams[1]);
    for (size_t i = 0; i < 40; i++) {
        if (told)
            expect_ok(tide_capture_use_on(capture, streams[i % 2]));
        fake_graph_launch(graphs[i * 7 % SIZES], streams[i % 2]);
    }
    assert_int_equal(fake_hazard() == NULL, told); /* without a word they run at once */
    for (size_t i = 0; i < SIZES; i++)
        fake_graph_destroy(graphs[i]);
    expect_ok(tide_capture_drop(capture, own.stream));
    fake_synchronise_all();
    if (told)
        expect_order();
    expect_ok(tide_pool_destroy(own.pool));
    expect_ok(tide_device_close(own.device));
    assert_int_equal(fake_live_bytes(), 0);
    fake_stream_destroy(streams[1]);
    fake_stream_destroy(own.stream);
    return taken;
}

TEST(graphs_that_never_run_at_once_take_what_the_largest_takes)
{
    for (uint32_t seed = 0; seed < 5; seed++)
        assert_int_equal(serve_batches(seed, true, true), LARGEST + LARGEST / 2);
    assert_true(serve_batches(5, false, true) > LARGEST + LARGEST / 2); /* what slots outgrew */
    (void)serve_batches(6, true, false);
}

/* The stream of the drop has done nothing with it. */
TEST(a_drop_on_another_stream_goes_behind_the_last_launch)
{
    for (uint32_t seed = 1; seed <= 10; seed++) {
        bench own = bench_start(seed);
        void *other = fake_stream_create(0);
        expect_ok(tide_capture_begin(own.pool));
        void *graph = capture_batch(&own, LARGEST, 1);
        tide_capture *capture = tide_capture_end(own.pool);
        expect_ok(tide_capture_use_on(capture, other));
        fake_graph_launch(graph, other);
        expect_ok(tide_capture_drop(capture, own.stream));
        fake_synchronise(own.stream);
        expect_ok(tide_device_memory_trim(own.device, 0));
        fake_synchronise_all();
        fake_graph_destroy(graph);
        fake_stream_destroy(other);
        bench_end(&own);
    }
}

TEST(a_launch_after_the_drop_is_told)
{
    bench own = bench_start(7);
    expect_ok(tide_capture_begin(own.pool));
    void *graph = capture_batch(&own, BYTES, 1);
    tide_capture *capture = tide_capture_end(own.pool);
    expect_ok(tide_capture_use_on(capture, own.stream));
    fake_graph_launch(graph, own.stream);
    expect_ok(tide_capture_drop(capture, own.stream));
    expect_status(tide_capture_use_on(capture, own.stream), TIDE_ERROR_STALE);
    expect_said("no graph is launched after that");
    expect_status(tide_capture_drop(capture, own.stream), TIDE_ERROR_STALE);
    expect_status(tide_capture_use_on(NULL, own.stream), TIDE_ERROR_STALE);
    fake_graph_destroy(graph);
    bench_end(&own);
}

/* ---- the default stream of each thread ------------------------------------------------------ */

static void *adopt_pool(void *pool)
{
    return (void *)(uintptr_t)tide_pool_adopt(pool);
}

TEST(a_pool_stays_with_the_thread_whose_default_stream_it_is_on)
{
    bench own = bench_start(3);
    tide_pool *pool = bench_pool(&own, (void *)(uintptr_t)TIDE_CU_STREAM_PER_THREAD, NULL);
    assert_int_equal((uintptr_t)on_thread(adopt_pool, pool), TIDE_ERROR_STATE);
    expect_ok(tide_pool_adopt(pool));
    expect_ok(tide_pool_destroy(pool));
    bench_end(&own);
}

int main(void)
{
    return RUN_TESTS("captures");
}
