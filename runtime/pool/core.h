/* SPDX-License-Identifier: MIT */
/* The part of a pool that only cold code sees, and how a pool lies in memory.
 *
 * One reservation of address space, touched where it is used:
 *
 *   [head | shelves by type | core | rows by type | rows in use | undo log | slots]
 *
 * Nothing in it ever moves, so shelves, slots and log entries are held by plain pointers. More
 * rows are reserved sixteen at a time when the first sixteen types are not enough. */
#ifndef TIDEPOOL_RUNTIME_POOL_CORE_H
#define TIDEPOOL_RUNTIME_POOL_CORE_H

#include <tidepool/inline/layout.h>

#include <tidepool/buffers.h>

#include "runtime/base/assert.h"
#include "runtime/base/os.h"
#include "runtime/check/guard.h"
#include "runtime/check/levels.h"
#include "runtime/device/device.h"
#include "runtime/pool/abandon.h"

enum {
    TIDE_ROW_SLOTS = 65536, /* the sentinel and the zero slots that a frame may read included */
    TIDE_ROW_MAX = TIDE_ROW_SLOTS - 64, /* slots a row can hold */
    /* Rows start a page and a line apart, or the first slots of all types would fall on the
     * same set of the first-level cache. */
    TIDE_ROW_BYTES = TIDE_ROW_SLOTS * sizeof(tide_slot) + 4096 + 64,
    TIDE_EXTENT_ROWS = 16,
    TIDE_EXTENT_BYTES = TIDE_EXTENT_ROWS * TIDE_ROW_BYTES,
    TIDE_EXTENT_MAX = TIDE_TYPE_LIMIT / TIDE_EXTENT_ROWS,
    TIDE_LOG_ENTRIES = 1 << 20,
    TIDE_FOREIGN_MAX = 16 /* streams beside its own that a pool can be used on */
};

/* What fast paths and rows rely on. A pool begins a page. */
_Static_assert(offsetof(tide_pool, unused_) <= 64, "what guards read shares one cache line");
_Static_assert(sizeof(tide_shelf) == 16 && offsetof(tide_pool, shelves[1]) % 64 == 0,
               "shelves 1 to 4 fill one cache line");
_Static_assert(TIDE_ROW_BYTES % 4096 == 64, "rows start a page and a line apart");
_Static_assert(TIDE_EXTENT_MAX *TIDE_EXTENT_ROWS == TIDE_TYPE_LIMIT, "each type finds a row");
_Static_assert(sizeof(tide_slot) == 24 && sizeof(tide_entry) == 24, "neither has a gap");

/* The cold side of a shelf: its slots, and what is known of them. All zero until first use. */
typedef struct tide_row {
    tide_shelf *shelf;
    tide_device *device; /* where its slots lie: the pool's, but headers are the host's */
    tide_slot *slots;    /* reserved address space: slots never move */
    struct tide_slot_record *records; /* one for each slot */
    uint32_t count;                   /* slots, the sentinel not counted          */
    uint32_t records_room;
    tide_type type;
} tide_row;

/* What cold code knows of a slot. What fast paths see, its limit, is less: one more than the
 * largest request since the last compact, so that a request larger than any before it comes by
 * here and peaks are known without a counter on the fast path; and 0 in a careful pool. */
typedef struct tide_slot_record {
    size_t capacity;    /* elements there is memory for                        */
    size_t bytes;       /* of that memory                                      */
    size_t peak;        /* largest request since the last compact, in elements */
    tide_buffer buffer; /* whose memory it is, where the pool draws from buffers: else none */
    struct tide_export *exported; /* exported memory, or NULL: runtime/pool/export.h */

    /* Careful pools only: */
    size_t length;            /* elements asked for                                    */
    uint64_t tag;             /* of the level it was acquired in                       */
    tide_place place;         /* where, if known                               */
    struct tide_guard *guard; /* whose memory it is, or NULL: runtime/check/guard.h */
    bool live;
} tide_slot_record;

/* A stream that arrays of the pool may be used on, beside its own: runtime/pool/streams.h. */
typedef struct tide_foreign {
    void *stream;
    uint64_t number; /* handles are used again, numbers are not */
} tide_foreign;

/* What stands in the undo log beside shelves: entries of shelves that exist only there. `next` and
 * `saved_at` of an entry mean what its kind says; restoring the shelf itself is harmless. */
typedef enum tide_undo_kind {
    TIDE_UNDO_MARK,     /* `next` is its serial, `saved_at` the tag around it. Undone: nothing   */
    TIDE_UNDO_EXCHANGE, /* two slots change places again                                         */
    TIDE_UNDO_IMPORT,   /* a foreign tensor is given back                                        */
    TIDE_UNDO_STREAM,   /* the youngest of `streams.foreign` is declared no more                 */
    TIDE_UNDO_COUNT
} tide_undo_kind;

/* The undo log; runtime/pool/log.h. */
typedef struct tide_log {
    tide_entry *start, *end;
    tide_shelf undo[TIDE_UNDO_COUNT]; /* the shelves of the entries above */
    uint64_t mark_serial;             /* of the pool's youngest mark; no other pool's mark has it */
} tide_log;

/* Bytes and what happened to them. */
typedef struct tide_pool_memory {
    size_t limit_bytes; /* SIZE_MAX: none */
    size_t bytes_held, bytes_peak, bytes_exported;
    uint64_t allocations, releases, exchanges;
} tide_pool_memory;

typedef struct tide_owner {
    uintptr_t thread; /* atomic: others may ask whose the pool is                    */
    bool local;       /* the pool of tide_pool_local: ends with its thread, not before */
    char name[TIDE_OS_NAME_BYTES];
} tide_owner;

/* What was asked for from outside; runtime/pool/request.h. */
typedef struct tide_pool_requests {
    uint32_t asked; /* TIDE_REQUEST_… bits: set by any thread, served where a root scope opens */
    uint64_t served;
    uint64_t passes;      /* how often the owner came by when asked to; atomic */
    uint64_t pass_wanted; /* whoever asks waits for this one, and for so many  */
    uint32_t passes_left; /* more; guarded by the registry                     */
    bool orphan;          /* its owner did not survive a fork: it has no uses; guarded likewise */
} tide_pool_requests;

/* A pool among all pools of the process; guarded by the registry. */
typedef struct tide_pool_listing {
    uint64_t number; /* none had it before */
    tide_pool *next, **link;
} tide_pool_listing;

/* N-D headers of slots; runtime/array/array.c. */
typedef struct tide_pool_headers {
    uint64_t cached, computed, made;
    uint64_t hits_gone; /* hits of headers that have been freed */
} tide_pool_headers;

/* Streams; runtime/pool/streams.h. */
typedef struct tide_pool_streams {
    void *own;
    uint64_t own_number;
    tide_foreign foreign[TIDE_FOREIGN_MAX];
    uint32_t foreign_count; /* while there are any, no fast path may pass */
    bool unordered; /* work in flight could neither be ordered nor waited for: no acquires */
} tide_pool_streams;

typedef struct tide_pool_rows {
    tide_row *by_type;
    tide_row **used; /* in order of first use */
    uint32_t used_count;
    uint32_t taken; /* of the slots reserved in `extents` */
    uint32_t extent_count;
    char *extents[TIDE_EXTENT_MAX]; /* the first lies in the pool's own reservation */
} tide_pool_rows;

typedef struct tide_pool_core {
    tide_device *device;
    tide_buffers *buffers; /* where slots come from, held; NULL: the device */
    tide_check check;
    bool disabled;
    bool careful;  /* checks or is disabled: no fast path may pass, cold code sees every call */
    bool poison;   /* what is rewound is overwritten */
    bool attended; /* a rewind has more to do than to put back: careful, or streams are declared */
    char name[32];

    tide_owner owner;
    tide_pool_memory memory;
    tide_log log;
    tide_guard_turns guards;
    tide_levels levels;
    tide_pool_requests requests;
    tide_pool_listing list;
    tide_pool_headers headers;
    tide_abandonments abandoned;
    tide_pool_streams streams;
    tide_pool_rows rows;

    /* What rooms above keep in a pool, and end with it (tide_pool_ending). */
    struct tide_import *leaving;   /* a device's foreign tensors to be given back, oldest first */
    struct tide_pinned_ring *ring; /* pinned memory for copies, or NULL */
} tide_pool_core;

/* Is this the shelf of a type? The others lie in the core, behind them. */
static inline bool tide_shelf_real(const tide_pool *pool, const tide_shelf *shelf)
{
    return shelf < pool->shelves + TIDE_TYPE_LIMIT;
}

/* The row of a type's shelf. */
static inline tide_row *tide_row_of(const tide_pool *pool, const tide_shelf *shelf)
{
    tide_assert(shelf >= pool->shelves && tide_shelf_real(pool, shelf));
    return &pool->core->rows.by_type[shelf - pool->shelves];
}

static inline tide_slot_record *tide_slot_record_of(const tide_row *row, const tide_slot *slot)
{
    tide_assert(slot >= row->slots && slot - row->slots < (ptrdiff_t)row->records_room);
    return &row->records[slot - row->slots];
}

/* Slots that are live: those before `next`. */
static inline uint32_t tide_row_live(const tide_row *row)
{
    tide_assert(row->shelf != NULL && row->shelf->next >= row->slots);
    return (uint32_t)(row->shelf->next - row->slots);
}

static inline uintptr_t tide_pool_owner(const tide_pool_core *core)
{
    return __atomic_load_n(&core->owner.thread, __ATOMIC_RELAXED);
}

static inline size_t tide_depth(const tide_pool *pool)
{
    tide_assert(tide_level(pool->tag) >= tide_level(TIDE_TAG_ROOT));
    return tide_level(pool->tag) - tide_level(TIDE_TAG_ROOT);
}

/* Refuses a NULL pool, and at check level 1 a thread that does not own it. */
tide_status tide_pool_use(const tide_pool *pool, const char *call);

/* A refused call: sets the message, and at check level 1 reports it too, since whoever misuses a
 * scope has no status to look at. */
__attribute__((format(printf, 4, 5), cold)) tide_status
tide_misuse(const tide_pool *pool, tide_status status, const char *call, const char *format, ...);

/* Pools are numbered in the order of their creation; the last number so far. Registry locked. */
uint64_t tide_pool_numbers(void);

/* The calling thread is the owner from now on. */
void tide_pool_own(tide_pool_core *core);

/* Into the list of all pools, with a number of its own, and out of it. */
void tide_pool_enlist(tide_pool *pool);
void tide_pool_delist(tide_pool *pool);

/* Calls visit for every pool of the process, with the registry locked. */
void tide_pool_each(void (*visit)(tide_pool *pool, void *user), void *user);

#endif
