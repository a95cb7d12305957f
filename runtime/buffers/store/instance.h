/* SPDX-License-Identifier: MIT */
/* Buffers from the inside: one array of records, a magazine for each thread in front of a depot.
 *
 *   record    what is known of one buffer; never moves, found by the handle's slot without a lock
 *   magazine  one thread's cached buffers, a cell for each bucket; used by its thread without a
 *             lock
 *   depot     everybody's, behind the instance's mutex; also where memory comes from and goes to
 *   tray      in front of a bucket's list in the depot: buffers that can be used at once, by number
 *   permit    the right to cache one buffer of a bucket: a bucket has count_max, all buckets
 *             together have bytes_max. A buffer in the depot's list or tray holds one. So does a
 *             cell for each buffer in it, and for some that it gave out lately: these let it take a
 *             release without a lock
 *   credit    the permits of a cell, used or idle
 *
 * Who may do what, and why counters are exact:
 *
 *  1. A magazine's thread uses it between tide_magazine_enter and _leave: it says that it is
 *     busy, passes a light fence, and goes on if the instance's state is not STOPPED. Whoever sets
 *     STOPPED holds the mutex, then passes the heavy fence and waits until no magazine is busy. One
 *     of the two sees the other (runtime/buffers/store/fence.h). So while it is STOPPED only the
 *     thread that set that is in a magazine. It sees what each magazine's thread wrote before, by
 *     the release of `busy`. The magazine's thread sees what was written meanwhile, by the release
 *     of the state. Once it has cells of the instance's own key, the thread's magazine stands in a
 *     place of the instance, by a hash of the thread. Before that, or where two threads have one
 *     place, it is found through the thread (runtime/buffers/store/magazine.h).
 *  2. A thread that finds it STOPPED takes the mutex instead, and works on its magazine under
 *     that: who sets STOPPED holds it, so the two exclude each other.
 *  3. Each counter is one thread's, in its cells, or the depot's, under the mutex. Added up while
 *     stopped they are one moment of all: live = acquires - releases, bucket by bucket.
 *  4. A cached buffer belongs to the cell, tray or list that it stands in, a live one to its
 *     holder. A release begins with one exchange of the generation, from what the handle says to
 *     the next even number. Of all threads that try to release it, one wins and has the buffer for
 *     itself until it has put it into a cell or list. So no buffer is ever in two hands. While the
 *     instance is `owned` a thread releases what it acquired itself without that exchange: it is in
 *     its magazine, it reads the generation, then the owner, which was written before, and nobody
 *     else releases such a buffer. Who wants to, stops all magazines first and ends the ownership
 *     for good. After that all exchange. An owner may always exchange. The owner is a cell of the
 *     thread: what lies in a cell of an owned instance has it as its owner, and keeps it while it
 *     is live. What a thread without cells acquired, and what is of another key than the
 *     instance's, has no owner: whoever releases it exchanges, and ends nothing by that. What a
 *     thread that has ended left live is still owned by its cell: who releases it ends the
 *     ownership. (Where that cell lay, another thread may get one, which is of the same bucket
 *     then. To that thread it is as if it had acquired the buffer itself.)
 *  5. The winner marks the stream of the last use before anybody can see the buffer again. The
 *     next use is ordered by that mark.
 *  6. A miss looks in its own cell, the depot's tray and list, then, stopped, in all cells; if
 *     it is large, in its own cells and the trays and lists of larger buckets, too
 *     (runtime/buffers/store/borrow.c; the buffer counts, and goes back, where it belongs). So it
 *     allocates only if no buffer of the bucket was cached. Of small buffers only every second,
 *     fourth … such miss stops everybody. There are few in the cells of others
 *     (runtime/buffers/store/cell.h, room), and each miss that leaves them there makes one more, so
 *     soon none is needed. A release that gets no permit takes back idle credits, if there are any.
 *     It drops the buffer only if the bounds are really reached.
 *  7. What is kept follows use. A round of use ends when as much memory was allocated as makes a
 *     part of all that is held: the working set has moved by so much. What lay in the depot all
 *     through two rounds was needed by neither, not even at their peaks, and goes. A cell of
 *     large buffers that had no hit all through a round is emptied into the list first. A
 *     working set that comes back to its sizes allocates nothing, so no round ends and all of it
 *     stays. On a device it goes by the stream of the miss that ended the round. What is still
 *     in use elsewhere, where that stream does not order it, stays: a miss waits for nobody, and
 *     queues nothing on other streams.
 *  8. Pages of what is cached for long are given back without the mutex, one buffer at a time,
 *     which stays in its list and counts there (`purge_at`). Whoever wants to take just this one
 *     out waits, the mutex held, until its pages are gone; the thread that gives them back needs no
 *     lock for that. It goes on at the buffer that came next (`purge_next`): who takes that one out
 *     meanwhile moves this on. */
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
    TIDE_BUFFER_KEYS = TIDE_BUFFER_KINDS * TIDE_BUFFER_TAGS,
    TIDE_BUFFER_MAX = 1 << 20, /* records of an instance, live and cached */
    TIDE_CELL_SLOTS = 24,
    TIDE_MAGAZINE_PLACES = 256 /* of magazines that are found without asking the thread */
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
    size_t asked;        /* by its holder, where a hook is told               */
    void *mark;          /* where its last use ends, NULL: it has ended      */
    uint64_t stream;     /* the number of the stream of that mark; the host's: what is done with
                            its pages (runtime/buffers/store/purge.c) */
    uint64_t tick;       /* when it was released                             */
    uint32_t next;       /* in a list of the depot                           */
    uint16_t key;        /* atomic, as is the next: who asks with an old handle may read it */
    uint16_t bucket;
    const void *owner; /* atomic: the cell of the thread that acquired it, to compare with, or
                            NULL: nobody may release it without an exchange */
} __attribute__((aligned(64))) tide_buffer_record;

_Static_assert(sizeof(tide_buffer_record) == 64, "a record is one cache line");
_Static_assert(TIDE_BUFFER_KEYS <= UINT16_MAX && TIDE_BUCKETS <= UINT16_MAX,
               "a record has 16 bits for each");

typedef struct tide_buffer_counts {
    uint64_t hits, releases, asked; /* asked: bytes, by hits and misses */
} tide_buffer_counts;

enum { TIDE_CELL_NEW, TIDE_CELL_REFILLED, TIDE_CELL_SPILLED };

/* One thread's buffers of one bucket; two cache lines, of which the second is for many. */
typedef struct tide_cell {
    uint32_t held;  /* buffers; atomic, as is `credit`: other threads look, to decide whether to */
    uint8_t credit; /* stop everybody. At least `held`                                           */
    uint8_t room : 6; /* most that it may hold now: grows with use. At least `credit`; 0: no acquire
                         came by the depot yet */
    uint8_t last : 2; /* TIDE_CELL_...: what it needed the depot for the last time */
    uint16_t seen;    /* the last bits of its hits when the last round of use ended */
    tide_buffer_counts counts;
    uint32_t slots[TIDE_CELL_SLOTS]; /* the latest last */
} __attribute__((aligned(64))) tide_cell;

_Static_assert(sizeof(tide_cell) == 128, "no other thread writes in the cache lines of a cell");

/* Where the cells of a thread begin, so that the place of a cell tells its bucket (4, above). */
enum { TIDE_CELLS_ALIGN = 32768 };

_Static_assert(TIDE_BUCKETS * sizeof(tide_cell) <= TIDE_CELLS_ALIGN,
               "they lie within one multiple");

typedef struct tide_magazine {
    uint32_t busy;    /* atomic: its thread is in it                                            */
    uintptr_t thread; /* atomic: whose it is (tide_magazine_thread), once it has cells of the
                         instance's own key; 0: nobody's, any more or yet */
    tide_buffers *buffers;
    struct tide_magazine *next, **link;               /* of the instance; guarded by its mutex */
    struct tide_magazine *thread_next, **thread_link; /* of the thread; guarded by the registry */
    tide_cell *own;                     /* those of the instance's own key, for the fast paths */
    tide_cell *cells[TIDE_BUFFER_KEYS]; /* TIDE_BUCKETS each, or NULL */
} tide_magazine;

/* A piece of a bucket's list: runtime/buffers/store/runs.h. */
typedef struct tide_run {
    uint64_t tick, until; /* all of it was released from then to then */
    uint32_t first, last; /* in the order of the list          */
} tide_run;

typedef struct tide_tray tide_tray; /* runtime/buffers/store/tray.h */

/* The depot's side of a bucket; guarded by the mutex. Never moves. */
typedef struct tide_depot_bucket {
    uint32_t first;        /* of the list, the latest first; TIDE_NO_RECORD: none */
    uint32_t cached;       /* in the list and the tray                            */
    uint32_t permits;      /* given out: to list, tray and all cells              */
    uint32_t spare;        /* fewest cached since the last round of use: nobody needed these */
    uint32_t spare_before; /* the same of the round before that one                               */
    uint16_t skip, skipped; /* misses that do not gather: after the last gathering, and so far */
    uint32_t run_count, run_room;
    tide_run *runs, run_own; /* of the list, the oldest first */
    tide_tray *tray;         /* or NULL                       */
    uint64_t misses, dropped;
    tide_buffer_counts counts; /* of threads that have ended, or have no magazine */
} tide_depot_bucket;

/* Of an instance; why a thread does not go the quickest way. STOPPED: somebody else is in all
 * magazines, or will be. FENCED: the light fence alone will not do
 * (runtime/buffers/store/fence.h), and never will again. UNOWNED: a release takes an exchange from
 * now on, since somebody releases what another thread acquired. */
enum {
    TIDE_STATE_STOPPED = 1,
    TIDE_STATE_FENCED = 2,
    TIDE_STATE_KEEPS_OUT = TIDE_STATE_STOPPED | TIDE_STATE_FENCED,
    TIDE_STATE_UNOWNED = 4
};

struct tide_buffers {
    /* What every acquire reads and none writes. */
    tide_magazine *places[TIDE_MAGAZINE_PLACES]; /* atomic: by a hash of their thread; never NULL.
                                                    First: their place is the hash's alone */
    uint32_t state; /* TIDE_STATE_...; atomic, written with the mutex held */
    tide_buffers_policy policy;
    uint64_t number;  /* of the instance: none had it before, of any copy of the library */
    const void *copy; /* of the library: &tide_copy_own of the one that made it */
    tide_buffer_record *records;
    tide_device *device;
    void *stream;
    uint64_t stream_number;
    uint32_t flags;
    unsigned key; /* of these flags */
    tide_buffer_hook hook;
    void *user;
    bool immediate; /* the device does at once what is queued: nothing needs an order */
    bool careful;   /* checks: what is cached must not be touched (host memory)       */
    bool quick;     /* the host's, without checks and hook: nothing but to hand it out */
    uint8_t small[TIDE_BUCKET_SMALL / TIDE_BUCKET_MIN + 1]; /* buckets of small sizes, looked up */
    struct tide_address_table *addresses; /* atomic: runtime/buffers/store/address.h */
    uint32_t record_count; /* ever used; atomic: seldom written, with the mutex held */
    uint32_t count_max, age_max;
    tide_buffers_purge purge;
    size_t bytes_max;
    char name[32];

    /* Guarded by the mutex. */
    tide_lock mutex __attribute__((aligned(64)));
    uint32_t record_free; /* of those, free: a list                     */
    uint32_t addresses_promised;
    size_t bytes_permitted; /* of all permits                             */
    size_t bytes_held, bytes_high;
    size_t bytes_missed; /* allocated since the last round of use */
    uint64_t refused, trimmed, pressed, failed;
    uint64_t visited;       /* buffers in lists that trims by age looked at: for tests */
    uint64_t purge_visited; /* the same, of purges */
    uint32_t purge_at;      /* whose pages are given back just now, while the mutex is not held, or
                               TIDE_NO_RECORD; atomic: stays in its list until that is over */
    uint32_t purge_next; /* where the purge goes on in the list: who takes it out moves that on */
    bool purging;        /* a thread does it just now */
    tide_magazine *magazines;
    tide_magazine *ended; /* of threads that are gone: another thread may just ask whose they are,
                             so they are used again, and freed at the end */
    tide_depot_bucket *depot[TIDE_BUFFER_KEYS]; /* TIDE_BUCKETS each, or NULL */

    /* Guarded by the registry. */
    uint32_t users;  /* pools that draw from it */
    uint32_t shares; /* times it was asked for as the shared one; 0: it is its maker's alone */
    uint32_t shared_kind;
    uint32_t visitors; /* threads that look at it just now: it does not go from under them */
    bool ending;       /* it is being destroyed: nobody finds it any more. Atomic: a purge asks   */
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
    return tide_buffer_kind(key) | TIDE_BUFFER_TAG(key / TIDE_BUFFER_KINDS);
}

/* TIDE_BUFFER_KEYS, which is no key: nobody defined such flags. */
static inline unsigned tide_buffer_key(uint32_t flags)
{
    unsigned kind = flags & 0xFF, tag = flags >> 8;
    return kind < TIDE_BUFFER_KINDS && tag < TIDE_BUFFER_TAGS ? tag * TIDE_BUFFER_KINDS + kind
                                                              : TIDE_BUFFER_KEYS;
}

static inline bool tide_buffers_stopped(const tide_buffers *buffers)
{
    return (buffers->state & TIDE_STATE_STOPPED) != 0;
}

/* Was each buffer that has an owner released by that thread so far? Never of one that is not
 * quick: there all exchange from the first. */
static inline bool tide_buffers_owned(const tide_buffers *buffers)
{
    return (__atomic_load_n(&buffers->state, __ATOMIC_ACQUIRE) & TIDE_STATE_UNOWNED) == 0;
}

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

/* ---- all instances, and their clock: runtime/buffers/store/instance.c ---- */

/* Refuses an instance that another copy of the library made (runtime/base/copy.h): its lists and
 * its bounds are guarded by that copy's locks. Its fast paths never serve us. */
tide_status tide_buffers_of_ours(const tide_buffers *buffers, const char *call);

/* Into the list of all instances, with a number of its own, and out of it. Registry locked. */
void tide_buffers_enlist(tide_buffers *buffers);
void tide_buffers_delist(tide_buffers *buffers);

/* The first of the list, for who goes on by `next`; NULL: there is none. Registry locked. */
tide_buffers *tide_buffers_first(void);

/* Calls visit for every instance but those that are being destroyed. Nothing is locked meanwhile,
 * for visit may call the program's hooks: a visitor is counted instead. */
void tide_buffers_visit(void (*visit)(tide_buffers *buffers, void *user), void *user);

/* Waits until nobody visits it; nobody comes any more, since it is `ending`. Registry not
 * locked. */
void tide_buffers_wait_for_visitors(tide_buffers *buffers);

/* In the child of a fork: only this thread's own visits are left. Registry locked. */
void tide_buffers_recount_visitors(void);

extern uint64_t tide_buffers_ticks
    __attribute__((visibility("hidden"))); /* atomic: releases read it */

/* Ticks so far; after so many more rounds, a tick each. Any thread. */
static inline uint64_t tide_buffers_now(void)
{
    return __atomic_load_n(&tide_buffers_ticks, __ATOMIC_RELAXED);
}
uint64_t tide_buffers_advance(uint64_t rounds);

#endif
