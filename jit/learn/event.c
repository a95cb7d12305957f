/* SPDX-License-Identifier: MIT */
/* Queues what happens in a round, and tells the listener at its end; counts what happened. */
#include "jit/learn/event.h"

#include <pthread.h>
#include <stdio.h>

#include "jit/cache/artefact.h"
#include "jit/learn/limbo.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"

enum { QUEUE = 1024, NAME = 64, DETAIL = 160 };

typedef struct noted {
    tide_event event;
    char name[NAME], detail[DETAIL];
} noted;

static pthread_mutex_t event_mutex = PTHREAD_MUTEX_INITIALIZER;
static noted event_queue[QUEUE]; /* of this round; guarded by the mutex, as is all below */
static size_t event_count, event_told;
static tide_event_function *event_listener;
static void *event_listener_user;

tide_learning_statistics tide_learning_figures;

_Static_assert(sizeof tide_learning_figures % sizeof(uint64_t) == 0, "all of it is counters");

void tide_event_set_handler(tide_event_function *function, void *user)
{
    pthread_mutex_lock(&event_mutex);
    event_listener = function;
    event_listener_user = user;
    pthread_mutex_unlock(&event_mutex);
}

const char *tide_event_name(tide_event_kind kind)
{
    static const char *const names[] = {"found",  "staged",  "published",
                                        "missed", "retired", "gave up"};
    _Static_assert(sizeof names / sizeof *names == TIDE_EVENT_GAVE_UP + 1, "each kind has a name");
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

static const char *event_name_of_site(const tide_site *site)
{
    if (site == NULL)
        return "";
    return site->name != NULL             ? site->name
           : site->place.function != NULL ? site->place.function
                                          : "?";
}

void tide_event_note(tide_event_kind kind, tide_site *site, tide_tier tier, tide_reason reason,
                     const char *detail)
{
    tide_assert(kind <= TIDE_EVENT_GAVE_UP && reason < TIDE_REASON_COUNT && detail != NULL);
    pthread_mutex_lock(&event_mutex);
    if (event_listener == NULL) {
        /* nobody to tell */
    } else if (event_count < QUEUE) {
        noted *at = &event_queue[event_count++];
        at->event = (tide_event){
            .kind = kind, .site = site, .tier = tier, .reason = tide_reason_words(reason)};
        snprintf(at->name, sizeof at->name, "%s", event_name_of_site(site));
        snprintf(at->detail, sizeof at->detail, "%s", detail);
    } else {
        tide_count(untold);
    }
    pthread_mutex_unlock(&event_mutex);
}

/* Takes one event. Nothing is locked while it is told, so the listener may do what it likes. If it
 * makes a round of its own, that round also tells what is left of this one. */
static bool event_take_next(noted *out, tide_event_function **function, void **user)
{
    pthread_mutex_lock(&event_mutex);
    tide_assert(event_told <= event_count && event_count <= QUEUE);
    bool more = event_told < event_count && event_listener != NULL;
    if (more) {
        *out = event_queue[event_told++];
        *function = event_listener;
        *user = event_listener_user;
    } else {
        event_count = event_told = 0;
    }
    pthread_mutex_unlock(&event_mutex);
    return more;
}

void tide_events_tell(uint64_t round)
{
    noted next;
    tide_event_function *function;
    void *user;
    while (event_take_next(&next, &function, &user)) {
        next.event.round = round;
        next.event.name = next.name;
        next.event.detail = next.detail;
        function(&next.event, user);
    }
}

void tide_event_forget(void)
{
    event_mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

tide_status tide_learning_stats(tide_learning_statistics *out)
{
    if (out == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_learning_stats", "the result is NULL");
    uint64_t *to = (uint64_t *)out, *from = (uint64_t *)&tide_learning_figures;
    for (size_t i = 0; i < sizeof *out / sizeof *to; i++)
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    out->artefacts = tide_artefact_count();
    out->waiting = tide_limbo_count();
    return TIDE_OK;
}
