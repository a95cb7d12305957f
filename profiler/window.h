/* SPDX-License-Identifier: MIT */
/* Windows: a site is observed for so many uses, then it is not.
 *
 * A window opens when an observing plan is published, which wraps the plan in force. The use that
 * fills the window publishes the wrapped plan again, with one compare-and-swap, in any thread.
 * Outside a window nothing is observed and nothing costs. Each thread counts in a shard that few
 * threads share, and whoever takes the figures adds the shards up. */
#ifndef TIDEPOOL_PROFILER_WINDOW_H
#define TIDEPOOL_PROFILER_WINDOW_H

#include <tidepool/profile.h>

/* Prepares a window of so many uses; the next tide_site_publish of the site opens it. False when
 * memory is short (nothing changed). Registry locked. */
bool tide_window_begin(tide_site *site, uint64_t uses);

/* Is one open (begun and neither full nor ended)? Registry locked. */
bool tide_window_open(const tide_site *site);

/* Ends a window that is not full. The next publish wraps no more; publishes. Registry locked. */
void tide_window_end(tide_site *site);

/* Takes what was counted since it was last taken, and adds it to what tide_profile_site tells. Uses
 * that are under way in other threads are counted the next time. Registry locked. */
void tide_window_take(tide_site *site, tide_site_profile *out);

/* Learning wants to know when a site's window is full: called by the thread that filled it, nothing
 * locked; must be quick. Set while learning is attached. */
extern void (*tide_window_filled)(tide_site *site);

#endif
