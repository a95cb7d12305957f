/* SPDX-License-Identifier: MIT */
/* The part of a pool that only cold code sees, and how a pool lies in memory.
 *
 * One reservation of address space, touched where it is used:
 *
 *   [head | shelves by type | core | shelves in use | undo log | rows of slots]
 *
 * Nothing in it ever moves, so shelves, slots and log entries are held by plain pointers. More
 * rows are reserved sixteen at a time when the first sixteen types are not enough. */
#ifndef TIDEPOOL_RUNTIME_POOL_H
#define TIDEPOOL_RUNTIME_POOL_H

#include <tidepool/inline/layout.h>

#include "runtime/abandon.h"
#include "runtime/device.h"
#include "runtime/os.h"

enum {
    TIDE_ROW_SLOTS = 65536, /* the sentinel and the zero slots that a frame may read included */
    TIDE_ROW_MOST = TIDE_ROW_SLOTS - 64, /* slots a row can hold */
    /* Rows start a page and a line apart, or the first slots of all types would fall on the
     * same set of the first-level cache. */
    TIDE_ROW_BYTES = TIDE_ROW_SLOTS * sizeof(tide_slot) + 4096 + 64,
    TIDE_EXTENT_ROWS = 16,
    TIDE_EXTENT_BYTES = TIDE_EXTENT_ROWS * TIDE_ROW_BYTES,
    TIDE_EXTENT_MOST = TIDE_TYPE_LIMIT / TIDE_EXTENT_ROWS,
    TIDE_LOG_ENTRIES = 1 << 20
};

typedef struct tide_pool_core {
    tide_device *device;
    void *stream;
    tide_check check;
    bool disabled;
    bool careful;    /* checks or is disabled: no fast path may pass, cold code sees every call */
    uintptr_t owner; /* thread */
    char owner_name[TIDE_OS_NAME_BYTES];
    char name[32];

    size_t limit_bytes; /* SIZE_MAX: none */
    size_t bytes_held, bytes_peak;
    uint64_t allocations, releases, exchanges;

    tide_entry *log, *log_end;
    uint64_t serial; /* of the youngest mark ever made */
    tide_abandonments abandoned;

    /* Shelves that exist only as log entries: an entry of `marks` is a mark, its `next` the
     * mark's serial and `saved_at` the tag around it; one of `exchanged` an exchange of two
     * slots to be undone. Their fields mean nothing; restoring them is harmless. */
    tide_shelf marks, exchanged;

    tide_shelf **used; /* shelves in order of first use */
    uint32_t used_count;

    uint32_t rows_taken;
    uint32_t extent_count;
    char *extents[TIDE_EXTENT_MOST]; /* the first lies in the pool's own reservation */
} tide_pool_core;

/* Shelves of `marks` and `exchanged` have type TIDE_NO_TYPE; no real shelf has. */
static inline bool tide_shelf_real(const tide_shelf *shelf)
{
    return shelf->type != TIDE_NO_TYPE;
}

static inline uint32_t tide_level(uint64_t tag)
{
    return (uint32_t)(tag & TIDE_TAG_DEPTH);
}

/* Refuses a NULL pool, and at check level 1 a thread that does not own it. */
tide_status tide_pool_use(const tide_pool *pool, const char *call);

/* Destroys a pool whatever is open in it. */
void tide_pool_discard(tide_pool *pool);

#endif
