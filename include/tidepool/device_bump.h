/* SPDX-License-Identifier: MIT */
/* A bump allocator that kernels allocate from. This one text is CUDA C (nvcc and NVRTC), OpenCL C
 * (1.2 and above) and, for the host's side, C and C++. For a device it includes nothing.
 *
 *   __global__ void kernel(tide_bump *bump, …)
 *   {
 *       float *row = (float *)tide_bump_acquire(bump, n * sizeof(float));
 *       if (row == 0) return;                   all is used up: the host will be told
 *       …
 *
 * On the host the memory is an array of a pool. It is given back as a whole when its scope ends:
 *
 *   tide_bump_scope scope;
 *   tide_bump_enter(pool, 1 << 20, &scope);     scope.bump is the kernel's argument
 *   …launch on the pool's stream…
 *   tide_bump_leave(&scope);                    TIDE_ERROR_SIZE if the memory was too small
 *
 * Allocations are multiples of 16 bytes, aligned to 16 bytes. They last until the host leaves the
 * scope; a thread cannot give one back. In CUDA all lanes of a warp that allocate together make one
 * atomic addition. OpenCL has no warps: each work item makes its own addition, and the device must
 * have 64-bit atomics (cl_khr_int64_base_atomics).
 *
 * For NVRTC and clBuildProgram, tide_bump_source() is this text. */
#ifndef TIDEPOOL_DEVICE_BUMP_H
#define TIDEPOOL_DEVICE_BUMP_H

#ifdef __OPENCL_VERSION__
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
typedef ulong tide_bump_word;
#define TIDE_BUMP_MEMORY __global
#else
typedef unsigned long long tide_bump_word;
#define TIDE_BUMP_MEMORY
#endif

/* The head of the memory. The memory itself begins TIDE_BUMP_HEAD bytes after the head's start. All
 * figures but `refused` are in bytes. */
typedef struct tide_bump {
    tide_bump_word capacity;
    tide_bump_word used;     /* asked for in all, by refused allocations, too …         */
    tide_bump_word too_much; /* … but here if one alone asked for more than `capacity`  */
    tide_bump_word refused;  /* how many allocations were refused                       */
} tide_bump;

enum { TIDE_BUMP_HEAD = 64, TIDE_BUMP_ALIGN = 16 };

#if defined(__CUDACC__) || defined(__CUDACC_RTC__) || defined(__OPENCL_VERSION__)

/* The sum `used` does not overflow: a size above the capacity is never added to it. */
#ifdef __OPENCL_VERSION__

static inline __global void *tide_bump_acquire(volatile __global tide_bump *bump, ulong bytes)
{
    ulong size = (bytes + 15) & ~(ulong)15, at = 0;
    bool fits = bytes <= bump->capacity;
    if (fits)
        at = atom_add(&bump->used, size);
    if (fits && at + size <= bump->capacity)
        return (__global char *)bump + TIDE_BUMP_HEAD + at;
    if (!fits)
        atom_add(&bump->too_much, bytes);
    atom_add(&bump->refused, (ulong)1);
    return 0;
}

#else

/* The sum of the sizes of the lanes before this one; *all is the sum for all lanes. `mask` says
 * which lanes are here. */
static __device__ __forceinline__ tide_bump_word tide_bump_before(unsigned mask, unsigned lane,
                                                                  tide_bump_word size,
                                                                  tide_bump_word *all)
{
    tide_bump_word before = 0, sum = 0;
    for (unsigned left = mask; left != 0; left &= left - 1) {
        unsigned other = (unsigned)__ffs((int)left) - 1;
        tide_bump_word others = __shfl_sync(mask, size, (int)other);
        before += other < lane ? others : 0;
        sum += others;
    }
    *all = sum;
    return before;
}

static __device__ __forceinline__ unsigned tide_bump_lane(void)
{
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

static __device__ __forceinline__ void *tide_bump_acquire(tide_bump *bump, tide_bump_word bytes)
{
    unsigned mask = __activemask(), lane = tide_bump_lane(), first = (unsigned)__ffs((int)mask) - 1;
    bool fits = bytes <= bump->capacity;
    tide_bump_word size = fits ? (bytes + 15) & ~(tide_bump_word)15 : 0, all, at = 0;
    tide_bump_word before = tide_bump_before(mask, lane, size, &all);
    if (lane == first && all != 0)
        at = atomicAdd(&bump->used, all);
    at = __shfl_sync(mask, at, (int)first) + before;
    if (fits && at + size <= bump->capacity)
        return (char *)bump + TIDE_BUMP_HEAD + at;
    if (!fits)
        atomicAdd(&bump->too_much, bytes);
    atomicAdd(&bump->refused, (tide_bump_word)1);
    return 0;
}

#endif
#endif

#if !defined(__CUDACC_RTC__) && !defined(__OPENCL_VERSION__) /* the host */

#include <tidepool/mark.h>

TIDE_BEGIN_DECLS

/* Device memory that kernels allocate from while the scope lasts. */
typedef struct tide_bump_scope {
    tide_bump *bump; /* on the device, for kernels; OpenCL buffers: see tide_device_buffer */
    tide_pool *pool;
    tide_mark mark;
    size_t asked;   /* after leaving: bytes that kernels asked for, each rounded up to 16 */
    size_t refused; /* after leaving: allocations that were refused                       */
} tide_bump_scope;

/* Opens a level of the pool and acquires memory in it, for `bytes` bytes of allocations. The memory
 * is ready for work that is queued on the pool's stream after this call. On failure nothing has
 * changed; the errors are those of a checkpoint, an acquire and an upload. */
TIDE_API tide_status tide_bump_enter(tide_pool *pool, size_t bytes, tide_bump_scope *scope);

/* Rewinds the level, with all that was acquired since. The host first waits for the work on the
 * pool's stream and reads the figures. TIDE_ERROR_SIZE, with the figures in the message, if
 * allocations were refused; the level is rewound all the same. Nothing is rewound for
 * TIDE_ERROR_STATE (the level has been rewound before; the pool's stream is captured, or gone),
 * TIDE_ERROR_ARGUMENT (the scope was not entered) and TIDE_ERROR_THREAD. */
TIDE_API tide_status tide_bump_leave(tide_bump_scope *scope);

/* The text of this file, for compilers that cannot open files. Static; ends with a 0. */
TIDE_API const char *tide_bump_source(void);

TIDE_END_DECLS

#endif
#endif
