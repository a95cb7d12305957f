/* SPDX-License-Identifier: MIT */
/* Two lists: orders that are not answered, waiting or under way, and answers. */
#define _GNU_SOURCE
#include "jit/stager/queue.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/os.h"

enum { UNSTORED = 256 }; /* orders for which there was no memory, and no answer fetched yet */

typedef struct queue {
    tide_queued *first, **last;
    size_t count;
} queue;

static queue pending = {.last = &pending.first}, answered = {.last = &answered.first};
static uint64_t unstored[UNSTORED];
static size_t unstored_count;

/* ---- lists -------------------------------------------------------------------------------- */

static void append(queue *to, tide_queued *one)
{
    tide_assert(*to->last == NULL);
    one->next = NULL;
    *to->last = one;
    to->last = &one->next;
    to->count++;
}

static void take_out(queue *from, tide_queued *one)
{
    tide_queued **link = &from->first;
    while (*link != one) {
        tide_assert(*link != NULL);
        link = &(*link)->next;
    }
    *link = one->next;
    if (from->last == &one->next)
        from->last = link;
    from->count--;
}

static void clear(queue *all)
{
    while (all->first != NULL) {
        tide_queued *one = all->first;
        take_out(all, one);
        tide_os_free(one);
    }
    tide_assert(all->count == 0);
}

/* ---- orders ------------------------------------------------------------------------------- */

static uint64_t count_sites(const char *text, size_t bytes)
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

static tide_queued *make(uint64_t id, const char *specs, size_t bytes)
{
    char announced[64];
    int length =
        snprintf(announced, sizeof announced, "order %llu %zu\n", (unsigned long long)id, bytes);
    tide_queued *one = tide_os_resize(NULL, sizeof *one + (size_t)length + bytes);
    if (one == NULL)
        return NULL;
    *one = (tide_queued){
        .sites = count_sites(specs, bytes), .bytes = (size_t)length + bytes, .answer.order = id};
    memcpy(one->message, announced, (size_t)length);
    memcpy(one->message + length, specs, bytes);
    return one;
}

void tide_queue_add(uint64_t id, const char *specs, size_t bytes)
{
    tide_queued *one = make(id, specs, bytes);
    if (one != NULL)
        append(&pending, one);
    else if (unstored_count < UNSTORED)
        unstored[unstored_count++] = id;
}

tide_queued *tide_queue_first(void)
{
    return pending.first;
}

tide_queued *tide_queue_after(const tide_queued *one)
{
    return one->next;
}

tide_queued *tide_queue_head(const void *helper)
{
    tide_queued *one = pending.first;
    while (one != NULL && one->helper != helper)
        one = one->next;
    return one;
}

tide_queued *tide_queue_find(const void *helper, uint64_t id)
{
    tide_queued *one = pending.first;
    while (one != NULL && (one->helper != helper || one->answer.order != id))
        one = one->next;
    return one;
}

void tide_queue_take_back(const void *helper, tide_queued *guilty, tide_stager_result result,
                          const char *text)
{
    tide_assert(helper != NULL && (guilty == NULL || guilty->helper == helper));
    tide_queued *suspect = tide_queue_head(helper);
    bool to_end = suspect != NULL && suspect != guilty && !suspect->again;
    if (guilty != NULL)
        tide_queue_answer(guilty, result, text);
    for (tide_queued *one = pending.first, *next; one != NULL; one = next) {
        next = one->next;
        if (one->helper != helper)
            continue;
        one->helper = NULL;
        if (one->again)
            tide_queue_answer(one, TIDE_STAGER_DIED, text);
        one->again = true;
    }
    if (to_end) {
        take_out(&pending, suspect);
        append(&pending, suspect);
    }
    tide_assert(tide_queue_head(helper) == NULL);
}

/* ---- answers ------------------------------------------------------------------------------ */

void tide_queue_answer(tide_queued *one, tide_stager_result result, const char *text)
{
    char *to = result == TIDE_STAGER_OK ? one->answer.path : one->answer.error;
    size_t room = result == TIDE_STAGER_OK ? sizeof one->answer.path : sizeof one->answer.error;
    one->answer.result = result;
    snprintf(to, room, "%s", text);
    take_out(&pending, one);
    append(&answered, one);
}

bool tide_queue_fetch(tide_stager_answer *out)
{
    tide_queued *one = answered.first;
    if (one != NULL) {
        *out = one->answer;
        take_out(&answered, one);
        tide_os_free(one);
        return true;
    }
    if (unstored_count == 0)
        return false;
    *out = (tide_stager_answer){.order = unstored[--unstored_count], .result = TIDE_STAGER_DIED};
    snprintf(out->error, sizeof out->error, "no memory for the order");
    return true;
}

size_t tide_queue_open(void)
{
    return pending.count;
}

size_t tide_queue_count(void)
{
    return pending.count + answered.count + unstored_count;
}

void tide_queue_clear(void)
{
    clear(&pending);
    clear(&answered);
    unstored_count = 0;
}
