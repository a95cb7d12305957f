/* SPDX-License-Identifier: MIT */
/* What the library does beside a program's captures, and after its streams are gone: nothing that
 * ends a capture, nothing that touches a stream that may not be there. */
#include "support.h"

#include <pthread.h>

#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/device_bump.h>
#include <tidepool/device_memory.h>
#include <tidepool/upkeep.h>

#include "runtime/base/test_hooks.h"
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/device.h"
#include "runtime/pool/request.h"

enum { BYTES = 4096 };

/* ---- other threads' captures ---------------------------------------------------------------- */

static bench b;
static unsigned wrong; /* what the other thread saw: there no assertion may leap away */

static void check(bool right)
{
    wrong += !right;
}

static void check_ok(tide_status status)
{
    if (status != TIDE_OK)
        print_error("%s\n", tide_error_message());
    check(status == TIDE_OK);
}

static void *open_another(void *unused)
{
    tide_device *other = tide_device_open("cuda:1");
    check(other != NULL);
    check_ok(tide_device_close(other));
    return unused;
}

static void *use_code(void *unused)
{
    uint8_t *data = unused;
    void *stream = fake_stream_create(0);
    check_ok(try_bump(b.device, stream, data));
    check_ok(b.device->methods->wait(b.device, stream));
    fake_stream_destroy(stream);
    return NULL;
}

static void *copy_through_host(void *unused)
{
    void *stream = fake_stream_create(0);
    uint8_t here[BYTES] = {1};
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.device = b.device, .stream = stream});
    check(pool != NULL);
    {
        TIDE_SCOPE(pool);
        uint8_t *there = tide_acquire(pool, uint8_t, BYTES);
        check_ok(tide_upload(pool, there, here, BYTES));
        check_ok(tide_download(pool, here, there, BYTES));
        check_ok(tide_pool_wait(pool));
    }
    check_ok(tide_pool_empty(pool));
    check_ok(tide_pool_destroy(pool));
    fake_stream_destroy(stream);
    return unused;
}

static void *use_pinned_buffers(void *unused)
{
    void *stream = fake_stream_create(0);
    tide_buffers *buffers =
        tide_buffers_create(b.device, &(tide_buffers_options){.stream = stream});
    for (uint32_t kind = TIDE_BUFFER_DEVICE; kind <= TIDE_BUFFER_PINNED; kind++) {
        tide_buffer one = tide_buffer_acquire_on(buffers, BYTES, kind, stream);
        put(stream, tide_buffer_pointer(buffers, one), BYTES, 1);
        check_ok(tide_buffer_release_on(buffers, one, stream));
        (void)tide_buffers_trim(buffers, 0);
    }
    check_ok(tide_buffers_destroy(buffers));
    fake_stream_destroy(stream);
    return unused;
}

/* Beside a capture in global mode, by which all threads must be careful. */
static void beside_a_capture(void *(*work)(void *), bool blocking)
{
    b = bench_start(1);
    wrong = 0;
    void *stream = blocking ? fake_stream_create_blocking(0) : fake_stream_create(0);
    void *graph = NULL;
    uint8_t *data = tide_acquire(b.pool, uint8_t, 128);
    pthread_t thread;
    fake_synchronise_all();
    fake_capture_begin(stream);
    assert_int_equal(pthread_create(&thread, NULL, work, data), 0);
    pthread_join(thread, NULL);
    assert_int_equal(wrong, 0);
    expect_order();
    assert_int_equal(fake_capture_end(stream, &graph), 0);
    fake_graph_destroy(graph);
    fake_stream_destroy(stream);
    expect_ok(tide_pool_reset(b.pool));
    bench_end(&b);
}

static void opening_a_device_ends_no_capture(void **state)
{
    (void)state;
    beside_a_capture(open_another, false);
    beside_a_capture(open_another, true);
}

static void loading_and_waiting_end_no_capture(void **state)
{
    (void)state;
    beside_a_capture(use_code, false);
    beside_a_capture(use_code, true);
}

static void transfers_end_no_capture(void **state)
{
    (void)state;
    beside_a_capture(copy_through_host, false);
    beside_a_capture(copy_through_host, true);
}

static void buffers_end_no_capture(void **state)
{
    (void)state;
    beside_a_capture(use_pinned_buffers, false);
    beside_a_capture(use_pinned_buffers, true);
}

/* ---- the legacy stream ---------------------------------------------------------------------- */

/* A pool on the legacy stream while a blocking stream is captured: refused, and no harm done. */
static void the_legacy_stream_is_refused_while_it_would_end_a_capture(void **state)
{
    (void)state;
    bench own = bench_start(2);
    void *captured = fake_stream_create_blocking(0), *graph = NULL;
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.device = own.device});
    assert_non_null(pool);
    {
        TIDE_SCOPE(pool);
        uint8_t *warm = tide_acquire(pool, uint8_t, BYTES);
        uint8_t *from = tide_acquire(pool, uint8_t, BYTES);
        fake_capture_begin(captured);
        assert_null(tide_acquire(pool, double, 10000));
        expect_status(tide_error_status(), TIDE_ERROR_STATE);
        assert_null(tide_zeros(pool, double, 10000));
        expect_status(tide_copy(pool, warm, from, BYTES), TIDE_ERROR_STATE);
        expect_said("legacy stream");
        expect_status(tide_pool_use_on(pool, own.stream), TIDE_ERROR_STATE);
        expect_status(tide_pool_wait(pool), TIDE_ERROR_STATE);
        expect_order();
        assert_int_equal(fake_capture_end(captured, &graph), 0);
        expect_ok(tide_copy(pool, warm, from, BYTES));
    }
    expect_ok(tide_pool_destroy(pool));
    fake_graph_destroy(graph);
    fake_stream_destroy(captured);
    bench_end(&own);
}

/* The shared instance has the legacy stream for its own. */
static void shared_buffers_are_trimmed_beside_a_capture(void **state)
{
    (void)state;
    bench own = bench_start(3);
    void *captured = fake_stream_create_blocking(0), *graph = NULL;
    tide_buffers *shared = tide_buffers_shared(own.device, TIDE_BUFFER_DEVICE);
    tide_buffer one = tide_buffer_acquire_on(shared, BYTES, 0, own.stream);
    put(own.stream, tide_buffer_pointer(shared, one), BYTES, 1);
    expect_ok(tide_buffer_release_on(shared, one, own.stream));
    fake_capture_begin(captured);
    assert_int_equal(tide_buffers_trim(shared, 0).slots, 1);
    expect_ok(tide_buffers_destroy(shared));
    expect_order();
    assert_int_equal(fake_capture_end(captured, &graph), 0);
    fake_graph_destroy(graph);
    fake_stream_destroy(captured);
    bench_end(&own);
}

/* What was acquired already is not lost when it cannot be filled. */
static void a_zeroed_buffer_that_is_refused_is_not_lost(void **state)
{
    (void)state;
    bench own = bench_start(10);
    void *captured = fake_stream_create_blocking(0), *graph = NULL;
    tide_buffers *buffers = tide_buffers_create(own.device, NULL);
    tide_buffer one = tide_buffer_acquire(buffers, BYTES);
    assert_true(one.generation != 0);
    expect_ok(tide_buffer_release(buffers, one));
    fake_capture_begin(captured);
    assert_int_equal(tide_buffer_acquire_zeroed(buffers, BYTES).generation, 0);
    assert_int_equal(tide_error_status(), TIDE_ERROR_STATE);
    expect_order();
    assert_int_equal(fake_capture_end(captured, &graph), 0);
    tide_buffers_statistics now;
    expect_ok(tide_buffers_stats(buffers, &now, NULL, 0));
    assert_int_equal(now.bytes_live, 0);
    one = tide_buffer_acquire_zeroed(buffers, BYTES);
    assert_true(one.generation != 0);
    expect_ok(tide_buffer_release(buffers, one));
    expect_ok(tide_buffers_destroy(buffers));
    fake_graph_destroy(graph);
    fake_stream_destroy(captured);
    bench_end(&own);
}

/* What cannot be read yet is left later: nothing has changed. */
static void memory_of_kernels_is_left_when_its_capture_is_over(void **state)
{
    (void)state;
    bench own = bench_start(12);
    tide_bump_scope scope;
    void *graph = NULL;
    expect_ok(tide_bump_enter(own.pool, BYTES, &scope));
    tide_bump *bump = scope.bump;
    fake_capture_begin(own.stream);
    expect_status(tide_bump_leave(&scope), TIDE_ERROR_STATE);
    assert_ptr_equal(scope.bump, bump);
    expect_order();
    assert_int_equal(fake_capture_end(own.stream, &graph), 0);
    fake_graph_destroy(graph);
    expect_ok(tide_bump_leave(&scope));
    assert_int_equal(scope.asked, 0);
    bench_end(&own);
}

/* ---- streams that are gone ------------------------------------------------------------------ */

/* Nothing has taken the handle over: whoever asked about it would fault. */
static void buffers_outlive_the_streams_that_used_them(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 10; seed++) {
        bench own = bench_start(seed);
        void *stream = fake_stream_create(0);
        tide_buffers *buffers =
            tide_buffers_create(own.device, &(tide_buffers_options){.stream = stream});
        tide_buffer held[4];
        for (uint32_t i = 0; i < 4; i++) {
            held[i] = tide_buffer_acquire_on(buffers, BYTES, i % 2, stream);
            put(stream, tide_buffer_pointer(buffers, held[i]), BYTES, 1);
        }
        for (int i = 0; i < 4; i++)
            expect_ok(tide_buffer_release_on(buffers, held[i], stream));
        fake_stream_destroy(stream);
        held[0] = tide_buffer_acquire_on(buffers, BYTES, 0, own.stream);
        held[1] = tide_buffer_acquire_on(buffers, BYTES, TIDE_BUFFER_PINNED, own.stream);
        put(own.stream, tide_buffer_pointer(buffers, held[0]), BYTES, 2);
        (void)tide_buffers_trim(buffers, 0);
        expect_ok(tide_buffer_release_on(buffers, held[0], own.stream));
        expect_ok(tide_buffer_release_on(buffers, held[1], own.stream));
        expect_ok(tide_buffers_destroy(buffers));
        expect_order();
        bench_end(&own);
    }
}

static void marks_outlive_their_streams(void **state)
{
    (void)state;
    bench own = bench_start(4);
    const tide_device_methods *methods = own.device->methods;
    void *stream = fake_stream_create(0);
    put(stream, tide_acquire(own.pool, uint8_t, BYTES), 0, 1);
    void *mark = methods->mark(own.device, stream);
    fake_stream_destroy(stream);
    expect_ok(methods->mark_follow(own.device, mark, own.stream));
    expect_ok(methods->mark_wait(own.device, mark));
    assert_true(methods->mark_done(own.device, mark));
    methods->mark_drop(own.device, mark);
    expect_ok(tide_pool_reset(own.pool));
    bench_end(&own);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* Work that a graph keeps: a scope's array, and one that is live. */
static void captured_work(const bench *own, uint8_t *live)
{
    TIDE_SCOPE(own->pool);
    uint8_t *x = tide_acquire(own->pool, uint8_t, BYTES);
    put(own->stream, x, BYTES, 3);
    expect(own->stream, x, BYTES, 3);
    put(own->stream, live, BYTES, 4);
}

static void *capture_graph(const bench *own, uint8_t *live)
{
    void *graph = NULL;
    fake_capture_begin(own->stream);
    captured_work(own, live);
    assert_int_equal(fake_capture_end(own->stream, &graph), 0);
    return graph;
}

/* The pool goes on on its stream; the graph is launched on another, in no order with it. */
static void launch_beside(const bench *own, void *graph, void *other)
{
    for (int i = 0; i < 3; i++) {
        fake_graph_launch(graph, other);
        TIDE_SCOPE(own->pool);
        uint8_t *x = tide_acquire(own->pool, uint8_t, BYTES);
        uint8_t *y = tide_acquire(own->pool, uint8_t, BYTES);
        put(own->stream, x, BYTES, 7);
        put(own->stream, y, BYTES, 8);
        expect(own->stream, x, BYTES, 7);
        expect(own->stream, y, BYTES, 8);
    }
}

static void what_a_graph_uses_stays_its_own(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 20; seed++) {
        bench own = bench_start(seed);
        void *other = fake_stream_create(0), *graph;
        tide_capture *capture;
        {
            TIDE_SCOPE(own.pool);
            uint8_t *live = tide_acquire(own.pool, uint8_t, BYTES);
            captured_work(&own, live); /* warm */
            expect_ok(tide_capture_begin(own.pool));
            expect_status(tide_capture_begin(own.pool), TIDE_ERROR_STATE);
            graph = capture_graph(&own, live);
            capture = tide_capture_end(own.pool);
            assert_non_null(capture);
            assert_null(tide_capture_end(own.pool));
        }
        fake_order(own.stream, other);
        launch_beside(&own, graph, other);
        (void)tide_pool_trim(own.pool, TIDE_ALL_TYPES);
        launch_beside(&own, graph, other);
        expect_ok(tide_pool_destroy(own.pool));
        fake_graph_launch(graph, other);
        expect_ok(tide_capture_drop(capture, other)); /* even now; the launches are in flight */
        fake_graph_destroy(graph);
        fake_stream_destroy(other);
        fake_synchronise_all();
        expect_order();
        assert_int_equal(fake_live_bytes(), 0);
        expect_ok(tide_device_close(own.device));
        fake_stream_destroy(own.stream);
    }
}

/* The same without the declaration: the check finds it, so the test above means something. */
static void a_graph_that_is_not_declared_meets_others_arrays(void **state)
{
    (void)state;
    bench own = bench_start(5);
    void *other = fake_stream_create(0), *graph;
    {
        TIDE_SCOPE(own.pool);
        uint8_t *live = tide_acquire(own.pool, uint8_t, BYTES);
        captured_work(&own, live);
        graph = capture_graph(&own, live);
    }
    fake_order(own.stream, other);
    launch_beside(&own, graph, other);
    assert_non_null(fake_hazard());
    fake_synchronise_all();
    expect_ok(tide_pool_destroy(own.pool));
    expect_ok(tide_device_close(own.device));
    fake_graph_destroy(graph);
    fake_stream_destroy(other);
    fake_stream_destroy(own.stream);
}

/* What the capture did not hand out stays the pool's. */
static void a_capture_takes_what_it_used_and_no_more(void **state)
{
    (void)state;
    bench own = bench_start(6);
    void *graph;
    uint8_t *live = tide_acquire(own.pool, uint8_t, BYTES), *first[2];
    {
        TIDE_SCOPE(own.pool);
        first[0] = tide_acquire(own.pool, uint8_t, BYTES);
        first[1] = tide_acquire(own.pool, uint8_t, BYTES);
    }
    assert_null(tide_capture_end(own.pool));
    expect_said("no capture");
    expect_ok(tide_capture_begin(own.pool));
    graph = capture_graph(&own, live);
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
    assert_int_equal(fake_capture_end(own.stream, &graph), 0);
    expect_ok(tide_capture_drop(capture, own.stream));
    expect_ok(tide_capture_drop(NULL, own.stream));
    fake_graph_destroy(graph);
    expect_ok(tide_pool_reset(own.pool));
    bench_end(&own);
}

/* Between the driver's end of the capture and tide_capture_end the graph's memory looks free. */
static void until_a_capture_has_its_memory_none_goes(void **state)
{
    (void)state;
    bench own = bench_start(8);
    void *other = fake_stream_create(0);
    {
        TIDE_SCOPE(own.pool);
        assert_non_null(tide_acquire(own.pool, uint8_t, BYTES));
        assert_non_null(tide_acquire(own.pool, uint8_t, BYTES));
    }
    expect_ok(tide_capture_begin(own.pool));
    uint8_t *live = tide_acquire(own.pool, uint8_t, BYTES);
    void *graph = capture_graph(&own, live);
    assert_int_equal(tide_pool_compact(own.pool, TIDE_ALL_TYPES).slots, 0);
    assert_int_equal(tide_error_status(), TIDE_ERROR_STATE);
    expect_said("tide_capture_end comes before");
    assert_int_equal(tide_pool_trim(own.pool, TIDE_ALL_TYPES).slots, 0);
    assert_int_equal(tide_error_status(), TIDE_ERROR_STATE);
    expect_status(tide_pool_empty(own.pool), TIDE_ERROR_STATE);
    expect_ok(tide_pool_reset(own.pool));
    expect_ok(tide_pool_request(own.pool, TIDE_REQUEST_COMPACT | TIDE_REQUEST_TRIM));
    {
        TIDE_SCOPE(own.pool);
        assert_null(
            tide_acquire(own.pool, uint8_t, 16 * BYTES)); /* the graph's would be replaced */
        assert_int_equal(tide_error_status(), TIDE_ERROR_STATE);
    }
    tide_capture *capture = tide_capture_end(own.pool);
    assert_non_null(capture);
    fake_order(own.stream, other);
    launch_beside(&own, graph, other);
    expect_order();
    expect_ok(tide_capture_drop(capture, other));
    fake_graph_destroy(graph);
    fake_synchronise_all();
    fake_stream_destroy(other);
    bench_end(&own);
}

static _Thread_local size_t allocations_left = SIZE_MAX;

static bool fail_after(size_t bytes)
{
    (void)bytes;
    return allocations_left == 0 || allocations_left-- == 0;
}

/* A capture that had taken some of its memory only goes with the pool. */
static void a_capture_that_failed_to_end_goes_with_its_pool(void **state)
{
    (void)state;
    for (size_t good = 0; good < 4; good++) {
        bench own = bench_start(9);
        expect_ok(tide_capture_begin(own.pool));
        {
            TIDE_SCOPE(own.pool);
            for (int i = 0; i < 3; i++)
                put(own.stream, tide_acquire(own.pool, uint8_t, BYTES), BYTES, 1);
        }
        allocations_left = good;
        tide_os_fault = fail_after;
        tide_capture *capture = tide_capture_end(own.pool);
        tide_os_fault = NULL;
        assert_null(capture);
        bench_end(&own);
    }
}

static void a_pool_may_end_in_the_middle_of_a_capture(void **state)
{
    (void)state;
    bench own = bench_start(7);
    expect_ok(tide_capture_begin(own.pool));
    bench_end(&own);
    expect_status(tide_capture_begin(NULL), TIDE_ERROR_ARGUMENT);
    tide_pool *host = tide_pool_create(NULL);
    expect_status(tide_capture_begin(host), TIDE_ERROR_ARGUMENT);
    expect_ok(tide_pool_destroy(host));
}

/* Its rewinds free memory, but not what a graph uses: not even what was acquired before. */
static void a_disabled_pool_gives_nothing_away_that_a_graph_uses(void **state)
{
    (void)state;
    bench own = bench_start_with(13, (tide_pool_options){.disabled = true});
    void *other = fake_stream_create(0), *graph = NULL;
    {
        TIDE_SCOPE(own.pool);
        uint8_t *x = tide_acquire(own.pool, uint8_t, BYTES);
        expect_ok(tide_capture_begin(own.pool));
        fake_capture_begin(own.stream);
        put(own.stream, x, BYTES, 1);
    }
    assert_int_equal(fake_capture_end(own.stream, &graph), 0);
    tide_capture *capture = tide_capture_end(own.pool);
    assert_non_null(capture);
    fake_order(own.stream, other);
    launch_beside(&own, graph, other);
    expect_order();
    expect_ok(tide_capture_drop(capture, other));
    fake_graph_destroy(graph);
    fake_synchronise_all();
    fake_stream_destroy(other);
    bench_end(&own);
}

/* ---- declared streams ----------------------------------------------------------------------- */

/* An event that was recorded outside would end the capture. */
static void a_declaration_from_before_a_capture_may_end_inside(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 10; seed++) {
        bench own = bench_start(seed);
        void *other = fake_stream_create(0), *graph = NULL;
        {
            TIDE_SCOPE(own.pool);
            uint8_t *x = tide_acquire(own.pool, uint8_t, BYTES);
            expect_ok(tide_pool_use_on(own.pool, other));
            put(other, x, BYTES, 1);
            fake_capture_begin(own.stream);
            TIDE_SCOPE(own.pool);
        }
        {
            TIDE_SCOPE(own.pool);
            put(own.stream, tide_acquire(own.pool, uint8_t, BYTES), BYTES, 2);
        }
        assert_int_equal(fake_capture_end(own.stream, &graph), 0);
        fake_graph_launch(graph, own.stream);
        expect_order();
        fake_synchronise_all();
        fake_graph_destroy(graph);
        fake_stream_destroy(other);
        bench_end(&own);
    }
}

/* No event can be queued behind what a stream did before its capture began, nor may anybody wait.
 */
static void a_declared_stream_that_is_captured_leaves_its_pool_unordered(void **state)
{
    (void)state;
    bench own = bench_start(11);
    void *other = fake_stream_create(0), *graph = NULL;
    {
        TIDE_SCOPE(own.pool);
        expect_ok(tide_pool_use_on(own.pool, other));
        put(other, tide_acquire(own.pool, uint8_t, BYTES), BYTES, 1);
        fake_capture_begin(other);
    }
    assert_null(tide_acquire(own.pool, uint8_t, BYTES));
    expect_ok(tide_pool_reset(own.pool)); /* too early */
    assert_null(tide_acquire(own.pool, uint8_t, BYTES));
    expect_said("reset it");
    expect_order();
    assert_int_equal(fake_capture_end(other, &graph), 0);
    expect_ok(tide_pool_reset(own.pool));
    put(own.stream, tide_acquire(own.pool, uint8_t, BYTES), BYTES, 2);
    expect_order();
    expect_ok(tide_pool_reset(own.pool));
    fake_graph_destroy(graph);
    fake_stream_destroy(other);
    bench_end(&own);
}

/* Each of them, not only the first: the reset waits for all streams, which would end a capture. */
static void no_capture_of_several_declared_streams_is_ended(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        bench own = bench_start(14);
        void *others[] = {fake_stream_create(0), fake_stream_create(0)}, *graph = NULL;
        {
            TIDE_SCOPE(own.pool);
            uint8_t *x = tide_acquire(own.pool, uint8_t, BYTES);
            for (int i = 0; i < 2; i++) {
                expect_ok(tide_pool_use_on(own.pool, others[i]));
                put(others[i], x + i * BYTES / 2, BYTES / 2, 1);
            }
            fake_capture_begin(others[0]);
            fake_capture_begin(others[1]);
        }
        assert_int_equal(fake_capture_end(others[first], &graph), 0);
        fake_graph_destroy(graph);
        expect_ok(tide_pool_reset(own.pool)); /* too early */
        assert_null(tide_acquire(own.pool, uint8_t, BYTES));
        expect_said("reset it");
        {
            TIDE_SCOPE(own.pool);
            expect_status(tide_pool_use_on(own.pool, others[first]), TIDE_ERROR_DEVICE);
        }
        assert_int_equal(fake_capture_end(others[1 - first], &graph), 0);
        fake_graph_destroy(graph);
        expect_ok(tide_pool_reset(own.pool));
        put(own.stream, tide_acquire(own.pool, uint8_t, BYTES), BYTES, 2);
        expect_order();
        expect_ok(tide_pool_reset(own.pool));
        fake_stream_destroy(others[0]);
        fake_stream_destroy(others[1]);
        bench_end(&own);
    }
}

static void a_captured_stream_is_not_declared_to_a_pool_that_is_not(void **state)
{
    (void)state;
    bench own = bench_start(12);
    void *other = fake_stream_create(0), *graph = NULL;
    {
        TIDE_SCOPE(own.pool);
        fake_capture_begin(other);
        expect_status(tide_pool_use_on(own.pool, other), TIDE_ERROR_STATE);
        expect_said("is captured");
        fake_capture_begin_mode(own.stream, FAKE_RELAXED); /* in a capture of its own */
        expect_status(tide_pool_use_on(own.pool, other), TIDE_ERROR_STATE);
        assert_int_equal(fake_capture_end(own.stream, &graph), 0);
        fake_graph_destroy(graph);
        assert_int_equal(fake_capture_end(other, &graph), 0);
        expect_ok(tide_pool_use_on(own.pool, other));
    }
    fake_graph_destroy(graph);
    fake_stream_destroy(other);
    bench_end(&own);
}

/* ---- the default stream of each thread ------------------------------------------------------ */

#define PER_THREAD ((void *)(uintptr_t)TIDE_CU_STREAM_PER_THREAD)

static void set_on_own_stream(void *data)
{
    wrong +=
        b.device->methods->fill(b.device, PER_THREAD, data, &(uint8_t){1}, 1, BYTES) != TIDE_OK;
}

static void *adopt_and_use(void *user)
{
    tide_pool *pool = user;
    check_ok(tide_pool_adopt(pool));
    {
        TIDE_SCOPE(pool);
        set_on_own_stream(tide_acquire(pool, uint8_t, BYTES));
        check(tide_acquire(pool, double, 1000) != NULL); /* it can grow */
    }
    check_ok(tide_pool_destroy(pool));
    return NULL;
}

static void an_adopted_pool_is_on_its_owners_stream(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 10; seed++) {
        pthread_t thread;
        b = bench_start(seed);
        wrong = 0;
        tide_pool *pool =
            tide_pool_create(&(tide_pool_options){.device = b.device, .stream = PER_THREAD});
        assert_non_null(pool);
        {
            TIDE_SCOPE(pool);
            set_on_own_stream(tide_acquire(pool, uint8_t, BYTES));
        }
        assert_int_equal(pthread_create(&thread, NULL, adopt_and_use, pool), 0);
        pthread_join(thread, NULL);
        assert_int_equal(wrong, 0);
        expect_order();
        bench_end(&b);
    }
}

/* ---- deferred releases ---------------------------------------------------------------------- */

/* Memory that was given up while a stream was captured is not another stream's affair, though that
 * has the same handle. */
static void deferred_memory_knows_its_stream_by_number(void **state)
{
    (void)state;
    bench own = bench_start(8);
    void *stream = fake_stream_create(0), *again, *graph = NULL, *data = NULL, *more = NULL;
    const tide_device_methods *methods = own.device->methods;
    expect_ok(methods->allocate(own.device, stream, TIDE_MEMORY_DEVICE, 512, 64, &data));
    put(stream, data, 512, 1);
    fake_capture_begin(stream);
    methods->release(own.device, stream, TIDE_MEMORY_DEVICE, data, 512);
    assert_int_equal(fake_capture_end(stream, &graph), 0);
    fake_stream_destroy(stream);
    again = fake_stream_create(0);
    assert_ptr_equal(again, stream);
    expect_ok(methods->allocate(own.device, again, TIDE_MEMORY_DEVICE, 512, 64, &more));
    expect_order(); /* nothing was freed before the work that uses it */
    methods->release(own.device, again, TIDE_MEMORY_DEVICE, more, 512);
    fake_graph_destroy(graph);
    expect_ok(tide_pool_destroy(own.pool));
    fake_synchronise_all();
    expect_ok(tide_device_close(own.device));
    fake_synchronise_all();
    assert_int_equal(fake_live_bytes(), 0);
    expect_order();
    fake_stream_destroy(again);
    fake_stream_destroy(own.stream);
}

/* The stream is gone, or never used again: whoever is short of memory on another takes it, and a
 * trim gives it to the system. */
static void a_shortage_takes_deferred_memory(void **state)
{
    (void)state;
    for (int trim = 0; trim < 2; trim++) {
        bench own = bench_start(21);
        void *stream = fake_stream_create(0), *graph = NULL, *data = NULL, *more = NULL;
        const tide_device_methods *methods = own.device->methods;
        expect_ok(methods->allocate(own.device, stream, TIDE_MEMORY_DEVICE, BYTES, 64, &data));
        put(stream, data, BYTES, 1);
        fake_capture_begin(stream);
        methods->release(own.device, stream, TIDE_MEMORY_DEVICE, data, BYTES);
        fake_limit(2 * BYTES - 1);
        assert_int_equal(fake_capture_end(stream, &graph), 0);
        fake_stream_destroy(stream);
        if (trim != 0) {
            expect_ok(tide_device_memory_trim(own.device, 0));
            assert_int_equal(fake_reserved_bytes(), 0);
        }
        tide_status status =
            methods->allocate(own.device, own.stream, TIDE_MEMORY_DEVICE, BYTES, 64, &more);
        if (status != TIDE_OK)
            fail_msg("%d", status);
        methods->release(own.device, own.stream, TIDE_MEMORY_DEVICE, more, BYTES);
        fake_graph_destroy(graph);
        bench_end(&own);
    }
}

/* What the driver refuses to take back is kept, and offered again. */
static void memory_that_the_driver_refuses_is_given_back_later(void **state)
{
    (void)state;
    for (int captured = 0; captured < 2; captured++) {
        bench own = bench_start(15);
        void *graph = NULL, *data = NULL;
        const tide_device_methods *methods = own.device->methods;
        expect_ok(methods->allocate(own.device, own.stream, TIDE_MEMORY_DEVICE, 512, 64, &data));
        if (captured != 0)
            fake_capture_begin(own.stream);
        else
            fake_fail("cuMemFreeAsync", 1, TIDE_CU_INVALID_VALUE, false);
        methods->release(own.device, own.stream, TIDE_MEMORY_DEVICE, data, 512);
        if (captured != 0) {
            assert_int_equal(fake_capture_end(own.stream, &graph), 0);
            fake_graph_destroy(graph);
            fake_fail("cuMemFreeAsync", 1, TIDE_CU_INVALID_VALUE, false);
        }
        for (int i = 0; i < 2; i++) { /* the first may be refused, too */
            expect_ok(
                methods->allocate(own.device, own.stream, TIDE_MEMORY_DEVICE, 512, 64, &data));
            methods->release(own.device, own.stream, TIDE_MEMORY_DEVICE, data, 512);
        }
        assert_int_equal(fake_failures(), 1);
        fake_synchronise_all();
        assert_int_equal(fake_live_bytes(), 0);
        bench_end(&own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_a_device_ends_no_capture),
        cmocka_unit_test(loading_and_waiting_end_no_capture),
        cmocka_unit_test(transfers_end_no_capture),
        cmocka_unit_test(buffers_end_no_capture),
        cmocka_unit_test(the_legacy_stream_is_refused_while_it_would_end_a_capture),
        cmocka_unit_test(shared_buffers_are_trimmed_beside_a_capture),
        cmocka_unit_test(buffers_outlive_the_streams_that_used_them),
        cmocka_unit_test(marks_outlive_their_streams),
        cmocka_unit_test(what_a_graph_uses_stays_its_own),
        cmocka_unit_test(a_graph_that_is_not_declared_meets_others_arrays),
        cmocka_unit_test(a_capture_takes_what_it_used_and_no_more),
        cmocka_unit_test(a_zeroed_buffer_that_is_refused_is_not_lost),
        cmocka_unit_test(memory_of_kernels_is_left_when_its_capture_is_over),
        cmocka_unit_test(until_a_capture_has_its_memory_none_goes),
        cmocka_unit_test(a_capture_that_failed_to_end_goes_with_its_pool),
        cmocka_unit_test(a_pool_may_end_in_the_middle_of_a_capture),
        cmocka_unit_test(a_declaration_from_before_a_capture_may_end_inside),
        cmocka_unit_test(a_disabled_pool_gives_nothing_away_that_a_graph_uses),
        cmocka_unit_test(a_declared_stream_that_is_captured_leaves_its_pool_unordered),
        cmocka_unit_test(no_capture_of_several_declared_streams_is_ended),
        cmocka_unit_test(a_captured_stream_is_not_declared_to_a_pool_that_is_not),
        cmocka_unit_test(an_adopted_pool_is_on_its_owners_stream),
        cmocka_unit_test(deferred_memory_knows_its_stream_by_number),
        cmocka_unit_test(a_shortage_takes_deferred_memory),
        cmocka_unit_test(memory_that_the_driver_refuses_is_given_back_later),
    };
    return cmocka_run_group_tests_name("captures", tests, NULL, NULL);
}
