/* SPDX-License-Identifier: MIT */
/* Where the temporaries of the operators come from: Tidepool. To read the operators, stop here.
 *
 * For the comparison, the files that include this one are compiled twice more, with
 * COLUMNS_STAND_IN defined, and this file then puts something else behind the few names of
 * Tidepool that they use: a stack of malloc'ed blocks (COLUMNS_STAND_IN_HEAP), or the front of
 * one region set aside before (COLUMNS_STAND_IN_STATIC). Their text is the same; their functions
 * get names of their own. */
#ifndef COLUMNS_TEMPORARIES_H
#define COLUMNS_TEMPORARIES_H

#include "engine.h"

#ifndef COLUMNS_STAND_IN
#define columns_run columns_run_tide /* the one of engine.h */
#else

#include "table.h"

#ifdef COLUMNS_STAND_IN_HEAP
#define VARIANT(name) name##_on_heap
enum { STAND_IN_BLOCKS = 4096 }; /* more than the deepest query needs */

typedef struct stand_in {
    const columns_heap *heap;
    size_t used; /* blocks held */
    void *blocks[STAND_IN_BLOCKS];
} stand_in;

static inline void *stand_in_acquire(stand_in *pool, size_t bytes)
{
    if (pool->used == STAND_IN_BLOCKS)
        return NULL;
    void *block = pool->heap->allocate(bytes > 0 ? bytes : 1);
    if (block != NULL)
        pool->blocks[pool->used++] = block;
    return block;
}

static inline void stand_in_rewind(stand_in *pool, size_t used)
{
    while (pool->used > used)
        pool->heap->release(pool->blocks[--pool->used]);
}

#else /* COLUMNS_STAND_IN_STATIC */
#define VARIANT(name) name##_on_static

typedef struct stand_in {
    unsigned char *memory;
    size_t bytes;
    size_t used; /* bytes, a multiple of 64 */
} stand_in;

static inline void *stand_in_acquire(stand_in *pool, size_t bytes)
{
    size_t end = pool->used + ((bytes + 63) & ~(size_t)63);
    if (end > pool->bytes)
        return NULL;
    void *block = pool->memory + pool->used;
    pool->used = end;
    return block;
}

static inline void stand_in_rewind(stand_in *pool, size_t used)
{
    pool->used = used;
}
#endif

typedef struct stand_in_scope {
    stand_in *pool;
    size_t used;
} stand_in_scope;

static inline void stand_in_leave(stand_in_scope *scope)
{
    stand_in_rewind(scope->pool, scope->used);
}

#define tide_pool                        stand_in
#define tide_acquire_type(pool, type, n) stand_in_acquire(pool, (n)*type_width(type))
#undef tide_acquire
#define tide_acquire(pool, T, n) ((T *)stand_in_acquire(pool, (n) * sizeof(T)))
#define tide_error_message()     "the stand-in has none left"

#undef TIDE_SCOPE
#define TIDE_SCOPE(pool) STAND_IN_SCOPE(TIDE_UNIQUE(stand_in_scope_), pool)
#define STAND_IN_SCOPE(scope, pool) \
    stand_in_scope scope __attribute__((cleanup(stand_in_leave), unused)) = {pool, (pool)->used}

#undef TIDE_LOOP
#define TIDE_LOOP(pool, i, count)                                         \
    for (size_t i = 0, stand_in_used = (pool)->used; i < (size_t)(count); \
         i++, stand_in_rewind(pool, stand_in_used))

/* The functions that these files share, apart for each variant. */
#define evaluate    VARIANT(evaluate)
#define operand     VARIANT(operand)
#define room_for    VARIANT(room_for)
#define no_room     VARIANT(no_room)
#define truth_of    VARIANT(truth_of)
#define aggregate   VARIANT(aggregate)
#define columns_run VARIANT(columns_run)

#endif
#endif
