/* SPDX-License-Identifier: MIT */
/* The uses of a site on trial: each is made once, by one of the trial's two plans, and timed.
 *
 * Uses are taken in turns of eight. Two turns, one of each plan, are a pair; which plan goes first
 * in a pair is drawn at random, so that a program whose uses have a rhythm favours neither. The
 * first use of a turn is not timed: it pays for the change.
 */
#ifndef TIDEPOOL_JIT_LEARN_TIMED_H
#define TIDEPOOL_JIT_LEARN_TIMED_H

#include "jit/learn/learner.h"

/* What one pair has measured of one use by either plan, in nanoseconds, without the clock. */
typedef struct tide_timed_figures {
    double ns[TIDE_TRIAL_PLANS];
} tide_timed_figures;

/* Sets up the plans of a new trial, which is not open. */
void tide_timed_prepare(tide_trial *trial, const tide_plan *control, const tide_plan *candidate);

/* Opens a burst of so many uses, whole pairs; or ends it, and gives back how many were not taken.
 * Registry locked. */
void tide_timed_open(tide_trial *trial, uint64_t uses);
uint64_t tide_timed_close(tide_trial *trial);

/* How many uses of the burst were not taken yet? Any thread. */
uint64_t tide_timed_left(const tide_trial *trial);

/* A first burst is over: its times tell how long a time may be, and then are forgotten. */
void tide_timed_warm_up(tide_trial *trial);

/* The figures of a pair of the burst, once all its uses were taken, which are then forgotten.
 * False: there are none, or too few. Registry locked. */
bool tide_timed_collect(tide_trial *trial, uint32_t pair, tide_timed_figures *out);

/* Forgets all times, and what is known of them. Registry locked. */
void tide_timed_clear(tide_trial *trial);

#endif
