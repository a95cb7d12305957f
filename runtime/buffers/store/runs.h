/* SPDX-License-Identifier: MIT */
/* The list of a depot's bucket, in order of release, and its runs: pieces of it, each of a tick or,
 * where buffers may become old, of a thousandth of their age: so there are not many. A trim by age
 * begins at the oldest run and ends at the first that is young enough. So it costs by what it
 * takes, however much is idle. All with the mutex held.
 *
 *  1. The chain of `next` goes from the youngest run to the oldest; `runs` has the oldest first. In
 *     a run buffers stand in any order, but what comes to the youngest is put on top: it is warm.
 *  2. Run r has what was released from its tick to its `until`, which is before the tick of run
 *     r + 1. So a buffer's run is found by a search for its tick. Without memory for a run of its
 *     own it joins the one before. Of a run of several ticks a trim looks at a few too many, and
 *     takes the right ones all the same.
 *  3. Ticks come out of order only where buffers of a cell or of the tray go to the list: they find
 *     their run. */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_STORE_RUNS_H
#define TIDEPOOL_RUNTIME_BUFFERS_STORE_RUNS_H

#include "runtime/buffers/store/handle.h"

#define TIDE_NO_RUN UINT32_MAX

/* The youngest run that a buffer of this tick can be in. */
uint32_t tide_runs_find(const tide_depot_bucket *depot, uint64_t tick);

/* The link that leads to the first buffer of the run, or would. */
uint32_t *tide_runs_link(const tide_buffers *buffers, tide_depot_bucket *depot, uint32_t run);

/* Into the list, by its tick. */
void tide_runs_add(tide_buffers *buffers, tide_depot_bucket *depot, uint32_t slot);

/* What the link leads to, out of the list. */
void tide_runs_remove(tide_buffers *buffers, tide_depot_bucket *depot, uint32_t *link);

void tide_runs_free(tide_depot_bucket *depot);

#endif
