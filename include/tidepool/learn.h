/* SPDX-License-Identifier: MIT */
/* Learning: sites are observed, plans are decided on, compiled, tried and watched.
 *
 *   window    a number of uses of a site that are observed
 *   spec      the description of the code that is to be compiled
 *   stager    the program that compiles, in another process
 *   trial     compiled code is timed against the plan in force before it is adopted
 *   round     one pass over all of this
 *
 * A background thread does the rounds. It decides and talks to the stager, and calls neither the
 * program nor a driver. It starts, inside a use that takes some 40 microseconds more, when a site has
 * been used often enough; it ends when nothing was going on for two seconds, or before a fork, and
 * comes back by itself. It does not end for want of work while the setting auto_trim is on, while
 * cached buffers age, and after tide_background_start. (While it is there it keeps a process whose main
 * thread has ended by pthread_exit, with all signals blocked.) Where no use may be late call
 * tide_background_start first; to do the rounds by hand set `background` to 0 and call tide_step.
 * `exit` waits two seconds at most for the thread.
 *
 * In the child of a fork nothing is learned, unless its parent had not used the library. The types of
 * a scope are put in force without a round, by the thread that uses it: when its window is full, and
 * after a few uses that acquired other types. */
#ifndef TIDEPOOL_LEARN_H
#define TIDEPOOL_LEARN_H

#include <tidepool/inline/config.h>
#include <tidepool/site.h>
#include <tidepool/status.h>

TIDE_BEGIN_DECLS

/* Starts the background thread now, to stay until tide_background_stop (a fork ends and restarts it).
 * TIDE_ERROR_MEMORY: the system gives no thread; TIDE_ERROR_STATE in the child of a fork, once the
 * process ends, and after tide_lock_down. Any thread. */
TIDE_API tide_status tide_background_start(void);

/* Ends the background thread, waits until it is gone, and has the event handler told. It starts again
 * only by tide_background_start. A later step takes the answer of a compile under way.
 * TIDE_ERROR_STATE from the `visit` of tide_site_each. Not from the constructor or destructor of a
 * library: the thread may wait for the linker. Any other thread. */
TIDE_API tide_status tide_background_stop(void);

/* Does the thread exist? Any thread. */
TIDE_API bool tide_background_running(void);

/* One round: reads full windows, decides, sends specs to the stager, takes its answers without waiting
 * for them, opens trials and windows, publishes plans; asks every pool for what `auto_trim` and
 * `auto_compact` want, gives back buffers that nobody wanted for long, and has the event handler told.
 * Any thread; while another does a round there is none, and TIDE_OK. */
TIDE_API tide_status tide_step(void);

/* Does rounds until nothing is left to do without further uses of the sites. TIDE_ERROR_STATE when that
 * takes `timeout_ms` milliseconds or longer, other threads' rounds included. Any thread. */
TIDE_API tide_status tide_settle(int timeout_ms);

/* ---- what happened ---- */

typedef enum tide_event_kind {
    TIDE_EVENT_FOUND,     /* a site was entered for the first time                 */
    TIDE_EVENT_STAGED,    /* a plan was decided on, and its spec sent to the stager   */
    TIDE_EVENT_PUBLISHED, /* the site runs another plan                            */
    TIDE_EVENT_MISSED,    /* guards failed so often that the site is observed again */
    TIDE_EVENT_GAVE_UP    /* the site keeps its plan; the reason says why, and how long */
} tide_event_kind;

typedef struct tide_event {
    tide_event_kind kind;
    tide_site *site;    /* dangles if the site's module has been unloaded                     */
    const char *name;   /* of the site, valid during the call                                 */
    tide_tier tier;     /* of the plan in force after the event                               */
    const char *reason; /* in words; static text                                              */
    const char *detail; /* what the stager or the system said, or ""; valid during the call   */
    uint64_t round;     /* number of the round that was the next to end                        */
    uint64_t serial;    /* number of the event in this process, from 1. A gap: nobody was told */
    uint64_t time_ns;   /* CLOCK_MONOTONIC, when it happened                                   */
    uint64_t site_id;   /* tide_site_information.id of the site; 0: none. Never dangles         */
    const char *reason_code; /* of the reason: tide_reason_each; static text                    */
} tide_event;

/* Sets the function that is called for each event; NULL: none. Events are told in order, by one thread
 * of the program at a time: where one calls tide_step, tide_settle, tide_background_stop or
 * tide_event_deliver, makes a pool or buffers, or makes the use that fills a site's window. No lock of
 * the library is held; the handler may call what it likes and leaves pools and scopes as they were.
 * 1024 events wait at most; the oldest of more are counted, not told (tide_learning_statistics). What
 * waits at a fork only the parent tells, what waits when the process ends nobody. Any thread.
 *
 * With the setting `verbose` each is also a line on the standard error: `tidepool: event`, key=value. */
typedef void tide_event_function(const tide_event *event, void *user);
TIDE_API void tide_event_set_handler(tide_event_function *function, void *user);

/* Has the handler told what waits; how many events that were. 0 while another thread tells, or from the
 * handler itself. Any thread. */
TIDE_API size_t tide_event_deliver(void);

/* "found", "staged", "published", "missed", "gave up". Static text. */
TIDE_API const char *tide_event_name(tide_event_kind kind);

/* What learning has done since the process began. */
typedef struct tide_learning_statistics {
    uint64_t rounds, windows, decisions;
    uint64_t ordered;   /* sites sent to the stager              */
    uint64_t compiled;  /* sites that came back as code          */
    uint64_t failed;    /* sites whose compile failed            */
    uint64_t reused;    /* decisions for an earlier plan         */
    uint64_t won, lost; /* trials; lost: those not won           */
    uint64_t code_objects,
        code_bytes;    /* loaded files of the stager's, which stay; what they take */
    uint64_t stagers;  /* stager processes started              */
    uint64_t untold;   /* events for which there was no room    */
    uint64_t spent_us; /* of the processor, on compiles: as stagers tell it */
    TIDE_GROWTH;
} tide_learning_statistics;

/* TIDE_ERROR_ARGUMENT for NULL. Any thread. */
TIDE_API tide_status tide_learning_stats(tide_learning_statistics *out);

/* Calls `visit` for every decision and refusal that learning knows, with its code and its words, both
 * static text, until it returns false. Any thread. */
TIDE_API void tide_reason_each(bool (*visit)(const char *code, const char *words, void *user),
                               void *user);

TIDE_END_DECLS

#endif
