/* SPDX-License-Identifier: MIT */
/* Observing plans: each wraps a plan, does what that one does, and counts. */
#ifndef TIDEPOOL_PROFILER_OBSERVE_H
#define TIDEPOOL_PROFILER_OBSERVE_H

#include <tidepool/site.h>

/* The plan that observes this one: made on first demand and kept until dropped. NULL when memory is
 * short. Registry locked. */
const tide_plan *tide_observe_wrap(const tide_plan *plan);

/* The plan is about to be freed, and nobody can be inside it: so is the one that observes it.
 * Registry locked. */
void tide_observe_drop(const tide_plan *plan);

/* Does this plan observe? */
bool tide_observe_wraps(const tide_plan *plan);

/* While set every use is counted, whatever windows are open. Registry locked. */
void tide_observe_always(bool on);
bool tide_observe_always_on(void);

#endif
