/* SPDX-License-Identifier: MIT */
/* The layout that the inlined fast paths know: slot, shelf, log entry, and the head of a pool.
 *
 * It is part of the ABI, not of the API: programs must not use the fields.
 *
 *   pool ──┬─ tag, log_top, log_room, saved
 *          ├─ core ───────────► everything that only cold code needs
 *          └─ shelves[type] ──► row of slots  [s0][s1][s2]…[sentinel: limit 0]
 *                               next ───────────────┘ the first free one
 *   log    {shelf, next, more} {…} … ◄── log_top
 *
 * The rule of the fast paths: each first tests a guard. If that holds, the fast path does its work; if
 * not, it has changed nothing and calls its cold twin, a function that handles every case. Pools that
 * must see every call (checked, disabled) set their fields so that no guard ever holds. */
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

/* This place, as three constant arguments, loaded only where a cold path is called. (A structure would be
 * built on the fast path; a static one in an inline C++ function would keep a library from unloading.) */
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
    uint64_t form; /* of that header, while its array fits `limit`: tide_array_form. Else 0: cold
                      code must see the next request for an array                             */
} tide_slot;

/* One type's row of slots in one pool, as fast paths see it. It is small, so that the shelves of
 * common types share a cache line. All zero until the pool first uses the type. */
typedef struct tide_shelf {
    tide_slot *next; /* the first free slot, or the sentinel; NULL: not set up     */
    uint64_t bit;    /* the type's bit in the pool's `saved`; 0: it has none (yet) */
} tide_shelf;

/* One entry of the undo log: a shelf, and where it stood before it was changed. Other entries
 * (runtime/pool/core.h) use the third word. */
typedef struct tide_entry {
    tide_shelf *shelf;
    tide_slot *next;
    uint64_t more;
} tide_entry;

/* Sites beyond so many go uncounted. */
enum { TIDE_SITES_COUNTED = 4096 };

struct tide_pool {
    /* Names the level that is open: {epoch, depth + 1}. A level opened in it has the next number.
     * No two levels on the stack have the same tag, also if one of them was abandoned by a reset
     * (runtime/pool/abandon.h). */
    uint64_t tag;
    tide_entry *log_top;  /* where the next entry goes                                 */
    tide_entry *log_room; /* end of the log for fast paths; its start if no guard may hold */
    /* The types that the open level has saved, a bit each: their shelves are put back when it
     * ends, whatever happens to them now. At the root, where nothing is older, any type with a bit
     * may join them. The highest bit is the library's own. */
    uint64_t saved;
    struct tide_pool_core *core;
    uintptr_t copy;      /* which copy of the library made it; odd if calls are checked. No guard
                       of a fast path reads it */
    uint64_t unused_[8]; /* so that shelves 1 to 4, the commonest types, fill one cache line */
    tide_shelf shelves[TIDE_TYPE_LIMIT]; /* by type */
    uint64_t apart_[402];              /* so that no word below shares its twelve lower bits with a
                                            shelf or log entry of a small pool */
    uint64_t uses[TIDE_SITES_COUNTED]; /* with this pool, of each site by its number; the first: of
                                          all that have none */
};

/* The bits of a tag that count levels; the root is 1. Inside a level that is TIDE_TAG_DEEP down
 * none opens: guards fail, and cold code refuses it. */
#define TIDE_TAG_DEPTH ((uint64_t)0xffffff)
#define TIDE_TAG_DEEP  ((uint64_t)0x800000)

/* Where the log ends for fast paths. Another thread may set it to the log's start at any time
 * (runtime/pool/request.h). */
TIDE_INLINE tide_entry *tide_log_open(const tide_pool *pool)
{
    return __atomic_load_n(&pool->log_room, __ATOMIC_RELAXED);
}

/* The type's bit in `saved`, 0 if it has none in this pool. A built-in type has the same bit in
 * every pool that has set it up, so for a constant it is a constant, and nothing is loaded. The
 * other bits belong to the types that the pool uses first; a type that comes too late has none, and
 * cold code serves it. */
TIDE_INLINE uint64_t tide_type_bit(const tide_pool *pool, tide_type type)
{
    return __builtin_constant_p(type) && type <= TIDE_BUILTIN_COUNT ? (uint64_t)1 << type
                                                                    : pool->shelves[type].bit;
}

/* Has the open level saved the type's shelf? Only a shelf that is set up was ever saved. */
TIDE_INLINE bool tide_type_saved(const tide_pool *pool, tide_type type)
{
    return (pool->saved & tide_type_bit(pool, type)) != 0;
}

TIDE_END_DECLS

#endif
