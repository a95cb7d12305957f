/* SPDX-License-Identifier: MIT */
/* What is done around fork, and with it the order of the library's locks.
 *
 * Who forks takes every lock that is registered here first, outermost first, so that the child finds what
 * they guard whole; who takes two of them in the course of work takes them in the same order. */
#ifndef TIDEPOOL_RUNTIME_BASE_FORK_H
#define TIDEPOOL_RUNTIME_BASE_FORK_H

/* Outermost first (runtime/base/lock.h says what the ranks are for). */
typedef enum tide_fork_rank {
    TIDE_FORK_THREAD,     /* no lock: the background thread ends before, so it needs the others */
    TIDE_FORK_ROUND,      /* a round of learning is under way                                   */
    TIDE_FORK_POOLS,      /* no lock: others' are lost in the child                             */
    TIDE_FORK_REGISTRY,   /* everything process-wide                                            */
    TIDE_FORK_GRAPHS,     /* PyTorch's captures and their memory                                */
    TIDE_FORK_BUFFERS,    /* depots and magazines                                               */
    TIDE_FORK_DRIVERS,    /* no lock: the child does without                                    */
    TIDE_FORK_BACKGROUND, /* the background thread: started, running, stopping                  */
    TIDE_FORK_EVENTS,     /* the queue of events, and who hears them                            */
    TIDE_FORK_LISTEN,     /* no lock: the child closes the socket                               */
    TIDE_FORK_PAGES,      /* not taken: the child calls no driver. A device maps or unmaps      */
    TIDE_FORK_CAPTURES,   /* graphs whose memory is not given back yet                          */
    TIDE_FORK_DEFERRED,   /* what is on its way back, of all devices                            */
    TIDE_FORK_MEMORY,     /* one device's own lists                                             */
    TIDE_FORK_SAMPLES,    /* who took what memory                                               */
    TIDE_FORK_RANKS
} tide_fork_rank;

/* Each may be NULL. A module that only has to hold one lock during the fork names that lock, and needs no
 * functions. `child` runs while the child has no other thread. */
typedef struct tide_fork_handlers {
    struct tide_lock
        *lock; /* taken before the fork; let go of after it, in the child after `child` */
    void (*prepare)(void); /* in the forking thread, outermost first                        */
    void (*parent)(void);  /* in the forking thread, innermost first                        */
    void (*child)(void);   /* innermost first: what it calls may take locks of inner ranks */
} tide_fork_handlers;

/* When the library is attached (jit/ring.c), or before the lock is first taken, if that is
 * earlier; again changes nothing. Not later: a fork that is under way has passed the rank by, and
 * its child would find the lock taken. Any thread, with any lock held. The handlers must stay where
 * they are. */
void tide_fork_register(tide_fork_rank rank, const tide_fork_handlers *handlers);

#endif
