/* SPDX-License-Identifier: MIT */
/* Memory of a CUDA device: how it is filled, copied without staging, limited, waited for and given
 * back to the system; devices without memory pools. */
#include "support.h"

#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/device_memory.h>
#include <tidepool/tune.h>

#include "runtime/device/cuda/cuda.h"

enum { MANY = 100000, HALF = 1 << 20 };

/* ---- fills ---------------------------------------------------------------------------------- */

/* A fill that is one unit wide and very high is slow on a GPU. */
TEST(wide_values_are_not_filled_in_high_columns)
{
    bench b = bench_start(1);
    {
        TIDE_SCOPE(b.pool);
        const double one = 1.0;
        fake_count_anew();
        double *x = tide_fill(b.pool, double, MANY, 1.0);
        assert_non_null(x);
        assert_true(fake_highest_fill() <= 256);
        assert_true(fake_calls("cuMemcpyAsync") <= 10);
        expect_pattern(b.stream, x, &one, sizeof one, MANY);
        double *few = tide_fill(b.pool, double, 3, 1.0);
        expect_pattern(b.stream, few, &one, sizeof one, 3);
        const tide_part part = {x, &(double){2.5}, TIDE_F64, MANY - 1};
        expect_ok(tide_fill_frame(b.pool, &part, 1));
        expect_pattern(b.stream, x, &(double){2.5}, sizeof one, MANY - 1);
    }
    expect_ok(tide_pool_wait(b.pool));
    bench_end(&b);
}

/* ---- pinned memory -------------------------------------------------------------------------- */

/* Neither is what comes down, and the host waits for both. */
TEST(what_exceeds_the_ring_is_not_staged)
{
    enum { BYTES = 64 << 10 };
    static char bytes[BYTES];
    expect_ok(tide_tune_set("staging", 4)); /* KiB, of each of four chunks */
    bench b = bench_start(2);
    {
        TIDE_SCOPE(b.pool);
        char *x = tide_acquire_type(b.pool, TIDE_U8, BYTES);
        memset(bytes, 5, BYTES);
        fake_count_anew();
        expect_ok(tide_upload(b.pool, x, bytes, BYTES));
        assert_int_equal(fake_calls("cuMemcpyAsync"), 1);
        assert_int_equal(fake_calls("cuStreamSynchronize"), 1);
        memset(bytes, 6, BYTES); /* what was uploaded has been read */
        expect(b.stream, x, BYTES, 5);
        fake_count_anew();
        expect_ok(tide_download(b.pool, bytes + 100, x, 300));
        assert_int_equal(fake_calls("cuCtxGetCurrent"), 1); /* the context is entered once */
        assert_true(bytes[99] == 6 && bytes[100] == 5 && bytes[399] == 5 && bytes[400] == 6);
        assert_int_equal(fake_calls("cuMemHostAlloc"), 0);
        expect_ok(tide_upload(b.pool, x, bytes, 64)); /* staged: the host need not wait */
        assert_int_equal(fake_calls("cuMemHostAlloc"), 1);
        expect_ok(tide_download(b.pool, bytes, x, 64));
        assert_int_equal(bytes[0], 6);
        const unsigned before = fake_calls("cuStreamSynchronize");
        fake_fail("cuStreamSynchronize", 1, 1, false);
        expect_status(tide_download(b.pool, bytes, x, BYTES), TIDE_ERROR_DEVICE);
        assert_int_equal(fake_failures(), 1);
        assert_int_equal(fake_calls("cuStreamSynchronize"), before + 2); /* over all the same */
        expect_ok(tide_pool_wait(b.pool));
    }
    bench_end(&b);
    expect_ok(tide_tune_set("staging", 1024));
}

/* ---- where there is none -------------------------------------------------------------------- */

typedef struct giver {
    tide_pool *pool;
    unsigned asked, wants;
    size_t wanted;
} giver;

static bool give(tide_device *device, size_t wanted, unsigned times, void *user)
{
    giver *g = user;
    assert_non_null(device);
    assert_int_equal(times, g->asked);
    g->asked++;
    g->wanted = wanted;
    if (g->pool != NULL && g->asked == g->wants)
        (void)tide_pool_trim(g->pool, TIDE_ALL_TYPES);
    return g->asked <= g->wants;
}

/* A pool with a hook gives back only what the program has it give. */
static void look_on(const tide_pool_event *event, void *user)
{
    (void)event, (void)user;
}

TEST(the_program_is_asked_before_a_request_fails)
{
    bench b = bench_start(3);
    tide_pool *second = tide_pool_create(
        &(tide_pool_options){.device = b.device, .stream = b.stream, .hook = look_on});
    giver g = {.pool = second, .wants = 2};
    expect_ok(
        tide_device_memory_set(b.device, &(tide_device_memory_options){.full = give, .user = &g}));
    fake_limit(3 * HALF);
    {
        TIDE_SCOPE(second);
        assert_non_null(tide_acquire(second, uint8_t, 2 * HALF));
    }
    {
        TIDE_SCOPE(b.pool);
        assert_non_null(tide_acquire(b.pool, uint8_t, 2 * HALF));
        assert_int_equal(g.asked, 2);
        assert_int_equal(g.wanted, 2 * HALF);
        g.asked = g.wants = 0;
        assert_null(tide_acquire(b.pool, uint16_t, 2 * HALF));
        assert_int_equal(g.asked, 1);
        assert_int_equal(tide_error_status(), TIDE_ERROR_MEMORY);
        g = (giver){.wants = 1000};
        assert_null(tide_acquire(b.pool, uint16_t, 2 * HALF));
        assert_int_equal(g.asked, 16);
    }
    assert_int_equal(memory_of(b.device).asked, 19);
    expect_ok(tide_pool_destroy(second));
    bench_end(&b);
}

TEST(buffers_ask_too_and_the_limit_holds_for_all)
{
    bench b = bench_start_with(4, (tide_pool_options){.name = "bench", .hook = look_on});
    giver g = {.pool = b.pool, .wants = 1};
    expect_ok(tide_device_memory_set(
        b.device,
        &(tide_device_memory_options){.limit_bytes = 3 * HALF, .full = give, .user = &g}));
    {
        TIDE_SCOPE(b.pool);
        assert_non_null(tide_acquire(b.pool, uint8_t, 2 * HALF));
    }
    assert_int_equal(memory_of(b.device).bytes_held, 2 * HALF);
    tide_buffers *buffers = bench_buffers(&b, TIDE_BUFFER_DEVICE);
    tide_buffer buffer = tide_buffer_acquire(buffers, 2 * HALF); /* the pool gives its slot */
    assert_non_null(tide_buffer_pointer(buffers, buffer));
    assert_int_equal(g.asked, 1);
    g = (giver){.wants = 0};
    {
        TIDE_SCOPE(b.pool);
        assert_null(tide_acquire(b.pool, uint8_t, 2 * HALF));
        assert_int_equal(tide_error_status(), TIDE_ERROR_LIMIT);
        expect_said("past its limit of 3145728 bytes: 1048576 are missing");
        assert_non_null(tide_acquire(b.pool, uint8_t, HALF)); /* what there is room for */
    }
    tide_device_memory memory = memory_of(b.device);
    assert_int_equal(memory.bytes_held, 3 * HALF);
    assert_int_equal(memory.bytes_peak, 3 * HALF);
    assert_int_equal(memory.limit_bytes, 3 * HALF);
    assert_true(memory.refused >= 2);
    expect_ok(tide_buffer_release(buffers, buffer));
    expect_ok(tide_buffers_destroy(buffers));
    expect_status(tide_device_memory_set(tide_device_open("host"), NULL), TIDE_ERROR_ARGUMENT);
    expect_status(tide_device_memory_set(NULL, NULL), TIDE_ERROR_ARGUMENT);
    expect_status(tide_device_memory_stats(b.device, NULL), TIDE_ERROR_ARGUMENT);
    bench_end(&b);
}

/* A function that answers a shortage need not know whose memory it was. */
TEST(the_program_is_asked_for_other_memory_too)
{
    bench b = bench_start(6);
    giver g = {.wants = 1};
    expect_ok(
        tide_device_memory_set(b.device, &(tide_device_memory_options){.full = give, .user = &g}));
    tide_buffers *buffers = bench_buffers(&b, TIDE_BUFFER_DEVICE);
    fake_limit(HALF);
    for (uint32_t kind = TIDE_BUFFER_DEVICE; kind <= TIDE_BUFFER_IPC; kind++) {
        if (kind == TIDE_BUFFER_HOST)
            continue;
        g = (giver){.wants = 1};
        assert_int_equal(tide_buffer_acquire_on(buffers, 2 * HALF, kind, b.stream).generation, 0);
        assert_int_equal(tide_error_status(), TIDE_ERROR_MEMORY);
        assert_int_equal(g.asked, 2);
    }
    assert_int_equal(memory_of(b.device).bytes_peak, 0);
    expect_ok(tide_buffers_destroy(buffers));
    bench_end(&b);
}

/* ---- the system ----------------------------------------------------------------------------- */

TEST(a_trim_leaves_the_process)
{
    bench b = bench_start(5);
    {
        TIDE_SCOPE(b.pool);
        uint8_t *x = tide_acquire(b.pool, uint8_t, 2 * HALF);
        for (uint8_t i = 0; i < 100; i++)
            put(b.stream, x, HALF, i);
    }
    tide_device_memory memory = memory_of(b.device);
    assert_true(memory.driver_known && memory.driver_pool != NULL);
    assert_int_equal(memory.driver_reserved, 2 * HALF);
    assert_int_equal(memory.driver_used, 2 * HALF);
    assert_int_equal(tide_pool_trim(b.pool, TIDE_ALL_TYPES).bytes, 2 * HALF);
    assert_int_equal(memory_of(b.device).driver_used, 0);
    expect_ok(tide_device_memory_trim(b.device, 0)); /* waits for what is in flight */
    memory = memory_of(b.device);
    assert_int_equal(memory.driver_reserved, 0);
    assert_int_equal(memory.driver_reserved_peak, 2 * HALF);
    assert_int_equal(memory.bytes_held, 0);
    {
        TIDE_SCOPE(b.pool);
        assert_non_null(tide_acquire(b.pool, uint8_t, HALF));
    }
    expect_ok(tide_pool_wait(b.pool));
    (void)tide_pool_trim(b.pool, TIDE_ALL_TYPES);
    fake_synchronise_all();
    tide_buffers *buffers = bench_buffers(&b, TIDE_BUFFER_DEVICE);
    expect_ok(tide_buffer_release(buffers, tide_buffer_acquire(buffers, HALF)));
    fake_synchronise_all();
    (void)tide_buffers_trim(buffers, 0);
    fake_synchronise_all();
    expect_ok(tide_device_memory_trim(b.device, HALF)); /* no more than that is kept */
    assert_true(memory_of(b.device).driver_reserved <= HALF);
    expect_ok(tide_buffers_destroy(buffers));
    bench_end(&b);
}

/* ---- devices without memory pools ----------------------------------------------------------- */

/* What is freed at once must not be in use: that is shown by ../hazards. */
TEST(devices_without_memory_pools_give_memory_back)
{
    bench b = bench_start_without(1, FAKE_POOLS);
    fake_limit(2 * HALF);
    for (unsigned i = 0; i < 3; i++) {
        {
            TIDE_SCOPE(b.pool);
            uint8_t *x = tide_acquire(b.pool, uint8_t, 2 * HALF);
            assert_non_null(x);
            put(b.stream, x, HALF, 7);
        }
        (void)tide_pool_trim(b.pool, TIDE_ALL_TYPES);
    }
    assert_int_equal(fake_calls("cuMemPoolCreate"), 0);
    assert_false(memory_of(b.device).driver_known);
    expect_ok(tide_device_memory_trim(b.device, 0));
    assert_int_equal(fake_live_bytes(), 0);
    bench_end(&b);
}

/* What a shortage would wait for is one event a stream, however much memory goes. */
TEST(memory_that_goes_again_and_again_is_noted_once)
{
    bench b = bench_start(1);
    fake_count_anew();
    for (int i = 0; i < 50; i++) {
        tide_pool *pool = bench_pool(&b, b.stream, NULL);
        uint8_t *x = tide_acquire(pool, uint8_t, HALF);
        assert_non_null(x);
        put(b.stream, x, HALF, 1);
        expect_ok(tide_pool_reset(pool));
        expect_ok(tide_pool_destroy(pool));
    }
    assert_true(fake_calls("cuMemFreeAsync") >= 50);
    assert_in_range(fake_calls("cuEventCreate"), 1, 3);
    bench_end(&b);
}

/* Its stream would be asked later, and may be gone then. */
TEST(where_there_is_no_event_nothing_is_noted)
{
    bench b = bench_start(1);
    void *stream = fake_stream_create(0);
    tide_pool *pool = bench_pool(&b, stream, NULL);
    assert_non_null(tide_acquire(pool, uint8_t, HALF));
    expect_ok(tide_pool_reset(pool));
    fake_fail("cuEventRecord", 1, TIDE_CU_INVALID_VALUE, true);
    assert_int_equal(tide_pool_trim(pool, TIDE_ALL_TYPES).slots, 1);
    assert_true(fake_failures() >= 1);
    fake_fail("cuEventRecord", 0, 0, false);
    expect_ok(tide_pool_destroy(pool));
    fake_synchronise(stream);
    fake_stream_destroy(stream);
    expect_ok(tide_device_memory_trim(b.device, 0));
    bench_end(&b);
}

static void *use_own_stream(void *device)
{
    tide_pool *pool = tide_pool_create(
        &(tide_pool_options){.device = device, .stream = (void *)TIDE_CU_STREAM_PER_THREAD});
    (void)tide_acquire(pool, uint8_t, HALF);
    (void)tide_pool_reset(pool);
    (void)tide_pool_destroy(pool);
    return NULL;
}

TEST(notes_of_threads_that_have_ended_go)
{
    bench b = bench_start(1);
    fake_count_anew();
    for (int i = 0; i < 50; i++) {
        (void)on_thread(use_own_stream, b.device);
        fake_synchronise_all();
    }
    assert_in_range(fake_calls("cuEventCreate"), 1, 16);
    bench_end(&b);
}

/* ---- memory for other processes ------------------------------------------------------------- */

/* CUDA's own calls share what cuMemAlloc gave, and nothing of a memory pool. */
TEST(memory_for_other_processes_is_of_no_memory_pool)
{
    bench b = bench_start(7);
    assert_true(info_of(b.device).exports);
    tide_buffers *buffers = bench_buffers(&b, TIDE_BUFFER_IPC);
    tide_pool *pool = bench_pool(&b, b.stream, buffers);
    for (uint8_t i = 0; i < 2; i++) { /* the second is cached memory */
        TIDE_SCOPE(pool);
        tide_buffer buffer = tide_buffer_acquire(buffers, HALF);
        uint8_t *x = tide_buffer_pointer(buffers, buffer), *y = tide_acquire(pool, uint8_t, HALF);
        put(b.stream, x, HALF, i);
        put(b.stream, y, HALF, i);
        expect_ok(tide_buffer_release(buffers, buffer));
    }
    assert_int_equal(memory_of(b.device).bytes_held, 2 * HALF);
    assert_int_equal(fake_calls("cuMemAlloc"), 2);
    assert_int_equal(fake_calls("cuMemAllocFromPoolAsync"), 0);
    expect_ok(tide_pool_wait(pool));
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_buffers_destroy(buffers));
    assert_int_equal(fake_calls("cuMemFree"), 2);
    bench_end(&b);
}

TEST(a_device_without_memory_for_others_says_so)
{
    bench b = bench_start_without(8, FAKE_IPC);
    assert_false(info_of(b.device).exports);
    tide_device *const devices[] = {b.device, NULL}; /* the host */
    for (int i = 0; i < 2; i++) {
        assert_null(tide_buffers_shared(devices[i], TIDE_BUFFER_IPC));
        assert_int_equal(tide_error_status(), TIDE_ERROR_DEVICE);
        expect_said("no memory for other processes");
    }
    bench_end(&b);
}

int main(void)
{
    return RUN_TESTS("memory");
}
