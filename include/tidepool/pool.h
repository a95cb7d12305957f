/* SPDX-License-Identifier: MIT */
/* Pools: creation, ownership, memory given back, statistics.
 *
 * A pool belongs to one thread at a time, its owner; nothing in it is locked. Calls that take a pool
 * come from its owner, unless they say otherwise. A pool of check level 1 or 2 refuses other threads
 * (TIDE_ERROR_THREAD); at level 0 nobody checks.
 *
 * TIDE_ERROR_ARGUMENT: a NULL pool or result, or a pool of another copy of the library (a static one
 * in a plugin). Calls without a status do nothing then, and set the message. */
#ifndef TIDEPOOL_POOL_H
#define TIDEPOOL_POOL_H

#include <stdio.h>
#include <tidepool/inline/config.h>
#include <tidepool/status.h>
#include <tidepool/type.h>

TIDE_BEGIN_DECLS

typedef struct tide_pool tide_pool;
typedef struct tide_device tide_device;
typedef struct tide_buffers tide_buffers;

/* Check levels: how much a pool checks what the program does with it. */
typedef enum tide_check {
    TIDE_CHECK_DEFAULT = 0, /* as the setting `check` says (environment: TIDEPOOL_CHECK)       */
    TIDE_CHECK_NONE = -1,   /* level 0: nothing                                               */
    TIDE_CHECK_POISON = 1,  /* level 1: all-ones poison on rewind, foreign threads refused,
                               leaked scopes and escaping pointers reported, AddressSanitizer
                               and Valgrind told of each acquire and rewind                   */
    TIDE_CHECK_GUARD = 2    /* level 2: each array ends at an inaccessible page and becomes
                               inaccessible when it is rewound; on a device as level 1        */
} tide_check;

/* What a pool's hook is told of. Allocated and returned less freed and exported is what it holds. */
typedef enum tide_pool_happening {
    TIDE_POOL_ALLOCATED, /* a slot has got memory                                      */
    TIDE_POOL_FREED,     /* a slot's memory was given back                             */
    TIDE_POOL_EXPORTED,  /* a slot's memory has become a consumer's: tide_array_export */
    TIDE_POOL_RETURNED   /* it is the slot's again                                     */
} tide_pool_happening;

typedef struct tide_pool_event {
    tide_pool_happening happening;
    tide_pool *pool;
    const char *name; /* the pool's                                                */
    tide_type type;   /* of the slot                                               */
    size_t bytes;     /* of the memory                                             */
    size_t elements;  /* allocated: what the acquire asked for; else 0             */
    size_t held;      /* bytes that the pool holds now                             */
    const char *file; /* allocated: where the source asks for the array, if known  */
    const char *function;
    uint32_t line;
    const void *caller; /* else the code that called, for addr2line; or NULL */
} tide_pool_event;

/* Called by the thread that changes the pool when slots get memory or give it back, so not at all by
 * steady work. It may take locks of the program, allocate, and use other pools and buffers, but not
 * its own pool (TIDE_ERROR_STATE) nor the buffers that this draws from. It returns, or ends the
 * process. `event` is valid during the call. */
typedef void (*tide_pool_hook)(const tide_pool_event *event, void *user);

/* All zero means: the defaults. */
typedef struct tide_pool_options {
    const char *name TIDE_ZERO;      /* for messages; copied. NULL: "pool"                      */
    tide_device *device TIDE_ZERO;   /* whose memory the slots are. NULL: the host's            */
    tide_buffers *buffers TIDE_ZERO; /* the cache that slots are taken from and given back to;
                                        other pools may share it and it must outlive the pool.
                                        NULL: the device itself                                 */
    void *stream TIDE_ZERO;          /* a device pool's stream: it orders all uses of a slot.
                                        Host: NULL                                              */
    size_t limit_bytes TIDE_ZERO;    /* most slot memory the pool may hold; 0: as the setting
                                        `limit`. With buffers, up to twice as much: a larger
                                        cached one may serve                                    */
    int check TIDE_ZERO;             /* a tide_check                                            */
    bool disabled TIDE_ZERO;         /* each acquire allocates memory, which the rewind frees   */
    void *memory TIDE_ZERO;          /* memory of the host that slots lie in; see below. NULL:
                                        the host's                                              */
    size_t memory_bytes TIDE_ZERO;   /* its size; 0 if there is none                            */
    tide_pool_hook hook TIDE_ZERO;   /* told when slots get memory and give it back. NULL: none */
    void *user TIDE_ZERO;            /* given to the hook                                       */
    TIDE_GROWTH TIDE_ZERO;
} tide_pool_options;

/* A pool may lie in memory of the program's: a static buffer, a mapped file of huge pages, shared
 * memory. Its arrays are there and nowhere else; its own books are not. The size, in whole 64 bytes, is
 * its limit; beyond it TIDE_ERROR_LIMIT says how many bytes are missing. An array that grows takes
 * both sizes until it has grown; free pieces begin with 16 bytes of the library's. The memory outlives
 * the pool and what consumers hold of it (tide_array_export). No other pool has any of it at the same
 * time; of processes that share it after a fork, one uses the pool. Neither buffers nor a device are
 * given with it. Check level 2 is level 1 there. */

/* A new, empty pool of the calling thread's. NULL options: the defaults. NULL with a message when an
 * option is bad or address space is short. Release it with tide_pool_destroy. */
TIDE_API tide_pool *tide_pool_create(const tide_pool_options *options);

/* Frees the pool and every slot in it. TIDE_ERROR_STATE, nothing changed, while a scope or mark is open
 * (reset the pool first, if these are known to be dead), and for a thread's own pool. NULL: TIDE_OK.
 * The process keeps the address space of up to sixteen small pools of check level 0 for the next,
 * until tide_pool_trim of all types. */
TIDE_API tide_status tide_pool_destroy(tide_pool *pool);

/* The calling thread's own pool: created on first use, destroyed when the thread ends, even if another
 * has adopted it. NULL with a message when it cannot be; TIDE_ERROR_LIMIT: no thread key is left. */
TIDE_API tide_pool *tide_pool_local(void);

/* Makes the calling thread the owner. The old owner's last call comes before this one, by a queue or
 * a join; while that thread is giving back, for another pool, what this one has free, the call waits.
 * TIDE_ERROR_STATE, nothing changed: in the child of a fork, a pool of another of the parent's threads;
 * a pool on CUDA's per-thread default stream, which is another stream in another thread. */
TIDE_API tide_status tide_pool_adopt(tide_pool *pool);

/* Rewinds everything, at any depth; memory is kept. Scopes that are still open do nothing when they
 * end; open marks become stale. TIDE_ERROR_LIMIT, nothing changed: this was done 2^40 times in one pool
 * under open scopes or marks; so too tide_pool_empty, and tide_rewind and tide_scope_leave where they
 * would end levels that were left open. (Those two have a second limit: 128 such calls, each of which
 * kept more levels than the one before.) */
TIDE_API tide_status tide_pool_reset(tide_pool *pool);

/* What a trim or compact gave back. */
typedef struct tide_trim_summary {
    size_t slots; /* slots released or shrunk */
    size_t bytes; /* bytes given back         */
} tide_trim_summary;

/* Releases the memory of every free slot of one type, or of TIDE_ALL_TYPES, and then also what the
 * process keeps of destroyed pools. Live arrays stay, at any depth. Zero for a type that the pool has
 * never used and, with a message, for an unknown type and while a graph is captured on its stream. */
TIDE_API tide_trim_summary tide_pool_trim(tide_pool *pool, tide_type type);

/* A pool at one moment, in bytes and counts. Bytes count capacity, not the lengths asked for. */
typedef struct tide_pool_statistics {
    size_t bytes_held;     /* memory of all slots, live and free                        */
    size_t bytes_live;     /* of those, in slots that are live                          */
    size_t bytes_peak;     /* most bytes_held since the pool was created                */
    size_t bytes_limit;    /* 0: none                                                   */
    size_t slots;          /* slots with memory, of their own or exported               */
    size_t slots_live;     /* of those, live                                            */
    size_t shelves;        /* types this pool has used                                  */
    size_t log_entries;    /* entries now in the undo log                               */
    size_t depth;          /* open scopes and marks                                     */
    uint64_t allocations;  /* slot allocations since creation, growth included          */
    uint64_t releases;     /* slot memory given back since creation; not what was exported
                              and still in use when its slot was needed again           */
    uint64_t requests;     /* trims and compacts served that were asked for from outside */
    size_t bytes_exported; /* exported through DLPack, and the slot not needed again since then;
                              not in bytes_held and bytes_live                          */
    uint64_t exchanges;    /* times a free slot of another size was exchanged for the next one */
    uint64_t pressed;      /* free slots given back because memory was short: see
                              <tidepool/limit.h>                                         */
    TIDE_GROWTH;
} tide_pool_statistics;

TIDE_API tide_status tide_pool_stats(const tide_pool *pool, tide_pool_statistics *out);

/* Prints the pool for a person: totals, then a line for each type in use. */
TIDE_API tide_status tide_pool_print(const tide_pool *pool, FILE *out);

TIDE_END_DECLS

#endif
