/* SPDX-License-Identifier: MIT */
/* What a round does with one site: takes its window, decides, judges its trial, looks at its
 * misses, opens the next window, and says which of its plans is wanted as code. */
#ifndef TIDEPOOL_JIT_LEARN_WATCH_H
#define TIDEPOOL_JIT_LEARN_WATCH_H

#include "jit/learn/learner.h"

/* Registry locked. */
void tide_watch(tide_site *site, uint64_t round);

/* The code of a plan has come; or it will not, for this reason. `detail` is what the stager or the
 * system said, or "". Registry locked. */
void tide_watch_loaded(tide_learner *learner, uint32_t number, uint64_t round);
void tide_watch_failed(tide_learner *learner, uint32_t number, uint64_t round, tide_reason reason,
                       const char *detail);

/* Can something be done with the site that needs no more uses of it? Registry locked. */
bool tide_watch_pending(const tide_site *site, uint64_t round);

#endif
