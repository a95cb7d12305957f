/* SPDX-License-Identifier: MIT */
/* The part of a pool that only cold code sees, and how a pool lies in memory.
 *
 * One reservation of address space, touched where it is used:
 *
 *   [head | shelves by type | core | rows by type | rows in use | undo log | slots]
 *
 * Nothing in it ever moves, so shelves, slots and log entries are held by plain pointers. More
 * rows are reserved sixteen at a time when the first sixteen types are not enough. */
#ifndef TIDEPOOL_RUNTIME_POOL_POOL_H
#define TIDEPOOL_RUNTIME_POOL_POOL_H

#include <tidepool/inline/layout.h>

#include <tidepool/buffers.h>

#include "runtime/pool/abandon.h"
#include "runtime/device/device.h"
#include "runtime/base/os.h"

enum {
    TIDE_ROW_SLOTS = 65536, /* the sentinel and the zero slots that a frame may read included */
    TIDE_ROW_MOST = TIDE_ROW_SLOTS - 64, /* slots a row can hold */
    /* Rows start a page and a line apart, or the first slots of all types would fall on the
     * same set of the first-level cache. */
    TIDE_ROW_BYTES = TIDE_ROW_SLOTS * sizeof(tide_slot) + 4096 + 64,
    TIDE_EXTENT_ROWS = 16,
    TIDE_EXTENT_BYTES = TIDE_EXTENT_ROWS * TIDE_ROW_BYTES,
    TIDE_EXTENT_MOST = TIDE_TYPE_LIMIT / TIDE_EXTENT_ROWS,
    TIDE_LOG_ENTRIES = 1 << 20,
    TIDE_FOREIGN_MOST = 16 /* streams beside its own that a pool can be used on */
};

/* The cold side of a shelf: its slots, and what is known of them. All zero until first use. */
typedef struct tide_row {
    tide_shelf *shelf;
    tide_device *device; /* where its slots lie: the pool's, but headers are the host's */
    tide_slot *slots;                 /* reserved address space: slots never move */
    struct tide_slot_record *records; /* one for each slot: runtime/pool/row.h         */
    uint32_t count;                   /* slots, the sentinel not counted          */
    uint32_t records_room;
    tide_type type;
} tide_row;

/* A level that is open in a careful pool, and where it was opened. */
typedef struct tide_open_level {
    uint64_t tag;
    tide_place place;
} tide_open_level;

/* A stream that arrays of the pool may be used on, beside its own: runtime/pool/streams.h. */
typedef struct tide_foreign {
    void *stream;
    uint64_t number; /* handles are used again, numbers are not */
} tide_foreign;

typedef struct tide_import tide_import;

typedef struct tide_pool_core {
    tide_device *device;
    void *stream;
    uint64_t stream_number;
    tide_buffers *buffers; /* where slots come from, held; NULL: the device */
    tide_check check;
    bool disabled;
    bool threads_own; /* the pool of tide_thread_pool: ends with its thread and not before */
    bool careful;    /* checks or is disabled: no fast path may pass, cold code sees every call */
    bool poison;     /* what is rewound is overwritten */
    bool attended;   /* a rewind has more to do than to put back: careful, or streams are declared */
    uint32_t guard_every; /* of so many acquires one is guarded, at random; 0: none */
    uint32_t guard_in;    /* the next to be guarded, in so many; 0: not yet drawn   */
    uint32_t guard_rest;  /* acquires left of its round when that one is done       */
    uintptr_t owner; /* thread; others may ask whose it is */
    char owner_name[TIDE_OS_NAME_BYTES];
    char name[32];

    size_t limit_bytes; /* SIZE_MAX: none */
    size_t bytes_held, bytes_peak, bytes_pinned;
    uint64_t allocations, releases, exchanges;

    tide_entry *log, *log_end;
    tide_open_level *levels; /* careful pools only: runtime/check/levels.h */
    uint32_t level_count, level_room;
    tide_place closing; /* of the level that is being rewound, for reports */

    /* What was asked for from outside: TIDE_REQUEST_… bits, set by any thread, served by the
     * owner where a scope opens at the root. */
    uint32_t requests;
    uint64_t requests_served;
    uint64_t passes;      /* how often the owner came by when asked to; atomic */
    uint64_t pass_wanted; /* whoever asks waits for this one, and for so many  */
    uint32_t passes_left; /* more; guarded by the registry                     */
    bool orphan;          /* its owner did not survive a fork: it has no uses; guarded likewise */
    uint64_t number;              /* of the pool: none had it before */
    tide_pool *next, **link; /* in the list of all pools; guarded by the registry */

    uint64_t arrays_cached, arrays_computed, array_headers;
    uint64_t array_hits_gone; /* hits of headers that have been freed */
    uint64_t serial; /* of the youngest mark ever made */
    tide_abandonments abandoned;

    /* Shelves that exist only as log entries: an entry of `marks` is a mark, its `next` the
     * mark's serial and `saved_at` the tag around it; one of `exchanged` an exchange of two
     * slots to be undone, one of `imported` a foreign tensor to be given back, one of `declared` the
     * youngest of `foreign`. Their fields mean nothing; restoring them is harmless. */
    tide_shelf marks, exchanged, imported, declared;

    tide_foreign foreign[TIDE_FOREIGN_MOST];
    uint32_t foreign_count; /* while there are any, no fast path may pass */
    tide_import *leaving; /* foreign tensors of a device to be given back, oldest first */
    struct tide_staging *staging; /* pinned memory for copies, or NULL: runtime/transfer/pinned_ring.h */
    bool unordered;         /* work in flight could neither be ordered nor waited for: no acquires */

    tide_row *rows;  /* by type */
    tide_row **used; /* in order of first use */
    uint32_t used_count;

    uint32_t rows_taken;
    uint32_t extent_count;
    char *extents[TIDE_EXTENT_MOST]; /* the first lies in the pool's own reservation */
} tide_pool_core;

/* Is this the shelf of a type? The others lie in the core, behind them. */
static inline bool tide_shelf_real(const tide_pool *pool, const tide_shelf *shelf)
{
    return shelf < pool->shelves + TIDE_TYPE_LIMIT;
}

static inline tide_row *tide_row_of(const tide_pool *pool, const tide_shelf *shelf)
{
    return &pool->core->rows[shelf - pool->shelves];
}

static inline uintptr_t tide_pool_owner(const tide_pool_core *core)
{
    return __atomic_load_n(&core->owner, __ATOMIC_RELAXED);
}

static inline uint32_t tide_level(uint64_t tag)
{
    return (uint32_t)(tag & TIDE_TAG_DEPTH);
}

/* Refuses a NULL pool, and at check level 1 a thread that does not own it. */
tide_status tide_pool_use(const tide_pool *pool, const char *call);

/* A refused call: sets the message, and at check level 1 reports it too, since whoever misuses a
 * scope has no status to look at. */
__attribute__((format(printf, 4, 5), cold)) tide_status tide_misuse(const tide_pool *pool,
                                                                    tide_status status,
                                                                    const char *call,
                                                                    const char *format, ...);

/* Destroys a pool whatever is open in it. */
void tide_pool_discard(tide_pool *pool, tide_place caller);

/* Pools are numbered in the order of their creation; the last number so far. Registry locked. */
uint64_t tide_pool_numbers(void);

/* Calls visit for every pool of the process, with the registry locked. */
void tide_pool_each(void (*visit)(tide_pool *pool, void *user), void *user);

#endif
