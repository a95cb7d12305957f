/* SPDX-License-Identifier: MIT */
#include "runtime/buffers/depot.h"

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"

enum { BATCH = TIDE_CELL_SLOTS / 2 }; /* buffers that move between a cell and the depot at once */

/* ---- places and lists; mutex held ---------------------------------------------------------- */

static tide_depot_bucket *bucket_at(const tide_buffers *buffers, unsigned key, unsigned bucket)
{
    return buffers->depot[key] != NULL ? &buffers->depot[key][bucket] : NULL;
}

static bool depot_make(tide_buffers *buffers, unsigned key)
{
    if (buffers->depot[key] != NULL)
        return true;
    tide_depot_bucket *all = tide_os_resize(NULL, TIDE_BUCKETS * sizeof *all);
    if (all == NULL)
        return false;
    for (unsigned i = 0; i < TIDE_BUCKETS; i++)
        all[i] = (tide_depot_bucket){.first = TIDE_NO_RECORD};
    buffers->depot[key] = all;
    return true;
}

static bool place_take(tide_buffers *buffers, tide_depot_bucket *depot, size_t bytes)
{
    tide_assert(buffers->bytes_places <= buffers->bytes_max);
    if (depot->places >= buffers->count_max || bytes > buffers->bytes_max - buffers->bytes_places)
        return false;
    depot->places++;
    buffers->bytes_places += bytes;
    return true;
}

static void places_give(tide_buffers *buffers, tide_depot_bucket *depot, unsigned count,
                        size_t bytes)
{
    tide_assert(depot->places >= count && buffers->bytes_places >= count * bytes);
    depot->places -= count;
    buffers->bytes_places -= count * bytes;
}

static void list_push(tide_buffers *buffers, tide_depot_bucket *depot, uint32_t slot)
{
    tide_handle_at(buffers, slot)->next = depot->first;
    depot->first = slot;
    depot->cached++;
}

static uint32_t list_take(tide_buffers *buffers, tide_depot_bucket *depot, uint32_t *link)
{
    uint32_t slot = *link;
    *link = tide_handle_at(buffers, slot)->next;
    tide_assert(depot->cached > 0);
    depot->cached--;
    return slot;
}

static uint32_t list_find(tide_buffers *buffers, tide_depot_bucket *depot, const tide_want *want)
{
    for (uint32_t *link = &depot->first; *link != TIDE_NO_RECORD;
         link = &tide_handle_at(buffers, *link)->next) {
        if (!tide_hand_over_ready(buffers, tide_handle_at(buffers, *link), &want->passing))
            continue;
        places_give(buffers, depot, 1, tide_bucket_bytes(buffers->policy, want->bucket));
        return list_take(buffers, depot, link);
    }
    return TIDE_NO_RECORD;
}

/* ---- between cells and lists; mutex held ----------------------------------------------------- */

static tide_cell *cell_of(tide_magazine *magazine, unsigned key, unsigned bucket)
{
    return magazine != NULL && tide_cells_make(magazine, key) ? &magazine->cells[key][bucket]
                                                              : NULL;
}

static tide_buffer_counts *counts_of(tide_cell *cell, tide_depot_bucket *depot)
{
    return cell != NULL ? &cell->counts : &depot->counts;
}

/* A cell's credits that stand for no buffer are given up. True if there were any. */
static bool cell_settle(tide_buffers *buffers, tide_cell *cell, unsigned key, unsigned bucket)
{
    unsigned held = tide_cell_held(cell), idle = tide_cell_credit(cell) - held;
    if (idle == 0)
        return false;
    tide_cell_trust(cell, held);
    places_give(buffers, bucket_at(buffers, key, bucket), idle,
                tide_bucket_bytes(buffers->policy, bucket));
    return true;
}

/* From the list; each brings its place, or finds one waiting. */
static void refill(tide_buffers *buffers, tide_cell *cell, tide_depot_bucket *depot, size_t bytes)
{
    for (unsigned i = 0; i < BATCH && depot->cached > 0; i++) {
        if (tide_cell_held(cell) == TIDE_CELL_SLOTS)
            return;
        if (tide_cell_credit(cell) > tide_cell_held(cell))
            places_give(buffers, depot, 1, bytes);
        else
            tide_cell_trust(cell, tide_cell_credit(cell) + 1);
        tide_cell_push(cell, list_take(buffers, depot, &depot->first));
    }
}

/* The oldest to the list. They take their places along if there are no others. */
static void spill(tide_buffers *buffers, tide_cell *cell, tide_depot_bucket *depot, size_t bytes)
{
    for (unsigned i = 0; i < BATCH; i++) {
        if (!place_take(buffers, depot, bytes))
            tide_cell_trust(cell, tide_cell_credit(cell) - 1);
        list_push(buffers, depot, tide_cell_take(cell, 0));
    }
}

/* All of it, places included. */
static void cell_empty(tide_buffers *buffers, tide_cell *cell, unsigned key, unsigned bucket)
{
    tide_depot_bucket *depot = bucket_at(buffers, key, bucket);
    cell_settle(buffers, cell, key, bucket);
    while (tide_cell_held(cell) > 0)
        list_push(buffers, depot, tide_cell_take(cell, 0));
    tide_cell_trust(cell, 0);
}

void tide_depot_collect(tide_buffers *buffers, tide_magazine *magazine)
{
    for (unsigned key = 0; key < TIDE_BUFFER_KEYS; key++) {
        for (unsigned b = 0; magazine->cells[key] != NULL && b < TIDE_BUCKETS; b++) {
            tide_cell *cell = &magazine->cells[key][b];
            tide_depot_bucket *depot = bucket_at(buffers, key, b);
            if (depot == NULL) /* made for a release that never came */
                continue;
            cell_empty(buffers, cell, key, b);
            depot->counts.hits += cell->counts.hits;
            depot->counts.releases += cell->counts.releases;
            depot->counts.asked += cell->counts.asked;
            cell->counts = (tide_buffer_counts){0};
        }
    }
}

/* ---- from the other magazines ---------------------------------------------------------------- */

/* A glance at another's cell, which may change meanwhile: is it worth stopping everybody? */
typedef bool glance(const tide_cell *cell);

static bool holds(const tide_cell *cell)
{
    return tide_cell_held(cell) > 0;
}

static bool idles(const tide_cell *cell)
{
    return tide_cell_credit(cell) > tide_cell_held(cell);
}

static bool any_other(const tide_buffers *buffers, const tide_magazine *own, unsigned key,
                      unsigned bucket, glance *look)
{
    for (const tide_magazine *m = buffers->magazines; m != NULL; m = m->next)
        if (m != own && m->cells[key] != NULL && look(&m->cells[key][bucket]))
            return true;
    return false;
}

/* The buffers of all cells of the bucket come to the list. */
static bool gather(tide_buffers *buffers, const tide_magazine *own, const tide_want *want)
{
    if (!any_other(buffers, own, want->key, want->bucket, holds))
        return false;
    tide_magazines_stop(buffers);
    for (tide_magazine *m = buffers->magazines; m != NULL; m = m->next)
        if (m != own && m->cells[want->key] != NULL)
            cell_empty(buffers, &m->cells[want->key][want->bucket], want->key, want->bucket);
    tide_magazines_resume(buffers);
    return true;
}

/* Takes back the idle credits of one bucket. True if there were any. */
static bool revoke_bucket(tide_buffers *buffers, tide_magazine *own, unsigned key, unsigned bucket)
{
    bool any = own != NULL && own->cells[key] != NULL &&
               cell_settle(buffers, &own->cells[key][bucket], key, bucket);
    if (!any_other(buffers, own, key, bucket, idles))
        return any;
    tide_magazines_stop(buffers);
    for (tide_magazine *m = buffers->magazines; m != NULL; m = m->next)
        if (m->cells[key] != NULL)
            any = cell_settle(buffers, &m->cells[key][bucket], key, bucket) || any;
    tide_magazines_resume(buffers);
    return any;
}

/* Whose places are short decides where to look: those of the bucket, or the bytes of all. */
static bool revoke(tide_buffers *buffers, tide_magazine *own, unsigned key, unsigned bucket)
{
    if (bucket_at(buffers, key, bucket)->places >= buffers->count_max)
        return revoke_bucket(buffers, own, key, bucket);
    bool any = false;
    for (unsigned k = 0; k < TIDE_BUFFER_KEYS; k++)
        for (unsigned b = 0; buffers->depot[k] != NULL && b < TIDE_BUCKETS; b++)
            any = (buffers->depot[k][b].places > 0 && revoke_bucket(buffers, own, k, b)) || any;
    return any;
}

/* ---- acquire --------------------------------------------------------------------------------- */

uint32_t tide_cell_find(const tide_buffers *buffers, tide_cell *cell, const tide_want *want)
{
    for (unsigned at = tide_cell_held(cell); at-- > 0;)
        if (tide_hand_over_ready(buffers, tide_handle_at(buffers, cell->slots[at]), &want->passing))
            return tide_cell_take(cell, at);
    return TIDE_NO_RECORD;
}

/* Whatever is cached, wherever it is. Mutex held. */
static uint32_t find_cached(tide_buffers *buffers, tide_magazine *magazine, tide_cell *cell,
                            tide_depot_bucket *depot, const tide_want *want)
{
    uint32_t slot = cell != NULL ? tide_cell_find(buffers, cell, want) : TIDE_NO_RECORD;
    if (slot == TIDE_NO_RECORD)
        slot = list_find(buffers, depot, want);
    if (slot == TIDE_NO_RECORD && gather(buffers, magazine, want))
        slot = list_find(buffers, depot, want);
    if (slot != TIDE_NO_RECORD && cell != NULL)
        refill(buffers, cell, depot, tide_bucket_bytes(buffers->policy, want->bucket));
    return slot;
}

/* What is cached of this device's memory, by whatever instance, goes back to it. */
static void press(tide_buffers *other, void *user)
{
    tide_buffers *buffers = user;
    if (other->device == buffers->device &&
        tide_hand_over_quiet(other, "tide_buffers_trim") == TIDE_OK)
        tide_depot_trim(other, 0, true);
}

static tide_status allocate(tide_buffers *buffers, const tide_want *want, size_t bytes, void **data)
{
    tide_status status =
        tide_hand_over_allocate(buffers, want->key, bytes, &want->passing, want->call, data);
    if (status != TIDE_ERROR_MEMORY)
        return status;
    pthread_mutex_lock(&buffers->mutex);
    buffers->pressed++;
    pthread_mutex_unlock(&buffers->mutex);
    tide_buffers_each(press, buffers);
    status = tide_hand_over_allocate(buffers, want->key, bytes, &want->passing, want->call, data);
    if (status != TIDE_ERROR_MEMORY)
        return status;
    pthread_mutex_lock(&buffers->mutex);
    size_t held = buffers->bytes_held;
    pthread_mutex_unlock(&buffers->mutex);
    return tide_fail(
        status, want->call,
        "device %s has no %zu bytes for a buffer of %zu of '%s', which holds %zu, even "
        "after all that was cached has been given back",
        buffers->device->name, bytes, want->bytes, buffers->name, held);
}

/* The record of a buffer that is new. */
static void set_up(tide_buffers *buffers, uint32_t slot, const tide_want *want, void *data)
{
    tide_buffer_record *record = tide_handle_at(buffers, slot);
    record->mark = NULL;
    record->key = (uint16_t)want->key;
    record->bucket = (uint16_t)want->bucket;
    __atomic_store_n(&record->data, data, __ATOMIC_RELAXED);
}

static void tell(const tide_buffers *buffers, tide_buffer_happening happening, uint32_t slot,
                 unsigned key, size_t bytes)
{
    if (buffers->hook == NULL)
        return;
    buffers->hook(&(tide_buffer_event){.happening = happening,
                                       .buffers = (tide_buffers *)(uintptr_t)buffers,
                                       .slot = slot,
                                       .bytes = bytes,
                                       .flags = tide_buffer_flags(key)},
                  buffers->user);
}

/* A record that stands for no memory yet gets some, or is free again. */
static uint32_t fill_record(tide_buffers *buffers, uint32_t slot, tide_cell *cell,
                            const tide_want *want)
{
    size_t bytes = tide_bucket_bytes(buffers->policy, want->bucket);
    void *data = NULL;
    bool allocated = allocate(buffers, want, bytes, &data) == TIDE_OK;
    if (allocated) {
        set_up(buffers, slot, want, data);
        tell(buffers, TIDE_BUFFER_ALLOCATED, slot, want->key, bytes);
    }
    pthread_mutex_lock(&buffers->mutex);
    if (allocated) {
        tide_depot_bucket *depot = bucket_at(buffers, want->key, want->bucket);
        depot->misses++;
        counts_of(cell, depot)->asked += want->bytes;
        buffers->bytes_held += bytes;
        if (buffers->bytes_held > buffers->bytes_high)
            buffers->bytes_high = buffers->bytes_held;
    } else {
        buffers->failed++;
        tide_handle_give(buffers, slot);
    }
    pthread_mutex_unlock(&buffers->mutex);
    return allocated ? slot : TIDE_NO_RECORD;
}

uint32_t tide_depot_acquire(tide_buffers *buffers, tide_magazine *magazine, const tide_want *want,
                            bool *hit)
{
    pthread_mutex_lock(&buffers->mutex);
    if (!depot_make(buffers, want->key)) {
        buffers->failed++;
        pthread_mutex_unlock(&buffers->mutex);
        tide_fail(TIDE_ERROR_MEMORY, want->call, "no memory to remember buffers of '%s'",
                  buffers->name);
        return TIDE_NO_RECORD;
    }
    tide_depot_bucket *depot = bucket_at(buffers, want->key, want->bucket);
    tide_cell *cell = cell_of(magazine, want->key, want->bucket);
    uint32_t slot = find_cached(buffers, magazine, cell, depot, want);
    *hit = slot != TIDE_NO_RECORD;
    if (*hit) {
        counts_of(cell, depot)->hits++;
        counts_of(cell, depot)->asked += want->bytes;
    } else {
        slot = tide_handle_take(buffers);
        buffers->failed += slot == TIDE_NO_RECORD;
    }
    pthread_mutex_unlock(&buffers->mutex);
    if (slot == TIDE_NO_RECORD) {
        tide_fail(TIDE_ERROR_LIMIT, want->call, "'%s' has %d buffers, limit %d", buffers->name,
                  TIDE_BUFFER_MAX, TIDE_BUFFER_MAX);
        return slot;
    }
    return *hit ? slot : fill_record(buffers, slot, cell, want);
}

/* ---- release --------------------------------------------------------------------------------- */

static void free_record(tide_buffers *buffers, uint32_t slot, const tide_hand_over *passing)
{
    tide_buffer_record *record = tide_handle_at(buffers, slot);
    size_t bytes = tide_handle_bytes(buffers, record);
    tide_hand_over_free(buffers, record, passing);
    tell(buffers, TIDE_BUFFER_FREED, slot, record->key, bytes);
    pthread_mutex_lock(&buffers->mutex);
    tide_assert(buffers->bytes_held >= bytes);
    buffers->bytes_held -= bytes;
    tide_handle_give(buffers, slot);
    pthread_mutex_unlock(&buffers->mutex);
}

/* A place for one more of the bucket; the cell's credit, if it has one. Mutex held. */
static bool find_place(tide_buffers *buffers, tide_magazine *magazine, tide_cell *cell,
                       unsigned key, unsigned bucket)
{
    tide_depot_bucket *depot = bucket_at(buffers, key, bucket);
    size_t bytes = tide_bucket_bytes(buffers->policy, bucket);
    if (cell != NULL && idles(cell))
        return true;
    bool taken = place_take(buffers, depot, bytes) ||
                 (revoke(buffers, magazine, key, bucket) && place_take(buffers, depot, bytes));
    if (taken && cell != NULL)
        tide_cell_trust(cell, tide_cell_credit(cell) + 1);
    return taken;
}

/* Mutex held. */
static bool keep_buffer(tide_buffers *buffers, tide_magazine *magazine, tide_cell *cell,
                        uint32_t slot)
{
    const tide_buffer_record *record = tide_handle_at(buffers, slot);
    tide_depot_bucket *depot = bucket_at(buffers, record->key, record->bucket);
    if (cell != NULL && tide_cell_held(cell) == TIDE_CELL_SLOTS)
        spill(buffers, cell, depot, tide_handle_bytes(buffers, record));
    if (!find_place(buffers, magazine, cell, record->key, record->bucket))
        return false;
    if (cell != NULL)
        tide_cell_push(cell, slot);
    else
        list_push(buffers, depot, slot);
    return true;
}

void tide_depot_release(tide_buffers *buffers, tide_magazine *magazine, uint32_t slot,
                        const tide_hand_over *passing, bool keep)
{
    const tide_buffer_record *record = tide_handle_at(buffers, slot);
    pthread_mutex_lock(&buffers->mutex);
    tide_depot_bucket *depot = bucket_at(buffers, record->key, record->bucket);
    tide_cell *cell = cell_of(magazine, record->key, record->bucket);
    counts_of(cell, depot)->releases++;
    bool kept = keep && keep_buffer(buffers, magazine, cell, slot);
    depot->dropped += !kept;
    pthread_mutex_unlock(&buffers->mutex);
    if (!kept)
        free_record(buffers, slot, passing);
}

/* ---- trim ------------------------------------------------------------------------------------ */

typedef struct trimming {
    tide_buffers *buffers;
    uint64_t now, ticks;
    bool wait;
    uint32_t first; /* of what is to go: a list */
    tide_trim_summary summary;
} trimming;

static bool goes(trimming *t, uint32_t slot)
{
    tide_buffer_record *record = tide_handle_at(t->buffers, slot);
    bool old = t->now - record->tick >= t->ticks || t->now < record->tick;
    bool pinned = tide_buffer_kind(record->key) == TIDE_BUFFER_PINNED;
    return old && (t->wait || !pinned || tide_hand_over_over(t->buffers, record));
}

static void mark_for_going(trimming *t, uint32_t slot, unsigned key, unsigned bucket)
{
    size_t bytes = tide_bucket_bytes(t->buffers->policy, bucket);
    places_give(t->buffers, bucket_at(t->buffers, key, bucket), 1, bytes);
    tide_handle_at(t->buffers, slot)->next = t->first;
    t->first = slot;
    t->summary.slots++;
    t->summary.bytes += bytes;
}

static void trim_cell(trimming *t, tide_cell *cell, unsigned key, unsigned bucket)
{
    for (unsigned at = tide_cell_held(cell); at-- > 0;) {
        if (!goes(t, cell->slots[at]))
            continue;
        mark_for_going(t, tide_cell_take(cell, at), key, bucket);
        tide_cell_trust(cell, tide_cell_credit(cell) - 1);
    }
}

static void trim_list(trimming *t, unsigned key, unsigned bucket)
{
    tide_depot_bucket *depot = bucket_at(t->buffers, key, bucket);
    for (uint32_t *link = &depot->first; *link != TIDE_NO_RECORD;) {
        if (goes(t, *link))
            mark_for_going(t, list_take(t->buffers, depot, link), key, bucket);
        else
            link = &tide_handle_at(t->buffers, *link)->next;
    }
}

static void trim_bucket(trimming *t, unsigned key, unsigned bucket)
{
    if (t->buffers->depot[key][bucket].places == 0)
        return;
    trim_list(t, key, bucket);
    for (tide_magazine *m = t->buffers->magazines; m != NULL; m = m->next)
        if (m->cells[key] != NULL)
            trim_cell(t, &m->cells[key][bucket], key, bucket);
}

tide_trim_summary tide_depot_trim(tide_buffers *buffers, uint64_t ticks, bool wait)
{
    trimming t = {.buffers = buffers, .ticks = ticks, .wait = wait, .first = TIDE_NO_RECORD};
    pthread_mutex_lock(&buffers->mutex);
    tide_magazines_stop(buffers);
    t.now = tide_buffers_now();
    unsigned count = tide_bucket_count(buffers->policy);
    for (unsigned key = 0; key < TIDE_BUFFER_KEYS; key++)
        for (unsigned b = 0; buffers->depot[key] != NULL && b < count; b++)
            trim_bucket(&t, key, b);
    buffers->trimmed += t.summary.slots;
    tide_magazines_resume(buffers);
    pthread_mutex_unlock(&buffers->mutex);
    for (uint32_t slot = t.first, next; slot != TIDE_NO_RECORD; slot = next) {
        next = tide_handle_at(buffers, slot)->next;
        free_record(buffers, slot, NULL);
    }
    return t.summary;
}
