/* SPDX-License-Identifier: MIT */
/* Queues what happens, tells it, and counts it. */
#define _GNU_SOURCE
#include "jit/events/event.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "jit/events/probe.h"
#include "jit/stager/code.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/base/settings.h"
#include "runtime/scope/site.h"

enum { QUEUE = 1024, NAME = 64, DETAIL = 160 };

/* One event, with texts of its own. */
typedef struct noted {
    tide_event event;
    char name[NAME], detail[DETAIL];
} noted;

static tide_lock event_lock = TIDE_LOCK(TIDE_FORK_EVENTS);

/* Guarded by the lock. The queue is a ring: an event has the place of its number among those that
 * were queued. told <= ended <= noted <= told + QUEUE. */
static noted event_queue[QUEUE];
static uint64_t event_noted;  /* queued so far                            */
static uint64_t event_ended;  /* of these, whose round has ended; atomic, as the next */
static uint64_t event_told;   /* of these, that the listener has been told or does not want */
static bool event_telling;    /* some thread tells the listener           */
static uint64_t event_serial; /* of the last event, whether or not somebody heard it */
static tide_event_function *event_listener;
static void *event_listener_user;

tide_learning_statistics tide_learning_figures;

_Static_assert(sizeof tide_learning_figures % sizeof(uint64_t) == 0, "all of it is counters");

void (*tide_events_also)(const tide_event *event);

/* What is queued the parent tells. The child may have been forked by the listener itself. */
static void event_in_child(void)
{
    event_noted = event_ended = event_told = 0;
    event_telling = false;
}

void tide_events_prepare(void)
{
    static const tide_fork_handlers handlers = {.lock = &event_lock, .child = event_in_child};
    tide_fork_register(TIDE_FORK_EVENTS, &handlers);
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
    if (function == NULL)
        __atomic_store_n(&event_told, event_ended, __ATOMIC_RELAXED);
    tide_lock_let_go(&event_lock);
}

const char *tide_event_name(tide_event_kind kind)
{
    static const char *const names[] = {"found", "staged", "published", "missed", "gave up"};
    _Static_assert(sizeof names / sizeof *names == TIDE_EVENT_GAVE_UP + 1, "each kind has a name");
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
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

/* Locked. Is there room in the queue? What the listener has not been told for longest makes some. */
static bool event_make_room(void)
{
    tide_assert(event_told <= event_ended && event_ended <= event_noted);
    if (event_noted - event_told < QUEUE)
        return true;
    tide_count(untold);
    if (event_told == event_ended)
        return false;
    __atomic_store_n(&event_told, event_told + 1, __ATOMIC_RELAXED);
    return true;
}

void tide_event_note(tide_event_kind kind, tide_site *site, tide_tier tier, tide_reason reason,
                     const char *detail)
{
    tide_assert(kind <= TIDE_EVENT_GAVE_UP && reason < TIDE_REASON_COUNT && detail != NULL);
    tide_event_probe(kind, site, event_site_id(site), site != NULL ? tide_site_name(site) : "",
                     tier, tide_reason_code(reason));
    event_take_lock();
    event_serial++;
    bool heard = event_listener != NULL || event_is_heard_also() || event_is_written();
    if (heard && event_make_room()) {
        noted *at = &event_queue[event_noted++ % QUEUE];
        at->event = (tide_event){.kind = kind,
                                 .site = site,
                                 .tier = tier,
                                 .site_id = event_site_id(site),
                                 .reason = tide_reason_words(reason),
                                 .reason_code = tide_reason_code(reason),
                                 .serial = event_serial,
                                 .time_ns = tide_os_now_ns()};
        snprintf(at->name, sizeof at->name, "%s", site != NULL ? tide_site_name(site) : "");
        snprintf(at->detail, sizeof at->detail, "%s", detail);
    }
    tide_lock_let_go(&event_lock);
}

/* What would end the text or its line is written \xHH. */
static void event_escape(const char *text, char *out, size_t room)
{
    for (size_t at = 0; *text != '\0' && at + 5 <= room; text++) {
        bool plain = (unsigned char)*text >= ' ' && strchr("\"\\\x7f", *text) == NULL;
        at += (size_t)snprintf(out + at, room - at, plain ? "%c" : "\\x%02x", (unsigned char)*text);
    }
}

/* A line for people, and for programs that read logs, in one write: the lines of several processes do
 * not mix. Not by stdio, whose lock may be the program's. */
static void event_write(const tide_event *event)
{
    char line[2048], name[4 * NAME] = "", detail[4 * DETAIL] = "";
    event_escape(event->name, name, sizeof name);
    event_escape(event->detail, detail, sizeof detail);
    int length = snprintf(line, sizeof line,
                          "tidepool: event serial=%" PRIu64 " time_ns=%" PRIu64 " round=%" PRIu64
                          " tier=%s kind=\"%s\" site=\"%s\" reason=\"%s\" detail=\"%s\"\n",
                          event->serial, event->time_ns, event->round, tide_tier_name(event->tier),
                          tide_event_name(event->kind), name, event->reason, detail);
    tide_assert(length > 0 && (size_t)length < sizeof line);
    tide_os_write_error(line, (size_t)length);
}

/* The texts of the event are those of `from`. */
static void event_copy(const noted *from, noted *to)
{
    *to = *from;
    to->event.name = to->name;
    to->event.detail = to->detail;
}

/* False: there is no more. */
static bool event_end_next(uint64_t round, noted *out)
{
    event_take_lock();
    bool more = event_ended < event_noted;
    if (more) {
        noted *next = &event_queue[event_ended % QUEUE];
        __atomic_store_n(&event_ended, event_ended + 1, __ATOMIC_RELAXED);
        next->event.round = round;
        event_copy(next, out);
    }
    if (event_listener == NULL)
        __atomic_store_n(&event_told, event_ended, __ATOMIC_RELAXED);
    tide_lock_let_go(&event_lock);
    return more;
}

void tide_events_end_round(uint64_t round)
{
    noted next;
    while (event_end_next(round, &next)) {
        void (*also)(const tide_event *) = __atomic_load_n(&tide_events_also, __ATOMIC_ACQUIRE);
        if (event_is_written())
            event_write(&next.event);
        if (also != NULL)
            also(&next.event);
    }
}

/* False: there is no more, or another thread tells; it tells all. The listener may call us again. */
static bool event_take_next(bool first, noted *out, tide_event_function **function, void **user)
{
    event_take_lock();
    bool more = event_told < event_ended && event_listener != NULL && !(first && event_telling);
    if (more) {
        event_copy(&event_queue[event_told % QUEUE], out);
        __atomic_store_n(&event_told, event_told + 1, __ATOMIC_RELAXED);
        *function = event_listener;
        *user = event_listener_user;
    }
    if (more || !first)
        event_telling = more;
    tide_lock_let_go(&event_lock);
    return more;
}

size_t tide_event_deliver(void)
{
    noted next;
    tide_event_function *function;
    void *user;
    size_t told = 0;
    if (__atomic_load_n(&event_told, __ATOMIC_RELAXED) ==
            __atomic_load_n(&event_ended, __ATOMIC_RELAXED) ||
        tide_lock_held_any())
        return 0;
    while (event_take_next(told == 0, &next, &function, &user)) {
        told++;
        function(&next.event, user);
    }
    return told;
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
