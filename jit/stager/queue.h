/* SPDX-License-Identifier: MIT */
/* The requests to the stager. A request waits (no worker has it), is under way (a worker has it),
 * or is answered. Of workers this file knows only which of them has which requests. Whoever holds
 * the round lock calls it, as with jit/stager/stager.h. */
#ifndef TIDEPOOL_JIT_STAGER_QUEUE_H
#define TIDEPOOL_JIT_STAGER_QUEUE_H

#include "jit/stager/stager.h"

typedef struct tide_queued {
    struct tide_queued *next;
    const void *worker; /* who has it; NULL: it waits */
    bool again;         /* a worker that had it was lost */
    bool returned;      /* a worker that had it was idle */
    uint64_t sites;
    size_t sent, bytes;
    tide_stager_answer answer;
    char message[]; /* the line that announces it, and the specs */
} tide_queued;

/* A new request, behind those that wait. False: no memory for it. */
bool tide_queue_add(uint64_t id, const char *specs, size_t bytes);

/* The requests that wait or are under way, first come, first served; NULL: no more. */
tide_queued *tide_queue_first(void);
tide_queued *tide_queue_after(const tide_queued *one);

/* The request that a worker works on, now or next; with NULL, the first that waits. */
tide_queued *tide_queue_head(const void *worker);

tide_queued *tide_queue_find(const void *worker, uint64_t id);

/* Answers one that is not answered yet; `text` is the path if the result is TIDE_STAGER_OK, else
 * the error. */
void tide_queue_answer(tide_queued *one, tide_stager_result result, const char *text);

/* A worker is lost. `guilty` (NULL: nobody knows) is one of its requests and is answered with
 * `result`. Each other one waits again, or is answered with TIDE_STAGER_DIED if it has waited again
 * before: so no request is tried without end. The head was probably being worked on, so it goes to
 * the end of the queue: if it kills workers, it does not take the same others with it twice. */
void tide_queue_take_back(const void *worker, tide_queued *guilty, tide_stager_result result,
                          const char *text);

/* A worker was idle too long and went, and what it was given meanwhile waits as before. That
 * happens to a request once; again, and it counts as with a worker that was lost. */
void tide_queue_return(const void *worker, const char *text);

/* Hands out the next answer; false: there is none. */
bool tide_queue_fetch(tide_stager_answer *out);

/* Requests that are not answered; those, and answers not fetched. */
size_t tide_queue_open(void);
size_t tide_queue_count(void);

/* Forgets everything. */
void tide_queue_clear(void);

#endif
