/* SPDX-License-Identifier: MIT */
/* Learning: sites are observed, plans are decided on, compiled, tried and watched.
 *
 *   window    a number of uses of a site that are observed
 *   spec      the description of the code that is to be compiled
 *   stager    the program that compiles, in another process
 *   trial     compiled code is timed against the plan in force before it is adopted
 *   publish   make a plan the one that a site runs
 *   code object  a file of compiled code; loaded once, it stays (setting code_bytes)
 *   round     one pass over all of this
 *   keeper    a background thread that does a round every few milliseconds
 *
 * When the process ends the keeper ends with it. `exit` waits for it, but not for ever while it is
 * in code that is not the library's: two seconds at most in an event handler, in a hook of buffers
 * or in a destructor of what these have left on its thread. So `exit` may be
 * called under any lock of the program, and from the constructor of a library.
 *
 * The keeper starts when some site has been used often enough. Its thread is made inside that use,
 * which takes some 40 microseconds more; where no use may be late, set `background` to 2, and the first
 * pool of a program that has sites starts it. To do the rounds by hand instead, set `background` to 0
 * and call tide_step: a keeper that is there then does none. Both do the same.
 *
 * A forked child goes on with what its parent has learned. It begins without a keeper and a stager.
 * If its parent's keeper has had work, and `background` is not 0, the child gets one when a scope first
 * opens in it; else the first window that fills there starts it, also where `background` is 2 (a child
 * in which no use may be late calls tide_background_start).
 * The C library does not renew all locks of the dynamic linker in a child: if other threads of the
 * parent load libraries, whatever loads one in the child may hang, learning too. Set `learn` to 0
 * in such children, or execute another program. A fork waits for the keeper that loads compiled
 * code, a tenth of a second at most.
 *
 * The types of a scope are put in force by the thread that uses it (setting `adapt`): when its
 * window is full, and after a few uses that acquired other types. This needs no round.
 *
 * If the system gives no thread for the keeper, the uses that fill windows do what of a round needs
 * none: scopes get tables, and nothing is compiled unless the program calls tide_step. */
#ifndef TIDEPOOL_LEARN_H
#define TIDEPOOL_LEARN_H

#include <tidepool/inline/config.h>
#include <tidepool/site.h>
#include <tidepool/status.h>
#ifdef TIDE_LANGUAGE_OK

TIDE_BEGIN_DECLS

/* Starts the keeper now. If it runs already, nothing happens. TIDE_ERROR_MEMORY when the system
 * gives no thread. Any thread. */
TIDE_API tide_status tide_background_start(void);

/* Ends the keeper and waits for its end. It does not start again until tide_background_start. A compile
 * that is under way goes on in the stager, and a later step takes the answer. TIDE_ERROR_STATE from
 * an event handler, from a hook of buffers that the keeper calls, and from the `visit` of
 * tide_site_each. Not from the constructor or destructor of a library, nor under a lock that an
 * event handler or a hook of buffers wants: the keeper may be waiting for either. Nor in the child
 * of a fork during which another thread was loading or unloading a library: glibc does not unlock
 * its list of modules there, and a keeper that loads code waits for it for ever. Any thread. */
TIDE_API tide_status tide_background_stop(void);

/* Does the keeper's thread exist? Any thread. */
TIDE_API bool tide_background_running(void);

/* One round. It reads the windows that are full, decides, sends specs to the stager, takes the
 * stager's answers, opens trials and windows, and publishes plans. It also asks every pool for what the settings `auto_trim` and `auto_compact` want: to release slots that were
 * not used lately, and to compact by what slots were used for lately, that is since the last times
 * it was asked (setting `trim_after`). The keeper asks less often (settings `trim_period` and
 * `compact_period`). It does not wait for the stager. Any thread; only one round
 * runs at a time. While another thread's round is in an event handler or in the dynamic linker,
 * there is no round, and TIDE_OK: so it may be called from a library's constructor, and under any
 * lock of the program. */
TIDE_API tide_status tide_step(void);

/* Does rounds until nothing is left to do without further uses of the sites: full windows are
 * decided on, what pays is compiled, finished trials are judged. TIDE_ERROR_STATE when that takes
 * `timeout_ms` milliseconds or longer, other threads' rounds included, and at once if a constructor
 * of code calls it that this thread's own round is loading. Not from an event handler. Any
 * thread. */
TIDE_API tide_status tide_settle(int timeout_ms);

/* ---- what happened ---- */

typedef enum tide_event_kind {
    TIDE_EVENT_FOUND,     /* a site was entered for the first time                 */
    TIDE_EVENT_STAGED,    /* a plan was decided on, and its spec sent to the stager, or another
                             dispatch's code serves it: the reason says which */
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
    uint64_t round;     /* number of the round at whose end the handler is called             */
    uint64_t serial;    /* number of the event in this process, from 1. A gap: nobody was told */
    uint64_t time_ns;   /* CLOCK_MONOTONIC, when it happened                                   */
    uint64_t site_id;   /* tide_site_information.id of the site; 0: none. Never dangles         */
    const char *reason_code; /* of the reason: tide_reason_each; static text                    */
} tide_event;

/* Sets the function that is called for each event. The thread that does a round calls it at the
 * round's end, for the events in order. No lock is held then, but there is no other round: the
 * handler may step, fork and exit, and may wait for a lock of the program under which other threads
 * call tide_step. What is still to be told when somebody forks only the parent tells. If another
 * thread ends the process, exit waits two seconds at most for the handler to return; from then on
 * its thread learns nothing more, and stays where it next comes back to the library. NULL: no
 * function (the default). If one round has more than 1024 events, the handler does not get the
 * rest; tide_learning_statistics counts them. Any thread.
 *
 * With the setting `verbose` each event is also a line on the standard error: `tidepool: event` and
 * the members as key=value, texts in quotes. */
typedef void tide_event_function(const tide_event *event, void *user);
TIDE_API void tide_event_set_handler(tide_event_function *function, void *user);

/* "found", "staged", "published", "missed", "gave up". Static text. */
TIDE_API const char *tide_event_name(tide_event_kind kind);

/* What learning has done since the process began. */
typedef struct tide_learning_statistics {
    uint64_t rounds, windows, decisions;
    uint64_t ordered;                  /* sites sent to the stager              */
    uint64_t compiled;                 /* sites that came back as code          */
    uint64_t failed;                   /* sites whose compile failed            */
    uint64_t shared;                   /* dispatches that another one's code serves */
    uint64_t reused;                   /* decisions for an earlier plan         */
    uint64_t won, lost;                /* trials; lost: those not won           */
    uint64_t code_objects, code_bytes; /* loaded: the stager's files, and what they take */
    uint64_t stagers;                  /* stager processes started              */
    uint64_t untold;                   /* events beyond 1024 in one round       */
    uint64_t spent_us;                 /* of the processor, on compiles: as stagers tell it */
    TIDE_GROWTH;
} tide_learning_statistics;

/* TIDE_ERROR_ARGUMENT for NULL. Any thread. */
TIDE_API tide_status tide_learning_stats(tide_learning_statistics *out);

/* Calls `visit` for every decision that learning can make and every refusal, each with its code and
 * its words, both static text, until `visit` returns false. Any thread. */
TIDE_API void tide_reason_each(bool (*visit)(const char *code, const char *words, void *user),
                               void *user);

TIDE_END_DECLS

#endif
#endif
