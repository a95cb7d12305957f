/* SPDX-License-Identifier: MIT */
/* A fence that one side pays for. Two threads each write a word and then read the other's; at least
 * one must see what the other wrote. Usually both need a full fence in between. Here the frequent
 * side has a light one, which only holds the compiler back, and the seldom side a heavy one,
 * membarrier(2): it has every running thread of the process pass a full fence before it returns.
 * Where the system has no such call, or forbids it later, both sides are full. */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_STORE_FENCE_H
#define TIDEPOOL_RUNTIME_BUFFERS_STORE_FENCE_H

#include <tidepool/inline/config.h>

/* atomic: set by tide_fence_prepare; gone when the call is */
extern bool tide_fence_asymmetric __attribute__((visibility("hidden")));

/* Before either is used. Any thread, any number of times. */
void tide_fence_prepare(void);

void tide_fence_heavy(void);

/* Writes the word, then passes the light fence without a look whether it will do. For who asks a
 * word of its own for that: one that the heavy side has set before, where it will not. */
TIDE_INLINE void tide_fence_light_store_only(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
    __asm__ volatile("" ::: "memory");
}

/* Writes the word, then passes the light fence, or a full one where that will not do. */
TIDE_INLINE void tide_fence_light_store(uint32_t *word, uint32_t value)
{
    if (TIDE_LIKELY(__atomic_load_n(&tide_fence_asymmetric, __ATOMIC_RELAXED))) {
        tide_fence_light_store_only(word, value);
    } else {
        (void)__atomic_exchange_n(word, value, __ATOMIC_SEQ_CST);
    }
}

#endif
