/* SPDX-License-Identifier: MIT */
/* The workers: processes that work on requests, from start to end. Most of the time there is one;
 * while it is being replaced there are more.
 *
 * A worker is ready (it takes new requests), draining (it was told to go, and answers what it has)
 * or terminating (it owes nothing and only has to end). Every failure leads to one step:
 * tide_workers_lose takes a worker's requests back and terminates it. Whoever holds the round lock
 * calls these, as with jit/stager/stager.h. */
#ifndef TIDEPOOL_JIT_STAGER_WORKERS_H
#define TIDEPOOL_JIT_STAGER_WORKERS_H

#include "jit/stager/privilege.h"
#include "jit/stager/process.h"
#include "jit/stager/queue.h"

enum {
    TIDE_WORKERS_MAX = 8,    /* at once; most of them terminating and slow to end */
    TIDE_WORKERS_GRACE = 200 /* milliseconds from SIGTERM to SIGKILL */
};

typedef enum tide_worker_state {
    TIDE_WORKER_FREE = 0,   /* no process has the place               */
    TIDE_WORKER_READY,      /* takes new requests                     */
    TIDE_WORKER_DRAINING,   /* takes none, and answers those it has   */
    TIDE_WORKER_TERMINATING /* has none, and only has to end         */
} tide_worker_state;

typedef struct tide_worker {
    tide_worker_state state;
    bool greeted;
    bool killed;
    bool full; /* the system takes no more of what it is sent, for now */
    size_t bye_sent;
    uint64_t sites;
    int64_t since;              /* when its head could be begun; terminating: when it was told */
    tide_privileges privileges; /* those it was started with */
    tide_process process;
} tide_worker;

extern tide_worker tide_workers[TIDE_WORKERS_MAX];
extern tide_stager_figures tide_worker_figures; /* of the whole service */

/* Milliseconds, by the clock that deadlines are measured by; by the real one. */
int64_t tide_workers_now(void);
int64_t tide_workers_real_time(void);

/* The first worker in that state; NULL: none. */
tide_worker *tide_workers_find(tide_worker_state state);

/* Does it owe answers, or may it be given requests? */
bool tide_workers_works(const tide_worker *worker);

/* The worker that takes new requests. Starts one if there is none; one that has done its part
 * drains and is replaced. NULL: *result says why, and one line in `error`. */
tide_worker *tide_workers_serving(tide_stager_result *result, char *error, size_t room);

typedef enum tide_ending { TIDE_LET_GO, TIDE_TERMINATE, TIDE_KILL } tide_ending;

/* Takes its requests back (jit/stager/queue.h) and terminates it. */
void tide_workers_lose(tide_worker *worker, tide_queued *guilty, tide_stager_result result,
                       const char *text, tide_ending how);

/* Two causes of loss: it was late with its head; its process ended, as it was told to or not. */
void tide_workers_lose_late(tide_worker *worker);
void tide_workers_lose_ended(tide_worker *worker);

/* Loses every worker that works: what they make cannot be used any more. */
void tide_workers_lose_all(const char *why, tide_ending how);

/* It was idle, and goes by itself. That is no loss. */
void tide_workers_let_idle_go(tide_worker *worker);

/* Sleeps until a worker may have said something or ended, at most so many milliseconds. */
void tide_workers_wait(int64_t most_ms);

/* Says "bye"; false: not all of it could be sent yet. */
bool tide_workers_tell_to_go(tide_worker *worker);

void tide_workers_kill(tide_worker *worker);

/* Frees the place of a terminating one if it has ended. */
void tide_workers_collect(tide_worker *worker);

/* Ends all: tells those that are idle to go, kills the others, and waits for them, but not for
 * ever. Their requests are not taken back. */
void tide_workers_dismiss(void);

/* Did this very process start workers? A forked child did not. */
bool tide_workers_is_ours(void);

/* Registers what is done around fork. While the library is attached. */
void tide_workers_prepare(void);

#endif
