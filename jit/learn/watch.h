/* SPDX-License-Identifier: MIT */
/* What a round does with one site: takes its window, decides, judges its trial, looks at its
 * misses, opens the next window, and says which of its plans is wanted as code. */
#ifndef TIDEPOOL_JIT_LEARN_WATCH_H
#define TIDEPOOL_JIT_LEARN_WATCH_H

#include "jit/learn/learner.h"
#include "runtime/scope/site.h"

/* Registry locked. */
void tide_watch(tide_site *site, uint64_t round);

/* Opens a window; `by_misses`: a use opens it that the plan in force did not foresee, and what was
 * seen before counts no more. Registry locked. */
void tide_watch_open_window(tide_learner *learner, bool by_misses);

/* No rounds are done for a while: the site is observed unless nothing could come of that, so that
 * its next uses are noticed. Registry locked. */
void tide_watch_leave(tide_site *site, uint64_t round);

/* What was declared of a scope, as items. None: no types, or more than a plan has room for. */
tide_items tide_watch_declared(const tide_site_record *record);

/* Can something be done with the site that needs no more uses of it? Registry locked. */
bool tide_watch_pending(const tide_site *site, uint64_t round);

#endif
