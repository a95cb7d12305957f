/* SPDX-License-Identifier: MIT */
/* The part of a pool that only cold code sees, and how a pool lies in memory.
 *
 * Reservations of address space, touched where they are used:
 *
 *   [head | shelves by type | uses by site | core | rows by type | rows in use | undo log]
 *   [slots of a row]                 one for each type in use
 *
 * Nothing in them ever moves, so shelves, slots and log entries are held by plain pointers. */
#ifndef TIDEPOOL_RUNTIME_POOL_CORE_H
#define TIDEPOOL_RUNTIME_POOL_CORE_H

#include <tidepool/buffers.h>
#include <tidepool/inline/layout.h>

#include "runtime/base/assert.h"
#include "runtime/base/os.h"
#include "runtime/base/process.h"
#include "runtime/check/guard.h"
#include "runtime/check/levels.h"
#include "runtime/device/device.h"
#include "runtime/pool/abandon.h"

enum {
    TIDE_ROW_SLOTS = 65536, /* the sentinel and the zero slots that a frame may read included */
    TIDE_ROW_MAX = TIDE_ROW_SLOTS - 64, /* slots a row can hold */
    TIDE_ROW_BYTES = TIDE_ROW_SLOTS * sizeof(tide_slot) + 4096,
    /* Where in its page the log begins, and where a row: in other places than the words and shelves
     * that every scope stores to, and than each other. A load waits for an earlier store whose
     * address ends in the same twelve bits, though it is to another page. */
    TIDE_LOG_IN_PAGE = 1024,
    TIDE_ROW_IN_PAGE = 2304,
    /* Rows start a line apart, each in its page, or the first slots of all types would fall on the
     * same set of the first-level cache. */
    TIDE_ROW_APART = 64,
    TIDE_ROW_PLACES = 16,
    TIDE_ROWS_SPARE = 12, /* rows whose slots a shell keeps: runtime/pool/shell.h */
    TIDE_LOG_ENTRIES = 1 << 17,
    TIDE_FOREIGN_MAX = 16 /* streams beside its own that a pool can be used on */
};

/* What fast paths and rows rely on. A pool begins a page. */
_Static_assert(offsetof(tide_pool, unused_) <= 64, "what guards read shares one cache line");
_Static_assert(sizeof(tide_shelf) == 16 && offsetof(tide_pool, shelves[1]) % 64 == 0,
               "shelves 1 to 4 fill one cache line");
_Static_assert(offsetof(tide_pool, uses) % 4096 == 3328, "the first hundred counts are apart, too");
_Static_assert(TIDE_ROW_IN_PAGE + TIDE_ROW_PLACES * TIDE_ROW_APART <= 4096, "a row has room");
_Static_assert(TIDE_ROW_IN_PAGE % 64 == 0 && TIDE_ROW_APART % 64 == 0, "slots begin a line");
_Static_assert(TIDE_ROW_BYTES % 4096 == 0, "a reservation is whole pages");
_Static_assert(TIDE_BUILTIN_COUNT < 63, "other types get a bit of their own, too");
_Static_assert(sizeof(tide_slot) == 32 && sizeof(tide_entry) == 24, "neither has a gap");

/* Stands for a pool in scopes that were refused. No level has its tag. So when such a scope is
 * left, the guard fails and the cold path does nothing. */
extern uint64_t tide_refusing_head[]; /* as much of a pool as a guard reads */

TIDE_INLINE tide_pool *tide_pool_refusing(void)
{
    return (tide_pool *)(void *)tide_refusing_head;
}

/* The cold side of a shelf: its slots, and what is known of them. All zero until first use. */
typedef struct tide_row {
    tide_shelf *shelf;
    tide_device *device; /* where its slots lie: the pool's, but headers are the host's */
    tide_slot *slots;    /* reserved address space: slots never move */
    struct tide_slot_record *records; /* one for each slot */
    uint32_t count;                   /* slots, the sentinel not counted          */
    uint32_t records_room;
    tide_type type;
    size_t watched_live; /* most bytes that were asked for at once in watched slots: row.c */
    uint64_t saved_at;   /* of a type without a bit: tag of the level that last saved the shelf */
} tide_row;

/* Another thread may walk the rows of a pool with the registry locked (runtime/inspect/pools.c).
 * For it `used_count` and `count` are raised after what they count is there, and records move with
 * the registry locked.
 *
 * What cold code knows of a slot. What fast paths see, its limit, is less: one more than the
 * largest request since the last compact, so that a request larger than any before it comes by
 * here and peaks are known without a counter on the fast path; and 0 in a careful pool. */
typedef struct tide_slot_record {
    size_t capacity; /* elements there is memory for                        */
    size_t bytes;    /* of that memory                                      */
    size_t peak;     /* largest request since the last compact, in elements */

    /* A large size that moves: runtime/pool/row.c. */
    uint8_t watched, surplus, shrunk;
    size_t asked; /* watched: bytes that the last request asked for */

    uint8_t less;       /* passes in a row that saw less than `recent` asked for (pool/trim.c) */
    size_t recent;      /* largest request lately, in elements, and ...                 */
    size_t since;       /* ... the largest one of these passes                          */
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
 * `more` of an entry mean what its kind says; restoring the shelf itself is harmless. */
typedef enum tide_undo_kind {
    TIDE_UNDO_MARK,     /* `next` is its serial, `more` the tag it stands in. Undone: nothing    */
    TIDE_UNDO_SAVED_AT, /* `next` is a row without a bit, `more` its saved_at                    */
    TIDE_UNDO_REQUEST,  /* requests that wait for the root: the log is closed again              */
    TIDE_UNDO_EXCHANGE, /* two slots change places again                                         */
    TIDE_UNDO_IMPORT,   /* a foreign tensor is given back                                        */
    TIDE_UNDO_STREAM,   /* the youngest of `streams.foreign` is declared no more                 */
    TIDE_UNDO_COUNT
} tide_undo_kind;

/* The undo log; runtime/pool/level.h. */
typedef struct tide_log {
    tide_entry *start, *end;
    tide_shelf undo[TIDE_UNDO_COUNT]; /* the shelves of the entries above */
    uint64_t mark_serial;             /* of the pool's youngest mark; no other pool's mark has it */
} tide_log;

/* Bytes and what happened to them. Changed in cold code and by the functions below, by the owner and
 * by who takes from its pool while it is idle; any thread may read them, each by itself:
 * tide_figure. */
typedef struct tide_pool_memory {
    size_t limit_bytes; /* SIZE_MAX: none. Never changed */
    size_t bytes_held, bytes_peak, bytes_exported;
    uint64_t allocations, releases, exchanges, pressed;
} tide_pool_memory;

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "all figures are words of one size");

static inline size_t tide_figure(const size_t *figure)
{
    return __atomic_load_n(figure, __ATOMIC_RELAXED);
}

static inline void tide_figure_add(size_t *figure, size_t more)
{
    __atomic_fetch_add(figure, more, __ATOMIC_RELAXED);
}

static inline void tide_figure_take(size_t *figure, size_t less)
{
    size_t before = __atomic_fetch_sub(figure, less, __ATOMIC_RELAXED);
    tide_assert(before >= less);
    (void)before;
}

/* So many bytes more are held. */
static inline void tide_memory_hold(tide_pool_memory *memory, size_t bytes)
{
    tide_figure_add(&memory->bytes_held, bytes);
    if (memory->bytes_held > memory->bytes_peak)
        __atomic_store_n(&memory->bytes_peak, memory->bytes_held, __ATOMIC_RELAXED);
}

typedef struct tide_owner {
    uintptr_t thread; /* atomic: others may ask whose the pool is                    */
    bool local;       /* the pool of tide_pool_local: ends with its thread, not before; atomic */
    tide_pool *next_local; /* of the thread's pools of devices */
    int number;            /* the thread as the system knows it; guarded by the registry   */
    char name[TIDE_OS_NAME_BYTES]; /* guarded likewise; the owner reads it without */
} tide_owner;

/* What was asked for from outside; runtime/pool/request.h. */
typedef struct tide_pool_requests {
    uint32_t asked; /* TIDE_REQUEST_… bits: set by any thread, served where a root scope opens */
    bool deferred;  /* the owner knows of them and is below the root: TIDE_UNDO_REQUEST */
    uint32_t unserved; /* passes in a row; guarded by the registry */
    uint64_t served;
} tide_pool_requests;

/* A pool among all pools of the process; guarded by the registry. */
typedef struct tide_pool_listing {
    uint64_t number; /* none had it before */
    tide_pool *next, **link;
} tide_pool_listing;

/* Streams; runtime/pool/streams.h. */
typedef struct tide_pool_streams {
    void *own;
    uint64_t own_number;
    uint64_t own_checked; /* the driver's number of it, where the pool is checked; 0: nobody asks */
    tide_foreign foreign[TIDE_FOREIGN_MAX];
    uint32_t foreign_count; /* while there are any, no fast path may pass */
} tide_pool_streams;

typedef struct tide_pool_rows {
    tide_row *by_type;
    tide_row **used; /* in order of first use */
    uint32_t used_count;
    uint32_t bits_given; /* to types that are not built in     */
    uint64_t bits;       /* of all types that are set up       */
    /* Reserved slots, all zero, that a shell has left: the first rows take them, by number. */
    tide_slot *spare[TIDE_ROWS_SPARE];
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
    tide_pool_hook hook; /* or NULL: runtime/pool/shut.h */
    void *user;
    bool shut;            /* the program's code runs in the middle of it; runtime/pool/shut.h */
    bool working, seized; /* atomic: runtime/pool/press.h */
    bool lost;            /* in the child of a fork: of a thread that is not there            */

    tide_owner owner;
    tide_pool_memory memory;
    tide_log log;
    tide_guard_turns guards;
    tide_levels levels;
    tide_pool_requests requests;
    tide_pool_listing list;
    tide_abandonments abandoned;
    tide_pool_streams streams;
    tide_pool_rows rows;

    /* What rooms above keep in a pool, and end with it (tide_ring.end_pool). */
    struct tide_pinned_ring *ring; /* pinned memory for copies, or NULL */
    struct tide_capture *capture;  /* begun and not ended, or NULL */
} tide_pool_core;

/* `saved` has a bit for each type below this one. The last bit is no type's: a scope has opened in
 * the level whose types the level had not saved (runtime/scope/plan.c). */
enum { TIDE_SAVED_TYPES = 63 };
#define TIDE_SAVED_ASKED (UINT64_C(1) << TIDE_SAVED_TYPES)

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

/* Elements of a live slot that may be in use. Without checks only the largest request is known. It
 * is no more than the slot has room for, so less than what an array is to grow to when it is
 * moved. */
static inline size_t tide_slot_length(const tide_pool_core *core, const tide_slot_record *record)
{
    return core->careful ? record->length : record->peak;
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
    tide_assert(tide_level(pool->tag) >= TIDE_LEVEL_ROOT);
    return tide_level(pool->tag) - TIDE_LEVEL_ROOT;
}

/* What a pool of this copy of the library has as its `copy`. `checked`: tide_pool_use looks
 * further. */
static inline uintptr_t tide_pool_copy(bool checked)
{
    return (uintptr_t)&tide_copy_own + checked;
}

/* Did this copy of the library make the pool, and does nobody check its use or change it? */
static inline bool tide_pool_plain(const tide_pool *pool)
{
    return TIDE_LIKELY(pool != NULL) &&
           TIDE_LIKELY(__atomic_load_n(&pool->copy, __ATOMIC_ACQUIRE) == tide_pool_copy(false));
}

/* Refuses a NULL pool and one that another copy of the library made: its types have other
 * numbers. */
tide_status tide_pool_of_ours(const tide_pool *pool, const char *call);

/* The same, and at check level 1 a thread that does not own it. A call that returns a tide_status
 * says so by that and by the message. One that does not, says it by a report, too. */
tide_status tide_pool_use(const tide_pool *pool, const char *call);
tide_status tide_pool_use_or_report(const tide_pool *pool, const char *call);

/* What a call just refused (the thread's last failure) is reported, at check level 1. Returns
 * `status`. For calls that return no tide_status; nobody may look at the others' results. */
tide_status tide_misuse(const tide_pool *pool, tide_status status);

/* The calling thread is the owner from now on. */
void tide_pool_own(tide_pool_core *core);

/* Into the list of all pools, with a number of its own, and out of it. */
void tide_pool_enlist(tide_pool *pool);
void tide_pool_delist(tide_pool *pool);

/* How many pools there are. Registry locked. */
uint32_t tide_pools_count(void);

/* Calls visit for every pool of the process, with the registry locked. */
void tide_pools_visit(void (*visit)(tide_pool *pool, void *user), void *user);

/* The invariants (runtime/pool/invariants.c), walked without allocating. False with a message that names
 * what is broken. */
bool tide_pool_invariants_hold(const tide_pool *pool);

#endif
