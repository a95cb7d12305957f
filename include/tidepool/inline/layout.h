/* SPDX-License-Identifier: MIT */
/* The layout that the inlined fast paths know: slot, shelf, log entry, and the head of a pool.
 *
 * Part of the ABI, not of the API: read it to understand, do not touch the fields.
 *
 *   pool ──┬─ tag, log_top, log_room, epoch
 *          ├─ core ───────────► everything that only cold code needs
 *          └─ shelves[type] ──► row of slots  [s0][s1][s2]…[sentinel: capacity 0]
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

/* One reusable backing array. */
typedef struct tide_slot {
    void *data;
    size_t capacity; /* elements; 0 in the sentinel, and in a pool that checks */
} tide_slot;

/* One type's row of slots in one pool. All zero until the type is first used there. */
typedef struct tide_shelf {
    tide_slot *next;   /* the first free slot, or the sentinel                       */
    uint64_t saved_at; /* tag of the level that last saved this shelf; 0: not set up */
    tide_slot *row;    /* reserved address space: slots never move                   */
    struct tide_slot_record *records; /* what cold code remembers of each slot        */
    uint32_t count;    /* slots in the row, the sentinel not counted                 */
    uint32_t records_room;
    tide_type type;
    uint32_t unused_[3];
} tide_shelf;

/* One line of the undo log: this is how the shelf was. */
typedef struct tide_entry {
    tide_shelf *shelf;
    tide_slot *next;
    uint64_t saved_at;
} tide_entry;

struct tide_pool {
    /* Names the level that is open: {epoch, depth + 1}. A level's tag is never that of another
     * level that is still on the stack, even one abandoned by a reset (runtime/abandon.h). */
    uint64_t tag;
    tide_entry *log_top;  /* where the next entry goes                                 */
    tide_entry *log_room; /* end of the log for fast paths; its start if none may pass */
    uint64_t epoch;       /* upper part of the tags of levels opened from now on       */
    struct tide_pool_core *core;
    uint64_t unused_[3];
    __extension__ tide_shelf shelves[]; /* by type, TIDE_TYPE_LIMIT of them */
};

#define TIDE_TAG_ROOT  ((uint64_t)1)
#define TIDE_TAG_DEPTH ((uint64_t)0xffffff) /* the bits of a tag that count levels */

/* The tag of a level opened now. */
TIDE_INLINE uint64_t tide_tag_inner(const tide_pool *pool)
{
    return ((pool->tag + 1) & TIDE_TAG_DEPTH) | pool->epoch;
}

TIDE_END_DECLS

#endif
