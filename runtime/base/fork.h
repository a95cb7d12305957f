/* SPDX-License-Identifier: MIT */
/* What is done around fork, and with it the order of the library's locks.
 *
 * Who forks takes every lock of the library first, outermost first, so that the child finds what
 * they guard whole; who takes two of them in the course of work takes them in the same order. */
#ifndef TIDEPOOL_RUNTIME_BASE_FORK_H
#define TIDEPOOL_RUNTIME_BASE_FORK_H

/* Outermost first. One room has each. */
typedef enum tide_fork_rank {
    TIDE_FORK_WORKERS,   /* no lock: whoever uses them has that of the round */
    TIDE_FORK_KEEPER,    /* no lock: the child has no keeper                 */
    TIDE_FORK_ROUND,     /* a round of learning is under way                 */
    TIDE_FORK_DEVICES,   /* a device is being opened or closed               */
    TIDE_FORK_ARTEFACTS, /* the list of loaded code                          */
    TIDE_FORK_REGISTRY,  /* everything process-wide                          */
    TIDE_FORK_BUFFERS,   /* depots and magazines                             */
    TIDE_FORK_OPENCL,    /* no lock: counts forks                            */
    TIDE_FORK_RANKS
} tide_fork_rank;

/* Each may be NULL. `child` runs where no other thread is: a lock that remembers its owner is made
 * anew there, for fork changes the owner's number. */
typedef struct tide_fork_handlers {
    void (*prepare)(void); /* in the forking thread, outermost first                        */
    void (*parent)(void);  /* in the forking thread, innermost first                        */
    void (*child)(void);   /* innermost first: what it calls may take locks of inner ranks */
} tide_fork_handlers;

/* Before the lock is first taken; again changes nothing. Any thread, with any lock held. The
 * handlers must stay where they are. */
void tide_fork_register(tide_fork_rank rank, const tide_fork_handlers *handlers);

#endif
