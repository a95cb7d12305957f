/* SPDX-License-Identifier: MIT */
/* Learning: how sites come to be observed, decided, compiled, tried and watched.
 *
 * Once some site has been used often enough, a background thread, the keeper, is started (setting
 * `keeper`); it does a round of all this every few milliseconds. A program that would rather step
 * by hand sets `keeper` to 0 and calls tide_step. Both do the same. */
#ifndef TIDEPOOL_LEARN_H
#define TIDEPOOL_LEARN_H

#include <tidepool/config.h>
#include <tidepool/site.h>
#include <tidepool/status.h>

TIDE_BEGIN_DECLS

/* Starts the keeper now; starting twice is fine. TIDE_ERROR_MEMORY when no thread can be had. */
TIDE_API tide_status tide_keeper_start(void);

/* Ends the keeper and waits for it; it is not started again until tide_keeper_start. A compile that
 * is under way goes on in the stager; a later step takes its answer. Not from an event callback. */
TIDE_API tide_status tide_keeper_stop(void);

/* Does the keeper's thread exist? */
TIDE_API bool tide_keeper_running(void);

/* One round: reads the windows that are full, decides, sends specs to the stager, takes what it has
 * finished, opens trials and windows, publishes, frees what is retired; asks every pool for the
 * trims and compacts that the settings `auto_trim` and `auto_compact` call for. Waits for nothing.
 * Any thread; rounds exclude each other. */
TIDE_API tide_status tide_step(void);

/* Steps until nothing is pending that needs no more calls of the sites: full windows are decided,
 * specs compiled, trials judged. TIDE_ERROR_STATE when that takes longer than so many milliseconds.
 * Not from an event callback. */
TIDE_API tide_status tide_settle(int timeout_ms);

/* ---- what happened ---- */

typedef enum tide_event_kind {
    TIDE_EVENT_FOUND,     /* a site was entered for the first time                 */
    TIDE_EVENT_STAGED,    /* a plan was decided on and its spec sent to the stager */
    TIDE_EVENT_PUBLISHED, /* the site runs another plan                            */
    TIDE_EVENT_MISSED,    /* its guards failed so often that it is observed again  */
    TIDE_EVENT_RETIRED,   /* compiled code was unloaded                            */
    TIDE_EVENT_GAVE_UP    /* it stays as it is; the reason says why, and for how long */
} tide_event_kind;

typedef struct tide_event {
    tide_event_kind kind;
    tide_site *site;    /* may be unloaded by now unless its module is held; NULL for RETIRED */
    const char *name;   /* of the site, valid during the call                                 */
    tide_tier tier;     /* of the plan in force after the event                               */
    const char *reason; /* in words; static text                                              */
    const char *detail; /* what the stager or the system said, or ""; valid during the call   */
    uint64_t round;     /* number of the round it was told in                                 */
} tide_event;

/* Called for each event, in order, at the end of a round, by the thread that does the round, with
 * nothing locked but other rounds. NULL: nobody (the default). When more than 1024 events come in
 * one round the rest are not told, and counted in tide_learning_statistics. Any thread. */
typedef void tide_event_function(const tide_event *event, void *user);
TIDE_API void tide_event_set_handler(tide_event_function *function, void *user);

/* "found", "staged", "published", "missed", "retired", "gave up". Static text. */
TIDE_API const char *tide_event_name(tide_event_kind kind);

/* What learning did since the process began. */
typedef struct tide_learning_statistics {
    uint64_t rounds, windows, decisions;
    uint64_t ordered;   /* sites sent to the stager              */
    uint64_t compiled;  /* sites that came back as code          */
    uint64_t failed;    /* sites whose compile failed            */
    uint64_t kept;      /* sites found among the kept artefacts  */
    uint64_t reused;    /* decisions for an earlier plan         */
    uint64_t won, lost; /* trials                                */
    uint64_t retired;   /* compiled plans whose code was let go  */
    uint64_t waiting;   /* of these, not unloaded yet: some pool has not passed by since */
    uint64_t artefacts; /* loaded now                            */
    uint64_t stagers;   /* helper processes started              */
    uint64_t untold;    /* events                                */
} tide_learning_statistics;

TIDE_API tide_status tide_learning_stats(tide_learning_statistics *out);

/* Every decision that can be made, and every refusal: code and words. */
TIDE_API void tide_reason_each(bool (*visit)(const char *code, const char *words, void *user),
                               void *user);

TIDE_END_DECLS

#endif
