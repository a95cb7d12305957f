/* SPDX-License-Identifier: MIT */
/* The journal: the last entries, numbered, for who asks and who follows. */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "service.h"

enum { KEPT = 512 };

static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER;
static json_t *journal_entries[KEPT]; /* by number */
static uint64_t journal_last;
static json_t *journal_totals; /* of each verdict, how many entries have had it */

void journal_add(json_t *entry)
{
    const char *verdict = json_string_value(json_object_get(entry, "verdict"));
    if (verdict == NULL)
        return;
    pthread_mutex_lock(&journal_lock);
    journal_last++;
    journal_totals = journal_totals != NULL ? journal_totals : json_object();
    json_int_t total = json_integer_value(json_object_get(journal_totals, verdict));
    json_object_set_new(journal_totals, verdict, json_integer(total + 1));
    json_object_set_new(entry, "number", json_integer((json_int_t)journal_last));
    json_object_set_new(entry, "time", json_integer((json_int_t)time(NULL)));
    json_decref(journal_entries[journal_last % KEPT]);
    journal_entries[journal_last % KEPT] = entry;
    pthread_mutex_unlock(&journal_lock);
}

json_t *journal_after(uint64_t since)
{
    json_t *list = json_array();
    pthread_mutex_lock(&journal_lock);
    uint64_t first = journal_last > KEPT ? journal_last - KEPT + 1 : 1;
    for (uint64_t i = since < first ? first : since + 1; i <= journal_last; i++)
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

json_t *journal_counts(void)
{
    pthread_mutex_lock(&journal_lock);
    json_t *totals = json_deep_copy(journal_totals);
    pthread_mutex_unlock(&journal_lock);
    return totals;
}
