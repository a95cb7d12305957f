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

/* One process, one memory of what is gone, and one writer at a time: an older document that is
 * remembered last would bring back what is gone. */
static pthread_mutex_t write_lock = PTHREAD_MUTEX_INITIALIZER;
static tide_metrics_memory *write_memory;

/* In a forked child what was remembered is of the parent, and may be half changed. */
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

/* Numbers have a dot whatever the program's language is. */
static tide_status write_metrics(FILE *out)
{
    tide_status status;
    json_t *facts = write_ask(&status);
    if (facts == NULL)
        return status;
    if (write_memory == NULL)
        write_memory = tide_metrics_memory_new();
    locale_t before = uselocale(newlocale(LC_ALL_MASK, "C", NULL)); /* which allocates nothing */
    bool good = write_memory != NULL && tide_metrics_remember(write_memory, facts) &&
                tide_metrics_of(out, facts, write_memory);
    uselocale(before);
    json_decref(facts);
    return good ? TIDE_OK : TIDE_ERROR_MEMORY;
}

/* Whoever `out` waits for waits for nobody here: the text is made first. */
tide_status tide_metrics_write(FILE *out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char *text = NULL;
    size_t length = 0;
    if (out == NULL)
        return TIDE_ERROR_ARGUMENT;
    pthread_once(&once, write_prepare);
    FILE *page = tide_memory_stream_open(&text, &length);
    if (page == NULL)
        return TIDE_ERROR_MEMORY;
    pthread_mutex_lock(&write_lock);
    tide_status status = write_metrics(page);
    pthread_mutex_unlock(&write_lock);
    if (!tide_memory_stream_close(page, &text) && status == TIDE_OK)
        status = TIDE_ERROR_MEMORY;
    if (status == TIDE_OK && (fwrite(text, 1, length, out) != length || fflush(out) != 0))
        status = TIDE_ERROR_FILE;
    free(text);
    return status;
}
