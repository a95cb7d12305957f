/* SPDX-License-Identifier: MIT */
/* A function of the program is called while a pool is being changed or rewound: the deleter of a
 * foreign tensor, the hook of the buffers that the pool draws from. It may use any pool but this
 * one, which stands half-way. So the pool is shut meanwhile: no guard of a fast path holds in it,
 * and tide_pool_use refuses it. */
#ifndef TIDEPOOL_RUNTIME_POOL_SHUT_H
#define TIDEPOOL_RUNTIME_POOL_SHUT_H

#include "runtime/base/lock.h"
#include "runtime/base/probe.h"
#include "runtime/pool/level.h"

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

/* The program's hook is told of each change of the memory that a pool holds, and so is who traces
 * it. The pool is shut meanwhile, and no lock is held. */

/* The books say already what is told. The place is that of the acquire, or nowhere. */
static inline void tide_pool_tell(tide_pool *pool, tide_pool_happening happening,
                                  const tide_row *row, size_t bytes, size_t elements,
                                  tide_place place)
{
    const tide_pool_core *core = pool->core;
    if (happening == TIDE_POOL_ALLOCATED)
        TIDE_USDT(pool_grow, pool, (const char *)core->name, row->type, bytes,
                  core->memory.bytes_held);
    if (TIDE_LIKELY(core->hook == NULL))
        return;
    bool known = place.file != NULL;
    const tide_pool_event event = {.happening = happening,
                                   .pool = pool,
                                   .name = core->name,
                                   .type = row->type,
                                   .bytes = bytes,
                                   .elements = elements,
                                   .held = core->memory.bytes_held,
                                   .file = place.file,
                                   .function = known ? place.function : NULL,
                                   .line = place.line,
                                   .caller = known ? NULL : (const void *)place.function};
    tide_shut was = tide_pool_shut(pool);
    tide_lock_assert_none();
    core->hook(&event, core->user);
    tide_pool_open_again(pool, was);
}

#endif
