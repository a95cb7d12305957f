// SPDX-License-Identifier: MIT
// What others' caching allocators take on this device: CUB's, the driver's pool (keeping all), and RMM's (26 and
// later) where its headers are. An array of 1 MiB, 32 of 4 KiB, and what gpu_pages.c measures of ours as PyTorch calls
// it: a pair, and a ring of several sizes. Lines of JSON, as the benchmark writes them. Built by build-peers.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include <cub/util_allocator.cuh>
#include <cuda_runtime.h>
#if defined(PEER_RMM)
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/binning_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#endif

constexpr int ROUNDS = 61, MIXED = 256;

void check(cudaError_t result, const char *call)
{
    if (result == cudaSuccess)
        return;
    std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(result));
    std::exit(1);
}

// Of the rounds, the first of which warms up: nanoseconds for one of so many operations.
template <class Round>
void measure(const char *job, const char *peer, const char *unit, int operations, Round round)
{
    std::vector<double> times;
    for (int i = 0; i < ROUNDS; i++) {
        auto before = std::chrono::steady_clock::now();
        round();
        std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - before;
        if (i > 0)
            times.push_back(took.count() / operations);
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }
    std::sort(times.begin(), times.end());
    std::printf("{\"case\":\"%s\",\"variant\":\"%s\",\"ns_min\":%.1f,\"ns_median\":%.1f,"
                "\"unit\":\"%s\",\"n\":%zu}\n",
                job, peer, times.front(), times[times.size() / 2], unit, times.size() * operations);
}

template <class Acquire, class Release>
void scopes(const char *job, const char *peer, size_t bytes, int count, Acquire acquire, Release release)
{
    std::vector<void *> arrays(count);
    measure(job, peer, "scope", 200, [&] {
        for (int i = 0; i < 200; i++) {
            for (auto &array : arrays)
                array = acquire(bytes);
            for (auto array : arrays)
                release(array, bytes);
        }
    });
}

// So many are held, and the oldest goes first.
template <class Acquire, class Release>
void pairs(const char *job, const char *peer, size_t held, Acquire acquire, Release release)
{
    std::vector<std::pair<void *, size_t>> ring(held);
    measure(job, peer, "pair", 10000, [&] {
        for (size_t i = 0; i < 10000; i++) {
            auto &place = ring[i % held];
            if (place.first != nullptr)
                release(place.first, place.second);
            place.second = held == 1 ? 1 << 20 : 512 + (i * 7919 % 64) * 4096;
            place.first = acquire(place.second);
        }
    });
    for (auto &place : ring)
        release(place.first, place.second);
}

template <class Acquire, class Release> void all(const char *peer, Acquire acquire, Release release)
{
    scopes("device-cuda-acquire", peer, 1 << 20, 1, acquire, release);
    scopes("device-cuda-scope32", peer, 4096, 32, acquire, release);
    pairs("torch-pair-c", peer, 1, acquire, release);
    pairs("torch-ring-c", peer, MIXED, acquire, release);
}

int main()
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::fprintf(stderr, "no CUDA device\n");
        return 77;
    }
    const cudaStream_t legacy = nullptr;
    cub::CachingDeviceAllocator cached;
    all("cub",
        [&](size_t bytes) {
            void *array = nullptr;
            check(cached.DeviceAllocate(&array, bytes, legacy), "DeviceAllocate");
            return array;
        },
        [&](void *array, size_t) { check(cached.DeviceFree(array), "DeviceFree"); });
    cudaMemPool_t pool;
    uint64_t everything = UINT64_MAX;
    check(cudaDeviceGetDefaultMemPool(&pool, 0), "cudaDeviceGetDefaultMemPool");
    check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &everything), "cudaMemPoolSetAttribute");
    all("async",
        [&](size_t bytes) {
            void *array = nullptr;
            check(cudaMallocAsync(&array, bytes, legacy), "cudaMallocAsync");
            return array;
        },
        [&](void *array, size_t) { check(cudaFreeAsync(array, legacy), "cudaFreeAsync"); });
#if defined(PEER_RMM)
    auto rmm = [&](const char *name, auto resource) {
        const cuda::stream_ref stream{legacy};
        all(name, [&](size_t bytes) { return resource.allocate(stream, bytes, 256); },
            [&](void *array, size_t bytes) { resource.deallocate(stream, array, bytes, 256); });
    };
    rmm::mr::pool_memory_resource upstream{rmm::mr::cuda_memory_resource{}, size_t{1} << 30};
    rmm("rmm-pool", upstream);
    rmm("rmm-arena", rmm::mr::arena_memory_resource{rmm::mr::cuda_memory_resource{}});
    rmm("rmm-binning", rmm::mr::binning_memory_resource{upstream, 8, 22});
#endif
    return 0;
}
