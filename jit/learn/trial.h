/* SPDX-License-Identifier: MIT */
/* Trials: compiled code against the plan in force, timed on the site's own uses.
 *
 * While a trial is open the site runs a plan of the trial's own. It makes each use once, by the
 * plan in force or by the candidate, in turns, and times the call that enters and the call that
 * leaves. What stands between them is the program's. So the figures have in them
 * what the program's own stream of uses costs each plan: misses of the caches, of branch
 * prediction, and of guards.
 *
 * The sample is a pair of turns. Its gain is what a use took by the plan in force, less
 * `trial_margin` times what one took by the candidate. Means of gains are judged, so noise that
 * lasts for some uses is in their error.
 *
 * A round opens the trial for a burst of uses (constant trial_burst). After it the next round
 * decides, if the mean gain is more than four standard errors from 0; else that round opens the
 * next burst. So a trial is spread over the run. A trial of `trial_calls` uses that has shown
 * nothing ends without a winner. A window, a fork or another plan interrupts a trial; it goes on
 * from there. The site's reset ends it. */
#ifndef TIDEPOOL_JIT_LEARN_TRIAL_H
#define TIDEPOOL_JIT_LEARN_TRIAL_H

#include "jit/learn/learner.h"

typedef enum tide_verdict {
    TIDE_VERDICT_OPEN, /* more uses are needed                              */
    TIDE_VERDICT_WON,  /* the candidate is faster, by the margin            */
    TIDE_VERDICT_LOST, /* it is not                                         */
    TIDE_VERDICT_EVEN  /* all uses were made, and neither could be shown    */
} tide_verdict;

/* What a trial has measured of one use, in nanoseconds, without what the clock takes. */
typedef struct tide_trial_figures {
    uint64_t uses; /* compared, of whole pairs; 0: the rest is 0, too */
    double control_ns, candidate_ns;
    double error_ns; /* standard error of the gain */
} tide_trial_figures;

/* Opens the trial of a plan that is loaded and in force, or goes on with it; publishes. False:
 * memory is short, nothing has changed. Registry locked, as below. */
bool tide_trial_begin(tide_learner *learner, tide_learned *plan);

/* The plan to publish in place of `plan` while a trial of `learned` is open; else `plan`. */
const tide_plan *tide_trial_wrap(tide_learned *learned, const tide_plan *plan);

/* Have all uses of its burst been made? Then it is to be judged. */
bool tide_trial_burst_over(const tide_learned *plan);

/* Of a plan on trial, in any round. Unless the trial stays open it is ended. */
tide_verdict tide_trial_judge(tide_learner *learner, tide_learned *plan);

/* Ends it for now, judged or not; the next publish no longer wraps. A trial that has no verdict
 * goes on from here when it begins again. */
void tide_trial_end(tide_learner *learner, tide_learned *plan);

/* The next trial of the plan begins anew. It is not on trial. */
void tide_trial_forget(tide_learned *plan);

/* Of the last trial, or of this one so far. */
tide_trial_figures tide_trial_measured(const tide_learned *plan);

#endif
