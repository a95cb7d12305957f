/* SPDX-License-Identifier: MIT */
/* Observing plans: each wraps another plan, lets it work, and counts what it sees. */
#ifndef TIDEPOOL_PROFILER_OBSERVE_H
#define TIDEPOOL_PROFILER_OBSERVE_H

#include <tidepool/site.h>

/* The plan that observes this one: made on first demand, and there until it is dropped. NULL when
 * memory is short. Registry locked. */
const tide_plan *tide_observe_wrap(const tide_plan *plan);

/* The plan is about to be freed: frees the one that observes it, too. Nobody can be inside them.
 * Registry locked. */
void tide_observe_drop(const tide_plan *plan);

/* Does this plan observe? */
bool tide_observe_wraps(const tide_plan *plan);

/* While this is on, every use is counted, whatever windows are open. Registry locked. */
void tide_observe_always(bool on);
bool tide_observe_always_on(void);

#endif
