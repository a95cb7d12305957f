// SPDX-License-Identifier: MIT
// RMM's resources over ours, and ours over theirs, in RMM's own words. What calls no CUDA runtime runs on the fake
// driver: their adaptors. The rest of theirs is compiled, and runs where there is a GPU. Built by the script `rmm`.
#include <cstdio>
#include <cstdlib>

#include <rmm/device_buffer.hpp>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/binning_memory_resource.hpp>
#include <rmm/mr/limiting_resource_adaptor.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>

#include <tidepool/device.h>
#include <tidepool/memory_resource.h>

namespace mr = cuda::mr;
using tidepool::device_resource;

static_assert(mr::resource_with<device_resource, mr::device_accessible>);
static_assert(std::is_constructible_v<mr::any_resource<mr::device_accessible>, device_resource>);
static_assert(std::is_constructible_v<rmm::device_async_resource_ref, device_resource &>);

#define EXPECT(it)                                                                          \
    do                                                                                      \
        if (!(it)) {                                                                        \
            std::fprintf(stderr, "line %d: " #it ": %s\n", __LINE__, tide_error_message()); \
            std::exit(1);                                                                   \
        }                                                                                   \
    while (false)

/* Ours under theirs. */
static void their_adaptors_take_our_memory(tide_buffers *buffers, cudaStream_t stream)
{
    tide_buffers_statistics before, after;
    rmm::mr::limiting_resource_adaptor limiting{device_resource(buffers), 1 << 20};
    rmm::mr::statistics_resource_adaptor counting{limiting};
    rmm::device_async_resource_ref ref{counting};
    EXPECT(tide_buffers_stats(buffers, &before, nullptr, 0) == TIDE_OK);
    for (int i = 0; i < 50; i++) {
        void *data = ref.allocate(stream, 5000, 256);
        EXPECT(data != nullptr && counting.get_bytes_counter().value == 5000);
        ref.deallocate(stream, data, 5000, 256);
    }
    EXPECT(tide_buffers_stats(buffers, &after, nullptr, 0) == TIDE_OK);
    EXPECT(after.misses - before.misses == 1 && after.hits - before.hits == 49 && after.live == 0);
    bool refused = false;
    try {
        (void)ref.allocate(stream, 2 << 20, 256);
    } catch (const rmm::out_of_memory &) {
        refused = true;
    }
    EXPECT(refused);
}

/* Theirs under ours. */
static void a_scope_has_memory_of_theirs(tide_device *device, tide_buffers *buffers,
                                         cudaStream_t stream)
{
    rmm::mr::statistics_resource_adaptor theirs{device_resource(buffers)};
    tide_pool_options options = {};
    options.device = device;
    options.stream = stream;
    tide_pool *pool = tide_pool_create(&options);
    EXPECT(pool != nullptr);
    for (int i = 0; i < 20; i++) {
        tidepool::scope scope(pool);
        tide_array *array = tidepool::acquire_from<float>(pool, theirs, stream, 1000);
        EXPECT(array != nullptr && tide_array_data(array) != nullptr);
        EXPECT(theirs.get_bytes_counter().value >= 4000);
    }
    EXPECT(tide_pool_destroy(pool) == TIDE_OK);
    EXPECT(theirs.get_bytes_counter().value == 0);
    EXPECT(theirs.get_allocations_counter().total == 20);
}

/* What asks the CUDA runtime. */
static void their_pools_take_our_memory(tide_buffers *buffers, cudaStream_t stream)
{
    device_resource ours(buffers);
    rmm::mr::pool_memory_resource pool{ours, 1 << 22};
    rmm::mr::arena_memory_resource arena{ours, 1 << 22};
    rmm::mr::binning_memory_resource binning{pool, 10, 20};
    for (rmm::device_async_resource_ref ref :
         {rmm::device_async_resource_ref{pool}, rmm::device_async_resource_ref{arena},
          rmm::device_async_resource_ref{binning}}) {
        rmm::device_buffer data(5000, cuda::stream_ref{stream}, ref);
        EXPECT(data.data() != nullptr);
    }
}

int main(int argc, char **)
{
    tide_device *device = tide_device_open("cuda:0");
    EXPECT(device != nullptr);
    tide_buffers *buffers = tide_buffers_create(device, nullptr);
    EXPECT(buffers != nullptr);
    their_adaptors_take_our_memory(buffers, nullptr);
    a_scope_has_memory_of_theirs(device, buffers, nullptr);
    if (argc > 1)
        their_pools_take_our_memory(buffers, nullptr);
    EXPECT(tide_buffers_destroy(buffers) == TIDE_OK && tide_device_close(device) == TIDE_OK);
    std::puts(argc > 1 ? "RMM, with its pools" : "RMM");
    return 0;
}
