/* SPDX-License-Identifier: MIT */
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

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static noted queue[QUEUE]; /* of this round; guarded by the mutex, as is all below */
static size_t count, told;
static tide_event_function *listener;
static void *listener_user;

tide_learning_statistics tide_learning_figures;

void tide_event_set_handler(tide_event_function *function, void *user)
{
    pthread_mutex_lock(&mutex);
    listener = function;
    listener_user = user;
    pthread_mutex_unlock(&mutex);
}

const char *tide_event_name(tide_event_kind kind)
{
    static const char *const names[] = {"found",  "staged",  "published",
                                        "missed", "retired", "gave up"};
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

static const char *name_of(const tide_site *site)
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
    pthread_mutex_lock(&mutex);
    if (listener == NULL) {
        /* nobody to tell */
    } else if (count < QUEUE) {
        noted *at = &queue[count++];
        at->event = (tide_event){
            .kind = kind, .site = site, .tier = tier, .reason = tide_reason_words(reason)};
        snprintf(at->name, sizeof at->name, "%s", name_of(site));
        snprintf(at->detail, sizeof at->detail, "%s", detail);
    } else {
        tide_count(untold);
    }
    pthread_mutex_unlock(&mutex);
}

/* One at a time, unlocked while it is told: the listener may do what it likes. Should it make a
 * round of its own, that one tells what is left of this, too. */
static bool take(noted *out, tide_event_function **function, void **user)
{
    pthread_mutex_lock(&mutex);
    bool more = told < count && listener != NULL;
    if (more) {
        *out = queue[told++];
        *function = listener;
        *user = listener_user;
    } else {
        count = told = 0;
    }
    pthread_mutex_unlock(&mutex);
    return more;
}

void tide_events_tell(uint64_t round)
{
    noted next;
    tide_event_function *function;
    void *user;
    while (take(&next, &function, &user)) {
        next.event.round = round;
        next.event.name = next.name;
        next.event.detail = next.detail;
        function(&next.event, user);
    }
}

void tide_event_forget(void)
{
    mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

tide_status tide_learning_stats(tide_learning_statistics *out)
{
    if (out == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_learning_stats", "the result is NULL");
    uint64_t *to = (uint64_t *)out, *from = (uint64_t *)&tide_learning_figures;
    _Static_assert(sizeof *out % sizeof *to == 0, "all of it is counters");
    for (size_t i = 0; i < sizeof *out / sizeof *to; i++)
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    out->artefacts = tide_artefact_count();
    out->waiting = tide_limbo_count();
    return TIDE_OK;
}
