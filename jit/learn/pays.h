/* SPDX-License-Identifier: MIT */
/* When compiled code pays.
 *
 * A site that runs without code loses a little at each use. Code is ordered once it has lost as
 * much as a compile costs: whatever the program does next, that is at most twice what the best
 * choice would have cost (the classic argument of renting and buying; Karlin, Manasse, Rudolph and
 * Sleator, 1988). Sites that come to this in one round are compiled together.
 *
 * Uses are those that the pools have counted (tide_site_uses). What a plan has lost is used up by a
 * compile of it, also by one that fails. The gain of a use is modelled until a trial of the plan has
 * measured it. What a compile costs is modelled until a stager has told what it spent. */
#ifndef TIDEPOOL_JIT_LEARN_PAYS_H
#define TIDEPOOL_JIT_LEARN_PAYS_H

#include "jit/learn/learner.h"

/* Adds to the plan in force the uses of its site since this was last called: before another plan is
 * put in force, or its code is, and where the figures are asked for. Registry locked, as for all
 * below but tide_pays_spent. */
void tide_pays_count(tide_learner *learner);

/* Nanoseconds that code for the plan would have saved so far, and that a compile of one site costs. */
double tide_pays_lost(const tide_learned *plan);
double tide_pays_cost(void);

/* Would code pay for this site, compiled alone? */
bool tide_pays_compile(const tide_learned *plan);

/* Would it, where another site has the code already, so that all it costs is a trial? */
bool tide_pays_trial(const tide_learned *plan);

/* What a use takes by the tier in force, and by others for the types of `plan` (NULL: nothing is
 * known of the site's types, so there are none): `use_ns` and `rivals`. As a trial has measured it;
 * what no trial has is modelled, and put in proportion to what one has. */
void tide_pays_describe(const tide_learned *plan, tide_site_information *out);

/* A stager has told what a batch of so many sites took of the processor. Registry not locked. */
void tide_pays_spent(uint32_t sites, double ns);

#endif
