/* SPDX-License-Identifier: MIT */
/* Trials: compiled code against the plan in force, timed on the site's own uses.
 *
 * While a trial is open the site runs a plan of the trial's own. Before each of its next few uses
 * it rehearses the use by either plan (jit/learn/rehearse.h); then the use goes on by the plan in
 * force. A use that cannot be rehearsed is counted all the same. */
#ifndef TIDEPOOL_JIT_LEARN_TRIAL_H
#define TIDEPOOL_JIT_LEARN_TRIAL_H

#include "jit/learn/learner.h"

/* Sets up the trial of a new plan, not open yet. */
void tide_trial_prepare(const tide_learner *learner, tide_learned *plan);

/* Opens the trial of a plan that is loaded and in force; publishes. Registry locked, as below. */
void tide_trial_begin(tide_learner *learner, tide_learned *plan);

/* The plan to publish in place of `plan` while a trial of `learned` is open; else `plan`. */
const tide_plan *tide_trial_wrap(tide_learned *learned, const tide_plan *plan);

/* Have all its uses been made? */
bool tide_trial_done(const tide_learned *plan);

/* Did the candidate win? The trial is done; *reason says how it went. */
bool tide_trial_won(const tide_learned *plan, tide_reason *reason);

/* Ends it, done or not; the next publish no longer wraps. */
void tide_trial_end(tide_learner *learner, tide_learned *plan);

#endif
