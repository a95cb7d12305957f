/* SPDX-License-Identifier: MIT */
/* The helpers that work on orders, from start to end. Most of the time there is one; while it is
 * being replaced there are more.
 *
 * A helper serves (takes new orders), finishes (has been told to go, and answers what it has), or
 * is doomed (owes nothing and only has to end). Every failure comes down to one step:
 * tide_workers_lose dooms a helper and takes its orders back. As jit/stager/stager.h: whoever holds the round
 * lock calls it. */
#ifndef TIDEPOOL_JIT_STAGER_WORKERS_H
#define TIDEPOOL_JIT_STAGER_WORKERS_H

#include "jit/stager/process.h"
#include "jit/stager/queue.h"

enum {
    TIDE_WORKERS_MAX = 8,   /* at once; most of them doomed and slow to end */
    TIDE_WORKERS_GRACE = 200 /* milliseconds from SIGTERM to SIGKILL */
};

typedef enum tide_worker_state { TIDE_WORKER_FREE = 0, TIDE_WORKER_READY, TIDE_WORKER_DRAINING, TIDE_WORKER_TERMINATING } tide_worker_state;

typedef struct tide_worker {
    tide_worker_state role;
    bool greeted;
    bool killed;
    size_t bye_sent;
    uint64_t sites;
    int64_t since; /* when the head of its orders could be begun; doomed: when it was told */
    tide_process process;
} tide_worker;

extern tide_worker tide_workers[TIDE_WORKERS_MAX];
extern tide_stager_figures tide_worker_figures; /* of the whole service */

/* Milliseconds, by the clock that deadlines are measured by; by the real one. */
int64_t tide_workers_now(void);
int64_t tide_workers_real_time(void);

/* The first member in that role; NULL: none. */
tide_worker *tide_workers_find(tide_worker_state role);

/* Does it owe answers, or may it be given orders? */
bool tide_workers_works(const tide_worker *member);

/* Who takes new orders, started if need be, and recycled if it has done its part. NULL: *result
 * says why, and one line in `error`. */
tide_worker *tide_workers_serving(tide_stager_result *result, char *error, size_t room);

typedef enum tide_ending { TIDE_LET_GO, TIDE_TERMINATE, TIDE_KILL } tide_ending;

/* Dooms it. Its orders are taken back (jit/stager/queue.h). */
void tide_workers_lose(tide_worker *member, tide_queued *guilty, tide_stager_result result,
                    const char *text, tide_ending how);

/* Why it is lost: it was late with its head; it went by itself, as it was told, or not. */
void tide_workers_lose_late(tide_worker *member);
void tide_workers_lose_ended(tide_worker *member);

/* Loses all that work: nothing that they make can be used any more. */
void tide_workers_lose_all(const char *why);

/* Says "bye"; false: not all of it could be sent yet. */
bool tide_workers_tell_to_go(tide_worker *member);

void tide_workers_kill(tide_worker *member);

/* Gives the place of a doomed one back if it has ended. */
void tide_workers_collect(tide_worker *member);

/* Ends all: tells those that are idle to go, kills the others, and waits for them, but not for
 * ever. Their orders are not taken back. */
void tide_workers_dismiss(void);

/* Did this very process start helpers? Not so in one that was forked from it. */
bool tide_workers_is_ours(void);

#endif
