/* SPDX-License-Identifier: MIT */
/* Deciding: what plan should a site have, after what was observed of it? Pure but for the constants it
 * reads: no site, no lock, no clock; figures in, choice out.
 *
 * The cost model is in the manner of Catwalk.jl: what a use costs on average under a plan, in units
 * that only matter against each other (constants cost_…).
 *
 *   a scope     each saved type costs `save`; each touch of a type not saved costs `touch`
 *   a dispatch  each guard that fails costs `skip`, the one that holds `static`; a use that no guard
 *               foresaw costs all the guards and `dynamic`. Without guards: `dynamic`
 *
 * Earlier plans of the site are costed again under the new figures, and one of them is preferred
 * unless the ideal plan is cheaper by the factor `threshold`: what exists need not be compiled. */
#ifndef TIDEPOOL_JIT_LEARN_DECIDE_H
#define TIDEPOOL_JIT_LEARN_DECIDE_H

#include <tidepool/profile.h>

#include "jit/events/reason.h"

enum { TIDE_ITEMS_MAX = TIDE_PROFILE_TYPES };

/* What a plan is for: the types that a scope saves, ascending; those that a dispatch tests for, the
 * most frequent first. */
typedef struct tide_items {
    uint32_t count;
    const struct tide_generic *generic; /* of a dispatch; a scope: NULL */
    tide_type types[TIDE_ITEMS_MAX];    /* or keys: TIDE_KEY_FIRST and more, as in profiles */
} tide_items;

bool tide_items_same(const tide_items *a, const tide_items *b);

/* Can code be made for these? A scope's saves one type to TIDE_SCOPE_SAVED; a dispatch has none. */
bool tide_items_fit(const tide_items *items);

/* What a use costs on average under a plan of these items; of a dispatch their function must be set,
 * else they are a scope's. Without items: under the general plan (of a scope: one that saves nothing
 * beforehand). */
double tide_cost(const tide_site_profile *seen, const tide_items *items);

typedef struct tide_choice {
    enum {
        TIDE_CHOICE_STAY,    /* nothing changes                                       */
        TIDE_CHOICE_GENERAL, /* the plan in force costs more than having none: drop it */
        TIDE_CHOICE_OLD,     /* earlier plan number `old`                             */
        TIDE_CHOICE_NEW      /* a plan for `items`                                    */
    } what;
    tide_reason reason;
    uint32_t old;
    tide_items items;
} tide_choice;

enum { TIDE_NO_PLAN = UINT32_MAX };

/* `kind`: the site's, which its profile does not tell. `earlier`: its plans, `in_force` the number of
 * one of them or TIDE_NO_PLAN. */
void tide_decide(tide_kind kind, const tide_site_profile *seen, const tide_items *const *earlier,
                 uint32_t earlier_count, uint32_t in_force, tide_choice *out);

#endif
