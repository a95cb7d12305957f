/* SPDX-License-Identifier: MIT */
/* Device memory for others: the functions that PyTorch and CuPy call. */
#include <pthread.h>
#include <unistd.h>

#include <tidepool/adaptors.h>
#include <tidepool/device.h>
#include <tidepool/facts.h>

#include "runtime/base/lock.h"
#include "runtime/device/cuda/cuda.h"
#include "support.h"

enum { BYTES = 4096 };

/* ---- adaptors ------------------------------------------------------------------------------- */

/* The instances stay, so the driver is made new only once. (How streams order it: buffers.c.) */
TEST(torch_and_cupy_get_memory_of_their_devices)
{
    fake_reset(2, 7);
    tide_cuda_driver_set(FAKE_CUDA);
    void *one = fake_stream_create(0), *elsewhere = fake_stream_create(1);
    for (uint8_t i = 0; i < 50; i++) {
        void *x = tide_torch_malloc(BYTES, 0, one), *y = tide_cupy_malloc(one, BYTES, 0);
        void *z = tide_torch_malloc(BYTES, 1, elsewhere);
        if (x == NULL || y == NULL || z == NULL)
            fail_msg("%s", tide_error_message());
        put(one, x, BYTES, i);
        put(one, y, BYTES, (uint8_t)(i + 1));
        put(elsewhere, z, BYTES, (uint8_t)(i + 2));
        expect(one, x, BYTES, i);
        tide_torch_free(x, BYTES, 0, one);
        tide_cupy_free(one, y, 0);
        tide_torch_free(z, BYTES, 1, elsewhere);
    }
    expect_order();
    assert_int_equal(fake_calls("cuMemAllocFromPoolAsync"), 3); /* the rest was cached */
}

TEST(adaptors_refuse_with_a_message)
{
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
TEST(a_pair_of_cached_memory_calls_no_driver)
{
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

static bool takes_its_own(void *user, void *stream)
{
    return stream == user;
}

static unsigned ended;

static void count_end(void *unused)
{
    (void)unused;
    ended++;
}

/* A graph of two kernels whose memory is freed between them, as PyTorch captures it. */
static void *capture_a_graph(void *stream, tide_torch_pool pool, uint8_t value, void **out)
{
    const tide_torch_capture capture = {takes_its_own, count_end, stream};
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
    void *graph = take_graph(stream);
    ended = 0;
    tide_torch_pool_end(0, pool);
    assert_int_equal(ended, 1);
    return graph;
}

static tide_torch_statistics torch_now(void)
{
    tide_torch_statistics now;
    expect_ok(tide_torch_stats(0, &now));
    return now;
}

static size_t pools_of_graphs(void)
{
    return torch_now().pools;
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
TEST(a_graphs_memory_stays_its_pools_until_that_is_released)
{
    enum { TENSORS = 20 };
    const tide_torch_pool pool = {7, 9};
    void *stream = fake_stream_create(0), *out = NULL, *second_out = NULL, *tensors[TENSORS];
    tide_torch_told();
    tide_torch_free(tide_torch_malloc(BYTES, 0, stream), BYTES, 0, stream); /* as in a warm-up */
    const size_t live = torch_now().live;
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
    assert_int_equal(pools_of_graphs(), 1);
    assert_int_equal(torch_now().bytes_graphs, BYTES);
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
    assert_int_equal(pools_of_graphs(), 1); /* a result is live */
    tide_torch_empty_cache();
    assert_int_equal(bytes_of_pool(pool), BYTES);
    tide_torch_free(second_out, BYTES, 0, stream);
    assert_int_equal(pools_of_graphs(), 1); /* nobody wants it yet */
    tide_torch_empty_cache();
    assert_int_equal(pools_of_graphs(), 0);
    assert_int_equal(torch_now().live, live);
    assert_int_equal(torch_now().bytes_cached, 0);
    fake_synchronise_all();
    expect_order();
}

/* What a graph of the pool used, and frees: of a new pool, new memory. */
static void *use_pool(tide_torch_pool pool, void *stream, size_t bytes)
{
    const tide_torch_capture capture = {takes_its_own, NULL, stream};
    expect_ok(tide_torch_pool_begin(0, pool, &capture));
    void *x = tide_torch_malloc((ssize_t)bytes, 0, stream);
    assert_non_null(x);
    tide_torch_free(x, 0, 0, stream);
    tide_torch_pool_end(0, pool);
    return x;
}

static void use_and_drop(tide_torch_pool pool, void *stream, size_t bytes)
{
    (void)use_pool(pool, stream, bytes);
    tide_torch_pool_release(0, pool);
}

/* And serves the same pool again until then. */
TEST(a_dropped_graphs_memory_goes_back_in_a_trim)
{
    const tide_torch_pool pool = {4, 1};
    void *stream = fake_stream_create(0);
    tide_device *device = tide_device_open("cuda:0");
    void *x = use_pool(pool, stream, BYTES);
    tide_torch_pool_release(0, pool);
    assert_ptr_equal(use_pool(pool, stream, BYTES), x);
    use_and_drop((tide_torch_pool){4, 2}, stream, BYTES);
    expect_ok(tide_device_memory_trim(device, 0));
    assert_int_equal(pools_of_graphs(), 1); /* that is used again */
    tide_torch_pool_release(0, pool);
    tide_torch_pool_release(0, pool); /* once too often */
    use_and_drop((tide_torch_pool){4, 2}, stream, BYTES);
    fake_count_anew();
    expect_ok(tide_device_memory_trim(device, 0));
    assert_int_equal(fake_calls("cuCtxSynchronize"), 1);
    assert_int_equal(pools_of_graphs(), 0);
    expect_ok(tide_device_memory_trim(device, 0));
    assert_int_equal(fake_calls("cuCtxSynchronize"), 1); /* there is nothing to wait for */
    expect_ok(tide_device_close(device));
}

enum { SIX_MIB = 6 << 20 };

/* A dropped graph has what is missing. */
static void drop_and_limit(void *stream)
{
    use_and_drop((tide_torch_pool){6, 1}, stream, SIX_MIB);
    fake_synchronise_all();
    fake_limit(fake_live_bytes() + (2 << 20));
}

/* To PyTorch's allocator, and to a pool of ours. */
TEST(a_dropped_graphs_memory_goes_back_before_memory_is_refused)
{
    void *stream = fake_stream_create(0);
    tide_device *device = tide_device_open("cuda:0");
    tide_pool *own = tide_pool_create(&(tide_pool_options){.device = device, .stream = stream});
    drop_and_limit(stream);
    void *x = tide_torch_malloc(SIX_MIB, 0, NULL);
    assert_non_null(x);
    assert_int_equal(pools_of_graphs(), 0);
    tide_torch_free(x, SIX_MIB, 0, NULL);
    fake_limit(SIZE_MAX);
    tide_torch_empty_cache();
    drop_and_limit(stream);
    assert_non_null(tide_acquire(own, uint8_t, SIX_MIB));
    assert_int_equal(pools_of_graphs(), 0);
    fake_limit(SIZE_MAX);
    expect_ok(tide_pool_destroy(own));
    expect_ok(tide_device_close(device));
    expect_order();
}

/* PyTorch's, or one of ours. Who is refused is told of it. */
TEST(a_dropped_graphs_memory_stays_while_a_capture_is_told_of)
{
    void *stream = fake_stream_create(0), *other = fake_stream_create(0);
    const tide_torch_capture capture = {takes_its_own, NULL, other};
    tide_device *device = tide_device_open("cuda:0");
    tide_pool *own = tide_pool_create(&(tide_pool_options){.device = device, .stream = other});
    for (int ours = 0; ours < 2; ours++) {
        drop_and_limit(stream);
        expect_ok(ours ? tide_capture_begin(own)
                       : tide_torch_pool_begin(0, (tide_torch_pool){6, 2}, &capture));
        fake_capture_begin(other);
        assert_null(tide_torch_malloc(SIX_MIB, 0, stream));
        expect_said("; graphs that were dropped 6291456 of these");
        tide_torch_empty_cache();
        expect_capture_whole(other);
        if (ours)
            expect_ok(tide_capture_drop(tide_capture_end(own), other));
        else
            tide_torch_pool_end(0, (tide_torch_pool){6, 2});
        assert_int_equal(pools_of_graphs(), 2);
        fake_limit(SIZE_MAX);
    }
    tide_torch_pool_release(0, (tide_torch_pool){6, 2});
    tide_torch_empty_cache();
    assert_int_equal(pools_of_graphs(), 0);
    expect_ok(tide_pool_destroy(own));
    expect_ok(tide_device_close(device));
}

/* No instance ends there. */
static bool empty_in_a_visit(const tide_buffers_information *visited, void *unused)
{
    (void)visited, (void)unused;
    tide_torch_empty_cache();
    assert_int_equal(pools_of_graphs(), 1);
    return false;
}

TEST(what_cannot_be_ended_stays)
{
    void *stream = fake_stream_create(0);
    use_and_drop((tide_torch_pool){8, 1}, stream, BYTES);
    fake_fail("cuCtxSynchronize", 1, 999, true);
    tide_torch_empty_cache();
    assert_int_equal(fake_failures(), 1);
    fake_limit(fake_live_bytes());
    assert_null(tide_torch_malloc(1 << 24, 0, NULL));
    expect_status(tide_error_status(), TIDE_ERROR_MEMORY); /* not what the wait said */
    assert_true(fake_failures() > 1);
    fake_limit(SIZE_MAX);
    fake_fail("cuCtxSynchronize", 0, 0, false);
    expect_ok(tide_buffers_each(empty_in_a_visit, NULL));
    tide_torch_empty_cache();
    assert_int_equal(pools_of_graphs(), 0);
}

enum { THREADS = 3, ROUNDS = 40 };

/* Its own pool, and one that all share; between them memory is trimmed. */
static void *use_and_drop_often(void *number)
{
    void *stream = fake_stream_create(0);
    const tide_torch_pool own = {9, (uint64_t)(uintptr_t)number}, shared = {9, 100};
    for (int i = 0; i < ROUNDS; i++) {
        use_and_drop(own, stream, BYTES);
        use_and_drop(shared, stream, BYTES);
        if (i % 4 == 0)
            tide_torch_empty_cache();
    }
    return stream;
}

TEST(threads_drop_graphs_and_trim)
{
    pthread_t threads[THREADS];
    void *stream;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_and_drop_often, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], &stream), 0);
    tide_torch_empty_cache();
    assert_int_equal(pools_of_graphs(), 0);
    expect_order();
}

/* ---- PyTorch is asked ------------------------------------------------------------------------- */

static unsigned asked, ended_meanwhile;
static bool asked_locked;

static void *end_the_capture(void *unused)
{
    tide_torch_pool_end(0, (tide_torch_pool){5, 1});
    return unused;
}

/* Another thread may have what PyTorch locks here and end the capture. */
static bool is_ended_meanwhile(void *user, void *stream)
{
    (void)user, (void)stream;
    asked_locked = tide_lock_held_any();
    if (asked++ == 0 && !asked_locked)
        (void)on_thread(end_the_capture, NULL);
    ended_meanwhile = ended;
    return true;
}

TEST(pytorch_is_asked_with_nothing_locked)
{
    void *stream = fake_stream_create(0);
    const tide_torch_capture capture = {is_ended_meanwhile, count_end, NULL};
    ended = 0;
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
    tide_torch_empty_cache();
    assert_int_equal(pools_of_graphs(), 0);
}

static bool held_at_fork;

static void look_at_fork(void)
{
    held_at_fork = tide_lock_held(TIDE_FORK_GRAPHS) && tide_lock_held(TIDE_FORK_CAPTURES) &&
                   tide_lock_held(TIDE_FORK_DEFERRED);
}

/* Registered first, so asked last. */
__attribute__((constructor(101))) static void look_first(void)
{
    (void)pthread_atfork(look_at_fork, NULL, NULL);
}

/* The driver does not work there, so no capture begins, and nothing is waited for. */
TEST(a_child_finds_the_lists_of_graphs_whole)
{
    held_at_fork = false;
    use_and_drop((tide_torch_pool){6, 2}, fake_stream_create(0), BYTES);
    expect_status(tide_capture_drop((tide_capture *)(void *)&held_at_fork, NULL), TIDE_ERROR_STALE);
    fake_count_anew();
    pid_t child = fork_child(60);
    if (child == 0) {
        const tide_torch_capture capture = {takes_its_own, NULL, NULL};
        tide_torch_empty_cache();
        _exit(fake_calls("cuCtxSynchronize") != 0 ||
              tide_torch_pool_begin(0, (tide_torch_pool){6, 1}, &capture) != TIDE_ERROR_DEVICE);
    }
    expect_child_ends_well(child);
    assert_true(held_at_fork);
    tide_torch_empty_cache();
    assert_int_equal(pools_of_graphs(), 0);
}

TEST(what_a_recorded_stream_uses_is_reused_behind_it)
{
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

TEST(of_a_lost_device_nothing_is_handed_out)
{
    void *x = tide_torch_malloc(BYTES, 0, NULL), *y = tide_cupy_malloc(NULL, BYTES, 0);
    assert_true(x != NULL && y != NULL);
    (void)use_pool((tide_torch_pool){7, 2}, fake_stream_create(0), BYTES);
    fake_synchronise_all();
    fake_lose(0);
    assert_null(tide_torch_malloc(1 << 20, 0, NULL));
    assert_int_equal(tide_error_status(), TIDE_ERROR_DEVICE);
    expect_said("is lost");
    tide_torch_pool_release(0, (tide_torch_pool){7, 2});
    assert_int_equal(pools_of_graphs(), 0); /* nothing is waited for there */
    tide_torch_free(x, BYTES, 0, NULL);
    tide_cupy_free(NULL, y, 0);
    tide_cupy_free(NULL, y, 0);
    expect_said("is no memory of device 0");
    assert_null(tide_torch_malloc(BYTES, 0, NULL));
    expect_said("is lost");
    const tide_torch_capture capture = {takes_its_own, NULL, NULL};
    expect_status(tide_torch_pool_begin(0, (tide_torch_pool){7, 1}, &capture), TIDE_ERROR_DEVICE);
}

int main(void)
{
    return RUN_TESTS("adaptors");
}
