/* SPDX-License-Identifier: MIT */
/* The journal: the last entries, numbered, for who asks and who follows. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "service.h"

enum { KEPT = 512 };

static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t journal_grew = PTHREAD_COND_INITIALIZER;
static json_t *journal_entries[KEPT]; /* by number */
static uint64_t journal_last;

void journal_add(json_t *entry)
{
    if (entry == NULL)
        return;
    pthread_mutex_lock(&journal_lock);
    journal_last++;
    json_object_set_new(entry, "number", json_integer((json_int_t)journal_last));
    json_object_set_new(entry, "time", json_integer((json_int_t)time(NULL)));
    json_decref(journal_entries[journal_last % KEPT]);
    journal_entries[journal_last % KEPT] = entry;
    pthread_cond_broadcast(&journal_grew);
    pthread_mutex_unlock(&journal_lock);
}

json_t *journal_after(uint64_t since, int wait_ms)
{
    struct timespec until;
    json_t *list = json_array();
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += wait_ms % 1000 * 1000000L;
    until.tv_sec += wait_ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&journal_lock);
    while (journal_last <= since &&
           pthread_cond_timedwait(&journal_grew, &journal_lock, &until) != ETIMEDOUT)
        continue;
    uint64_t from =
        journal_last > KEPT && since < journal_last - KEPT ? journal_last - KEPT : since;
    for (uint64_t i = from + 1; i <= journal_last; i++)
        json_array_append_new(list, json_deep_copy(journal_entries[i % KEPT]));
    pthread_mutex_unlock(&journal_lock);
    return list;
}

uint64_t journal_known(uint64_t number)
{
    pthread_mutex_lock(&journal_lock);
    uint64_t known = number <= journal_last ? number : 0;
    pthread_mutex_unlock(&journal_lock);
    return known;
}

uint64_t journal_count(const char *verdict)
{
    uint64_t count = 0;
    pthread_mutex_lock(&journal_lock);
    for (int i = 0; i < KEPT; i++) {
        const char *said = json_string_value(json_object_get(journal_entries[i], "verdict"));
        count += said != NULL && strcmp(said, verdict) == 0;
    }
    pthread_mutex_unlock(&journal_lock);
    return count;
}
