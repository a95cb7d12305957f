/* SPDX-License-Identifier: MIT */
/* Device memory for others and for threads: the functions that PyTorch and CuPy call, and a
 * thread's own pools of a device. */
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidepool/adaptors.h>
#include <tidepool/device.h>

#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/device/cuda/cuda.h"
#include "support.h"

enum { BYTES = 4096 };

/* ---- adaptors ------------------------------------------------------------------------------- */

/* The instances stay, so the driver is made new only once. */
static void torch_and_cupy_get_memory_in_the_order_of_streams(void **unused)
{
    (void)unused;
    fake_reset(2, 7);
    tide_cuda_driver_set(FAKE_CUDA);
    void *one = fake_stream_create(0), *other = fake_stream_create(0);
    void *elsewhere = fake_stream_create(1);
    for (uint8_t i = 0; i < 50; i++) {
        void *x = tide_torch_malloc(BYTES, 0, one), *y = tide_cupy_malloc(other, BYTES, 0);
        void *z = tide_torch_malloc(BYTES, 1, elsewhere);
        if (x == NULL || y == NULL || z == NULL)
            fail_msg("%s", tide_error_message());
        assert_true(x != y && y != z);
        put(one, x, BYTES, i);
        put(other, y, BYTES, (uint8_t)(i + 1));
        put(elsewhere, z, BYTES, (uint8_t)(i + 2));
        expect(one, x, BYTES, i);
        tide_torch_free(x, BYTES, 0, one);
        tide_cupy_free(other, y, 0);
        x = tide_torch_malloc(BYTES, 0, other); /* what another stream may still use */
        put(other, x, BYTES, 9);
        tide_torch_free(x, BYTES, 0, other);
        tide_torch_free(z, BYTES, 1, elsewhere);
        expect_order();
    }
    assert_int_equal(fake_calls("cuMemAllocFromPoolAsync"), 3); /* the rest was cached */
    fake_synchronise_all();
    assert_int_equal(unexpected(), 0); /* the streams stay, as the instances do */
}

static void adaptors_refuse_with_a_message(void **unused)
{
    (void)unused;
    int local = 0;
    void *stream = fake_stream_create(0);
    assert_null(tide_torch_malloc(0, 0, stream));
    assert_null(tide_torch_malloc(-1, 0, stream));
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    assert_null(tide_torch_malloc(8, -1, stream));
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    assert_null(tide_torch_malloc(8, 3, stream));
    expect_said("no device cuda:3");
    tide_torch_free(&local, sizeof local, 0, stream);
    expect_said("is no memory of device 0");
    tide_torch_free(NULL, 8, 0, stream);
    fake_limit(1 << 20);
    assert_null(tide_torch_malloc(1 << 21, 0, stream));
    assert_int_equal(tide_error_status(), TIDE_ERROR_MEMORY);
    fake_limit((size_t)256 << 20);
    fake_capture_begin(stream);
    void *x = tide_torch_malloc(1 << 20, 0, stream); /* new memory */
    assert_non_null(x);
    tide_cupy_free(stream, x, 0); /* of a capture that nobody has told of */
    expect_said("a graph is captured on the stream");
    assert_int_equal(tide_error_status(), TIDE_ERROR_STATE);
    expect_capture_whole(stream);
    tide_torch_free(x, 1 << 20, 0, stream);
    expect_order();
}

/* ---- what PyTorch tells ----------------------------------------------------------------------- */

static unsigned calls_of_pairs(void *stream)
{
    enum { PAIRS = 100 };
    tide_torch_free(tide_torch_malloc(BYTES, 0, stream), BYTES, 0, stream);
    fake_count_anew();
    for (int i = 0; i < PAIRS; i++) {
        void *x = tide_torch_malloc(BYTES, 0, stream);
        assert_non_null(x);
        tide_torch_free(x, BYTES, 0, stream);
    }
    return fake_calls(NULL);
}

/* Nobody is asked about the legacy stream, which is never captured, nor about any once PyTorch tells. */
static void a_pair_of_cached_memory_calls_no_driver(void **unused)
{
    (void)unused;
    void *stream = fake_stream_create(0);
    fake_use_device(0); /* as PyTorch has it */
    assert_int_equal(calls_of_pairs(NULL), 0);
    assert_int_equal(calls_of_pairs(stream), 100);
    tide_torch_told();
    assert_int_equal(calls_of_pairs(stream), 0);
    assert_int_equal(calls_of_pairs(NULL), 0);
    fake_use_device(-1);
    expect_order();
}

static void *captured;

static bool takes(void *user, void *stream)
{
    (void)user;
    return stream == captured;
}

static void count_end(void *user)
{
    ++*(unsigned *)user;
}

/* A graph of two kernels whose memory is freed between them, as PyTorch captures it. */
static void *capture_a_graph(void *stream, tide_torch_pool pool, uint8_t value, void **out)
{
    unsigned ends = 0;
    void *graph = NULL;
    const tide_torch_capture capture = {takes, count_end, &ends};
    captured = stream;
    expect_ok(tide_torch_pool_begin(0, pool, &capture));
    fake_capture_begin(stream);
    void *x = tide_torch_malloc(BYTES, 0, stream), *beside = tide_torch_malloc(BYTES, 0, NULL);
    put(stream, x, BYTES, value);
    expect(stream, x, BYTES, value);
    tide_torch_free(x, BYTES, 0, stream);
    *out = tide_torch_malloc(BYTES, 0, stream); /* what was freed in the capture */
    assert_ptr_equal(*out, x);
    assert_ptr_not_equal(beside, x);
    put(stream, *out, BYTES, (uint8_t)(value + 1));
    tide_torch_free(beside, BYTES, 0, NULL);
    assert_int_equal(fake_capture_end(stream, &graph), 0);
    assert_int_equal(ends, 0);
    tide_torch_pool_end(0, pool);
    assert_int_equal(ends, 1);
    captured = NULL;
    return graph;
}

/* Bytes of the pool, of its blocks one by one. */
static size_t bytes_of_pool(tide_torch_pool pool)
{
    tide_torch_block blocks[256];
    size_t count, bytes = 0;
    expect_ok(tide_torch_blocks(0, blocks, 256, &count));
    assert_in_range(count, 1, 256);
    for (size_t i = 0; i < count; i++)
        bytes += blocks[i].pool.first == pool.first && blocks[i].pool.second == pool.second
                     ? blocks[i].bytes
                     : 0;
    return bytes;
}

/* No tensor made beside the graphs is spoiled by their launches; graphs of one pool share memory. */
static void a_graphs_memory_stays_its_pools_until_that_is_released(void **unused)
{
    (void)unused;
    enum { TENSORS = 20 };
    const tide_torch_pool pool = {7, 9};
    void *stream = fake_stream_create(0), *out = NULL, *second_out = NULL, *tensors[TENSORS];
    tide_torch_told();
    tide_torch_free(tide_torch_malloc(BYTES, 0, stream), BYTES, 0, stream); /* as in a warm-up */
    tide_torch_statistics before, now;
    expect_ok(tide_torch_stats(0, &before));
    void *graph = capture_a_graph(stream, pool, 1, &out);
    tide_torch_free(out, BYTES, 0, stream);
    void *second = capture_a_graph(stream, pool, 5, &second_out);
    assert_ptr_equal(second_out, out);
    for (size_t i = 0; i < TENSORS; i++) {
        tensors[i] = tide_torch_malloc(BYTES, 0, stream);
        assert_ptr_not_equal(tensors[i], out);
        put(stream, tensors[i], BYTES, (uint8_t)(100 + i));
    }
    for (int i = 0; i < 3; i++) {
        fake_graph_launch(graph, stream);
        fake_graph_launch(second, stream);
        expect(stream, second_out, BYTES, 6);
    }
    expect_ok(tide_torch_stats(0, &now));
    assert_int_equal(now.pools, 1);
    assert_int_equal(now.bytes_graphs, BYTES);
    assert_int_equal(bytes_of_pool(pool), BYTES);
    expect_status(tide_torch_blocks(0, NULL, 1, NULL), TIDE_ERROR_ARGUMENT);
    for (size_t i = 0; i < TENSORS; i++) {
        expect(stream, tensors[i], BYTES, (uint8_t)(100 + i));
        tide_torch_free(tensors[i], BYTES, 0, stream);
    }
    fake_graph_destroy(graph);
    fake_graph_destroy(second);
    tide_torch_pool_release(0, pool);
    tide_torch_pool_release(0, pool);
    expect_ok(tide_torch_stats(0, &now));
    assert_int_equal(now.pools, 1); /* a result is live */
    tide_torch_free(second_out, BYTES, 0, stream);
    expect_ok(tide_torch_stats(0, &now));
    assert_int_equal(now.pools, 0);
    assert_int_equal(now.live, before.live);
    fake_synchronise_all();
    expect_order();
}

static size_t pools_of_graphs(void)
{
    tide_torch_statistics now;
    expect_ok(tide_torch_stats(0, &now));
    return now.pools;
}

/* A pool of graphs that nothing uses any more, and whose end would wait for the device. */
static void begin_and_end(tide_torch_pool pool)
{
    const tide_torch_capture capture = {takes, NULL, NULL};
    expect_ok(tide_torch_pool_begin(0, pool, &capture));
    tide_torch_pool_end(0, pool);
}

/* The wait would end the capture of a pool, so a pool of graphs stays until that is over. */
static void a_dropped_graph_ends_no_capture_of_a_pool(void **unused)
{
    (void)unused;
    void *stream = fake_stream_create(0), *graph = NULL;
    tide_device *device = tide_device_open("cuda:0");
    tide_pool *own = tide_pool_create(&(tide_pool_options){.device = device, .stream = stream});
    begin_and_end((tide_torch_pool){3, 1});
    expect_ok(tide_capture_begin(own));
    fake_capture_begin_mode(stream, FAKE_RELAXED);
    tide_torch_pool_release(0, (tide_torch_pool){3, 1});
    assert_int_equal(fake_capture_end(stream, &graph), 0);
    expect_order();
    assert_int_equal(pools_of_graphs(), 1);
    expect_ok(tide_capture_drop(tide_capture_end(own), stream));
    begin_and_end((tide_torch_pool){3, 2});
    tide_torch_pool_release(0, (tide_torch_pool){3, 2});
    assert_int_equal(pools_of_graphs(), 0);
    fake_graph_destroy(graph);
    expect_ok(tide_pool_destroy(own));
    expect_ok(tide_device_close(device));
}

/* Where it stayed, and no pool ends later. */
static void a_dropped_graphs_memory_goes_back_before_memory_is_refused(void **unused)
{
    (void)unused;
    enum { MIB = 1 << 20 };
    void *stream = fake_stream_create(0), *graph = NULL;
    tide_device *device = tide_device_open("cuda:0");
    tide_pool *own = tide_pool_create(&(tide_pool_options){.device = device, .stream = stream});
    const tide_torch_capture capture = {takes, NULL, NULL};
    captured = stream;
    expect_ok(tide_torch_pool_begin(0, (tide_torch_pool){6, 1}, &capture));
    tide_torch_free(tide_torch_malloc(6 * MIB, 0, stream), 0, 0, stream);
    tide_torch_pool_end(0, (tide_torch_pool){6, 1});
    captured = NULL;
    expect_ok(tide_capture_begin(own));
    fake_capture_begin_mode(stream, FAKE_RELAXED);
    tide_torch_pool_release(0, (tide_torch_pool){6, 1});
    assert_int_equal(fake_capture_end(stream, &graph), 0);
    expect_ok(tide_capture_drop(tide_capture_end(own), stream));
    fake_graph_destroy(graph);
    fake_synchronise_all();
    assert_int_equal(pools_of_graphs(), 1);
    fake_limit(fake_live_bytes() + 2 * MIB);
    void *x = tide_torch_malloc(6 * MIB, 0, NULL);
    assert_non_null(x);
    assert_int_equal(pools_of_graphs(), 0);
    tide_torch_free(x, 0, 0, NULL);
    fake_limit(SIZE_MAX);
    expect_ok(tide_pool_destroy(own));
    expect_ok(tide_device_close(device));
}

static void *release(void *pool)
{
    tide_torch_pool_release(0, *(tide_torch_pool *)pool);
    return NULL;
}

static pthread_t sweeper;

static void let_the_sweep_go_on(void *unused)
{
    (void)unused;
    fake_hold_up(NULL);
    pthread_join(sweeper, NULL);
}

/* One sweep has waited and ends a pool; meanwhile a graph is launched and dropped under a capture. When that
 * is over, the first sweep goes on before the next one begins. */
static void a_wait_is_not_for_pools_that_are_dropped_after_it(void **unused)
{
    (void)unused;
    static tide_torch_pool first = {8, 1};
    const tide_torch_pool second = {8, 2}, third = {8, 3};
    const tide_torch_capture one = {takes, NULL, NULL}, last = {takes, let_the_sweep_go_on, NULL};
    void *stream = fake_stream_create(0), *launches = fake_stream_create(0), *out = NULL;
    captured = stream;
    expect_ok(tide_torch_pool_begin(0, first, &one));
    tide_torch_free(tide_torch_malloc(BYTES, 0, stream), BYTES, 0, stream);
    tide_torch_pool_end(0, first);
    captured = NULL;
    tide_torch_told();
    void *graph = capture_a_graph(stream, second, 1, &out);
    tide_torch_free(out, BYTES, 0, stream);
    fake_synchronise_all();
    fake_hold_up("cuMemFreeAsync");
    assert_int_equal(pthread_create(&sweeper, NULL, release, &first), 0);
    while (fake_held_up() == 0)
        sched_yield();
    expect_ok(tide_torch_pool_begin(0, third, &last));
    fake_graph_launch(graph, launches);
    fake_graph_destroy(graph);
    tide_torch_pool_release(0, second);
    tide_torch_pool_end(0, third);
    assert_int_equal(pools_of_graphs(), 1); /* the third */
    tide_torch_pool_release(0, third);
    fake_synchronise_all();
    expect_order();
}

static int ended_by_the_wait = -1; /* what the end of the capture said */
static int capturer;               /* atomic: the thread's number; 0: none yet */
static bool capture_has_begun;     /* atomic */

static void *capture_again(void *pool)
{
    void *stream = fake_stream_create(0), *graph = NULL;
    const tide_torch_capture capture = {takes, NULL, NULL};
    __atomic_store_n(&capturer, tide_os_thread_number(), __ATOMIC_RELEASE);
    expect_ok(tide_torch_pool_begin(0, *(tide_torch_pool *)pool, &capture));
    fake_capture_begin(stream);
    __atomic_store_n(&capture_has_begun, true, __ATOMIC_RELEASE);
    fake_hold_up(NULL);
    sched_yield();
    while (fake_held_up() != 0)
        sched_yield();
    ended_by_the_wait = fake_capture_end(stream, &graph);
    if (graph != NULL)
        fake_graph_destroy(graph);
    tide_torch_pool_end(0, *(tide_torch_pool *)pool);
    return NULL;
}

/* Or does not, and has begun. */
static void until_the_capturer_waits(void)
{
    int number = 0;
    while (!__atomic_load_n(&capture_has_begun, __ATOMIC_ACQUIRE) &&
           ((number = __atomic_load_n(&capturer, __ATOMIC_ACQUIRE)) == 0 ||
            !tide_os_thread_sleeps(number)))
        sched_yield();
}

/* Nor is there a second pool of the name, where the wait fails. */
static void a_capture_begins_when_a_sweep_is_over(void **unused)
{
    (void)unused;
    static tide_torch_pool pool = {7, 1};
    for (int fails = 0; fails < 2; fails++) {
        pthread_t releases, captures;
        begin_and_end(pool);
        if (fails)
            fake_fail("cuCtxSynchronize", 1, 999, false);
        fake_hold_up("cuCtxSynchronize");
        assert_int_equal(pthread_create(&releases, NULL, release, &pool), 0);
        while (fake_held_up() == 0)
            sched_yield();
        capturer = 0;
        capture_has_begun = false;
        assert_int_equal(pthread_create(&captures, NULL, capture_again, &pool), 0);
        until_the_capturer_waits();
        fake_hold_up(NULL);
        pthread_join(releases, NULL);
        pthread_join(captures, NULL);
        fake_fail("cuCtxSynchronize", 0, 0, false);
        assert_int_equal(ended_by_the_wait, 0);
        assert_int_equal(pools_of_graphs(), 1);
        tide_torch_pool_release(0, pool);
        assert_int_equal(pools_of_graphs(), 0);
    }
}

static void what_cannot_be_waited_for_stays(void **unused)
{
    (void)unused;
    begin_and_end((tide_torch_pool){4, 1});
    fake_fail("cuCtxSynchronize", 1, 999, false);
    tide_torch_pool_release(0, (tide_torch_pool){4, 1});
    assert_int_equal(fake_failures(), 1);
    fake_fail("cuCtxSynchronize", 1, 999, true);
    fake_limit(fake_live_bytes());
    assert_null(tide_torch_malloc(1 << 24, 0, NULL));
    expect_status(tide_error_status(), TIDE_ERROR_MEMORY); /* not what the wait said */
    assert_int_equal(fake_failures(), 1);
    fake_limit(SIZE_MAX);
    fake_fail("cuCtxSynchronize", 0, 0, false);
    assert_int_equal(pools_of_graphs(), 1);
    begin_and_end((tide_torch_pool){4, 2});
    tide_torch_pool_release(0, (tide_torch_pool){4, 2});
    assert_int_equal(pools_of_graphs(), 0);
}

/* ---- PyTorch is asked ------------------------------------------------------------------------- */

static unsigned asked, ended, ended_meanwhile;
static bool asked_locked;

static void *end_the_capture(void *unused)
{
    tide_torch_pool_end(0, (tide_torch_pool){5, 1});
    return unused;
}

/* Another thread may have what PyTorch locks here and end the capture. */
static bool is_ended_meanwhile(void *user, void *stream)
{
    pthread_t thread;
    (void)user, (void)stream;
    asked_locked = tide_lock_held_any();
    if (asked++ == 0 && !asked_locked && pthread_create(&thread, NULL, end_the_capture, NULL) == 0)
        pthread_join(thread, NULL);
    ended_meanwhile = ended;
    return true;
}

static void pytorch_is_asked_with_nothing_locked(void **unused)
{
    (void)unused;
    void *stream = fake_stream_create(0);
    const tide_torch_capture capture = {is_ended_meanwhile, count_end, &ended};
    expect_ok(tide_torch_pool_begin(0, (tide_torch_pool){5, 1}, &capture));
    void *x = tide_torch_malloc(BYTES, 0, stream);
    assert_non_null(x);
    assert_false(asked_locked);
    assert_int_equal(asked, 1);
    assert_int_equal(ended_meanwhile, 0); /* it was being asked */
    assert_int_equal(ended, 1);
    assert_int_equal(pools_of_graphs(), 1); /* the memory is the pool's */
    tide_torch_free(x, BYTES, 0, stream);
    tide_torch_pool_release(0, (tide_torch_pool){5, 1});
    assert_int_equal(pools_of_graphs(), 0);
}

static bool held_at_fork;

static void look_at_fork(void)
{
    held_at_fork = tide_lock_held(TIDE_FORK_GRAPHS);
}

/* Registered first, so asked last. */
__attribute__((constructor(101))) static void look_first(void)
{
    (void)pthread_atfork(look_at_fork, NULL, NULL);
}

/* The driver does not work there, so no capture begins. */
static void a_child_finds_the_lists_of_graphs_whole(void **unused)
{
    (void)unused;
    int status = 1;
    held_at_fork = false;
    pid_t child = fork();
    if (child == 0) {
        const tide_torch_capture capture = {takes, NULL, NULL};
        _exit(tide_torch_pool_begin(0, (tide_torch_pool){6, 1}, &capture) != TIDE_ERROR_DEVICE);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(held_at_fork);
}

static void what_a_recorded_stream_uses_is_reused_behind_it(void **unused)
{
    (void)unused;
    void *stream = fake_stream_create(0), *other = fake_stream_create(0);
    tide_torch_told();
    for (uint8_t i = 0; i < 20; i++) {
        void *x = tide_torch_malloc(BYTES, 0, stream);
        put(stream, x, BYTES, i);
        fake_order(stream, other);
        expect(other, x, BYTES, i);
        tide_torch_record_stream(x, other);
        tide_torch_free(x, BYTES, 0, stream);
        expect_order();
    }
    tide_torch_record_stream(&stream, other); /* no memory of ours */
    fake_synchronise_all();
    expect_order();
}

static void of_a_lost_device_nothing_is_handed_out(void **unused)
{
    (void)unused;
    void *x = tide_torch_malloc(BYTES, 0, NULL), *y = tide_cupy_malloc(NULL, BYTES, 0);
    assert_true(x != NULL && y != NULL);
    fake_synchronise_all();
    fake_lose(0);
    assert_null(tide_torch_malloc(1 << 20, 0, NULL));
    assert_int_equal(tide_error_status(), TIDE_ERROR_DEVICE);
    expect_said("is lost");
    tide_torch_free(x, BYTES, 0, NULL);
    tide_cupy_free(NULL, y, 0);
    tide_cupy_free(NULL, y, 0);
    expect_said("is no memory of device 0");
    assert_null(tide_torch_malloc(BYTES, 0, NULL));
    expect_said("is lost");
    const tide_torch_capture capture = {takes, NULL, NULL};
    expect_status(tide_torch_pool_begin(0, (tide_torch_pool){7, 1}, &capture), TIDE_ERROR_DEVICE);
}

/* ---- a thread's own pools ------------------------------------------------------------------- */

static tide_pool *seen[2];

static void *use_own(void *device)
{
    void *stream = fake_stream_create(0);
    seen[0] = tide_pool_local_on(device, stream);
    assert_non_null(seen[0]);
    assert_ptr_equal(tide_pool_local_on(device, stream), seen[0]);
    {
        TIDE_SCOPE(seen[0]);
        uint8_t *x = tide_acquire(seen[0], uint8_t, BYTES);
        put(stream, x, BYTES, 1);
        expect_status(tide_pool_local_end(device), TIDE_ERROR_STATE);
    }
    expect_ok(tide_pool_wait(seen[0]));
    return stream;
}

static void a_thread_has_a_pool_of_each_stream_until_it_ends(void **unused)
{
    (void)unused;
    bench b = bench_start(3);
    void *other = fake_stream_create(0), *its = NULL;
    tide_pool *mine = tide_pool_local_on(b.device, b.stream);
    assert_non_null(mine);
    assert_ptr_equal(tide_pool_local_on(b.device, b.stream), mine);
    tide_pool *second = tide_pool_local_on(b.device, other);
    assert_true(second != NULL && second != mine);
    expect_status(tide_pool_destroy(mine), TIDE_ERROR_STATE);
    assert_ptr_equal(tide_pool_local_on(tide_device_open("host"), NULL), tide_pool_local());
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, use_own, b.device), 0);
    assert_int_equal(pthread_join(thread, &its), 0);
    fake_synchronise_all();
    assert_int_equal(fake_live_bytes(), 0); /* the thread's pool has ended with it */
    assert_null(tide_pool_local_on(NULL, NULL));
    expect_status(tide_pool_local_end(NULL), TIDE_ERROR_ARGUMENT);
    expect_ok(tide_pool_local_end(b.device));
    fake_stream_destroy(its);
    fake_stream_destroy(other);
    bench_end(&b); /* nothing holds the device any more */
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_has_a_pool_of_each_stream_until_it_ends),
        cmocka_unit_test(torch_and_cupy_get_memory_in_the_order_of_streams),
        cmocka_unit_test(adaptors_refuse_with_a_message),
        cmocka_unit_test(a_pair_of_cached_memory_calls_no_driver),
        cmocka_unit_test(a_graphs_memory_stays_its_pools_until_that_is_released),
        cmocka_unit_test(a_dropped_graph_ends_no_capture_of_a_pool),
        cmocka_unit_test(a_dropped_graphs_memory_goes_back_before_memory_is_refused),
        cmocka_unit_test(a_wait_is_not_for_pools_that_are_dropped_after_it),
        cmocka_unit_test(a_capture_begins_when_a_sweep_is_over),
        cmocka_unit_test(what_cannot_be_waited_for_stays),
        cmocka_unit_test(pytorch_is_asked_with_nothing_locked),
        cmocka_unit_test(a_child_finds_the_lists_of_graphs_whole),
        cmocka_unit_test(what_a_recorded_stream_uses_is_reused_behind_it),
        cmocka_unit_test(of_a_lost_device_nothing_is_handed_out),
    };
    return cmocka_run_group_tests_name("own", tests, NULL, NULL);
}
