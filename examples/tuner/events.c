/* SPDX-License-Identifier: MIT */
/* Server-sent events: each follower is told each entry of the journal, and between them what the
 * workers are seen to be. */
#define _GNU_SOURCE
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service.h"

enum { FOLLOWERS = 8, LOOK_MS = 250 };

typedef struct events_follower {
    uint64_t told;
    char *text;
    size_t length, given;
} events_follower;

static int events_followers; /* atomic */
static bool events_end;      /* atomic */

/* The next piece: entries that are new, else the sites, which also tells that the connection lives. */
static bool events_make_next(events_follower *follower)
{
    nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    json_t *list = journal_after(follower->told), *one;
    size_t i;
    FILE *out = open_memstream(&follower->text, &follower->length);
    if (out == NULL)
        return false;
    json_array_foreach(list, i, one)
    {
        follower->told = (uint64_t)json_integer_value(json_object_get(one, "number"));
        fprintf(out, "id: %llu\nevent: change\ndata: ", (unsigned long long)follower->told);
        json_dumpf(one, out, JSON_COMPACT);
        fputs("\n\n", out);
    }
    if (json_array_size(list) == 0) {
        char *workers = workers_text(VIEW_WORKERS), *sites = workers_text(VIEW_SITES);
        if (workers != NULL && sites != NULL)
            fprintf(out, "event: workers\ndata: %s\n\nevent: sites\ndata: %s\n\n", workers, sites);
        free(workers);
        free(sites);
    }
    json_decref(list);
    return fclose(out) == 0 && follower->length > 0;
}

static ssize_t events_give(void *user, uint64_t position, char *to, size_t most)
{
    events_follower *follower = user;
    (void)position;
    if (follower->given == follower->length) {
        free(follower->text);
        *follower = (events_follower){.told = follower->told};
        if (__atomic_load_n(&events_end, __ATOMIC_RELAXED) || !events_make_next(follower))
            return MHD_CONTENT_READER_END_OF_STREAM;
    }
    size_t count = follower->length - follower->given;
    count = count < most ? count : most;
    memcpy(to, follower->text + follower->given, count);
    follower->given += count;
    return (ssize_t)count;
}

static void events_let_go(void *user)
{
    events_follower *follower = user;
    free(follower->text);
    free(follower);
    __atomic_fetch_sub(&events_followers, 1, __ATOMIC_RELAXED);
}

int events_answer(struct MHD_Connection *connection)
{
    const char *last = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Last-Event-ID");
    events_follower *follower = calloc(1, sizeof *follower);
    if (follower == NULL)
        return MHD_NO;
    if (__atomic_fetch_add(&events_followers, 1, __ATOMIC_RELAXED) >= FOLLOWERS) {
        events_let_go(follower);
        return -1;
    }
    follower->told = last != NULL ? journal_known(strtoull(last, NULL, 10)) : 0;
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, 1 << 16, events_give, follower, events_let_go);
    if (response == NULL) {
        events_let_go(follower);
        return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Type", "text/event-stream");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    enum MHD_Result result = MHD_queue_response(connection, 200, response);
    MHD_destroy_response(response);
    return (int)result;
}

void events_stop(void)
{
    __atomic_store_n(&events_end, true, __ATOMIC_RELAXED);
}
