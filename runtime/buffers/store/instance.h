/* SPDX-License-Identifier: MIT */
/* Buffers from the inside: one array of records, a magazine for each thread in front of a depot.
 *
 *   record    what is known of one buffer; never moves, found by the handle's slot without a lock
 *   magazine  one thread's cached buffers, a cell for each bucket; used by its thread without a
 *             lock
 *   depot     everybody's, behind the instance's mutex: for each bucket an array of the numbers of
 *             cached buffers; also where memory comes from and goes to
 *
 * Only a quick instance (the host's, without checks and hook) has magazines, and they hold buffers
 * of its own key only. All other buffers go by the depot: a device's driver costs more than the
 * mutex.
 *
 * Who may do what, and why counters are exact:
 *
 *  1. A magazine's thread uses it between tide_magazine_enter and _leave: it says that it is
 *     busy, passes a light fence, and goes on if the instance is not stopped. Whoever stops it
 *     holds the mutex, sets `stopped`, passes the heavy fence and waits until no magazine is busy.
 *     One of the two sees the other (runtime/buffers/store/fence.h). So while it is stopped only
 *     the thread that stopped it is in a magazine. It sees what each magazine's thread wrote
 *     before, by the release of `busy`. The magazine's thread sees what was written meanwhile, by
 *     the release of `stopped`.
 *  2. A thread that finds it stopped takes the mutex instead, and works on its magazine under
 *     that: who stops the instance holds it, so the two exclude each other.
 *  3. Each counter is one thread's, in its cells, or the depot's, under the mutex. Added up while
 *     stopped they are one moment of all: live = acquires - releases, bucket by bucket.
 *  4. A cached buffer belongs to the cell or array that it stands in, a live one to its holder. A
 *     release begins with the generation: it must be what the handle says, and becomes the next
 *     even number. So a handle that was released is refused, by whatever thread it comes, unless
 *     two threads release one handle in the same moment, which is the program's race: with checks,
 *     a hook or a device one of the two wins by an exchange, a quick instance does without one.
 *  5. On a device the stream of the last use is marked before anybody can see the buffer again. The
 *     next use is ordered by that mark.
 *  6. A miss looks in its own cell and the depot; if it is large, in the depot's larger buckets,
 *     too (cut, the buffer is one of the smaller bucket; lent whole, it counts, and goes back, where
 *     it belongs). What other threads' cells hold it leaves there, for there are few
 *     (depot_cell_most).
 *  7. What is cached goes when it is too old, when a bound is met, when a trim asks for it, or when
 *     the device has no memory. */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_STORE_INSTANCE_H
#define TIDEPOOL_RUNTIME_BUFFERS_STORE_INSTANCE_H

#include <stddef.h>
#include <tidepool/buffers.h>

#include "runtime/base/assert.h"
#include "runtime/base/lock.h"
#include "runtime/buffers/store/buckets.h"
#include "runtime/device/device.h"

enum {
    TIDE_BUFFER_KINDS = 5,
    TIDE_BUFFER_ALIGNMENTS = 3,
    TIDE_BUFFER_KEYS = TIDE_BUFFER_KINDS * TIDE_BUFFER_TAGS * TIDE_BUFFER_ALIGNMENTS,
    TIDE_BUFFER_MAX = 1 << 20, /* records of an instance, live and cached */
    TIDE_CELL_SLOTS = 24
};

#define TIDE_NO_RECORD UINT32_MAX

/* Of an instance's number, which instance of the copy it is, counted from 1. */
#define TIDE_INSTANCE_MASK (((uint64_t)1 << 28) - 1)

_Static_assert(TIDE_BUFFER_IPC == TIDE_BUFFER_KINDS - 1, "kinds are 0 to TIDE_BUFFER_KINDS - 1");
_Static_assert(TIDE_BUFFER_MAX < TIDE_NO_RECORD, "TIDE_NO_RECORD is no slot");

/* One buffer; a cache line. */
typedef struct tide_buffer_record {
    uint64_t generation; /* atomic; odd while it is live. Never starts again */
    void *data;          /* atomic: who asks with an old handle may read it  */
    size_t asked;        /* by its holder, where a hook is told              */
    void *mark;          /* where its last use ends, NULL: it has ended      */
    uint64_t stream;     /* the number of the stream of that mark            */
    uint64_t tick;       /* when it was released                             */
    uint32_t next;       /* of the free records, or of those that go         */
    uint16_t key;        /* atomic, as is the next: who asks with an old handle may read it */
    uint16_t named;      /* the bucket, and TIDE_HANDLE_OTHER_KEY: what the handle says, too */
} __attribute__((aligned(64))) tide_buffer_record;

_Static_assert(sizeof(tide_buffer_record) == 64, "a record is one cache line");

typedef struct tide_buffer_counts {
    uint64_t hits, releases, asked; /* asked: bytes, by hits and misses */
} tide_buffer_counts;

/* One thread's buffers of one bucket; two cache lines, of which the second is for many. */
typedef struct tide_cell {
    uint32_t held; /* buffers */
    uint32_t room; /* most that it may hold. 0: none, until it is first needed */
    tide_buffer_counts counts;
    uint32_t slots[TIDE_CELL_SLOTS]; /* the latest last */
} __attribute__((aligned(64))) tide_cell;

_Static_assert(sizeof(tide_cell) == 128, "no other thread writes in the cache lines of a cell");

typedef struct tide_magazine {
    uint32_t busy;      /* atomic: its thread is in it */
    const void *thread; /* whose it is: the ways of runtime/buffers/store/magazine.c */
    tide_buffers *buffers;
    struct tide_magazine *next, **link; /* of the instance; guarded by its mutex */
    tide_cell cells[TIDE_BUCKETS];
} tide_magazine;

/* Was a cached buffer of a bucket cut to a smaller size, and was its own wanted again since? */
typedef enum tide_cut { TIDE_CUT_NEVER, TIDE_CUT_LATELY, TIDE_CUT_NO_MORE } tide_cut;

/* The depot's side of a bucket; guarded by the mutex. Each node has one for the buffers that were
 * released near it: a thread gets those of others when there is none of its own. All else stands in
 * that of node 0, and so do buffers that a device uses. */
typedef struct tide_depot_bucket {
    uint32_t *slots;       /* of cached buffers, in the order in which they came: the latest last */
    uint32_t cached, room; /* of the array: in use, and in all */
    tide_cut cut;
    uint64_t misses, dropped;
    tide_buffer_counts counts; /* by threads that have ended, or have no magazine */
} tide_depot_bucket;

struct tide_buffers {
    /* What every acquire reads and none writes. */
    uint32_t stopped; /* 1: somebody else is in all magazines, or will be; atomic, written with the
                         mutex held */
    uint32_t way;     /* where each thread has its magazine of a quick instance, in bytes */
    uint64_t number;  /* of the instance: none had it before, of any copy of the library */
    const void *copy; /* of the library: &tide_copy_own of the one that made it */
    tide_buffer_record *records;
    tide_device *device;
    void *stream;
    uint64_t stream_number;
    uint32_t flags;
    unsigned key; /* of the flags */
    tide_buffer_hook hook;
    void *user;
    bool immediate; /* the device does at once what is queued: nothing needs an order */
    bool careful;   /* checks: what is cached must not be touched (host memory)       */
    bool quick;     /* the host's, without checks and hook: nothing but to hand it out */
    bool kept;      /* what is cached may be used by a graph: it stays until the instance ends */
    uint8_t small[TIDE_BUCKET_SMALL / TIDE_BUCKET_MIN + 1]; /* buckets of small sizes, looked up */
    struct tide_address_table *addresses; /* atomic: runtime/buffers/store/address.h */
    uint32_t record_count; /* ever used; atomic: seldom written, with the mutex held */
    uint32_t count_max, age_max;
    unsigned nodes; /* of memory (runtime/base/node.h) */
    size_t bytes_max;
    char name[32];

    /* Guarded by the mutex. */
    tide_lock mutex __attribute__((aligned(64)));
    uint32_t record_free; /* of those, free: a list    */
    size_t bytes_cached;  /* in the depot              */
    size_t bytes_held, bytes_high;
    uint64_t refused, trimmed, pressed, failed;
    bool watched; /* something may be cached, and the background thread knows; atomic, too. Else
                     no cell has room, so that a release comes to the depot and tells it */
    tide_magazine *magazines;
    tide_depot_bucket *depot[TIDE_BUFFER_KEYS]; /* TIDE_BUCKETS for each node, or NULL */

    /* Guarded by the registry. */
    uint32_t users;  /* pools that draw from it */
    uint32_t shares; /* times it was asked for as the shared one; 0: it is its maker's alone */
    uint32_t shared_kind;
    uint32_t visitors; /* threads that look at it just now: it does not go from under them */
    bool ending;       /* it is being destroyed: nobody finds it any more                  */
    bool inherited;    /* by a fork: of what other threads had in hand nobody knows        */
    tide_buffers *next, **link;

    uint64_t aged; /* the tick of its last trim by age; atomic */
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
    unsigned tag = key / TIDE_BUFFER_KINDS % TIDE_BUFFER_TAGS;
    unsigned alignment = key / TIDE_BUFFER_KINDS / TIDE_BUFFER_TAGS;
    return tide_buffer_kind(key) | TIDE_BUFFER_TAG(tag) | alignment << 16;
}

/* TIDE_BUFFER_KEYS, which is no key: nobody defined such flags. */
static inline unsigned tide_buffer_key(uint32_t flags)
{
    unsigned kind = flags & 0xFF, tag = flags >> 8 & 0xFF, alignment = flags >> 16;
    bool known =
        kind < TIDE_BUFFER_KINDS && tag < TIDE_BUFFER_TAGS && alignment < TIDE_BUFFER_ALIGNMENTS;
    return known ? (alignment * TIDE_BUFFER_TAGS + tag) * TIDE_BUFFER_KINDS + kind
                 : TIDE_BUFFER_KEYS;
}

/* Refuses such flags, for whoever was given them. */
tide_status tide_buffer_refuse_flags(uint32_t flags, const char *call);

/* Does the host use such memory, too? Then it is handed out when work on it is over. */
static inline bool tide_buffer_of_both(unsigned key)
{
    unsigned kind = tide_buffer_kind(key);
    return kind == TIDE_BUFFER_PINNED || kind == TIDE_BUFFER_MANAGED;
}

/* Is such memory ready for any use at once, whoever used it before? */
static inline bool tide_buffer_plain(const tide_buffers *buffers, unsigned key)
{
    return buffers->immediate || tide_buffer_kind(key) == TIDE_BUFFER_HOST;
}

/* Must checks forbid cached memory to the host? Only memory that no device uses. */
static inline bool tide_buffer_poisoned(const tide_buffers *buffers, unsigned key)
{
    return buffers->careful && tide_buffer_plain(buffers, key);
}

/* Does the background thread age it? Not where a hook is told, or a driver asked. */
static inline bool tide_buffers_age_themselves(const tide_buffers *buffers)
{
    return buffers->immediate && buffers->hook == NULL;
}

/* ---- all instances, and their clock: runtime/buffers/store/instance.c ---- */

/* Refuses an instance that another copy of the library made (runtime/base/process.h): its lists and
 * its bounds are guarded by that copy's locks. Its fast paths never serve us. */
tide_status tide_buffers_of_ours(const tide_buffers *buffers, const char *call);

/* Into the list of all instances, with a number of its own and, where it is quick, a way; and out of
 * it. The instance after TIDE_MAGAZINE_WAYS quick ones has no way, and is not quick. Registry locked. */
void tide_buffers_enlist(tide_buffers *buffers);
void tide_buffers_delist(tide_buffers *buffers);

/* The quick instance whose magazines threads have at that way; NULL: none. Registry locked. */
tide_buffers *tide_buffers_at_way(unsigned way);

/* The first of the list, for who goes on by `next`; NULL: there is none. Registry locked. */
tide_buffers *tide_buffers_first(void);

/* Calls visit for every instance but those that are being destroyed, the youngest first; those that come
 * meanwhile are not visited. Nothing is locked meanwhile, for visit may call functions of the program: a
 * visitor is counted instead. */
void tide_buffers_visit(void (*visit)(tide_buffers *buffers, void *user), void *user);

/* TIDE_ERROR_STATE while the calling thread visits instances: it would wait for itself. */
tide_status tide_buffers_visit_admit(const tide_buffers *buffers, const char *call);

/* Waits until nobody visits it; nobody comes any more, since it is `ending`. Registry not
 * locked. */
void tide_buffers_wait_for_visitors(tide_buffers *buffers);

extern uint64_t tide_buffers_ticks
    __attribute__((visibility("hidden"))); /* atomic: releases read it */

/* Ticks so far: a round is one. Any thread. */
static inline uint64_t tide_buffers_now(void)
{
    return __atomic_load_n(&tide_buffers_ticks, __ATOMIC_RELAXED);
}

#endif
