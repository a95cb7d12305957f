/* SPDX-License-Identifier: MIT */
/* CUDA C as C++ for this processor: what stands before the kernels that `compile` compiles, and what it
 * has in common with the fake driver (../fake_cuda/host_code.c). The compiler tells each access to memory, by the calls
 * that ThreadSanitizer wants; the driver hears of those within its devices' memory. */
#ifndef TIDEPOOL_TESTS_KERNELS_CUDA_H
#define TIDEPOOL_TESTS_KERNELS_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef struct fake_shape {
    unsigned x, y, z;
} fake_shape;

/* What a kernel asks, and tells: the driver fills it in. */
typedef struct fake_cells {
    fake_shape thread, block, threads;
    unsigned lane;       /* of its warp */
    uintptr_t from, end; /* of the devices' memory */
    void (*used)(uintptr_t address, size_t bytes, int writes);
    unsigned (*active)(void); /* the lanes that are here */
    uint64_t (*shuffle)(unsigned mask, uint64_t value, int from);
} fake_cells;

typedef void fake_thread(const void *const *values); /* a thread of the kernel NAME: NAME_run */
typedef size_t fake_sizes(unsigned parameter);       /* NAME_size; 0 after the last */

#ifdef __cplusplus

#include <math.h>

#include <utility>

#define FAKE_SHOWN  __attribute__((visibility("default")))
#define FAKE_UNTOLD extern "C" __attribute__((no_sanitize("thread")))

extern "C" {
FAKE_SHOWN fake_cells fake_cells_now;
}

FAKE_UNTOLD inline void fake_use(void *at, size_t bytes, int writes)
{
    uintptr_t address = (uintptr_t)at;
    if (address >= fake_cells_now.from && address < fake_cells_now.end)
        fake_cells_now.used(address, bytes, writes);
}

#define FAKE_TELLS(call, n, writes)          \
    FAKE_UNTOLD void __tsan_##call(void *at) \
    {                                        \
        fake_use(at, n, writes);             \
    }
#define FAKE_TOLD(n)                    \
    FAKE_TELLS(read##n, n, 0)           \
    FAKE_TELLS(write##n, n, 1)          \
    FAKE_TELLS(unaligned_read##n, n, 0) \
    FAKE_TELLS(unaligned_write##n, n, 1)
FAKE_TOLD(1)
FAKE_TOLD(2)
FAKE_TOLD(4)
FAKE_TOLD(8)
FAKE_TOLD(16)
FAKE_UNTOLD void __tsan_read_range(void *at, size_t bytes)
{
    fake_use(at, bytes, 0);
}
FAKE_UNTOLD void __tsan_write_range(void *at, size_t bytes)
{
    fake_use(at, bytes, 1);
}
FAKE_UNTOLD void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
    fake_use(const_cast<void *>(from), bytes, 0);
    fake_use(to, bytes, 1);
    return __builtin_memcpy(to, from, bytes);
}
FAKE_UNTOLD void __tsan_func_entry(void *)
{
}
FAKE_UNTOLD void __tsan_func_exit(void)
{
}
FAKE_UNTOLD void __tsan_init(void)
{
}

#define __global__
#define __device__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(threads)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define asm(...) lane = fake_cells_now.lane /* the one that there is: %laneid */
#define threadIdx fake_cells_now.thread
#define blockIdx  fake_cells_now.block
#define blockDim  fake_cells_now.threads

static inline unsigned __activemask(void)
{
    return fake_cells_now.active();
}
static inline int __ffs(int of)
{
    return __builtin_ffs(of);
}
static inline unsigned long long __shfl_sync(unsigned mask, unsigned long long value, int from)
{
    return fake_cells_now.shuffle(mask, value, from);
}

/* Threads of the fake take turns. */
static inline unsigned long long atomicAdd(unsigned long long *to, unsigned long long value)
{
    unsigned long long old = *to;
    *to = old + value;
    return old;
}

template <class... A, size_t... I>
void fake_call(void (*kernel)(A...), const void *const *values, std::index_sequence<I...>)
{
    kernel(*static_cast<const A *>(values[I])...);
}

template <class... A> void fake_run(void (*kernel)(A...), const void *const *values)
{
    fake_call(kernel, values, std::index_sequence_for<A...>());
}

template <class... A> size_t fake_size(void (*)(A...), unsigned i)
{
    const size_t sizes[] = {sizeof(A)..., 0};
    return i < sizeof...(A) ? sizes[i] : 0;
}

#define FAKE_ENTRY(name)                                             \
    extern "C" FAKE_SHOWN void name##_run(const void *const *values) \
    {                                                                \
        fake_run(name, values);                                      \
    }                                                                \
    extern "C" FAKE_SHOWN size_t name##_size(unsigned i)             \
    {                                                                \
        return fake_size(name, i);                                   \
    }

#endif
#endif
