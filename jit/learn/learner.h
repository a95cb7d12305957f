/* SPDX-License-Identifier: MIT */
/* What policy knows of one site: the evidence, every plan that it was given, how far each of them
 * is, and when to look again.
 *
 * Learners are read and changed with the registry locked. A plan, once published, keeps its address
 * and its data for as long as its site is loaded, because a scope may be inside it at any time;
 * only its code may go (jit/learn/limbo.h). */
#ifndef TIDEPOOL_JIT_LEARN_LEARNER_H
#define TIDEPOOL_JIT_LEARN_LEARNER_H

#include "jit/cache/artefact.h"
#include "jit/learn/decide.h"

/* How far the code of a plan has come. */
typedef enum tide_code_state {
    TIDE_CODE_NONE,      /* not compiled, or unloaded since             */
    TIDE_CODE_WANTED,    /* to be requested by this round               */
    TIDE_CODE_REQUESTED, /* with the stager                           */
    TIDE_CODE_LOADED,    /* here, not tried yet                         */
    TIDE_CODE_TRIED,     /* on trial                                    */
    TIDE_CODE_ADOPTED    /* here, and better than the plan without it   */
} tide_code_state;

/* A trial: what both plans took on the same uses of the site. All but the counters is set once. */
typedef struct tide_trial {
    tide_plan plan; /* the site's while it lasts */
    const tide_plan *control, *candidate;
    uint64_t calls; /* which trial, how many uses it wants yet, how many are at it:
                       jit/learn/trial.c; atomic, as are all below */
    uint64_t uses;  /* on which both could be timed */
    uint64_t control_ns, candidate_ns; /* the least of each use's rounds, added up */
} tide_trial;

typedef struct tide_learned {
    tide_items items;
    tide_type types[TIDE_ITEMS_MAX];
    uint32_t shelves[TIDE_ITEMS_MAX];
    char stem[TIDE_SPEC_STEM];

    tide_plan table; /* scopes: the same by table                 */
    tide_plan code;  /* compiled; its code is general when unloaded */
    tide_plan_counts table_counts, code_counts;

    tide_code_state state;
    tide_artefact *artefact; /* NULL: none is loaded                          */
    uint64_t batch;          /* number of the batch that its request was in    */
    uint64_t last_round;     /* in which it was last in force                  */
    uint64_t retry_round;    /* not compiled before this one                   */
    uint64_t back_off;       /* rounds; doubled by each failure                */
    tide_trial trial;
} tide_learned;

typedef struct tide_learner {
    tide_site *site;
    uint64_t number;            /* no other learner ever had it */
    tide_site_profile evidence; /* decayed                      */
    tide_learned **plans;
    uint32_t plan_count, plan_room, in_force; /* TIDE_NO_PLAN: general */

    uint64_t windows;                   /* taken so far                                       */
    bool window;                        /* one was opened and has not been taken              */
    uint64_t window_round;              /* when that was                                      */
    uint64_t next_window;               /* round in which the next one opens                  */
    uint64_t quiet_rounds;              /* since guards last failed too often                 */
    uint64_t misses_seen;               /* of the plan in force, when last looked at          */
    uint64_t misses_max;                /* so many more reopen observation                    */
    const struct tide_generic *generic; /* dispatch: seen in the window              */
    bool prior;                         /* a loaded profile was used                          */

    uint64_t generation, compiles;
    tide_reason reason;
} tide_learner;

/* The site's learner, made if it has none; NULL when memory is short. Registry locked. */
tide_learner *tide_learner_of(tide_site *site);

/* The site's plan for these items, made if it has none; NULL when memory is short or it has as many
 * plans as may be. */
tide_learned *tide_learner_plan(tide_learner *learner, const tide_items *items, uint32_t *number);

/* Puts a plan in force (TIDE_NO_PLAN: none) and publishes what follows from that. */
void tide_learner_use(tide_learner *learner, uint32_t number, tide_reason reason);

/* The spec of a plan. */
void tide_learner_spec(const tide_learner *learner, const tide_learned *plan, tide_spec *out);

/* Gives a plan its loaded code, and takes it away again. Without code, the plan's pointers lead to
 * the general path; the artefact goes to limbo. */
void tide_learned_load(tide_learner *learner, tide_learned *plan, tide_artefact *artefact,
                       void *enter, void *leave);
void tide_learned_unload(tide_learner *learner, tide_learned *plan);

/* Misses and counted executions of all the site's plans. */
void tide_learner_counts(const tide_learner *learner, tide_plan_counts *out);

/* Called once, while hooks are attached. */
void tide_learners_attach(void);

#endif
