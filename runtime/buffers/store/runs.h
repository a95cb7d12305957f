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

#include <string.h>

#include "runtime/base/os.h"
#include "runtime/buffers/store/handle.h"

#define TIDE_NO_RUN UINT32_MAX

/* The youngest run that a buffer of this tick can be in. */
static inline uint32_t tide_runs_find(const tide_depot_bucket *depot, uint64_t tick)
{
    uint32_t from = 0, to = depot->run_count; /* it is before `to` */
    if (to > 0 && depot->runs[to - 1].tick <= tick)
        return to - 1;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (depot->runs[middle].tick <= tick)
            from = middle + 1;
        else
            to = middle;
    }
    return from > 0 ? from - 1 : TIDE_NO_RUN;
}

/* The link that leads to the first buffer of the run, or would. */
static inline uint32_t *tide_runs_link(const tide_buffers *buffers, tide_depot_bucket *depot,
                                       uint32_t run)
{
    tide_assert(run <= depot->run_count);
    return run + 1 < depot->run_count ? &tide_handle_at(buffers, depot->runs[run + 1].last)->next
                                      : &depot->first;
}

/* Room for one run more. The first lies in the bucket itself. */
static inline bool tide_runs_make_room(tide_depot_bucket *depot)
{
    if (depot->run_count < depot->run_room)
        return true;
    uint32_t room = depot->run_room == 0 ? 1 : depot->run_room == 1 ? 8 : depot->run_room * 2;
    bool own = depot->runs == NULL || depot->runs == &depot->run_own;
    tide_run *runs = &depot->run_own;
    if (room > 1)
        runs = tide_os_resize(own ? NULL : depot->runs, room * sizeof *runs);
    if (runs == NULL)
        return false;
    if (own && room > 1)
        runs[0] = depot->run_own;
    depot->runs = runs;
    depot->run_room = room;
    return true;
}

/* A run of this one buffer, in the place of run number `at`, which follows it. */
static inline void tide_runs_insert(tide_buffers *buffers, tide_depot_bucket *depot, uint32_t at,
                                    uint32_t slot)
{
    tide_buffer_record *record = tide_handle_at(buffers, slot);
    tide_assert(at <= depot->run_count && depot->run_count < depot->run_room);
    uint32_t *link = at < depot->run_count ? &tide_handle_at(buffers, depot->runs[at].last)->next
                                           : &depot->first;
    record->next = *link;
    *link = slot;
    memmove(depot->runs + at + 1, depot->runs + at, (depot->run_count - at) * sizeof *depot->runs);
    depot->runs[at] = (tide_run){record->tick, record->tick, slot, slot};
    depot->run_count++;
}

static inline void tide_runs_join(tide_buffers *buffers, tide_depot_bucket *depot, uint32_t at,
                                  uint32_t slot)
{
    tide_run *run = &depot->runs[at];
    tide_buffer_record *record = tide_handle_at(buffers, slot);
    if (at + 1 == depot->run_count) {
        record->next = depot->first;
        depot->first = run->first = slot;
    } else { /* nobody need look for what leads to its first */
        tide_buffer_record *first = tide_handle_at(buffers, run->first);
        record->next = first->next;
        first->next = slot;
        run->last = run->last == run->first ? slot : run->last;
    }
    run->tick = record->tick < run->tick ? record->tick : run->tick;
    run->until = record->tick > run->until ? record->tick : run->until;
}

/* Each run that goes moves those that are younger, so there must not be one for each of a long
 * age's ticks. */
enum { TIDE_RUNS_OF_AN_AGE = 1024 };

/* Into the list, by its tick. */
static inline void tide_runs_add(tide_buffers *buffers, tide_depot_bucket *depot, uint32_t slot)
{
    uint64_t tick = tide_handle_at(buffers, slot)->tick;
    uint32_t run = tide_runs_find(depot, tick), grain = buffers->age_max / TIDE_RUNS_OF_AN_AGE;
    bool within = run != TIDE_NO_RUN &&
                  (tick <= depot->runs[run].until || tick - depot->runs[run].tick < grain);
    if (!within && tide_runs_make_room(depot))
        tide_runs_insert(buffers, depot, run == TIDE_NO_RUN ? 0 : run + 1, slot);
    else
        tide_runs_join(buffers, depot, run == TIDE_NO_RUN ? 0 : run, slot);
}

/* Until the buffer's pages have been given back: by a thread that needs no lock for that, so the
 * mutex may be held. runtime/buffers/store/trim.c */
void tide_depot_wait_for_purge(const tide_buffers *buffers, uint32_t slot);

/* A buffer is to leave its list, of which pages may be given back just now. */
static inline void tide_runs_evade_purge(tide_buffers *buffers, uint32_t slot)
{
    if (TIDE_UNLIKELY(__atomic_load_n(&buffers->purge_at, __ATOMIC_ACQUIRE) == slot))
        tide_depot_wait_for_purge(buffers, slot);
    if (TIDE_UNLIKELY(buffers->purge_next == slot))
        buffers->purge_next = tide_handle_at(buffers, slot)->next;
}

/* What the link leads to, out of the list. */
static inline void tide_runs_remove(tide_buffers *buffers, tide_depot_bucket *depot, uint32_t *link)
{
    uint32_t slot = *link;
    tide_runs_evade_purge(buffers, slot);
    const tide_buffer_record *record = tide_handle_at(buffers, slot);
    uint32_t at = tide_runs_find(depot, record->tick);
    tide_assert(at != TIDE_NO_RUN);
    tide_run *run = &depot->runs[at];
    *link = record->next;
    if (run->first == run->last) {
        tide_assert(run->first == slot);
        depot->run_count--;
        memmove(run, run + 1, (depot->run_count - at) * sizeof *run);
    } else if (run->first == slot) {
        run->first = record->next;
    } else if (run->last == slot) { /* the link is the `next` of the one before */
        size_t before = (size_t)((char *)link - (char *)buffers->records) / sizeof *record;
        tide_assert(before < buffers->record_count);
        run->last = (uint32_t)before;
    }
}

static inline void tide_runs_free(tide_depot_bucket *depot)
{
    if (depot->runs != &depot->run_own)
        tide_os_free(depot->runs);
}

#endif
