/* SPDX-License-Identifier: MIT */
/* Pools: creation, ownership, memory given back, statistics.
 *
 * A pool belongs to one thread at a time. It is not locked: every call that takes a pool must
 * come from its owner. Check level 1 and above refuse a foreign thread; level 0 trusts you. */
#ifndef TIDEPOOL_POOL_H
#define TIDEPOOL_POOL_H

#include <stdio.h>
#include <tidepool/config.h>
#include <tidepool/status.h>
#include <tidepool/type.h>

TIDE_BEGIN_DECLS

typedef struct tide_pool tide_pool;
typedef struct tide_device tide_device;
typedef struct tide_buffers tide_buffers;

/* How much a pool checks what its user does (and what that costs). */
typedef enum tide_check {
    TIDE_CHECK_DEFAULT = 0, /* as the setting `check` says (environment: TIDEPOOL_CHECK)       */
    TIDE_CHECK_NONE = 1,    /* level 0: nothing                                               */
    TIDE_CHECK_POISON = 2,  /* level 1: all-ones poison on rewind, foreign threads refused,
                               leaked scopes and escaping pointers reported, AddressSanitizer
                               and Valgrind told of each acquire and rewind                   */
    TIDE_CHECK_GUARD = 3    /* level 2: each array ends at an inaccessible page and becomes
                               inaccessible when it is rewound; host pools only               */
} tide_check;

/* All zero means: the defaults. */
typedef struct tide_pool_options {
    const char *name;      /* for messages; copied. NULL: "pool"                               */
    tide_device *device;   /* where slots live. NULL: host memory                              */
    tide_buffers *buffers; /* where slots come from and go to, shared with other pools;
                             NULL: the device itself. Must outlive the pool               */
    void *stream;          /* the stream that orders a device pool's re-use; host pools: NULL  */
    size_t limit_bytes;    /* most slot memory the pool may hold; 0: as the setting `limit`     */
    tide_check check;      /* check level                                                      */
    bool disabled;         /* every acquire is its own allocation, freed at rewind             */
} tide_pool_options;

/* A new, empty pool owned by the calling thread. NULL options: the defaults. Returns NULL with
 * a message when an option is bad or address space is short. Release with tide_pool_destroy. */
TIDE_API tide_pool *tide_pool_create(const tide_pool_options *options);

/* Frees the pool and every slot in it; pointers into it dangle from here on. Refused with
 * TIDE_ERROR_STATE, nothing changed, while a scope or mark is open (tide_pool_reset first if
 * those are known to be dead), and for a thread's own pool. NULL: nothing to do, TIDE_OK. */
TIDE_API tide_status tide_pool_destroy(tide_pool *pool);

/* The calling thread's own pool, created on first use and given back when the thread ends, whoever
 * has adopted it. NULL with a message when it cannot be created. */
TIDE_API tide_pool *tide_pool_local(void);

/* Makes the calling thread the owner. The threads must have agreed on the hand-over (a queue,
 * a join): the pool itself synchronises nothing. */
TIDE_API tide_status tide_pool_adopt(tide_pool *pool);

/* Rewinds everything, at any depth: nothing is live, depth is 0, memory is kept. Scopes still
 * open on the stack notice and do nothing when they end; open marks become stale. */
TIDE_API tide_status tide_pool_reset(tide_pool *pool);

/* tide_pool_reset, then gives all slot memory back. The pool stays usable. */
TIDE_API tide_status tide_pool_empty(tide_pool *pool);

/* What a trim or compact gave back. */
typedef struct tide_trim_summary {
    size_t slots; /* slots released or shrunk */
    size_t bytes; /* bytes given back         */
} tide_trim_summary;

/* Releases every free slot of one type, or of TIDE_ALL_TYPES. Live arrays keep address and
 * content; allowed inside scopes. A type never used here gives a zero summary. */
TIDE_API tide_trim_summary tide_pool_trim(tide_pool *pool, tide_type type);

/* Releases the free slots that hold far more than was asked of them lately: capacity at least
 * 10 × the largest request since the last compact, and 1 MiB or more to gain (both settings).
 * Live arrays are never touched. */
TIDE_API tide_trim_summary tide_pool_compact(tide_pool *pool, tide_type type);

/* Asks for a trim or compact from any thread that knows the pool to be alive. The owner does it
 * where it next opens a scope at the root, once per request; results of the program are the
 * same with and without. 0 takes back what has not been done yet. */
enum { TIDE_REQUEST_TRIM = 1, TIDE_REQUEST_COMPACT = 2 };
TIDE_API tide_status tide_pool_request(tide_pool *pool, uint32_t requests);

/* A moment of a pool, in bytes and counts. Bytes count capacity, not the lengths asked for. */
typedef struct tide_pool_statistics {
    size_t bytes_held;     /* memory of all slots, live and free                        */
    size_t bytes_live;     /* of those, in slots that are live                          */
    size_t bytes_peak;     /* most bytes_held since the pool was created                */
    size_t bytes_limit;    /* 0: none                                                   */
    size_t slots;          /* slots with memory                                         */
    size_t slots_live;     /* of those, live                                            */
    size_t shelves;        /* types this pool has used                                  */
    size_t log_entries;    /* entries now in the undo log                               */
    size_t depth;          /* open scopes and marks                                     */
    uint64_t allocations;  /* slot allocations since creation, growth included          */
    uint64_t releases;     /* slot memory given back since creation                     */
    uint64_t requests;     /* trims and compacts served that were asked for from outside */
    size_t bytes_exported; /* exported through DLPack and not yet back; not in bytes_held  */
    uint64_t exchanges;    /* times a larger free slot was exchanged for a smaller one  */
} tide_pool_statistics;

TIDE_API tide_status tide_pool_stats(const tide_pool *pool, tide_pool_statistics *out);

/* Prints what a person wants to know: totals, then a line for each type in use. */
TIDE_API tide_status tide_pool_print(const tide_pool *pool, FILE *out);

/* Open scopes and marks; 0 at the root. 0 with a message for NULL. */
TIDE_API size_t tide_pool_depth(const tide_pool *pool);

/* Live arrays of one type. 0 for a type never used here; 0 with a message for an unknown one. */
TIDE_API size_t tide_pool_active(const tide_pool *pool, tide_type type);

/* Walks every invariant of the pool (slots, shelves, log). TIDE_ERROR_STATE with a message that
 * names the first one broken, TIDE_ERROR_MEMORY if there is none to compare slots in. Costs time
 * in proportion to the pool: for tests and debugging. */
TIDE_API tide_status tide_pool_check(const tide_pool *pool);

TIDE_END_DECLS

#endif
