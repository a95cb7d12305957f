/* SPDX-License-Identifier: MIT */
/* Magazines: each thread's own buffers, found through the thread, entered without a lock, stopped
 * by whoever holds the instance's mutex. The protocol is in runtime/buffers/store/instance.h, 1 and
 * 2. */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_STORE_MAGAZINE_H
#define TIDEPOOL_RUNTIME_BUFFERS_STORE_MAGAZINE_H

#include "runtime/buffers/store/cell.h"
#include "runtime/buffers/store/fence.h"

enum { TIDE_MAGAZINE_WAYS = 4 };

/* A magazine that the thread used lately. An instance's number is never used again, so the way to a
 * magazine that is gone is never found. */
typedef struct tide_magazine_way {
    uint64_t number;
    tide_magazine *magazine;
} tide_magazine_way;

/* The shared library reads it at an offset that is fixed when it is loaded. That takes from the
 * little room which a process has for thread-local memory of modules loaded later: no static copy
 * in a plugin may, for there may be many. In a program the linker makes either a constant
 * offset. */
#ifdef TIDEPOOL_SHARED
#define TIDE_MAGAZINE_TLS __attribute__((tls_model("initial-exec"), visibility("hidden")))
#else
#define TIDE_MAGAZINE_TLS __attribute__((visibility("hidden")))
#endif

/* The calling thread's, TIDE_MAGAZINE_WAYS of them; never NULL. */
extern _Thread_local const tide_magazine_way *tide_magazine_ways TIDE_MAGAZINE_TLS;

/* The calling thread's magazine, made on first use; NULL, without a message, when it
 * can have none. */
tide_magazine *tide_magazine_make(tide_buffers *buffers);

/* Nobody's: a place without a magazine leads to it. */
extern tide_magazine tide_magazine_none __attribute__((visibility("hidden")));

/* Where this copy of the library lies; read, not computed, which is an instruction less. */
extern const uintptr_t tide_magazine_copy __attribute__((visibility("hidden")));

/* A number that no other thread of this copy of the library has while this one lives. Another copy
 * adds another address, so that this thread does not look like itself there. (Two threads of two
 * copies look alike if their memory is as far apart as the copies are. That matters to a program
 * only that hands an instance of one copy to the other, which the cold side refuses.) */
TIDE_INLINE uintptr_t tide_magazine_thread(void)
{
    uintptr_t thread;
#ifdef __x86_64__
    __asm__ volatile("mov %%fs:0, %0" : "=r"(thread)); /* where its thread-local memory lies */
#else
    thread = (uintptr_t)&tide_magazine_ways;
#endif
    return thread + tide_magazine_copy;
}

/* The numbers differ in the address where a thread's memory lies, which is a multiple of 64 and,
 * unless stacks of 64 MiB and more have no guard, differs in enough of its lower 32 bits. */
TIDE_INLINE tide_magazine **tide_magazine_place(tide_buffers *buffers, uintptr_t thread)
{
    uint32_t hash = (uint32_t)thread * UINT32_C(0x9E3779B1);
    _Static_assert(TIDE_MAGAZINE_PLACES == 256, "the hash has 8 bits");
    return &buffers->places[hash >> 24];
}

/* What stands in the calling thread's place, and whether that is the thread's; else ask
 * tide_magazine_of. Of an instance that is not quick nothing stands there. Whatever a place leads
 * to stays until the instance ends, and says itself whose it is: only the thread makes it its own,
 * and takes that back when it ends, or, in its stead, the child of a fork. So nothing of the
 * thread's own memory is asked for, which would be a call in a static library that plugins use. */
TIDE_INLINE tide_magazine *tide_magazine_at(tide_buffers *buffers, uintptr_t thread)
{
    return __atomic_load_n(tide_magazine_place(buffers, thread), __ATOMIC_ACQUIRE);
}

TIDE_INLINE bool tide_magazine_is(const tide_magazine *magazine, uintptr_t thread)
{
    return __atomic_load_n(&magazine->thread, __ATOMIC_RELAXED) == thread;
}

TIDE_INLINE tide_magazine *tide_magazine_of(tide_buffers *buffers)
{
    const tide_magazine_way *way = &tide_magazine_ways[buffers->number % TIDE_MAGAZINE_WAYS];
    tide_assert(buffers->number != 0);
    tide_assert(way->number != buffers->number || way->magazine->buffers == buffers);
    return TIDE_LIKELY(way->number == buffers->number) ? way->magazine
                                                       : tide_magazine_make(buffers);
}

/* False: somebody has stopped the magazines, or wants to; take the mutex. */
TIDE_INLINE bool tide_magazine_enter(tide_magazine *magazine)
{
    tide_assert(magazine->busy == 0); /* written by this thread only, which is not in it yet */
    tide_fence_light_store(&magazine->busy, 1);
    uint32_t state = __atomic_load_n(&magazine->buffers->state, __ATOMIC_ACQUIRE);
    if (TIDE_LIKELY((state & TIDE_STATE_STOPPED) == 0))
        return true;
    __atomic_store_n(&magazine->busy, 0, __ATOMIC_RELEASE);
    return false;
}

/* The same, at the least cost. The thread is in it; the result, TIDE_STATE_..., says why it may
 * not be: with one of TIDE_STATE_KEEPS_OUT it leaves at once, and asks tide_magazine_enter. */
TIDE_INLINE uint32_t tide_magazine_enter_quick(const tide_buffers *buffers, tide_magazine *magazine)
{
    tide_assert(magazine->busy == 0 && magazine->buffers == buffers && magazine->own != NULL);
    tide_fence_light_store_only(&magazine->busy, 1);
    return __atomic_load_n(&buffers->state, __ATOMIC_ACQUIRE);
}

TIDE_INLINE void tide_magazine_leave(tide_magazine *magazine)
{
    tide_assert(magazine->busy == 1);
    __atomic_store_n(&magazine->busy, 0, __ATOMIC_RELEASE);
}

/* Nobody is in a magazine any more, until all are resumed. Mutex held. */
void tide_magazines_stop(tide_buffers *buffers);
void tide_magazines_resume(tide_buffers *buffers);

/* Ends all magazines of an instance that nobody uses. Registry and mutex
 * held, magazines stopped. */
void tide_magazines_end(tide_buffers *buffers);

/* Cells of a key. With those of the instance's own the fast paths find the magazine. Only by the
 * magazine's thread, mutex held. False: no memory. */
bool tide_cells_make(tide_magazine *magazine, unsigned key);

#endif
