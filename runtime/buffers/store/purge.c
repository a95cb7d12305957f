/* SPDX-License-Identifier: MIT */
/* Pages of what is cached for long go back to the system; the buffers stay
 * (runtime/buffers/store/instance.h, 8). */
#include "runtime/base/os.h"
#include "runtime/buffers/store/depot.h"
#include "runtime/buffers/store/tray.h"

enum {
    PURGE_FROM = 64 << 10, /* bytes: pages of smaller buffers stay                        */
    WALK_MAX = 4096,       /* of a list, in one go: everybody who needs the depot waits   */
};

typedef enum purge_step { PURGE_NOTHING, PURGE_OFFERED, PURGE_GIVEN, PURGE_STEPS } purge_step;

/* What is to be done with the pages of a buffer that has been cached for so long. */
static purge_step purge_step_at(const tide_buffers *buffers, uint64_t age)
{
    if (age >= buffers->age_max / 2 && buffers->purge == TIDE_BUFFERS_PURGE_STEPS)
        return PURGE_GIVEN;
    return age >= buffers->age_max / 4 ? PURGE_OFFERED : PURGE_NOTHING;
}

/* What has been done since its release. The host's memory is on no stream: so that member says it,
 * together with the tick of that release, and a release need not write there. */
static purge_step purge_step_done(const tide_buffer_record *record)
{
    return record->stream / PURGE_STEPS == record->tick ? record->stream % PURGE_STEPS
                                                        : PURGE_NOTHING;
}

static purge_step purge_step_due(const tide_buffers *buffers, uint64_t now, uint32_t slot)
{
    const tide_buffer_record *record = tide_handle_at(buffers, slot);
    uint64_t age = now > record->tick ? now - record->tick : 0;
    purge_step step = purge_step_at(buffers, age);
    tide_assert(!tide_handle_live(record) && buffers->immediate);
    return step > purge_step_done(record) ? step : PURGE_NOTHING;
}

/* Stopped: a cell's buffers whose pages are to go move to the list, with their permits. */
static void purge_cells(tide_buffers *buffers, uint64_t now, unsigned key, unsigned bucket)
{
    tide_assert(tide_buffers_stopped(buffers));
    for (tide_magazine *m = buffers->magazines; m != NULL; m = m->next) {
        if (m->cells[key] == NULL)
            continue;
        tide_cell *cell = &m->cells[key][bucket];
        for (unsigned at = tide_cell_held(cell); at-- > 0;) {
            if (purge_step_due(buffers, now, cell->slots[at]) == PURGE_NOTHING)
                continue;
            uint32_t slot = tide_cell_take(cell, at);
            tide_cell_trust(cell, tide_cell_credit(cell) - 1);
            tide_depot_push(buffers, tide_depot_at(buffers, key, bucket), slot);
        }
    }
}

static void purge_pages(tide_buffer_record *record, purge_step step, size_t bytes)
{
    tide_assert(step != PURGE_NOTHING && record->mark == NULL);
    if (step == PURGE_GIVEN)
        tide_os_give_pages(record->data, bytes);
    else
        tide_os_offer_pages(record->data, bytes);
    record->stream = record->tick * PURGE_STEPS + step;
}

/* The first of the list that was released at that tick or before; all such are behind it. */
static uint32_t purge_first(const tide_buffers *buffers, tide_depot_bucket *depot, uint64_t tick)
{
    uint32_t run = tide_runs_find(depot, tick);
    return run != TIDE_NO_RUN ? *tide_runs_link(buffers, depot, run) : TIDE_NO_RECORD;
}

/* The next with pages that are to go. TIDE_NO_RECORD: not among so many. Mutex held. */
static uint32_t purge_find(tide_buffers *buffers, uint64_t now)
{
    uint32_t slot = buffers->purge_next;
    for (unsigned seen = 0; slot != TIDE_NO_RECORD && seen < WALK_MAX; seen++) {
        buffers->purge_next = tide_handle_at(buffers, slot)->next;
        buffers->purge_visited++;
        if (purge_step_due(buffers, now, slot) != PURGE_NOTHING)
            return slot;
        slot = buffers->purge_next;
    }
    return TIDE_NO_RECORD;
}

/* Without the mutex: of a large buffer the system's call takes long. The buffer stays in its list
 * meanwhile. Who wants it out waits with the mutex held, so here no lock may be needed. */
static void purge_unlocked(tide_buffers *buffers, uint32_t slot, purge_step step, size_t bytes)
{
    __atomic_store_n(&buffers->purge_at, slot, __ATOMIC_RELAXED);
    tide_lock_let_go(&buffers->mutex);
    tide_assert(!tide_lock_held_any());
    purge_pages(tide_handle_at(buffers, slot), step, bytes);
    __atomic_store_n(&buffers->purge_at, TIDE_NO_RECORD, __ATOMIC_RELEASE);
    tide_lock_take(&buffers->mutex);
}

/* Others have waited for the mutex while the list was walked: they get it. */
static void purge_pause(tide_buffers *buffers)
{
    tide_lock_let_go(&buffers->mutex);
    tide_os_nap();
    tide_lock_take(&buffers->mutex);
}

/* Mutex held, but let go in between. Who destroys the instance does not wait for all of it. */
static void purge_list(tide_buffers *buffers, uint64_t now, unsigned key, unsigned bucket)
{
    size_t bytes = tide_bucket_bytes(buffers->policy, bucket);
    tide_depot_bucket *depot = tide_depot_at(buffers, key, bucket);
    uint64_t age = buffers->age_max / 4;
    if (now < age)
        return;
    tide_tray_lower_old(buffers, depot, now - age);
    buffers->purge_next = purge_first(buffers, depot, now - age);
    while (buffers->purge_next != TIDE_NO_RECORD &&
           !__atomic_load_n(&buffers->ending, __ATOMIC_RELAXED)) {
        uint32_t slot = purge_find(buffers, now);
        if (slot != TIDE_NO_RECORD)
            purge_unlocked(buffers, slot, purge_step_due(buffers, now, slot), bytes);
        else if (buffers->purge_next != TIDE_NO_RECORD)
            purge_pause(buffers);
    }
}

void tide_depot_forget_purge(tide_buffers *buffers)
{
    __atomic_store_n(&buffers->purge_at, TIDE_NO_RECORD, __ATOMIC_RELAXED);
    buffers->purge_next = TIDE_NO_RECORD;
    buffers->purging = false;
}

/* Of all buckets whose buffers are large enough. Mutex held. */
static void purge_each(tide_buffers *buffers, uint64_t now,
                       void (*purge)(tide_buffers *, uint64_t, unsigned, unsigned))
{
    unsigned from = tide_bucket_of(buffers->policy, PURGE_FROM);
    unsigned count = tide_bucket_count(buffers->policy);
    for (unsigned key = 0; key < TIDE_BUFFER_KEYS; key++)
        for (unsigned b = from; buffers->depot[key] != NULL && b < count; b++)
            if (buffers->depot[key][b].permits > 0)
                purge(buffers, now, key, b);
}

/* A thread that is cancelled in the middle would leave the others waiting. */
void tide_depot_purge(tide_buffers *buffers, uint64_t now)
{
    if (!buffers->immediate || buffers->careful || buffers->purge == TIDE_BUFFERS_PURGE_NEVER)
        return;
    int cancel = tide_os_forbid_cancel();
    tide_lock_take(&buffers->mutex);
    if (!buffers->purging) {
        buffers->purging = true;
        tide_magazines_stop(buffers);
        purge_each(buffers, now, purge_cells);
        tide_magazines_resume(buffers);
        purge_each(buffers, now, purge_list);
        buffers->purging = false;
    }
    tide_lock_let_go(&buffers->mutex);
    tide_os_restore_cancel(cancel);
}
