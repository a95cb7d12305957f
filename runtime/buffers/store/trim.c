/* SPDX-License-Identifier: MIT */
/* Cached buffers that go: those that are too old, or that the device has no room for. */
#include "runtime/buffers/store/depot.h"

#include <stdio.h>

#include "runtime/device/budget.h"

typedef struct trimming {
    tide_buffers *buffers;
    const tide_device *device; /* whose memory goes; NULL: of all */
    uint64_t now, ticks;
    bool wait;
    uint32_t going; /* a list */
    size_t held;    /* by cells, still */
    tide_trim_summary summary;
} trimming;

static void trim_add(trimming *t, uint32_t slot)
{
    tide_depot_let_go(t->buffers, slot, &t->going);
    t->buffers->trimmed++;
    t->summary.slots++;
    t->summary.bytes += tide_handle_bytes(tide_handle_at(t->buffers, slot));
}

/* ---- by age ---------------------------------------------------------------------------------- */

/* Whatever is cached goes at the age of 0, also what was released after the clock was read. */
static bool trim_is_old(const trimming *t, uint32_t slot)
{
    uint64_t tick = tide_handle_at(t->buffers, slot)->tick;
    return t->ticks == 0 || (t->now >= tick && t->now - tick >= t->ticks);
}

/* Stopped. They are plain, and nobody need be waited for. */
static void trim_cells(trimming *t)
{
    tide_assert(t->buffers->stopped == 1);
    for (tide_magazine *m = t->buffers->magazines; m != NULL; m = m->next) {
        for (unsigned b = 0; b < TIDE_BUCKETS; b++) {
            tide_cell *cell = &m->cells[b];
            unsigned old = 0; /* of those in front, which are the oldest */
            while (old < cell->held && trim_is_old(t, cell->slots[old]))
                trim_add(t, cell->slots[old++]);
            tide_cell_forget_oldest(cell, old);
            t->held += cell->held;
        }
    }
}

/* Nothing is cached, so nobody need look. Stopped. */
static void trim_rest(tide_buffers *buffers)
{
    tide_assert(buffers->stopped == 1 && buffers->bytes_cached == 0);
    __atomic_store_n(&buffers->watched, false, __ATOMIC_RELAXED);
    for (tide_magazine *m = buffers->magazines; m != NULL; m = m->next)
        for (unsigned b = 0; b < TIDE_BUCKETS; b++)
            m->cells[b].room = 0;
}

/* From those that came first to the first that is young enough. What has to be waited for stays, if
 * nobody shall wait. */
static void trim_old(trimming *t, unsigned key, unsigned bucket, unsigned node)
{
    tide_buffers *buffers = t->buffers;
    tide_depot_bucket *depot = tide_depot_at(buffers, key, bucket) + node * TIDE_BUCKETS;
    bool any = t->wait || tide_hand_over_goes_by_stream(buffers, key);
    uint32_t at = 0, stay = 0;
    for (; at < depot->cached && trim_is_old(t, depot->slots[at]); at++) {
        uint32_t slot = depot->slots[at];
        if (any || tide_hand_over_over(buffers, tide_handle_at(buffers, slot)))
            trim_add(t, slot);
        else
            depot->slots[stay++] = slot;
    }
    if (stay < at)
        tide_depot_close_gap(buffers, depot, bucket, stay, at);
    if (stay < at && depot->cached == 0)
        tide_depot_at(buffers, key, bucket)->cut = TIDE_CUT_NEVER;
}

static bool trim_goes(const trimming *t, unsigned key)
{
    return t->device == NULL || tide_hand_over_device_of(t->buffers, key) == t->device;
}

tide_trim_summary tide_depot_trim(tide_buffers *buffers, const tide_device *device, uint64_t ticks,
                                  bool wait)
{
    trimming t = {.buffers = buffers,
                  .device = device,
                  .ticks = ticks,
                  .wait = wait,
                  .going = TIDE_NO_RECORD};
    if (buffers->kept && !__atomic_load_n(&buffers->ending, __ATOMIC_RELAXED))
        return t.summary;
    tide_lock_take(&buffers->mutex);
    t.now = tide_buffers_now();
    tide_magazines_stop(buffers);
    if (trim_goes(&t, buffers->key))
        trim_cells(&t);
    for (unsigned key = 0; key < TIDE_BUFFER_KEYS; key++)
        for (unsigned b = 0;
             buffers->depot[key] != NULL && trim_goes(&t, key) && b < TIDE_BUCKETS * buffers->nodes;
             b++)
            trim_old(&t, key, b % TIDE_BUCKETS, b / TIDE_BUCKETS);
    if (trim_goes(&t, buffers->key) && t.held == 0 && buffers->bytes_cached == 0)
        trim_rest(buffers);
    tide_magazines_resume(buffers);
    tide_lock_let_go(&buffers->mutex);
    tide_depot_free_all(buffers, t.going, NULL);
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
    (void)tide_depot_trim(buffers, NULL, buffers->age_max, false);
}

/* ---- where there is none --------------------------------------------------------------------- */

typedef struct pressing {
    const tide_device *device;
    size_t wanted, bytes;
} pressing;

static void press_one(tide_buffers *buffers, void *user)
{
    pressing *by = user;
    tide_assert(by != NULL && by->device != NULL);
    if (by->bytes < by->wanted)
        by->bytes += tide_depot_trim(buffers, by->device, 0, true).bytes;
}

size_t tide_depot_press(tide_device *device, int memory, size_t bytes)
{
    (void)memory;
    pressing by = {.device = device, .wanted = bytes};
    tide_buffers_visit(press_one, &by);
    return by.bytes;
}

static void press_count(tide_buffers *buffers, void *user)
{
    pressing *by = user;
    if (buffers->device != by->device)
        return;
    tide_lock_take(&buffers->mutex);
    by->bytes += buffers->bytes_held;
    tide_lock_let_go(&buffers->mutex);
}

void tide_depot_tell(const tide_device *device, char *text, size_t room)
{
    pressing by = {.device = device};
    tide_buffers_visit(press_count, &by);
    snprintf(text, room, "buffers hold %zu bytes", by.bytes);
}
