/* SPDX-License-Identifier: MIT */
/* Where the temporaries of the operators come from: Tidepool. To read evaluate.c, stop here.
 *
 * For the comparison evaluate.c is compiled twice more, with ON_HEAP or ON_STATIC, and this file then
 * puts something else behind the few names of Tidepool that it uses: blocks from a heap, or the front
 * of one region. */
#ifndef COLUMNS_TEMPORARIES_H
#define COLUMNS_TEMPORARIES_H

#include "columns.h"

#if !defined(ON_HEAP) && !defined(ON_STATIC)
#define RUN                         columns_run_tide
#define RUN_FROM                    tide_pool
#define RUN_POOL(source)            tide_pool *pool = source
#define acquire_kind(pool, kind, n) tide_acquire_type(pool, columns_type(kind), n)
#else

typedef struct stand_in {
    const columns_source *from;
    size_t used; /* blocks held; of the region: bytes, a multiple of 64 */
    void *blocks[1000];
} stand_in;

static inline void *stand_in_acquire(stand_in *pool, size_t bytes)
{
#ifdef ON_HEAP
    bool room = pool->used < sizeof pool->blocks / sizeof *pool->blocks;
    void *block = room ? pool->from->allocate(bytes > 0 ? bytes : 1) : NULL;
    return block != NULL ? pool->blocks[pool->used++] = block : NULL;
#else
    unsigned char *block = pool->from->region + pool->used;
    size_t end = pool->used + ((bytes + 63) & ~(size_t)63);
    return end <= pool->from->bytes ? pool->used = end, block : NULL;
#endif
}

static inline void stand_in_rewind(stand_in *pool, size_t used)
{
#ifdef ON_HEAP
    while (pool->used > used)
        pool->from->release(pool->blocks[--pool->used]);
#endif
    pool->used = used;
}

typedef struct stand_in_scope {
    stand_in *pool;
    size_t used;
} stand_in_scope;

static inline void stand_in_leave(stand_in_scope *scope)
{
    stand_in_rewind(scope->pool, scope->used);
}

#ifdef ON_HEAP
#define RUN columns_run_heap
#else
#define RUN columns_run_static
#endif
#define RUN_FROM                    const columns_source
#define RUN_POOL(source)            stand_in own = {.from = source}, *pool = &own
#define tide_pool                   stand_in
#define acquire_kind(pool, kind, n) stand_in_acquire(pool, (n)*columns_width(kind))
#define tide_error_message()        "the stand-in has none left"
#undef tide_acquire
#undef TIDE_SCOPE
#undef TIDE_LOOP
#define tide_acquire(pool, T, n) ((T *)stand_in_acquire(pool, (n) * sizeof(T)))
#define TIDE_SCOPE(pool)         STAND_IN_SCOPE(TIDE_UNIQUE(stand_in_scope_), pool)
#define STAND_IN_SCOPE(scope, pool) \
    stand_in_scope scope __attribute__((cleanup(stand_in_leave), unused)) = {pool, (pool)->used}
#define TIDE_LOOP(pool, i, count)                                         \
    for (size_t i = 0, stand_in_used = (pool)->used; i < (size_t)(count); \
         i++, stand_in_rewind(pool, stand_in_used))

#endif
#endif
