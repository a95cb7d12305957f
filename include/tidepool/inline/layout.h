/* SPDX-License-Identifier: MIT */
/* The layout that the inlined fast paths know: slot, shelf, log entry, and the head of a pool.
 *
 * It is part of the ABI, not of the API: programs must not use the fields.
 *
 *   pool ──┬─ tag, log_top, log_room, epoch
 *          ├─ core ───────────► everything that only cold code needs
 *          └─ shelves[type] ──► row of slots  [s0][s1][s2]…[sentinel: limit 0]
 *                               next ───────────────┘ the first free one
 *   log    {shelf, next, saved_at} {…} … ◄── log_top
 *
 * The rule of the fast paths: each first tests a guard. If the guard holds, the fast path does its
 * work. If not, it has changed nothing and calls its cold twin, a function that handles every case.
 * A pool with a check level and a disabled pool must see every call. They set their fields so that
 * no guard ever holds; no fast path needs a test of its own for them. */
#ifndef TIDEPOOL_INLINE_LAYOUT_H
#define TIDEPOOL_INLINE_LAYOUT_H

#include <tidepool/pool.h>

TIDE_BEGIN_DECLS

/* A place in the source, for reports. The strings are static. All zero: not known. If an exported
 * function got no place, `file` is NULL and `function` is the address of its caller's code. */
typedef struct tide_place {
    const char *file, *function;
    uint32_t line;
} tide_place;

/* This place, as three arguments. They are constants, and are loaded only where a cold path is
 * called. (A structure would be built in memory on the fast path. A static structure in an inline
 * C++ function would keep a shared library from ever being unloaded.) */
#define TIDE_HERE       __FILE__, __builtin_FUNCTION(), __LINE__
#define TIDE_NOWHERE    NULL, NULL, 0
#define TIDE_PLACE      const char *file, const char *function, uint32_t line
#define TIDE_PASS_PLACE file, function, line

/* The memory of one array, used again and again. */
typedef struct tide_slot {
    void *data;
    size_t limit; /* a request for fewer elements than this fits. 0 in the sentinel, and in slots
                     whose next request cold code must see                                     */
    struct tide_array *array; /* the header last used here, or NULL                            */
} tide_slot;

/* One type's row of slots in one pool, as fast paths see it. It is small, so that the shelves of
 * common types share a cache line. All zero until the pool first uses the type. */
typedef struct tide_shelf {
    tide_slot *next;   /* the first free slot, or the sentinel                       */
    uint64_t saved_at; /* tag of the level that last saved this shelf; 0: not set up */
} tide_shelf;

/* One entry of the undo log: a shelf, and its state before it was changed. */
typedef struct tide_entry {
    tide_shelf *shelf;
    tide_slot *next;
    uint64_t saved_at;
} tide_entry;

struct tide_pool {
    /* Names the level that is open: {epoch, depth + 1}. No two levels on the stack have the same
     * tag, also if one of them was abandoned by a reset (runtime/pool/abandon.h). */
    uint64_t tag;
    tide_entry *log_top;  /* where the next entry goes                                 */
    tide_entry *log_room; /* end of the log for fast paths; its start if no guard may hold */
    uint64_t epoch;       /* upper part of the tags of levels opened from now on       */
    struct tide_pool_core *core;
    uint64_t unused_[9]; /* so that shelves 1 to 4, the commonest types, fill one cache line */
    tide_shelf shelves[TIDE_TYPE_LIMIT]; /* by type */
};

/* Stands for a pool in scopes that were refused. No level has its tag. So when such a scope is
 * left, the guard fails and the cold path does nothing. */
extern TIDE_API_DATA uint64_t tide_refusing_head[]; /* as much of a pool as a guard reads */

TIDE_INLINE tide_pool *tide_pool_refusing(void)
{
    return (tide_pool *)(void *)tide_refusing_head;
}

#define TIDE_TAG_ROOT  ((uint64_t)1)
#define TIDE_TAG_DEPTH ((uint64_t)0xffffffff) /* the bits of a tag that count levels */

/* Where the log ends for fast paths. Another thread may set it to the log's start at any time
 * (runtime/pool/request.h). */
TIDE_INLINE tide_entry *tide_log_open(const tide_pool *pool)
{
    return __atomic_load_n(&pool->log_room, __ATOMIC_RELAXED);
}

/* The tag of a level opened now. */
TIDE_INLINE uint64_t tide_tag_inner(const tide_pool *pool)
{
    return ((pool->tag + 1) & TIDE_TAG_DEPTH) | pool->epoch;
}

TIDE_END_DECLS

#endif
