/* SPDX-License-Identifier: MIT */
/* A function of the program is called while a pool is being changed or rewound: the deleter of a
 * foreign tensor, the hook of the buffers that the pool draws from. It may use any pool but this
 * one, which stands half-way. So the pool is shut meanwhile: no guard of a fast path holds in it,
 * and tide_pool_use refuses it. */
#ifndef TIDEPOOL_RUNTIME_POOL_SHUT_H
#define TIDEPOOL_RUNTIME_POOL_SHUT_H

#include "runtime/pool/log.h"

typedef struct tide_shut {
    uint64_t saved;
} tide_shut;

static inline tide_shut tide_pool_shut(tide_pool *pool)
{
    tide_assert(!pool->core->shut);
    tide_shut was = {.saved = pool->saved};
    pool->core->shut = true;
    __atomic_store_n(&pool->copy, tide_pool_copy(true), __ATOMIC_RELAXED);
    pool->saved = 0;
    tide_log_set_room(pool, pool->core->log.start);
    return was;
}

/* A request may have come meanwhile: it closes the log, here too. The copy is not as it was but as it
 * is to be: who looks for idle pools has it for a moment (runtime/pool/press.h). */
static inline void tide_pool_open_again(tide_pool *pool, tide_shut was)
{
    tide_assert(pool->core->shut && pool->saved == 0);
    pool->saved = was.saved;
    __atomic_store_n(&pool->copy, tide_pool_copy(pool->core->check >= TIDE_CHECK_POISON),
                     __ATOMIC_RELAXED);
    pool->core->shut = false;
    tide_log_reopen(pool);
}

#endif
