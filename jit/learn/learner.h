/* SPDX-License-Identifier: MIT */
/* What learning knows of one site: the evidence, every plan that it was given, how far each of them
 * is, and when to look again.
 *
 * Learners are read and changed with the registry locked. A plan, once published, keeps its address,
 * its data and its code for as long as its site is loaded, because a scope may be inside it at any
 * time. */
#ifndef TIDEPOOL_JIT_LEARN_LEARNER_H
#define TIDEPOOL_JIT_LEARN_LEARNER_H

#include "jit/learn/decide.h"
#include "jit/spec/spec.h"
#include "profiler/add.h"

/* How far the code of a plan has come. */
typedef enum tide_code_state {
    TIDE_CODE_NONE,      /* not compiled                                */
    TIDE_CODE_WANTED,    /* to be requested by this round               */
    TIDE_CODE_REQUESTED, /* with the stager                           */
    TIDE_CODE_LOADED,    /* here, and not on trial                      */
    TIDE_CODE_TRIED,     /* on trial                                    */
    TIDE_CODE_ADOPTED    /* here, and better than the plan without it   */
} tide_code_state;

typedef struct tide_learner tide_learner;

typedef struct tide_learned {
    tide_learner *learner;
    tide_plan *table; /* the types by table; as `code`, it stands behind `items`       */
    tide_plan *code;  /* compiled; until its code is loaded, the table. NULL: a dispatch's */
    tide_plan_counts table_counts, code_counts;

    tide_code_state state;
    uint64_t retry_round;     /* neither compiled nor tried before this one     */
    uint64_t back_off;        /* rounds; doubled by each failure                */
    double uses_without;      /* uses of it in force, without its code          */
    double saved_ns;          /* by its code */
    double compile_ns;        /* of the processor, its part of what compiles took */
    struct tide_trial *trial; /* NULL: none was ever held of its code. jit/learn/trial.c */
    tide_items items;         /* last: there is memory for those that it has */
} tide_learned;

struct tide_learner {
    tide_site *site;
    uint64_t number;               /* no other learner ever had it */
    tide_packed_profile *evidence; /* decayed                    */
    tide_learned **plans;
    uint32_t plan_count, in_force; /* TIDE_NO_PLAN: general */

    uint64_t windows;      /* taken so far                                       */
    bool window;           /* one was opened and has not been taken              */
    uint64_t window_round; /* when that was; 0: since the last round              */
    uint64_t next_window;  /* round in which the next one opens                  */
    uint64_t quiet_since;  /* round in which misses were last noted, or misses_max halved */
    uint64_t misses_seen;  /* of the plan in force, when last looked at          */
    uint64_t misses_max;   /* so many more reopen observation                    */
    uint64_t weigh_round;  /* before this one its uses are not counted again     */
    bool prior;            /* a loaded profile was used                          */
    bool fresh;            /* the window was opened by misses: it alone counts   */
    uint64_t uses_changed; /* of the site, when another plan was last put in force */
    bool at_once;          /* code is ordered whether it pays or not: tide_site_compile_now */

    uint64_t generation, compiles;
    uint64_t uses_counted; /* of the site, when last looked at: jit/learn/pays.h */
    tide_reason reason;
};

/* The site's learner, made if it has none; NULL when memory is short. Registry locked. */
tide_learner *tide_learner_of(tide_site *site);

/* What the site was seen to do, decayed: good until the next call. It is changed by setting
 * another; false: no memory, it stays. */
const tide_site_profile *tide_learner_evidence(const tide_learner *learner);
bool tide_learner_set_evidence(tide_learner *learner, const tide_site_profile *evidence);

/* The site's plan for these items, made if it has none; NULL with the reason why it cannot be had. */
tide_learned *tide_learner_plan(tide_learner *learner, const tide_items *items, uint32_t *number,
                                tide_reason *why);

/* NULL: none is, the site runs the general one. */
tide_learned *tide_learner_plan_in_force(const tide_learner *learner);

/* Uses that the plan did not foresee, by both of its tiers. */
uint64_t tide_learned_misses(const tide_learned *plan);

/* Puts a plan in force (TIDE_NO_PLAN: none) and publishes what follows from that. */
void tide_learner_use(tide_learner *learner, uint32_t number, tide_reason reason);

/* The learned plan that one of its two tiers belongs to: a scope's own plan, not one that observes
 * or tries. */
tide_learned *tide_learned_of(const tide_plan *plan);

/* Learning is told of a plan's misses again after so many more; 0: no more. Is it to be told? */
void tide_learned_arm(tide_learned *plan, uint64_t more);
bool tide_learned_armed(const tide_learned *plan);

/* Uses of a first window, or of one that misses have opened: enough to decide. */
uint64_t tide_learner_first_window(const tide_site *site);

/* The number of the code of a plan, which depends on its types and whether it counts: plans of one number
 * share their code. (Should two that differ ever have one, they would miss.) */
uint64_t tide_learned_form(const tide_learned *plan);

/* The spec of a plan. */
void tide_learned_spec(const tide_learned *plan, tide_spec *out);

/* Gives a plan its loaded code. Before that, the plan's pointers lead to the table. */
void tide_learned_load(tide_learned *plan, void *enter, void *leave);

/* The ring's hooks (runtime/base/ring.h). */
const tide_plan *tide_learner_publish(tide_site *site, const tide_plan *plan);
void tide_learner_forget(tide_site *site, bool going);
void tide_learner_describe(const tide_site *site, tide_site_information *out);

#endif
