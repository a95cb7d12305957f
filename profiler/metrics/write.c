/* SPDX-License-Identifier: MIT */
/* The figures of this process, written by itself. */
#define _GNU_SOURCE
#include <tidepool/facts.h>
#include <tidepool/metrics.h>

#include <locale.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "profiler/metrics/metrics.h"
#include "runtime/base/assert.h"
#include "runtime/base/memory_stream.h"

/* One process, one memory of what is gone. The lock is for that alone: nothing of the library is
 * called with it, so a document is asked for without. It must not be older than what is remembered:
 * the earlier of two, remembered last, would bring back what is gone. Each that is remembered is
 * counted, and whoever finds another count than before it asked asks again. */
static pthread_mutex_t write_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t write_remembered; /* with the lock */
static pthread_once_t write_once = PTHREAD_ONCE_INIT;
static tide_metrics_memory *write_memory;

/* In a forked child, whose thread may not be the one that had the lock. What was remembered is of
 * the parent, and may be half changed. */
static void write_after_fork(void)
{
    pthread_mutex_init(&write_lock, NULL);
    write_memory = NULL;
}

static void write_prepare(void)
{
    (void)pthread_atfork(NULL, NULL, write_after_fork);
}

/* The document, or NULL with the status. */
static json_t *write_ask(tide_status *status)
{
    char *text = NULL;
    size_t bytes = 0;
    json_t *facts = NULL;
    FILE *document = tide_memory_stream_open(&text, &bytes);
    *status = document != NULL ? tide_facts_write(document) : TIDE_ERROR_MEMORY;
    if (!tide_memory_stream_close(document, &text) && *status == TIDE_OK)
        *status = TIDE_ERROR_MEMORY;
    if (*status == TIDE_OK && (facts = json_loadb(text, bytes, 0, NULL)) == NULL)
        *status = TIDE_ERROR_MEMORY;
    free(text);
    tide_assert((facts != NULL) == (*status == TIDE_OK));
    return facts;
}

/* With the lock. Numbers have a dot whatever the program's language is. */
static tide_status write_metrics(FILE *out, json_t *facts, tide_metrics_format format)
{
    if (write_memory == NULL)
        write_memory = tide_metrics_memory_new();
    locale_t before = uselocale(newlocale(LC_ALL_MASK, "C", NULL)); /* which allocates nothing */
    bool good = write_memory != NULL && tide_metrics_remember(write_memory, facts) &&
                tide_metrics_of(out, facts, write_memory, format);
    uselocale(before);
    write_remembered++;
    return good ? TIDE_OK : TIDE_ERROR_MEMORY;
}

static uint64_t write_count_remembered(void)
{
    pthread_mutex_lock(&write_lock);
    uint64_t count = write_remembered;
    pthread_mutex_unlock(&write_lock);
    return count;
}

/* False: another document has been remembered since this one was asked for, most likely. */
static bool write_in_order(FILE *out, tide_metrics_format format, tide_status *status)
{
    uint64_t before = write_count_remembered();
    json_t *facts = write_ask(status);
    if (facts == NULL)
        return true;
    pthread_mutex_lock(&write_lock);
    bool latest = write_remembered == before;
    if (latest)
        *status = write_metrics(out, facts, format);
    pthread_mutex_unlock(&write_lock);
    json_decref(facts);
    return latest;
}

/* The text, malloced; NULL with the status. */
static char *write_text(tide_metrics_format format, size_t *length, tide_status *status)
{
    char *text = NULL;
    FILE *page = tide_memory_stream_open(&text, length);
    *status = TIDE_ERROR_MEMORY;
    if (page == NULL)
        return NULL;
    while (!write_in_order(page, format, status))
        continue; /* of those that ask at once one always comes through */
    bool whole = tide_memory_stream_close(page, &text);
    if (*status == TIDE_OK && !whole)
        *status = TIDE_ERROR_MEMORY;
    if (*status == TIDE_OK)
        return text;
    free(text);
    return NULL;
}

/* Whoever `out` waits for waits for nobody here: the lock was let go. */
static tide_status write_page(FILE *out, tide_metrics_format format)
{
    size_t length = 0;
    tide_status status;
    char *text = write_text(format, &length, &status);
    if (text == NULL)
        return status;
    bool written = fwrite(text, 1, length, out) == length && fflush(out) == 0;
    free(text);
    return written ? TIDE_OK : TIDE_ERROR_FILE;
}

/* No thread is cancelled in here: it may have the lock, and has the text. */
tide_status tide_metrics_write(FILE *out, bool openmetrics)
{
    int cancels;
    if (out == NULL)
        return TIDE_ERROR_ARGUMENT;
    pthread_once(&write_once, write_prepare);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancels);
    tide_status status = write_page(out, openmetrics ? TIDE_METRICS_OPEN : TIDE_METRICS_PROMETHEUS);
    pthread_setcancelstate(cancels, NULL);
    return status;
}
