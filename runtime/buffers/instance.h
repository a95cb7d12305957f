/* SPDX-License-Identifier: MIT */
/* Buffers from the inside: one array of records, a magazine for each thread in front of a depot.
 *
 *   record    what is known of one buffer; never moves, found by the handle's slot without a lock
 *   magazine  one thread's cached buffers, a cell for each bucket; used by its thread without a
 *             lock
 *   depot     everybody's, behind the instance's mutex; also where memory comes from and goes to
 *   permit    the right to cache one buffer of a bucket: a bucket has count_max, all buckets
 *             together have bytes_max. A buffer in the depot's list holds one. So does a cell for
 *             each buffer in it, and for some that it gave out lately: these let it take a release
 *             without a lock
 *   credit    the permits of a cell, used or idle
 *
 * Who may do what, and why counters are exact:
 *
 *  1. A magazine's thread uses it between tide_magazine_enter and _leave: it says that it is
 *     busy, passes a light fence, and goes on if nobody has said `stopped`. Whoever says
 *     `stopped` holds the mutex, then passes the heavy fence and waits until no magazine is busy.
 *     One of the two sees the other (runtime/buffers/fence.h). So while `stopped` is set only the
 *     thread that set it is in a magazine. It sees what each magazine's thread wrote before, by the
 *     release of `busy`. The magazine's thread sees what was written meanwhile, by the release of
 *     `stopped`.
 *  2. A thread that finds `stopped` takes the mutex instead, and works on its magazine under
 *     that: who says `stopped` holds it, so the two exclude each other.
 *  3. Each counter is one thread's, in its cells, or the depot's, under the mutex. Added up while
 *     stopped they are one moment of all: live = acquires - releases, bucket by bucket.
 *  4. A cached buffer belongs to the cell or list that it stands in, a live one to its holder. A
 *     release begins with one exchange of the generation, from what the handle says to the next
 *     even number. Of all threads that try to release it, one wins and has the buffer for itself
 *     until it has put it into a cell or list. So no buffer is ever in two hands.
 *  5. The winner marks the stream of the last use before anybody can see the buffer again. The
 *     next use is ordered by that mark.
 *  6. A miss looks in its own cell, the depot's list, then, stopped, in all cells: it allocates
 *     only if no buffer of the bucket was cached. A release that gets no permit takes back idle
 *     credits, if there are any. It drops the buffer only if the bounds are really reached. */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_INSTANCE_H
#define TIDEPOOL_RUNTIME_BUFFERS_INSTANCE_H

#include <pthread.h>
#include <stddef.h>
#include <tidepool/buffers.h>

#include "runtime/base/assert.h"
#include "runtime/buffers/buckets.h"
#include "runtime/device/device.h"

enum {
    TIDE_BUFFER_KINDS = 3,
    TIDE_BUFFER_KEYS = TIDE_BUFFER_KINDS * TIDE_BUFFER_TAGS,
    TIDE_BUFFER_MAX = 1 << 20, /* records of an instance, live and cached */
    TIDE_CELL_SLOTS = 8
};

#define TIDE_NO_RECORD UINT32_MAX

_Static_assert(TIDE_BUFFER_HOST == TIDE_BUFFER_KINDS - 1, "kinds are 0 to TIDE_BUFFER_KINDS - 1");
_Static_assert(TIDE_BUFFER_MAX < TIDE_NO_RECORD, "TIDE_NO_RECORD is no slot");

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

_Static_assert(sizeof(tide_buffer_record) == 64, "a record is one cache line");
_Static_assert(TIDE_BUFFER_KEYS <= UINT16_MAX && TIDE_BUCKETS <= UINT16_MAX,
               "a record has 16 bits for each");

typedef struct tide_buffer_counts {
    uint64_t hits, releases, asked; /* asked: bytes, by hits and misses */
} tide_buffer_counts;

/* One thread's buffers of one bucket; a cache line. */
typedef struct tide_cell {
    uint32_t slots[TIDE_CELL_SLOTS]; /* the latest last                                      */
    uint16_t held;                   /* buffers; atomic, as is `credit`: other threads look, */
    uint16_t credit;                 /* to decide whether to stop everybody. At least `held` */
    tide_buffer_counts counts;
} __attribute__((aligned(64))) tide_cell;

_Static_assert(sizeof(tide_cell) == 64, "a cell is one cache line, which no other thread writes");

typedef struct tide_magazine {
    uint32_t busy; /* atomic: its thread is in it */
    tide_buffers *buffers;
    struct tide_magazine *next, **link;               /* of the instance; guarded by its mutex */
    struct tide_magazine *thread_next, **thread_link; /* of the thread; guarded by the registry */
    tide_cell *cells[TIDE_BUFFER_KEYS];               /* TIDE_BUCKETS each, or NULL */
} tide_magazine;

/* The depot's side of a bucket; guarded by the mutex. */
typedef struct tide_depot_bucket {
    uint32_t first;   /* of the list, the latest first; TIDE_NO_RECORD: none */
    uint32_t cached;  /* in the list                                         */
    uint32_t permits; /* given out: to the list and to all cells             */
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
    uint32_t record_count;  /* ever used; atomic for who reads it without */
    uint32_t record_free;   /* of those, free: a list                     */
    size_t bytes_permitted; /* of all permits                             */
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

_Static_assert(offsetof(struct tide_buffers, mutex) % 64 == 0,
               "what every acquire reads shares no line with the mutex");

/* ---- keys ---- */

static inline unsigned tide_buffer_kind(unsigned key)
{
    tide_assert(key < TIDE_BUFFER_KEYS);
    return key % TIDE_BUFFER_KINDS;
}

static inline uint32_t tide_buffer_flags(unsigned key)
{
    return tide_buffer_kind(key) | TIDE_BUFFER_TAG(key / TIDE_BUFFER_KINDS);
}

/* TIDE_BUFFER_KEYS, which is no key: nobody defined such flags. */
static inline unsigned tide_buffer_key(uint32_t flags)
{
    unsigned kind = flags & 0xFF, tag = flags >> 8;
    return kind < TIDE_BUFFER_KINDS && tag < TIDE_BUFFER_TAGS ? tag * TIDE_BUFFER_KINDS + kind
                                                              : TIDE_BUFFER_KEYS;
}

/* Is such memory ready for any use at once, whoever used it before? */
static inline bool tide_buffer_plain(const tide_buffers *buffers, unsigned key)
{
    return buffers->immediate || tide_buffer_kind(key) == TIDE_BUFFER_HOST;
}

/* ---- all instances, and their clock: runtime/buffers/instance.c ---- */

/* Into the list of all instances, with a number of its own, and out of it. Registry locked. */
void tide_buffers_enlist(tide_buffers *buffers);
void tide_buffers_delist(tide_buffers *buffers);

/* The first of the list, for who goes on by `next`; NULL: there is none. Registry locked. */
tide_buffers *tide_buffers_first(void);

/* Calls visit for every instance, with the registry locked. */
void tide_buffers_each(void (*visit)(tide_buffers *buffers, void *user), void *user);

/* Ticks so far; one more, which is returned. Any thread. */
uint64_t tide_buffers_now(void);
uint64_t tide_buffers_advance(void);

#endif
