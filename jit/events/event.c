/* SPDX-License-Identifier: MIT */
/* Queues what happens in a round, and tells the listener at its end; counts what happened. */
#define _GNU_SOURCE
#include "jit/events/event.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "jit/events/line.h"
#include "jit/events/probe.h"
#include "jit/stager/code.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/lock.h"
#include "runtime/base/settings.h"
#include "runtime/scope/site.h"

enum { QUEUE = 1024, NAME = 64, DETAIL = 160 };

/* One event, with texts of its own. */
typedef struct noted {
    tide_event event;
    char name[NAME], detail[DETAIL];
} noted;

static tide_lock event_lock = TIDE_LOCK(TIDE_FORK_EVENTS);
static noted event_queue[QUEUE]; /* of this round; guarded by the lock, as is all below */
static size_t event_count, event_told;
static uint64_t event_serial; /* of the last event, whether or not somebody heard it */
static tide_event_function *event_listener;
static void *event_listener_user;

tide_learning_statistics tide_learning_figures;

_Static_assert(sizeof tide_learning_figures % sizeof(uint64_t) == 0, "all of it is counters");

void (*tide_events_also)(const tide_event *event);

static void event_before_fork(void)
{
    tide_lock_take(&event_lock);
}

static void event_after_fork(void)
{
    tide_lock_let_go(&event_lock);
}

/* What is queued belongs to a round of the parent, which tells it. The child may come back into
 * that round: then the listener itself has forked. */
static void event_in_child(void)
{
    event_count = event_told = 0;
    event_after_fork();
}

static void event_prepare(void)
{
    static const tide_fork_handlers handlers = {event_before_fork, event_after_fork,
                                                event_in_child};
    tide_fork_register(TIDE_FORK_EVENTS, &handlers);
}

void tide_events_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, event_prepare);
}

static void event_take_lock(void)
{
    tide_events_prepare();
    tide_lock_take(&event_lock);
}

void tide_event_set_handler(tide_event_function *function, void *user)
{
    event_take_lock();
    event_listener = function;
    event_listener_user = user;
    tide_lock_let_go(&event_lock);
}

const char *tide_event_name(tide_event_kind kind)
{
    static const char *const names[] = {"found", "staged", "published", "missed", "gave up"};
    _Static_assert(sizeof names / sizeof *names == TIDE_EVENT_GAVE_UP + 1, "each kind has a name");
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

static uint64_t event_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Does the setting ask for lines on the standard error? */
static bool event_is_written(void)
{
    return tide_setting_get(TIDE_SETTING_verbose) != 0;
}

static uint64_t event_site_id(const tide_site *site)
{
    return site != NULL && site->record != NULL ? site->record->id : 0;
}

static bool event_is_heard_also(void)
{
    return __atomic_load_n(&tide_events_also, __ATOMIC_ACQUIRE) != NULL;
}

void tide_event_note(tide_event_kind kind, tide_site *site, tide_tier tier, tide_reason reason,
                     const char *detail)
{
    tide_assert(kind <= TIDE_EVENT_GAVE_UP && reason < TIDE_REASON_COUNT && detail != NULL);
    tide_event_probe(kind, site, event_site_id(site), site != NULL ? tide_site_name(site) : "",
                     tier, tide_reason_code(reason));
    event_take_lock();
    event_serial++;
    if (event_listener == NULL && !event_is_heard_also() && !event_is_written()) {
        /* nobody to tell */
    } else if (event_count < QUEUE) {
        noted *at = &event_queue[event_count++];
        at->event = (tide_event){.kind = kind,
                                 .site = site,
                                 .tier = tier,
                                 .site_id = event_site_id(site),
                                 .reason = tide_reason_words(reason),
                                 .reason_code = tide_reason_code(reason),
                                 .serial = event_serial,
                                 .time_ns = event_now()};
        snprintf(at->name, sizeof at->name, "%s", site != NULL ? tide_site_name(site) : "");
        snprintf(at->detail, sizeof at->detail, "%s", detail);
    } else {
        tide_count(untold);
    }
    tide_lock_let_go(&event_lock);
}

/* Takes one event. Nothing is locked while it is told, so the listener may do what it likes. If it
 * makes a round of its own, that round also tells what is left of this one. */
static bool event_take_next(noted *out, tide_event_function **function, void **user)
{
    event_take_lock();
    tide_assert(event_told <= event_count && event_count <= QUEUE);
    bool more = event_told < event_count;
    if (more) {
        *out = event_queue[event_told++];
        *function = event_listener;
        *user = event_listener_user;
    } else {
        event_count = event_told = 0;
    }
    tide_lock_let_go(&event_lock);
    return more;
}

static void event_tell_also(const tide_event *event)
{
    void (*also)(const tide_event *) = __atomic_load_n(&tide_events_also, __ATOMIC_ACQUIRE);
    tide_assert(event->name != NULL && event->detail != NULL);
    if (also != NULL)
        also(event);
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
        tide_outside outside = tide_outside_enter();
        if (event_is_written())
            tide_event_write_line(&next.event, stderr);
        event_tell_also(&next.event);
        if (function != NULL)
            function(&next.event, user); /* it may make a round, and so have later ones told */
        tide_outside_leave(outside);
    }
}

tide_status tide_learning_stats(tide_learning_statistics *out)
{
    if (out == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_learning_stats", "the result is NULL");
    uint64_t *to = (uint64_t *)out, *from = (uint64_t *)&tide_learning_figures;
    for (size_t i = 0; i < sizeof *out / sizeof *to; i++)
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    out->code_objects = tide_code_objects();
    out->code_bytes = tide_code_bytes();
    return TIDE_OK;
}
