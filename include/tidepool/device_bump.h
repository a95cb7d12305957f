/* SPDX-License-Identifier: MIT */
/* A bump allocator that kernels allocate from: one text for CUDA C (nvcc and NVRTC), OpenCL C (1.2
 * and above) and, for what the host must know, C and C++. It includes nothing.
 *
 *   __global__ void kernel(tide_bump *bump, …)
 *   {
 *       float *row = (float *)tide_bump_acquire(bump, n * sizeof(float));
 *       if (row == 0) return;                   all is used up: the host will be told
 *       …
 *
 * On the host the memory is an array of a pool, so it is given back, all at once, with the scope:
 *
 *   tide_bump_scope scope;
 *   tide_bump_enter(pool, 1 << 20, &scope);     scope.bump is the kernel's argument
 *   …launch on the pool's stream…
 *   tide_bump_leave(&scope);                    TIDE_ERROR_SIZE if kernels asked for more than
 * there was
 *
 * Allocations are multiples of 16 bytes, aligned to 16, and last until the host leaves the scope; a
 * thread cannot give one back. In CUDA the lanes of a warp that come here together make one atomic
 * addition; in OpenCL, which has no warps, each work item makes its own and the device must know
 * 64-bit atomics (cl_khr_int64_base_atomics).
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

/* What stands before the memory. All in bytes; the memory begins TIDE_BUMP_HEAD bytes from here. */
typedef struct tide_bump {
    tide_bump_word capacity;
    tide_bump_word used;     /* asked for by all, the refused as well …           */
    tide_bump_word too_much; /* … but those that asked for more than the capacity */
    tide_bump_word refused;  /* allocations                                       */
} tide_bump;

enum { TIDE_BUMP_HEAD = 64, TIDE_BUMP_ALIGN = 16 };

#if defined(__CUDACC__) || defined(__CUDACC_RTC__) || defined(__OPENCL_VERSION__)

/* Such sums do not overflow: what is larger than all there is does not come this far. */
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

/* The sizes of the lanes before this one that are here, too, and of them all. */
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
#ifdef TIDE_BUMP_EMULATED
    return threadIdx.x % 32;
#else
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
#endif
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

/* Device memory for kernels to allocate from, for as long as the scope lasts. */
typedef struct tide_bump_scope {
    tide_bump *bump; /* on the device: what kernels are given (a number for OpenCL's sub-buffers) */
    tide_pool *pool;
    tide_mark mark;
    size_t asked;   /* after leaving: bytes that kernels asked for, rounded up to 16 each */
    size_t refused; /* … and the allocations that were refused                            */
} tide_bump_scope;

/* Opens a level of the pool, and in it memory for so many bytes of allocations. Queued on the
 * pool's stream. TIDE_ERROR_MEMORY and what a checkpoint can fail with: nothing has changed. */
TIDE_API tide_status tide_bump_enter(tide_pool *pool, size_t bytes, tide_bump_scope *scope);

/* Rewinds it, with all that was acquired since. The host waits for what is queued on the pool's
 * stream to know how it went: TIDE_ERROR_SIZE, with the figures, if allocations were refused. It is
 * rewound in any case but one: TIDE_ERROR_STATE if the level is gone already. */
TIDE_API tide_status tide_bump_leave(tide_bump_scope *scope);

/* This file's text, for compilers that find no files. Ends with a 0. */
TIDE_API const char *tide_bump_source(void);

TIDE_END_DECLS

#endif
#endif
