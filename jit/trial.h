/* SPDX-License-Identifier: MIT */
/* Trials: compiled code against the plan in force, timed on the site's own uses.
 *
 * While a trial is open the site runs a plan that, before each of its next few uses, rehearses: it
 * does what the use is about to do, without the work in between, some dozens of times by either plan
 * in turn, in the same pool in the same state, and notes the least time of each. Nothing remains of a
 * rehearsal: scopes it opened are left, slots it took are put back. Then the use goes on by the plan
 * in force. Where no rehearsal is possible (a pool that checks, slots that do not exist yet) the use
 * only counts. Methods of generic functions are not called: stand-ins are. */
#ifndef TIDEPOOL_JIT_TRIAL_H
#define TIDEPOOL_JIT_TRIAL_H

#include "jit/learner.h"

/* The clock, in nanoseconds; tests put their own here. */
extern uint64_t (*tide_trial_clock)(void);

/* Sets up the trial of a new plan, not open yet. */
void tide_trial_prepare(const tide_learner *learner, tide_learned *plan);

/* Opens the trial of a plan that is loaded and in force; publishes. Registry locked, as below. */
void tide_trial_begin(tide_learner *learner, tide_learned *plan);

/* The plan to publish in place of `plan` while a trial of `learned` is open; else `plan`. */
const tide_plan *tide_trial_wrap(tide_learned *learned, const tide_plan *plan);

/* Have all its uses been made? */
bool tide_trial_done(const tide_learned *plan);

/* What they say, once done: whether the candidate won; *reason tells. */
bool tide_trial_won(const tide_learned *plan, tide_reason *reason);

/* Ends it, done or not; the next publish no longer wraps. */
void tide_trial_end(tide_learner *learner, tide_learned *plan);

#endif
