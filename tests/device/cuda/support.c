/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <pthread.h>

#include <tidepool/device.h>
#include <tidepool/upkeep.h>

#include "runtime/device/cuda/cuda.h"
#include "runtime/device/device.h"

static unsigned mismatches; /* atomic: any thread that is in the driver runs kernels */

static bench start(uint32_t seed, unsigned without, tide_pool_options options)
{
    __atomic_store_n(&mismatches, 0, __ATOMIC_RELAXED);
    fake_reset(2, seed);
    fake_without(without);
    tide_cuda_driver_set(FAKE_CUDA);
    bench b = {.device = tide_device_open("cuda:0")};
    if (b.device == NULL)
        fail_msg("%s", tide_error_message());
    options.device = b.device;
    options.stream = b.stream = fake_stream_create(0);
    b.pool = tide_pool_create(&options);
    if (b.pool == NULL)
        fail_msg("%s", tide_error_message());
    return b;
}

bench bench_start_with(uint32_t seed, tide_pool_options options)
{
    return start(seed, 0, options);
}

bench bench_start_without(uint32_t seed, unsigned what)
{
    return start(seed, what, (tide_pool_options){.name = "bench"});
}

bench bench_start(uint32_t seed)
{
    return bench_start_without(seed, 0);
}

tide_pool *bench_pool(const bench *b, void *stream, tide_buffers *buffers)
{
    tide_pool *pool = tide_pool_create(
        &(tide_pool_options){.device = b->device, .stream = stream, .buffers = buffers});
    if (pool == NULL)
        fail_msg("%s", tide_error_message());
    return pool;
}

tide_buffers *bench_buffers(const bench *b, uint32_t kind)
{
    tide_buffers *made =
        tide_buffers_create(b->device, &(tide_buffers_options){.flags = kind, .stream = b->stream});
    if (made == NULL)
        fail_msg("%s", tide_error_message());
    return made;
}

void expect_order(void)
{
    if (fake_hazard() != NULL)
        fail_msg("hazard: %s", fake_hazard());
    if (fake_violation() != NULL)
        fail_msg("violation: %s", fake_violation());
    assert_int_equal(unexpected(), 0);
}

void bench_end(bench *b)
{
    expect_ok(tide_pool_check(b->pool));
    expect_ok(tide_pool_destroy(b->pool));
    fake_synchronise_all();
    expect_order();
    assert_int_equal(fake_pending(), 0);
    expect_ok(tide_device_close(b->device));
    fake_synchronise_all();
    assert_int_equal(fake_live_bytes(), 0);
    fake_stream_destroy(b->stream);
    expect_order();
}

typedef struct kernel_arguments {
    uint8_t *data;
    size_t bytes, count;
    uint8_t value[32];
} kernel_arguments;

static void run_put(const void *of)
{
    const kernel_arguments *arguments = of;
    memset(fake_see(arguments->data), arguments->value[0], arguments->bytes);
}

static void run_expect(const void *of)
{
    const kernel_arguments *arguments = of;
    const uint8_t *seen = fake_see(arguments->data);
    unsigned wrong = 0;
    for (size_t i = 0; i < arguments->count; i++)
        wrong += memcmp(seen + i * arguments->bytes, arguments->value, arguments->bytes) != 0;
    __atomic_fetch_add(&mismatches, wrong, __ATOMIC_RELAXED);
}

void put(void *stream, void *data, size_t bytes, uint8_t value)
{
    const kernel_arguments arguments = {.data = data, .bytes = bytes, .value = {value}};
    const fake_range range = {data, bytes, true};
    fake_launch(stream, run_put, &arguments, sizeof arguments, &range, 1);
}

void expect_pattern(void *stream, void *data, const void *pattern, size_t bytes, size_t count)
{
    kernel_arguments arguments = {.data = data, .bytes = bytes, .count = count};
    const fake_range range = {data, bytes * count, false};
    assert_true(bytes <= sizeof arguments.value);
    memcpy(arguments.value, pattern, bytes);
    fake_launch(stream, run_expect, &arguments, sizeof arguments, &range, 1);
}

void expect(void *stream, void *data, size_t bytes, uint8_t value)
{
    expect_pattern(stream, data, &value, 1, bytes);
}

unsigned unexpected(void)
{
    return __atomic_load_n(&mismatches, __ATOMIC_RELAXED);
}

unsigned waits(void)
{
    return fake_calls("cuStreamSynchronize") + fake_calls("cuEventSynchronize") +
           fake_calls("cuCtxSynchronize");
}

void *take_graph(void *stream)
{
    void *graph = NULL;
    assert_int_equal(fake_capture_end(stream, &graph), 0);
    return graph;
}

void expect_capture_whole(void *stream)
{
    fake_graph_destroy(take_graph(stream));
}

void *on_thread(void *(*run)(void *), void *user)
{
    pthread_t thread;
    void *said = NULL;
    assert_int_equal(pthread_create(&thread, NULL, run, user), 0);
    assert_int_equal(pthread_join(thread, &said), 0);
    return said;
}

tide_device_information info_of(const tide_device *device)
{
    tide_device_information info;
    expect_ok(tide_device_info(device, &info));
    return info;
}

tide_status try_bump(tide_device *device, void *stream, uint8_t *data)
{
    void *module = tide_cuda_module(device, "fake");
    if (module == NULL)
        return tide_error_status();
    void *kernel = tide_cuda_kernel(device, module, "bump");
    tide_status status = kernel != NULL ? TIDE_OK : tide_error_status();
    unsigned by = 5;
    void *arguments[] = {&data, &by};
    if (status == TIDE_OK)
        status = tide_cuda_launch(device, stream, kernel, 4, 32, arguments);
    tide_cuda_module_drop(device, module);
    return status;
}

tide_device_memory memory_of(tide_device *device)
{
    tide_device_memory memory;
    expect_ok(tide_device_memory_stats(device, &memory));
    return memory;
}

tide_pool_statistics stats_of(const tide_pool *pool)
{
    tide_pool_statistics stats;
    expect_ok(tide_pool_stats(pool, &stats));
    return stats;
}

tide_buffers_statistics cache_of(tide_buffers *buffers)
{
    tide_buffers_statistics stats;
    expect_ok(tide_buffers_stats(buffers, &stats, NULL, 0));
    return stats;
}
