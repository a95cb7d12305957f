/* SPDX-License-Identifier: MIT */
/* The layout that the inlined fast paths know: slot, shelf, log entry, and the head of a pool.
 *
 * Part of the ABI, not of the API: read it to understand, do not touch the fields.
 *
 *   pool ──┬─ tag, log_top, log_room, epoch
 *          ├─ core ───────────► everything that only cold code needs
 *          └─ shelves[type] ──► row of slots  [s0][s1][s2]…[sentinel: limit 0]
 *                               next ───────────────┘ the first free one
 *   log    {shelf, next, saved_at} {…} … ◄── log_top
 *
 * The law of the fast paths: each tests a guard and either does its work or calls its cold
 * twin, having changed nothing. A pool that must see every call (check levels, disabled pools)
 * sets its fields so that no guard ever holds; no fast path has a test for that of its own. */
#ifndef TIDEPOOL_INLINE_LAYOUT_H
#define TIDEPOOL_INLINE_LAYOUT_H

#include <tidepool/pool.h>

TIDE_BEGIN_DECLS

/* A place in the source, for reports. The strings are static; all zero: not known. Where a
 * function was given no place, `file` is NULL and `function` the address of its caller's code. */
typedef struct tide_place {
    const char *file, *function;
    uint32_t line;
} tide_place;

/* This place, as three arguments. They are constants, loaded only where a cold path is called with
 * them. (A structure would be built in memory on the fast path; a static one in an
 * inline C++ function would keep a shared library from ever being unloaded.) */
#define TIDE_HERE       __FILE__, __builtin_FUNCTION(), __LINE__
#define TIDE_NOWHERE    NULL, NULL, 0
#define TIDE_PLACE      const char *file, const char *function, uint32_t line
#define TIDE_PASS_PLACE file, function, line

/* One reusable backing array. */
typedef struct tide_slot {
    void *data;
    size_t limit; /* requests of fewer elements than this fit; 0 in the sentinel, and where cold
                     code wants to see the next request                                        */
    struct tide_array *array; /* the header last used here, or NULL                            */
} tide_slot;

/* One type's row of slots in one pool, as fast paths see it: as small as can be, so that the
 * shelves of common types share a cache line. All zero until the type is first used there. */
typedef struct tide_shelf {
    tide_slot *next;   /* the first free slot, or the sentinel                       */
    uint64_t saved_at; /* tag of the level that last saved this shelf; 0: not set up */
} tide_shelf;

/* One line of the undo log: this is how the shelf was. */
typedef struct tide_entry {
    tide_shelf *shelf;
    tide_slot *next;
    uint64_t saved_at;
} tide_entry;

struct tide_pool {
    /* Names the level that is open: {epoch, depth + 1}. A level's tag is never that of another
     * level that is still on the stack, even one abandoned by a reset (runtime/pool/abandon.h). */
    uint64_t tag;
    tide_entry *log_top;  /* where the next entry goes                                 */
    tide_entry *log_room; /* end of the log for fast paths; its start if none may pass */
    uint64_t epoch;       /* upper part of the tags of levels opened from now on       */
    struct tide_pool_core *core;
    uint64_t unused_[9]; /* so that shelves 1 to 4, the commonest types, fill one cache line */
    tide_shelf shelves[TIDE_TYPE_LIMIT]; /* by type */
};

/* Stands for a pool in scopes that were refused. No level has its tag, so leaving such a scope
 * takes the cold path, which does nothing. */
extern TIDE_API_DATA uint64_t tide_refusing_head[]; /* as much of a pool as a guard reads */

TIDE_INLINE tide_pool *tide_pool_refusing(void)
{
    return (tide_pool *)(void *)tide_refusing_head;
}

#define TIDE_TAG_ROOT  ((uint64_t)1)
#define TIDE_TAG_DEPTH ((uint64_t)0xffffffff) /* the bits of a tag that count levels */

/* Where the log ends for fast paths. Others may close it at any time: runtime/pool/request.h. */
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
