/* SPDX-License-Identifier: MIT */
/* Buffers from the inside: one array of records, a magazine for each thread in front of a depot.
 *
 *   record    what is known of one buffer; never moves, found by the handle's slot without a lock
 *   magazine  one thread's cached buffers, a cell for each bucket; used by its thread without a
 *             lock
 *   depot     everybody's, behind the instance's mutex; also where memory comes from and goes to
 *   place     the right to cache one buffer of a bucket: a bucket has count_max, all buckets
 *             together have bytes_max. A list's buffer holds one; so does a cell for each buffer
 *             in it, and for some that it gave out lately, so that their release needs no lock
 *             (`credit`)
 *
 * Who may do what, and why counters are exact:
 *
 *  1. A magazine's thread uses it between tide_magazine_enter and _leave: it says that it is
 *     busy, passes a light fence, and goes on if nobody has said `stopped`. Whoever says
 *     `stopped` holds the mutex, then passes the heavy fence and waits until no magazine is busy.
 *     One of the two sees the other (runtime/buffers/fence.h). So while `stopped` is said nobody is in a
 *     magazine but who said it, and what its thread wrote before is seen, by the release of
 *     `busy`; what was written meanwhile is seen by the thread, by the release of `stopped`.
 *  2. A thread that finds `stopped` takes the mutex instead, and works on its magazine under
 *     that: who says `stopped` holds it, so the two exclude each other.
 *  3. Each counter is one thread's, in its cells, or the depot's, under the mutex. Added up while
 *     stopped they are one moment of all: live = acquires - releases, bucket by bucket.
 *  4. A cached buffer belongs to the cell or list that it stands in, a live one to its holder. A
 *     release begins with one exchange of the generation, from what the handle says to the next
 *     even number; of any number of releases by any threads one wins and has the buffer for
 *     itself until it has put it into a cell or list. So no buffer is ever in two hands.
 *  5. Whatever it takes to order the buffer's next use (its mark in the stream) is done in
 *     between, before anybody can see it again.
 *  6. A miss looks in its own cell, the depot's list, then, stopped, in all cells: it allocates
 *     only if no buffer of the bucket was cached. A release that gets no place takes back, if
 *     there are any, credits that nobody uses, and drops only if the bounds are really reached. */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_BUFFERS_H
#define TIDEPOOL_RUNTIME_BUFFERS_BUFFERS_H

#include <pthread.h>
#include <tidepool/buffers.h>

#include "runtime/buffers/buckets.h"
#include "runtime/device/device.h"

enum {
    TIDE_BUFFER_KINDS = 3,
    TIDE_BUFFER_KEYS = TIDE_BUFFER_KINDS * TIDE_BUFFER_TAGS,
    TIDE_BUFFER_MAX = 1 << 20, /* records of an instance, live and cached */
    TIDE_CELL_SLOTS = 8
};

#define TIDE_NO_RECORD UINT32_MAX

/* One buffer; a cache line. */
typedef struct tide_buffer_record {
    uint64_t generation; /* atomic; odd while it is live. Never starts again */
    void *data;          /* atomic: who asks with an old handle may read it  */
    size_t asked;        /* by its holder                                    */
    void *mark;          /* where its last use ends, NULL: it has ended      */
    uint64_t stream;     /* the number of the stream of that mark            */
    uint64_t tick;       /* when it was released                             */
    uint32_t next;       /* in a list of the depot                           */
    uint16_t key;
    uint16_t bucket;
} __attribute__((aligned(64))) tide_buffer_record;

typedef struct tide_buffer_counts {
    uint64_t hits, releases, asked; /* asked: bytes, by hits and misses */
} tide_buffer_counts;

/* One thread's buffers of one bucket; a cache line. */
typedef struct tide_cell {
    uint32_t slots[TIDE_CELL_SLOTS]; /* the latest last */
    uint16_t held;                   /* atomic, for who wonders whether to stop everybody, as is */
    uint16_t credit;                 /* places; at least `held` */
    tide_buffer_counts counts;
} __attribute__((aligned(64))) tide_cell;

typedef struct tide_magazine {
    uint32_t busy; /* atomic: its thread is in it */
    tide_buffers *buffers;
    struct tide_magazine *next, **link;               /* of the instance; guarded by its mutex */
    struct tide_magazine *thread_next, **thread_link; /* of the thread; guarded by the registry */
    tide_cell *cells[TIDE_BUFFER_KEYS];               /* TIDE_BUCKETS each, or NULL */
} tide_magazine;

/* The depot's side of a bucket; guarded by the mutex. */
typedef struct tide_depot_bucket {
    uint32_t first;  /* of the list, the latest first; TIDE_NO_RECORD: none */
    uint32_t cached; /* in the list                                         */
    uint32_t places; /* taken                                               */
    uint64_t misses, dropped;
    tide_buffer_counts counts; /* of threads that have ended, or have no magazine */
} tide_depot_bucket;

struct tide_buffers {
    /* What every acquire reads and none writes. */
    uint32_t stopped; /* atomic */
    tide_buffers_policy policy;
    uint64_t number; /* of the instance: none had it before */
    tide_buffer_record *records;
    tide_device *device;
    void *stream;
    uint64_t stream_number;
    uint32_t flags;
    tide_buffer_hook hook;
    void *user;
    bool immediate; /* the device does at once what is queued: nothing needs an order */
    bool careful;   /* checks: what is cached must not be touched (host memory)       */
    size_t bytes_max;
    uint32_t count_max, age_max;
    char name[32];

    /* Guarded by the mutex. */
    pthread_mutex_t mutex __attribute__((aligned(64)));
    uint32_t record_count; /* ever used; atomic for who reads it without */
    uint32_t record_free;  /* of those, free: a list                     */
    size_t bytes_places;   /* of all places                              */
    size_t bytes_held, bytes_high;
    uint64_t refused, trimmed, pressed, failed;
    tide_magazine *magazines;
    tide_depot_bucket *depot[TIDE_BUFFER_KEYS]; /* TIDE_BUCKETS each, or NULL */

    /* Guarded by the registry. */
    uint32_t users;  /* pools that draw from it */
    uint32_t shares; /* times it was asked for as the shared one; 0: it is its maker's alone */
    uint32_t shared_kind;
    uint64_t aged; /* the tick of its last trim by age */
    tide_buffers *next, **link;
};

/* ---- keys ---- */

static inline unsigned tide_buffer_kind(unsigned key)
{
    return key % TIDE_BUFFER_KINDS;
}

static inline uint32_t tide_buffer_flags(unsigned key)
{
    return tide_buffer_kind(key) | TIDE_BUFFER_TAG(key / TIDE_BUFFER_KINDS);
}

/* Flags that nobody defined give a key that there is not. */
static inline unsigned tide_buffer_key(uint32_t flags)
{
    unsigned kind = flags & 0xFF, tag = flags >> 8;
    return kind < TIDE_BUFFER_KINDS && tag < TIDE_BUFFER_TAGS ? tag * TIDE_BUFFER_KINDS + kind
                                                              : TIDE_BUFFER_KEYS;
}

/* May its memory be used at once, whoever used it before? */
static inline bool tide_buffer_plain(const tide_buffers *buffers, unsigned key)
{
    return buffers->immediate || tide_buffer_kind(key) == TIDE_BUFFER_HOST;
}

static inline size_t tide_handle_bytes(const tide_buffers *buffers,
                                       const tide_buffer_record *record)
{
    return tide_bucket_bytes(buffers->policy, record->bucket);
}

/* ---- the life of an instance: runtime/buffers/buffers.c ---- */

/* Keep an instance from being destroyed. Refused when there is none of that address. */
tide_status tide_buffers_hold(tide_buffers *buffers, const char *call);
void tide_buffers_hold_again(tide_buffers *buffers);
void tide_buffers_drop(tide_buffers *buffers);

/* Calls visit for every instance, with the registry locked. */
void tide_buffers_each(void (*visit)(tide_buffers *buffers, void *user), void *user);

/* One tick: what is too old is given back. Any thread. */
void tide_buffers_tick(void);
uint64_t tide_buffers_now(void);

#endif
