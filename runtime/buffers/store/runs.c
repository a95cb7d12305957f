/* SPDX-License-Identifier: MIT */
/* The list of a bucket: which run a buffer belongs to, and how runs grow and go. */
#include "runtime/buffers/store/runs.h"

#include <string.h>

#include "runtime/base/os.h"

uint32_t tide_runs_find(const tide_depot_bucket *depot, uint64_t tick)
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

uint32_t *tide_runs_link(const tide_buffers *buffers, tide_depot_bucket *depot, uint32_t run)
{
    tide_assert(run <= depot->run_count);
    return run + 1 < depot->run_count ? &tide_handle_at(buffers, depot->runs[run + 1].last)->next
                                      : &depot->first;
}

/* Room for one run more. The first lies in the bucket itself. */
static bool runs_make_room(tide_depot_bucket *depot)
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
static void runs_insert(tide_buffers *buffers, tide_depot_bucket *depot, uint32_t at, uint32_t slot)
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

static void runs_join(tide_buffers *buffers, tide_depot_bucket *depot, uint32_t at, uint32_t slot)
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

void tide_runs_add(tide_buffers *buffers, tide_depot_bucket *depot, uint32_t slot)
{
    uint64_t tick = tide_handle_at(buffers, slot)->tick;
    uint32_t run = tide_runs_find(depot, tick), grain = buffers->age_max / TIDE_RUNS_OF_AN_AGE;
    bool within = run != TIDE_NO_RUN &&
                  (tick <= depot->runs[run].until || tick - depot->runs[run].tick < grain);
    if (!within && runs_make_room(depot))
        runs_insert(buffers, depot, run == TIDE_NO_RUN ? 0 : run + 1, slot);
    else
        runs_join(buffers, depot, run == TIDE_NO_RUN ? 0 : run, slot);
}

/* A buffer is to leave its list, whose pages may be given back just now: by a thread that needs no
 * lock for that (runtime/buffers/store/purge.c). */
static void runs_evade_purge(tide_buffers *buffers, uint32_t slot)
{
    while (TIDE_UNLIKELY(__atomic_load_n(&buffers->purge_at, __ATOMIC_ACQUIRE) == slot))
        tide_os_nap();
    if (TIDE_UNLIKELY(buffers->purge_next == slot))
        buffers->purge_next = tide_handle_at(buffers, slot)->next;
}

void tide_runs_remove(tide_buffers *buffers, tide_depot_bucket *depot, uint32_t *link)
{
    uint32_t slot = *link;
    runs_evade_purge(buffers, slot);
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

void tide_runs_free(tide_depot_bucket *depot)
{
    if (depot->runs != &depot->run_own)
        tide_os_free(depot->runs);
}
