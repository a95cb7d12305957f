/* SPDX-License-Identifier: MIT */
/* Buffers on the fake driver: what is released with work in flight is used next only in order, and no
 * host waits for device memory. (Memory that the host sees, too: ../hazards.) */
#include "support.h"

#include <tidepool/buffers.h>
#include <tidepool/device.h>

#include "runtime/device/device.h"

enum { BYTES = 4096 };

typedef struct scene {
    bench b;
    tide_buffers *buffers;
    void *other;
} scene;

static scene begin(uint32_t seed)
{
    scene s = {.b = bench_start(seed)};
    s.other = fake_stream_create(0);
    s.buffers = bench_buffers(&s.b, 0);
    return s;
}

static void end(scene *s)
{
    expect_ok(tide_buffers_destroy(s->buffers));
    bench_end(&s->b);
    fake_stream_destroy(s->other);
}

static tide_buffer take(scene *s, uint32_t flags, void *stream, void **data)
{
    tide_buffer b = tide_buffer_acquire_on(s->buffers, BYTES, flags, stream);
    if (b.generation == 0)
        fail_msg("%s", tide_error_message());
    *data = tide_buffer_pointer(s->buffers, b);
    return b;
}

/* ---- device memory --------------------------------------------------------------------------- */

/* On one stream no event orders it, on two in turn one for each change; no host waits. */
TEST(streams_order_the_memory_and_no_host_waits)
{
    for (uint32_t seed = 0; seed < 40; seed++) {
        bool two = seed % 2 != 0;
        scene s = begin(seed);
        void *data, *first = NULL;
        fake_count_anew();
        for (int i = 0; i < 20; i++) {
            void *stream = two && i % 2 != 0 ? s.other : s.b.stream;
            tide_buffer b = take(&s, 0, stream, &data);
            first = first != NULL ? first : data;
            assert_ptr_equal(data, first);
            put(stream, data, BYTES, (uint8_t)i);
            expect(stream, data, BYTES, (uint8_t)i);
            expect_ok(tide_buffer_release_on(s.buffers, b, stream));
        }
        assert_in_range(fake_calls("cuEventRecord"), 0, two ? 19 : 0);
        assert_in_range(fake_calls("cuStreamWaitEvent"), 0, two ? 19 : 0);
        assert_int_equal(waits(), 0);
        assert_int_equal(cache_of(s.buffers).misses, 1);
        expect_order();
        end(&s);
    }
}

/* The driver aligns as far as it likes; what is aligned less than asked goes back. */
TEST(memory_that_is_not_aligned_as_asked_goes_back)
{
    scene s = begin(1);
    tide_buffer got[4];
    unsigned refused = 0;
    for (unsigned i = 0; i < sizeof got / sizeof *got; i++) {
        const uint64_t before = fake_live_bytes();
        got[i] = tide_buffer_acquire_on(s.buffers, BYTES, TIDE_BUFFER_HUGE_ALIGNED, s.b.stream);
        if (got[i].generation != 0) {
            assert_int_equal((uintptr_t)tide_buffer_pointer(s.buffers, got[i]) % (2 << 20), 0);
            continue;
        }
        refused++;
        assert_int_equal(tide_error_status(), TIDE_ERROR_DEVICE);
        assert_non_null(strstr(tide_error_message(), "no memory aligned to 2097152 bytes"));
        assert_int_equal(fake_live_bytes(), before);
    }
    assert_true(refused >= 3);
    for (unsigned i = 0; i < sizeof got / sizeof *got; i++)
        if (got[i].generation != 0)
            expect_ok(tide_buffer_release(s.buffers, got[i]));
    end(&s);
}

TEST(an_integrated_device_gets_memory_that_the_host_sees)
{
    scene s = begin(4);
    void *data;
    s.b.device->integrated = true;
    fake_count_anew();
    tide_buffer b = take(&s, 0, s.b.stream, &data);
    assert_int_equal(fake_calls("cuMemHostAlloc"), 1);
    memset(data, 1, BYTES); /* the fake stops a host that touches device memory */
    put(s.b.stream, data, BYTES, 2);
    expect_ok(tide_buffer_release(s.buffers, b));
    b = take(&s, 0, s.b.stream, &data); /* a stream orders it like any device memory */
    assert_int_equal(cache_of(s.buffers).hits, 1);
    expect(s.b.stream, data, BYTES, 2);
    expect_ok(tide_buffer_release(s.buffers, b));
    end(&s);
}

/* ---- capture, loss ------------------------------------------------------------------------------
 */

/* Its own stream's, or new memory: no event between a captured stream and another. */
TEST(a_capture_follows_no_other_stream)
{
    scene s = begin(8);
    void *data, *first;
    tide_buffer held = take(&s, 0, s.b.stream, &data), ours = take(&s, 0, s.b.stream, &first);
    tide_buffer theirs = take(&s, TIDE_BUFFER_TAG(1), s.other, &data);
    expect_ok(tide_buffer_release(s.buffers, ours));
    expect_ok(tide_buffer_release_on(s.buffers, theirs, s.other));
    expect_ok(tide_capture_begin(s.b.pool));
    fake_capture_begin(s.b.stream);
    fake_count_anew();
    ours = take(&s, 0, s.b.stream, &data);
    assert_ptr_equal(data, first);
    put(s.b.stream, data, BYTES, 1);
    theirs = take(&s, TIDE_BUFFER_TAG(1), s.b.stream, &data);
    put(s.b.stream, data, BYTES, 1);
    expect_status(tide_buffer_release(s.buffers, held), TIDE_ERROR_STATE);
    expect_said("graph");
    assert_int_equal(fake_calls("cuEventRecord"), 0);
    assert_int_equal(fake_calls("cuMemAllocFromPoolAsync"), 1);
    assert_int_equal(tide_buffers_trim(s.buffers, 0).slots, 1);
    void *graph = take_graph(s.b.stream);
    fake_graph_launch(graph, s.b.stream);
    expect_ok(tide_capture_drop(tide_capture_end(s.b.pool), s.b.stream));
    expect_ok(tide_buffer_release(s.buffers, held));
    expect_ok(tide_buffer_release(s.buffers, ours));
    expect_ok(tide_buffer_release(s.buffers, theirs));
    expect_order();
    fake_graph_destroy(graph);
    end(&s);
}

TEST(a_lost_device_is_left_in_peace)
{
    scene s = begin(9);
    void *data;
    tide_buffer live = take(&s, 0, s.b.stream, &data), cached = take(&s, 0, s.b.stream, &data);
    tide_buffer pinned = take(&s, TIDE_BUFFER_PINNED, s.b.stream, &data);
    expect_ok(tide_buffer_release(s.buffers, cached));
    expect_ok(tide_buffer_release(s.buffers, pinned));
    fake_lose(0);
    (void)tide_pool_wait(s.b.pool);
    assert_int_equal(tide_buffer_acquire(s.buffers, BYTES).generation, 0);
    assert_int_equal(tide_error_status(), TIDE_ERROR_DEVICE);
    expect_ok(tide_buffer_release(s.buffers, live));
    expect_status(tide_buffer_release(s.buffers, live), TIDE_ERROR_STALE);
    expect_ok(tide_buffers_destroy(s.buffers));
    expect_ok(tide_pool_destroy(s.b.pool));
    expect_ok(tide_device_close(s.b.device));
    fake_stream_destroy(s.other);
    fake_stream_destroy(s.b.stream);
}

/* ---- shared, pools ------------------------------------------------------------------------------
 */

TEST(one_shared_instance_for_each_device)
{
    bench b = bench_start(10);
    tide_device *second = tide_device_open("cuda:1");
    tide_buffers *here = tide_buffers_shared(b.device, TIDE_BUFFER_DEVICE);
    tide_buffers *there = tide_buffers_shared(second, TIDE_BUFFER_DEVICE);
    tide_buffers *pinned = tide_buffers_shared(b.device, TIDE_BUFFER_PINNED);
    assert_true(here != NULL && there != NULL && pinned != NULL);
    assert_true(here != there && here != pinned);
    assert_ptr_equal(tide_buffers_shared(b.device, TIDE_BUFFER_DEVICE), here);
    assert_ptr_equal(tide_buffers_shared(b.device, TIDE_BUFFER_PINNED), pinned);
    expect_status(tide_device_close(second), TIDE_ERROR_STATE);
    tide_buffers *all[] = {here, here, there, pinned, pinned};
    for (size_t i = 0; i < 5; i++)
        expect_ok(tide_buffers_destroy(all[i]));
    expect_ok(tide_device_close(second));
    bench_end(&b);
}

int main(void)
{
    return RUN_TESTS("buffers on CUDA");
}
