/* SPDX-License-Identifier: MIT */
/* Two lists: requests that are not answered yet (they wait, or a worker has them), and answers. A
 * request that is lost with its worker waits once more, and only once. */
#define _GNU_SOURCE
#include "jit/stager/queue.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/os.h"

enum { LINE = 64 }; /* most bytes of the line that announces a request */

_Static_assert(sizeof "order 18446744073709551615 18446744073709551615\n" <= LINE,
               "the longest announcement fits");

typedef struct queue {
    tide_queued *first, **last;
    size_t count;
} queue;

static queue queue_pending = {.last = &queue_pending.first},
             queue_answered = {.last = &queue_answered.first};

/* ---- lists -------------------------------------------------------------------------------- */

static void queue_append(queue *to, tide_queued *one)
{
    tide_assert(*to->last == NULL);
    one->next = NULL;
    *to->last = one;
    to->last = &one->next;
    to->count++;
}

static void queue_take_out(queue *from, tide_queued *one)
{
    tide_assert(from->count > 0);
    tide_queued **link = &from->first;
    while (*link != one) {
        tide_assert(*link != NULL);
        link = &(*link)->next;
    }
    *link = one->next;
    if (from->last == &one->next)
        from->last = link;
    from->count--;
    tide_assert((from->first == NULL) == (from->count == 0) && *from->last == NULL);
}

static void queue_clear_list(queue *all)
{
    while (all->first != NULL) {
        tide_queued *one = all->first;
        queue_take_out(all, one);
        tide_os_free(one);
    }
    tide_assert(all->count == 0);
}

/* ---- requests ----------------------------------------------------------------------------- */

static uint64_t queue_count_sites(const char *text, size_t bytes)
{
    static const char word[] = "\nsite ";
    uint64_t count = 0;
    const char *end = text + bytes;
    while ((text = memmem(text, (size_t)(end - text), word, strlen(word))) != NULL) {
        text += strlen(word);
        count++;
    }
    return count;
}

/* The announcing line and the specs, as they go to a worker. NULL without memory. */
static tide_queued *queue_make_entry(uint64_t id, const char *specs, size_t bytes)
{
    char announced[LINE];
    int length =
        snprintf(announced, sizeof announced, "order %llu %zu\n", (unsigned long long)id, bytes);
    tide_assert(length > 0 && (size_t)length < sizeof announced);
    tide_queued *one = tide_os_resize(NULL, sizeof *one + (size_t)length + bytes);
    if (one == NULL)
        return NULL;
    *one = (tide_queued){.sites = queue_count_sites(specs, bytes),
                         .bytes = (size_t)length + bytes,
                         .answer.request = id};
    memcpy(one->message, announced, (size_t)length);
    memcpy(one->message + length, specs, bytes);
    return one;
}

bool tide_queue_add(uint64_t id, const char *specs, size_t bytes)
{
    tide_assert(specs != NULL);
    tide_queued *one = queue_make_entry(id, specs, bytes);
    if (one != NULL)
        queue_append(&queue_pending, one);
    return one != NULL;
}

tide_queued *tide_queue_first(void)
{
    return queue_pending.first;
}

tide_queued *tide_queue_after(const tide_queued *one)
{
    tide_assert(one != NULL);
    return one->next;
}

tide_queued *tide_queue_head(const void *worker)
{
    tide_queued *one = queue_pending.first;
    while (one != NULL && one->worker != worker)
        one = one->next;
    return one;
}

tide_queued *tide_queue_find(const void *worker, uint64_t id)
{
    tide_queued *one = queue_pending.first;
    while (one != NULL && (one->worker != worker || one->answer.request != id))
        one = one->next;
    return one;
}

void tide_queue_take_back(const void *worker, tide_queued *guilty, tide_stager_result result,
                          const char *text)
{
    tide_assert(worker != NULL && (guilty == NULL || guilty->worker == worker));
    tide_queued *suspect = tide_queue_head(worker);
    bool to_end = suspect != NULL && suspect != guilty && !suspect->again;
    if (guilty != NULL)
        tide_queue_answer(guilty, result, text);
    for (tide_queued *one = queue_pending.first, *next; one != NULL; one = next) {
        next = one->next;
        if (one->worker != worker)
            continue;
        tide_assert(one->sent <= one->bytes);
        one->worker = NULL;
        one->answer.spent_us = 0;
        if (one->again)
            tide_queue_answer(one, TIDE_STAGER_DIED, text);
        one->again = true;
    }
    if (to_end) {
        queue_take_out(&queue_pending, suspect);
        queue_append(&queue_pending, suspect);
    }
    tide_assert(tide_queue_head(worker) == NULL); /* it owes nothing any more */
}

void tide_queue_return(const void *worker, const char *text)
{
    tide_assert(worker != NULL);
    for (tide_queued *one = queue_pending.first, *next; one != NULL; one = next) {
        next = one->next;
        if (one->worker != worker)
            continue;
        one->worker = NULL;
        one->answer.spent_us = 0;
        if (one->returned && one->again)
            tide_queue_answer(one, TIDE_STAGER_DIED, text);
        one->again = one->again || one->returned;
        one->returned = true;
    }
    tide_assert(tide_queue_head(worker) == NULL);
}

/* ---- answers ------------------------------------------------------------------------------ */

void tide_queue_answer(tide_queued *one, tide_stager_result result, const char *text)
{
    tide_assert(text != NULL && result <= TIDE_STAGER_REFUSED);
    tide_assert(result != TIDE_STAGER_OK ||
                strlen(text) < sizeof one->answer.path); /* a path whole */
    char *to = result == TIDE_STAGER_OK ? one->answer.path : one->answer.error;
    size_t room = result == TIDE_STAGER_OK ? sizeof one->answer.path : sizeof one->answer.error;
    one->answer.result = result;
    snprintf(to, room, "%s", text);
    queue_take_out(&queue_pending, one);
    queue_append(&queue_answered, one);
}

bool tide_queue_fetch(tide_stager_answer *out)
{
    tide_assert(out != NULL);
    tide_queued *one = queue_answered.first;
    if (one == NULL)
        return false;
    *out = one->answer;
    queue_take_out(&queue_answered, one);
    tide_os_free(one);
    return true;
}

size_t tide_queue_open(void)
{
    return queue_pending.count;
}

size_t tide_queue_count(void)
{
    return queue_pending.count + queue_answered.count;
}

void tide_queue_clear(void)
{
    queue_clear_list(&queue_pending);
    queue_clear_list(&queue_answered);
    tide_assert(tide_queue_count() == 0);
}
