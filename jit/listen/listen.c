/* SPDX-License-Identifier: MIT */
/* Loads the component that listens, has it begin and end.
 *
 * The state has one writer at a time: whoever has moved it to LISTEN_CHANGES; but for the last
 * state, which ends all others. */
#define _GNU_SOURCE
#include "jit/listen/listen.h"

#include <tidepool/facts.h>
#include <tidepool/listen.h>
#include <tidepool/profile.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "jit/events/event.h"
#include "jit/learn/background.h"
#include "jit/stager/locate.h"
#include "profiler/files/file.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/base/ring.h"
#include "runtime/base/settings.h"

typedef enum listen_state {
    LISTEN_NOT,
    LISTEN_CHANGES, /* a thread begins or ends it */
    LISTEN_SERVES,
    LISTEN_ENDED, /* by the program, or it failed: only tide_listen begins it */
    LISTEN_NEVER  /* in a forked child, and once exit has been called */
} listen_state;

static listen_state listen_now;                       /* atomic */
static const tide_listen_component *listen_component; /* loaded; NULL: not yet. Atomic */

static bool listen_move(listen_state from, listen_state to)
{
    return __atomic_compare_exchange_n(&listen_now, &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

static listen_state listen_look(void)
{
    return __atomic_load_n(&listen_now, __ATOMIC_ACQUIRE);
}

/* ---- the component ------------------------------------------------------------------------ */

static const tide_listen_host listen_host = {.create_thread = tide_background_create_thread,
                                             .write_facts = tide_facts_write,
                                             .write_event = tide_event_write,
                                             .write_profile = tide_profile_write,
                                             .write_own = tide_profile_write_own,
                                             .write_spec = tide_listen_write_spec,
                                             .write_tunable = tide_listen_write_tunable,
                                             .obey = tide_listen_obey,
                                             .message = tide_error_message};

_Static_assert(offsetof(tide_listen_component, interface) == 0, "tide_locate_table looks there");

#ifdef TIDEPOOL_STATIC
/* A program may have it linked in. */
extern const tide_listen_component tide_listen_table __attribute__((weak));
#endif

/* NULL with a line in `error`. It stays loaded. */
static const tide_listen_component *listen_load(char *error, size_t room)
{
#ifdef TIDEPOOL_STATIC
    if (&tide_listen_table != NULL)
        return &tide_listen_table;
#endif
    return tide_locate_table("libtidepool-listen.so", "tide_listen_table", TIDE_LISTEN_INTERFACE,
                             error, room);
}

/* ---- beginning and ending ----------------------------------------------------------------- */

/* The component hears of events exactly while there is a thread that serves. */
static void listen_hear(void (*hear)(const tide_event *))
{
    __atomic_store_n(&tide_events_also, hear, __ATOMIC_RELEASE);
}

/* By who has moved the state from `before` to LISTEN_CHANGES; moves it on. False with a line. */
static bool listen_begin(listen_state before, const char *folder, char *error, size_t room)
{
    const tide_listen_component *found = listen_load(error, room);
    __atomic_store_n(&listen_component, found, __ATOMIC_RELEASE);
    if (found == NULL || !found->begin(&listen_host, folder, error, room)) {
        (void)listen_move(LISTEN_CHANGES, before);
        return false;
    }
    listen_hear(found->hear);
    if (listen_move(LISTEN_CHANGES, LISTEN_SERVES))
        return true;
    listen_hear(NULL);
    found->end(false);
    snprintf(error, room, "the process ends");
    return false;
}

void tide_listen_passed(void)
{
    char error[300];
    if (TIDE_LIKELY(tide_setting_get(TIDE_SETTING_listen) == 0) || tide_locked_down() ||
        listen_look() != LISTEN_NOT)
        return;
    if (!listen_move(LISTEN_NOT, LISTEN_CHANGES) ||
        listen_begin(LISTEN_ENDED, NULL, error, sizeof error))
        return;
    tide_setting_set(TIDE_SETTING_listen, 0); /* so that its facts tell it */
    tide_os_complain("this process does not listen: %s", error);
}

tide_status tide_listen(const char *folder)
{
    static const char call[] = "tide_listen";
    static const listen_state from[] = {LISTEN_NOT, LISTEN_ENDED};
    char error[300];
    tide_attach();
    TIDE_FORWARD(tide_registry_admit(call));
    if (tide_locked_down())
        return tide_fail(TIDE_ERROR_STATE, call, "the process is locked down");
    if (folder != NULL && folder[0] != '/')
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the folder is no absolute path");
    for (size_t i = 0; i < sizeof from / sizeof *from; i++)
        if (listen_move(from[i], LISTEN_CHANGES))
            return listen_begin(from[i], folder, error, sizeof error)
                       ? TIDE_OK
                       : tide_fail(TIDE_ERROR_FILE, call, "%s", error);
    listen_state now = listen_look();
    if (now == LISTEN_SERVES)
        return TIDE_OK;
    return tide_fail(TIDE_ERROR_STATE, call,
                     now == LISTEN_NEVER ? "a forked child does not listen, nor one that exits"
                                         : "another thread begins or ends this");
}

tide_status tide_listen_end(void)
{
    static const char call[] = "tide_listen_end";
    tide_attach();
    TIDE_FORWARD(tide_registry_admit(call));
    if (listen_move(LISTEN_SERVES, LISTEN_CHANGES)) {
        listen_hear(NULL);
        listen_component->end(true);
        (void)listen_move(LISTEN_CHANGES, LISTEN_ENDED);
        return TIDE_OK;
    }
    (void)listen_move(LISTEN_NOT, LISTEN_ENDED);
    return listen_look() == LISTEN_CHANGES
               ? tide_fail(TIDE_ERROR_STATE, call, "another thread begins or ends this")
               : TIDE_OK;
}

/* Nothing begins from here on. */
static void listen_at_exit(void)
{
    listen_state before = __atomic_exchange_n(&listen_now, LISTEN_NEVER, __ATOMIC_ACQ_REL);
    listen_hear(NULL);
    tide_assert(before != LISTEN_SERVES || listen_component != NULL);
    if (before == LISTEN_SERVES)
        listen_component->end(false);
}

/* In the child of a fork: the thread is not here, and no other one comes. */
static void listen_forget(void)
{
    const tide_listen_component *component = __atomic_load_n(&listen_component, __ATOMIC_ACQUIRE);
    __atomic_store_n(&listen_now, LISTEN_NEVER, __ATOMIC_RELEASE);
    listen_hear(NULL);
    if (component != NULL)
        component->forget();
}

void tide_listen_prepare(void)
{
    static const tide_fork_handlers handlers = {.child = listen_forget};
    tide_fork_register(TIDE_FORK_LISTEN, &handlers);
    atexit(listen_at_exit);
}
