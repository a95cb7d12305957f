/* SPDX-License-Identifier: MIT */
/* Cached buffers that go: those that are too old or that the device has no room for, wherever they
 * lie, and those of the depot's lists that the last rounds of use did not need
 * (runtime/buffers/store/instance.h, 7). */
#include "runtime/base/os.h"
#include "runtime/buffers/store/address.h"
#include "runtime/buffers/store/depot.h"
#include "runtime/buffers/store/tray.h"

enum {
    USE_PART = 4,         /* a round of use: so large a part of what is held was allocated anew */
    USE_MIN = 4 << 20,    /* bytes, and at least so many                                        */
    IDLE_FROM = 64 << 10, /* bytes: of such buffers a cell keeps none that it does not use */
    WALK_MAX = 4096,      /* of a list, in one go: everybody who needs the depot waits           */
};

typedef struct trimming {
    tide_buffers *buffers;
    uint64_t now, ticks;
    bool wait;
    uint32_t first; /* of what is to go: a list */
    tide_trim_summary summary;
} trimming;

/* The buffer, taken out of its cell or list, gives its permit up and is among what goes. */
static void trim_add(trimming *t, uint32_t slot, unsigned key, unsigned bucket)
{
    size_t bytes = tide_bucket_bytes(t->buffers->policy, bucket);
    tide_permits_give(t->buffers, tide_depot_at(t->buffers, key, bucket), 1, bytes);
    tide_address_remove(t->buffers, slot);
    tide_handle_at(t->buffers, slot)->next = t->first;
    t->first = slot;
    t->summary.slots++;
    t->summary.bytes += bytes;
}

/* What was taken out goes, nothing locked. The list would be lost with a thread that is cancelled
 * in a hook. */
static void trim_free_all(const trimming *t)
{
    int cancel = tide_os_forbid_cancel();
    for (uint32_t slot = t->first, next; slot != TIDE_NO_RECORD; slot = next) {
        next = tide_handle_at(t->buffers, slot)->next;
        tide_depot_free(t->buffers, slot, NULL);
    }
    tide_os_restore_cancel(cancel);
}

/* ---- by age ---------------------------------------------------------------------------------- */

/* Whatever is cached goes at the age of 0, also what was released after the clock was read. */
static bool trim_is_old(const trimming *t, uint64_t tick)
{
    return t->ticks == 0 || (t->now >= tick && t->now - tick >= t->ticks);
}

/* Must the cached buffer go? Mutex held. */
static bool trim_takes(trimming *t, uint32_t slot)
{
    tide_buffer_record *record = tide_handle_at(t->buffers, slot);
    bool old = trim_is_old(t, record->tick);
    bool by_stream = tide_hand_over_goes_by_stream(t->buffers, record->key);
    return old && (t->wait || by_stream || tide_hand_over_over(t->buffers, record));
}

static void trim_cell(trimming *t, tide_cell *cell, unsigned key, unsigned bucket)
{
    tide_assert(tide_buffers_stopped(t->buffers));
    for (unsigned at = tide_cell_held(cell); at-- > 0;) {
        if (!trim_takes(t, cell->slots[at]))
            continue;
        trim_add(t, tide_cell_take(cell, at), key, bucket);
        tide_assert(tide_cell_credit(cell) > tide_cell_held(cell));
        tide_cell_trust(cell, tide_cell_credit(cell) - 1);
    }
}

static void trim_cells(trimming *t, unsigned key, unsigned bucket)
{
    for (tide_magazine *m = t->buffers->magazines; m != NULL; m = m->next)
        if (m->cells[key] != NULL)
            trim_cell(t, &m->cells[key][bucket], key, bucket);
}

/* True: something of the run stays. */
static bool trim_run(trimming *t, unsigned key, unsigned bucket, uint32_t run)
{
    tide_depot_bucket *depot = tide_depot_at(t->buffers, key, bucket);
    uint32_t *link = tide_runs_link(t->buffers, depot, run), slot;
    const uint32_t last = depot->runs[run].last;
    bool stays = false;
    do {
        slot = *link;
        t->buffers->visited++;
        if (trim_takes(t, slot)) {
            trim_add(t, tide_depot_take(t->buffers, depot, link), key, bucket);
        } else {
            stays = true;
            link = &tide_handle_at(t->buffers, slot)->next;
        }
    } while (slot != last);
    return stays;
}

/* From the oldest run to the first that is young enough: all others are younger. */
static void trim_list(trimming *t, unsigned key, unsigned bucket)
{
    tide_depot_bucket *depot = tide_depot_at(t->buffers, key, bucket);
    if (t->ticks == 0 || t->now >= t->ticks)
        tide_tray_lower_old(t->buffers, depot, t->ticks == 0 ? UINT64_MAX : t->now - t->ticks);
    for (uint32_t run = 0; run < depot->run_count && trim_is_old(t, depot->runs[run].tick);)
        run += trim_run(t, key, bucket, run);
}

/* Of all buckets that have something cached, one after the other. Mutex held. */
static void trim_each(trimming *t, void (*trim)(trimming *t, unsigned key, unsigned bucket))
{
    unsigned count = tide_bucket_count(t->buffers->policy);
    for (unsigned key = 0; key < TIDE_BUFFER_KEYS; key++)
        for (unsigned b = 0; t->buffers->depot[key] != NULL && b < count; b++)
            if (t->buffers->depot[key][b].permits > 0)
                trim(t, key, b);
}

/* Threads are stopped for the cells only, of which there are few; lists may be long. */
tide_trim_summary tide_depot_trim(tide_buffers *buffers, uint64_t ticks, bool wait)
{
    trimming t = {.buffers = buffers, .ticks = ticks, .wait = wait, .first = TIDE_NO_RECORD};
    tide_lock_take(&buffers->mutex);
    t.now = tide_buffers_now();
    tide_magazines_stop(buffers);
    trim_each(&t, trim_cells);
    tide_magazines_resume(buffers);
    trim_each(&t, trim_list);
    buffers->trimmed += t.summary.slots;
    tide_lock_let_go(&buffers->mutex);
    trim_free_all(&t);
    return t.summary;
}

/* To look for old buffers stops all threads, so it is done eight times in the longest age. */
void tide_depot_age(tide_buffers *buffers)
{
    uint64_t now = tide_buffers_now(), before = __atomic_load_n(&buffers->aged, __ATOMIC_RELAXED);
    if (now <= before || now - before < ((uint64_t)buffers->age_max + 7) / 8 ||
        !__atomic_compare_exchange_n(&buffers->aged, &before, now, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED)) /* another thread does it just now */
        return;
    tide_depot_trim(buffers, buffers->age_max, false);
    tide_depot_purge(buffers, now);
}

/* ---- where there is none --------------------------------------------------------------------- */

typedef struct pressing {
    const tide_device *device;
    bool any;
} pressing;

static void press_one(tide_buffers *buffers, void *user)
{
    pressing *by = user;
    tide_assert(by != NULL && by->device != NULL);
    if (buffers->device == by->device && tide_depot_trim(buffers, 0, true).slots != 0)
        by->any = true;
}

bool tide_depot_press(tide_device *device)
{
    pressing by = {.device = device};
    tide_buffers_visit(press_one, &by);
    return by.any;
}

/* ---- by use ---------------------------------------------------------------------------------- */

bool tide_depot_use_moved(tide_buffers *buffers, size_t bytes)
{
    size_t part = buffers->bytes_held / USE_PART;
    tide_assert(bytes <= buffers->bytes_held);
    buffers->bytes_missed += bytes;
    if (buffers->bytes_missed < (part > USE_MIN ? part : USE_MIN))
        return false;
    buffers->bytes_missed = 0;
    return true;
}

/* The oldest of a list, or, if it is a long one, of the older ones; returns how many. What somebody
 * would have to wait for stays. */
static uint32_t trim_oldest(trimming *t, unsigned key, unsigned bucket, uint32_t count)
{
    tide_depot_bucket *depot = tide_depot_at(t->buffers, key, bucket);
    uint32_t *link = &depot->first, taken = 0, seen = 0;
    tide_assert(count > 0 && count <= depot->cached);
    uint32_t younger = tide_tray_list(t->buffers, depot, count) - count;
    for (; younger > 0 && seen < WALK_MAX; younger--, seen++)
        link = &tide_handle_at(t->buffers, *link)->next;
    for (; *link != TIDE_NO_RECORD && taken < count && seen < 2 * WALK_MAX; seen++) {
        tide_buffer_record *record = tide_handle_at(t->buffers, *link);
        if (tide_hand_over_goes(t->buffers, record)) {
            trim_add(t, tide_depot_take(t->buffers, depot, link), key, bucket);
            taken++;
        } else {
            link = &record->next;
        }
    }
    return taken;
}

/* A bucket's round of use ends. What a long list keeps for now is idle in the next round, too. */
static void trim_unused_bucket(trimming *t, unsigned key, unsigned bucket)
{
    tide_depot_bucket *depot = tide_depot_at(t->buffers, key, bucket);
    uint32_t both = depot->spare < depot->spare_before ? depot->spare : depot->spare_before;
    uint32_t last = depot->spare;
    tide_assert(last <= depot->cached);
    uint32_t gone = both > 0 ? trim_oldest(t, key, bucket, both) : 0;
    depot->spare_before = last - gone;
    depot->spare = depot->cached;
}

/* A miss of memory that no stream orders has no stream by which other memory could go. */
static bool trim_serves(const trimming *t, const tide_want *want, unsigned key)
{
    return t->buffers->depot[key] != NULL &&
           (tide_buffer_plain(t->buffers, key) || !tide_buffer_plain(t->buffers, want->key));
}

/* Stopped: what had no hit since the last round goes to the list. */
static void trim_settle_cells(tide_buffers *buffers, unsigned key, unsigned bucket)
{
    tide_assert(tide_buffers_stopped(buffers));
    for (tide_magazine *m = buffers->magazines; m != NULL; m = m->next) {
        if (m->cells[key] == NULL)
            continue;
        tide_cell *cell = &m->cells[key][bucket];
        if (cell->seen == (uint16_t)cell->counts.hits)
            tide_cell_empty(buffers, cell, key, bucket);
        cell->seen = (uint16_t)cell->counts.hits;
    }
}

/* Of each bucket of large buffers. Mutex held. */
static void trim_idle_cells(trimming *t, const tide_want *want)
{
    tide_buffers *buffers = t->buffers;
    unsigned from = tide_bucket_of(buffers->policy, IDLE_FROM);
    unsigned count = tide_bucket_count(buffers->policy);
    tide_magazines_stop(buffers);
    for (unsigned key = 0; key < TIDE_BUFFER_KEYS; key++)
        for (unsigned b = from; trim_serves(t, want, key) && b < count; b++)
            if (buffers->depot[key][b].permits > 0)
                trim_settle_cells(buffers, key, b);
    tide_magazines_resume(buffers);
}

void tide_depot_trim_unused(tide_buffers *buffers, const tide_want *want)
{
    trimming t = {.buffers = buffers, .first = TIDE_NO_RECORD};
    tide_lock_take(&buffers->mutex);
    unsigned count = tide_bucket_count(buffers->policy);
    trim_idle_cells(&t, want);
    for (unsigned key = 0; key < TIDE_BUFFER_KEYS; key++)
        for (unsigned b = 0; trim_serves(&t, want, key) && b < count; b++)
            trim_unused_bucket(&t, key, b);
    buffers->trimmed += t.summary.slots;
    tide_lock_let_go(&buffers->mutex);
    trim_free_all(&t);
}
