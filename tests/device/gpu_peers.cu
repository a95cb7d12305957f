// SPDX-License-Identifier: MIT
// What others' caching allocators take for an array of 1 MiB, and for 32 of 4 KiB, on this device: CUB's,
// and RMM's (26 and later) where its headers are. Lines of JSON, as the benchmark writes them. Built by run-gpu.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include <cub/util_allocator.cuh>
#include <cuda_runtime.h>
#if defined(PEER_RMM)
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#endif

template <class Acquire, class Release>
void measure(const char *job, const char *peer, size_t bytes, int count, Acquire acquire,
             Release release)
{
    const int rounds = 61, operations = 200;
    std::vector<double> times;
    std::vector<void *> arrays(count);
    for (int round = 0; round < rounds; round++) {
        auto before = std::chrono::steady_clock::now();
        for (int i = 0; i < operations; i++) {
            for (auto &array : arrays)
                array = acquire(bytes);
            for (auto array : arrays)
                release(array, bytes);
        }
        std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - before;
        if (round > 0) // the first one warms up
            times.push_back(took.count() / operations);
        cudaDeviceSynchronize();
    }
    std::sort(times.begin(), times.end());
    std::printf("{\"case\":\"%s\",\"variant\":\"%s\",\"ns_min\":%.1f,\"ns_median\":%.1f,"
                "\"unit\":\"scope\",\"n\":%d}\n",
                job, peer, times.front(), times[times.size() / 2], rounds * operations);
}

template <class Acquire, class Release>
void both(const char *peer, Acquire acquire, Release release)
{
    measure("device-cuda-acquire", peer, 1 << 20, 1, acquire, release);
    measure("device-cuda-scope32", peer, 4096, 32, acquire, release);
}

int main()
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::fprintf(stderr, "no CUDA device\n");
        return 0;
    }
    cub::CachingDeviceAllocator cached;
    both("cub",
         [&](size_t bytes) {
             void *array = nullptr;
             cached.DeviceAllocate(&array, bytes, static_cast<cudaStream_t>(0));
             return array;
         },
         [&](void *array, size_t) { cached.DeviceFree(array); });
#if defined(PEER_RMM)
    const cuda::stream_ref stream{static_cast<cudaStream_t>(0)};
    auto rmm = [&](const char *name, auto resource) {
        both(name, [&](size_t bytes) { return resource.allocate(stream, bytes, 256); },
             [&](void *array, size_t bytes) { resource.deallocate(stream, array, bytes, 256); });
    };
    rmm("rmm-pool", rmm::mr::pool_memory_resource{rmm::mr::cuda_memory_resource{}, size_t{1} << 30});
    rmm("rmm-arena", rmm::mr::arena_memory_resource{rmm::mr::cuda_memory_resource{}});
#endif
    return 0;
}
