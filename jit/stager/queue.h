/* SPDX-License-Identifier: MIT */
/* The orders of the stager: an order waits (no helper yet), is under way (has a helper), or is
 * answered. It knows of helpers only which of them has which orders. As jit/stager/stager.h: whoever holds
 * the round lock calls it. */
#ifndef TIDEPOOL_JIT_STAGER_QUEUE_H
#define TIDEPOOL_JIT_STAGER_QUEUE_H

#include "jit/stager/stager.h"

typedef struct tide_queued {
    struct tide_queued *next;
    const void *helper; /* who has it; NULL: it waits */
    bool again;         /* has been given to a helper that was lost */
    uint64_t sites;
    size_t sent, bytes;
    tide_stager_answer answer;
    char message[]; /* the line that announces it, and the specs */
} tide_queued;

/* A new order at the end of those that wait. Without memory for it, it is answered so. */
void tide_queue_add(uint64_t id, const char *specs, size_t bytes);

/* The orders that wait or are under way, in the order in which they are worked on; NULL: no more.
 */
tide_queued *tide_queue_first(void);
tide_queued *tide_queue_after(const tide_queued *one);

/* The order that a helper is, or will first be, working on; with NULL, the first that waits. */
tide_queued *tide_queue_head(const void *helper);

tide_queued *tide_queue_find(const void *helper, uint64_t id);

/* Answers one that is not answered yet; `text` is the path if the result is TIDE_STAGER_OK, else
 * the error. */
void tide_queue_answer(tide_queued *one, tide_stager_result result, const char *text);

/* A helper is lost. `guilty` (NULL: nobody knows) is one of its orders and is answered with
 * `result`; each other one waits again, or is answered with TIDE_STAGER_DIED if it did so before.
 * That it waits again but once bounds everything. The order that was at its head, and so probably
 * was being worked on, goes to the end of the queue: if it is what kills stagers, it does not take
 * the same others with it twice. */
void tide_queue_take_back(const void *helper, tide_queued *guilty, tide_stager_result result,
                          const char *text);

/* Hands out the next answer; false: there is none. */
bool tide_queue_fetch(tide_stager_answer *out);

/* Orders that are not answered; those, and answers not fetched. */
size_t tide_queue_open(void);
size_t tide_queue_count(void);

/* Forgets everything. */
void tide_queue_clear(void);

#endif
