/* SPDX-License-Identifier: MIT */
/* A fence that one side pays for. Two threads each write a word and then read the other's; at least
 * one must see what the other wrote. Usually both need a full fence in between. Here the frequent
 * side has a light one, which only holds the compiler back, and the seldom side a heavy one,
 * membarrier(2): it has every running thread of the process pass a full fence before it returns. */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_STORE_FENCE_H
#define TIDEPOOL_RUNTIME_BUFFERS_STORE_FENCE_H

#include <tidepool/inline/config.h>

/* Any thread. */
void tide_fence_heavy(void);

/* Writes the word, then passes the light fence. */
TIDE_INLINE void tide_fence_light_store(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
    __asm__ volatile("" ::: "memory");
}

#endif
