/* SPDX-License-Identifier: MIT */
/* Learning: sites are observed, plans are decided on, compiled, tried and watched.
 *
 *   window    a number of uses of a site that are observed
 *   spec      the description of the code that is to be compiled
 *   stager    the program that compiles, in another process
 *   trial     compiled code is timed against the plan in force before it is adopted
 *   publish   make a plan the one that a site runs
 *   artefact  a file of compiled code
 *   round     one pass over all of this
 *   keeper    a background thread that does a round every few milliseconds
 *
 * The keeper starts when some site has been used often enough (setting `keeper`). To do the rounds
 * by hand instead, set `keeper` to 0 and call tide_step. Both do the same. */
#ifndef TIDEPOOL_LEARN_H
#define TIDEPOOL_LEARN_H

#include <tidepool/config.h>
#include <tidepool/site.h>
#include <tidepool/status.h>

TIDE_BEGIN_DECLS

/* Starts the keeper now. If it runs already, nothing happens. TIDE_ERROR_MEMORY when the system
 * gives no thread. Any thread. */
TIDE_API tide_status tide_keeper_start(void);

/* Ends the keeper and waits for its end. It does not start again until tide_keeper_start. A compile
 * that is under way goes on in the stager, and a later step takes the answer. TIDE_ERROR_STATE from
 * an event handler and from the `visit` of tide_site_each. Any thread. */
TIDE_API tide_status tide_keeper_stop(void);

/* Does the keeper's thread exist? Any thread. */
TIDE_API bool tide_keeper_running(void);

/* One round. It reads the windows that are full, decides, sends specs to the stager, takes the
 * stager's answers, opens trials and windows, publishes plans and frees retired code. It also asks
 * every pool for the trims and compacts that the settings `auto_trim` and `auto_compact` want. It
 * does not wait for the stager. Any thread; only one round runs at a time. */
TIDE_API tide_status tide_step(void);

/* Does rounds until nothing is left to do without further uses of the sites: full windows are
 * decided on, specs are compiled, finished trials are judged. TIDE_ERROR_STATE when that takes
 * `timeout_ms` milliseconds or longer. Not from an event handler. Any thread. */
TIDE_API tide_status tide_settle(int timeout_ms);

/* ---- what happened ---- */

typedef enum tide_event_kind {
    TIDE_EVENT_FOUND,     /* a site was entered for the first time                 */
    TIDE_EVENT_STAGED,    /* a plan was decided on and its spec sent to the stager */
    TIDE_EVENT_PUBLISHED, /* the site runs another plan                            */
    TIDE_EVENT_MISSED,    /* guards failed so often that the site is observed again */
    TIDE_EVENT_RETIRED,   /* compiled code was unloaded                            */
    TIDE_EVENT_GAVE_UP    /* the site keeps its plan; the reason says why, and how long */
} tide_event_kind;

typedef struct tide_event {
    tide_event_kind kind;
    tide_site *site;    /* NULL for RETIRED. Dangles if the site's module has been unloaded   */
    const char *name;   /* of the site, valid during the call                                 */
    tide_tier tier;     /* of the plan in force after the event                               */
    const char *reason; /* in words; static text                                              */
    const char *detail; /* what the stager or the system said, or ""; valid during the call   */
    uint64_t round;     /* number of the round at whose end the handler is called             */
} tide_event;

/* Sets the function that is called for each event. The thread that does a round calls it at the
 * round's end, for the events in order. No lock is held then but the one that keeps other rounds
 * out. NULL: no function (the default). If one round has more than 1024 events, the handler does
 * not get the rest; tide_learning_statistics counts them. Any thread. */
typedef void tide_event_function(const tide_event *event, void *user);
TIDE_API void tide_event_set_handler(tide_event_function *function, void *user);

/* "found", "staged", "published", "missed", "retired", "gave up". Static text. */
TIDE_API const char *tide_event_name(tide_event_kind kind);

/* What learning has done since the process began. */
typedef struct tide_learning_statistics {
    uint64_t rounds, windows, decisions;
    uint64_t ordered;   /* sites sent to the stager              */
    uint64_t compiled;  /* sites that came back as code          */
    uint64_t failed;    /* sites whose compile failed            */
    uint64_t kept;      /* sites whose code was found among kept artefacts */
    uint64_t reused;    /* decisions for an earlier plan         */
    uint64_t won, lost; /* trials                                */
    uint64_t retired;   /* compiled plans whose code is no longer used */
    uint64_t waiting;   /* of these, not unloaded yet: some pool may still be inside the code */
    uint64_t artefacts; /* loaded now                            */
    uint64_t stagers;   /* stager processes started              */
    uint64_t untold;    /* events beyond 1024 in one round       */
} tide_learning_statistics;

/* TIDE_ERROR_ARGUMENT for NULL. Any thread. */
TIDE_API tide_status tide_learning_stats(tide_learning_statistics *out);

/* Calls `visit` for every decision that learning can make and every refusal, each with its code and
 * its words, both static text, until `visit` returns false. Any thread. */
TIDE_API void tide_reason_each(bool (*visit)(const char *code, const char *words, void *user),
                               void *user);

TIDE_END_DECLS

#endif
