/* SPDX-License-Identifier: MIT */
/* The depot of an instance: what a thread's cell cannot serve or keep comes here. Permits are given
 * out and taken back. Memory is taken from the device, and given back by age or when short. */
#include "runtime/buffers/depot.h"

#include "runtime/base/error.h"
#include "runtime/base/os.h"

enum { BATCH = TIDE_CELL_SLOTS / 2 }; /* buffers that move between a cell and the depot at once */

_Static_assert(BATCH > 0 && BATCH < (int)TIDE_CELL_SLOTS, "a full cell keeps some when it spills");

/* ---- permits and lists; mutex held ----------------------------------------------------------- */

/* The key's buckets, if there are none yet. False: no memory. */
static bool depot_make_buckets(tide_buffers *buffers, unsigned key)
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

/* False: a bound is reached. */
static bool depot_take_permit(tide_buffers *buffers, tide_depot_bucket *depot, size_t bytes)
{
    tide_assert(buffers->bytes_permitted <= buffers->bytes_max);
    if (depot->permits >= buffers->count_max ||
        bytes > buffers->bytes_max - buffers->bytes_permitted)
        return false;
    depot->permits++;
    buffers->bytes_permitted += bytes;
    return true;
}

/* What the link leads to; its permit stays taken. */
static uint32_t depot_take_from_list(tide_buffers *buffers, tide_depot_bucket *depot,
                                     uint32_t *link)
{
    uint32_t slot = *link;
    tide_assert(slot != TIDE_NO_RECORD && depot->cached > 0);
    *link = tide_handle_at(buffers, slot)->next;
    depot->cached--;
    tide_assert((depot->first == TIDE_NO_RECORD) == (depot->cached == 0));
    return slot;
}

/* The latest that may be used on the stream, without a permit now; TIDE_NO_RECORD: none. */
static uint32_t depot_find_in_list(tide_buffers *buffers, tide_depot_bucket *depot,
                                   const tide_want *want)
{
    for (uint32_t *link = &depot->first; *link != TIDE_NO_RECORD;
         link = &tide_handle_at(buffers, *link)->next) {
        if (!tide_hand_over_ready(buffers, tide_handle_at(buffers, *link), &want->passing))
            continue;
        tide_permits_give(buffers, depot, 1, tide_bucket_bytes(buffers->policy, want->bucket));
        return depot_take_from_list(buffers, depot, link);
    }
    return TIDE_NO_RECORD;
}

/* ---- between cells and lists; mutex held ----------------------------------------------------- */

/* NULL: the thread has no magazine, or no memory for cells. */
static tide_cell *depot_cell_of(tide_magazine *magazine, unsigned key, unsigned bucket)
{
    return magazine != NULL && tide_cells_make(magazine, key) ? &magazine->cells[key][bucket]
                                                              : NULL;
}

static tide_buffer_counts *depot_counts_of(tide_cell *cell, tide_depot_bucket *depot)
{
    return cell != NULL ? &cell->counts : &depot->counts;
}

/* From the list. Each buffer brings its permit along, or gives it up where the cell has an idle
 * credit for it. */
static void depot_refill_cell(tide_buffers *buffers, tide_cell *cell, tide_depot_bucket *depot,
                              size_t bytes)
{
    for (unsigned i = 0; i < BATCH && depot->cached > 0; i++) {
        if (tide_cell_held(cell) == TIDE_CELL_SLOTS)
            return;
        if (tide_cell_credit(cell) > tide_cell_held(cell))
            tide_permits_give(buffers, depot, 1, bytes);
        else
            tide_cell_trust(cell, tide_cell_credit(cell) + 1);
        tide_cell_push(cell, depot_take_from_list(buffers, depot, &depot->first));
    }
}

/* The oldest of a full cell to the list. They take their permits along if there are no others. */
static void depot_spill_cell(tide_buffers *buffers, tide_cell *cell, tide_depot_bucket *depot,
                             size_t bytes)
{
    tide_assert(tide_cell_held(cell) == TIDE_CELL_SLOTS);
    for (unsigned i = 0; i < BATCH; i++) {
        if (!depot_take_permit(buffers, depot, bytes))
            tide_cell_trust(cell, tide_cell_credit(cell) - 1);
        tide_depot_push(buffers, depot, tide_cell_take(cell, 0));
    }
}

/* ---- from the other magazines ---------------------------------------------------------------- */

/* A glance at another's cell, which may change meanwhile: is it worth stopping everybody? */
typedef bool glance(const tide_cell *cell);

static bool depot_cell_holds(const tide_cell *cell)
{
    return tide_cell_held(cell) > 0;
}

static bool depot_cell_idles(const tide_cell *cell)
{
    return tide_cell_credit(cell) > tide_cell_held(cell);
}

static bool depot_any_other_cell(const tide_buffers *buffers, const tide_magazine *own,
                                 unsigned key, unsigned bucket, glance *look)
{
    tide_assert(key < TIDE_BUFFER_KEYS && bucket < TIDE_BUCKETS);
    for (const tide_magazine *m = buffers->magazines; m != NULL; m = m->next)
        if (m != own && m->cells[key] != NULL && look(&m->cells[key][bucket]))
            return true;
    return false;
}

/* The buffers of all other cells of the bucket come to the list. False: none was seen there. */
static bool depot_gather_cells(tide_buffers *buffers, const tide_magazine *own,
                               const tide_want *want)
{
    if (!depot_any_other_cell(buffers, own, want->key, want->bucket, depot_cell_holds))
        return false;
    tide_magazines_stop(buffers);
    for (tide_magazine *m = buffers->magazines; m != NULL; m = m->next)
        if (m != own && m->cells[want->key] != NULL)
            tide_cell_empty(buffers, &m->cells[want->key][want->bucket], want->key, want->bucket);
    tide_magazines_resume(buffers);
    return true;
}

/* Takes back the idle credits of one bucket. True if there were any. */
static bool depot_revoke_in_bucket(tide_buffers *buffers, tide_magazine *own, unsigned key,
                                   unsigned bucket)
{
    tide_assert(own == NULL || own->buffers == buffers);
    bool any = own != NULL && own->cells[key] != NULL &&
               tide_cell_settle(buffers, &own->cells[key][bucket], key, bucket);
    if (!depot_any_other_cell(buffers, own, key, bucket, depot_cell_idles))
        return any;
    tide_magazines_stop(buffers);
    for (tide_magazine *m = buffers->magazines; m != NULL; m = m->next)
        if (m->cells[key] != NULL)
            any = tide_cell_settle(buffers, &m->cells[key][bucket], key, bucket) || any;
    tide_magazines_resume(buffers);
    return any;
}

/* Takes back idle credits: of the bucket, if it has all permits that it may have; else of all
 * buckets, since their bytes together are the bound. True if there were any. */
static bool depot_revoke_credits(tide_buffers *buffers, tide_magazine *own, unsigned key,
                                 unsigned bucket)
{
    if (tide_depot_at(buffers, key, bucket)->permits >= buffers->count_max)
        return depot_revoke_in_bucket(buffers, own, key, bucket);
    bool any = false;
    for (unsigned k = 0; k < TIDE_BUFFER_KEYS; k++)
        for (unsigned b = 0; buffers->depot[k] != NULL && b < TIDE_BUCKETS; b++)
            any =
                (buffers->depot[k][b].permits > 0 && depot_revoke_in_bucket(buffers, own, k, b)) ||
                any;
    return any;
}

/* ---- acquire --------------------------------------------------------------------------------- */

uint32_t tide_cell_find(const tide_buffers *buffers, tide_cell *cell, const tide_want *want)
{
    tide_assert(tide_cell_held(cell) <= tide_cell_credit(cell));
    for (unsigned at = tide_cell_held(cell); at-- > 0;)
        if (tide_hand_over_ready(buffers, tide_handle_at(buffers, cell->slots[at]), &want->passing))
            return tide_cell_take(cell, at);
    return TIDE_NO_RECORD;
}

/* Whatever is cached, wherever it is. Mutex held. */
static uint32_t depot_find_cached(tide_buffers *buffers, tide_magazine *magazine, tide_cell *cell,
                                  tide_depot_bucket *depot, const tide_want *want)
{
    uint32_t slot = cell != NULL ? tide_cell_find(buffers, cell, want) : TIDE_NO_RECORD;
    if (slot == TIDE_NO_RECORD)
        slot = depot_find_in_list(buffers, depot, want);
    if (slot == TIDE_NO_RECORD && depot_gather_cells(buffers, magazine, want))
        slot = depot_find_in_list(buffers, depot, want);
    if (slot != TIDE_NO_RECORD && cell != NULL)
        depot_refill_cell(buffers, cell, depot, tide_bucket_bytes(buffers->policy, want->bucket));
    return slot;
}

/* What another instance, or the same, has cached of this device's memory goes back to it. */
static void depot_press(tide_buffers *other, void *user)
{
    tide_buffers *buffers = user;
    tide_assert(buffers != NULL);
    if (other->device == buffers->device &&
        tide_hand_over_quiet(other, "tide_buffers_trim") == TIDE_OK)
        tide_depot_trim(other, 0, true);
}

/* Memory of the device. When there is none, all that is cached of it is given back and the device
 * asked once more. Mutex not held. */
static tide_status depot_allocate(tide_buffers *buffers, const tide_want *want, size_t bytes,
                                  void **data)
{
    tide_status status =
        tide_hand_over_allocate(buffers, want->key, bytes, &want->passing, want->call, data);
    if (status != TIDE_ERROR_MEMORY)
        return status;
    pthread_mutex_lock(&buffers->mutex);
    buffers->pressed++;
    pthread_mutex_unlock(&buffers->mutex);
    tide_buffers_each(depot_press, buffers);
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
static void depot_set_up_record(tide_buffers *buffers, uint32_t slot, const tide_want *want,
                                void *data)
{
    tide_buffer_record *record = tide_handle_at(buffers, slot);
    tide_assert(!tide_handle_live(record) && record->data == NULL && record->mark == NULL);
    record->mark = NULL;
    record->key = (uint16_t)want->key;
    record->bucket = (uint16_t)want->bucket;
    __atomic_store_n(&record->data, data, __ATOMIC_RELAXED);
}

/* Memory was allocated or freed. The mutex is not held; the registry may be locked. */
static void depot_tell_hook(const tide_buffers *buffers, tide_buffer_happening happening,
                            uint32_t slot, unsigned key, size_t bytes)
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
static uint32_t depot_fill_record(tide_buffers *buffers, uint32_t slot, tide_cell *cell,
                                  const tide_want *want)
{
    size_t bytes = tide_bucket_bytes(buffers->policy, want->bucket);
    tide_assert(bytes >= want->bytes);
    void *data = NULL;
    bool allocated = depot_allocate(buffers, want, bytes, &data) == TIDE_OK;
    if (allocated) {
        depot_set_up_record(buffers, slot, want, data);
        depot_tell_hook(buffers, TIDE_BUFFER_ALLOCATED, slot, want->key, bytes);
    }
    pthread_mutex_lock(&buffers->mutex);
    if (allocated) {
        tide_depot_bucket *depot = tide_depot_at(buffers, want->key, want->bucket);
        depot->misses++;
        depot_counts_of(cell, depot)->asked += want->bytes;
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
    tide_assert(magazine == NULL || magazine->buffers == buffers);
    pthread_mutex_lock(&buffers->mutex);
    if (!depot_make_buckets(buffers, want->key)) {
        buffers->failed++;
        pthread_mutex_unlock(&buffers->mutex);
        tide_fail(TIDE_ERROR_MEMORY, want->call, "no memory to remember buffers of '%s'",
                  buffers->name);
        return TIDE_NO_RECORD;
    }
    tide_depot_bucket *depot = tide_depot_at(buffers, want->key, want->bucket);
    tide_cell *cell = depot_cell_of(magazine, want->key, want->bucket);
    uint32_t slot = depot_find_cached(buffers, magazine, cell, depot, want);
    *hit = slot != TIDE_NO_RECORD;
    if (*hit) {
        depot_counts_of(cell, depot)->hits++;
        depot_counts_of(cell, depot)->asked += want->bytes;
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
    return *hit ? slot : depot_fill_record(buffers, slot, cell, want);
}

/* ---- release --------------------------------------------------------------------------------- */

/* The buffer's memory goes back to the device: on the stream of its release just now, or (NULL) on
 * the instance's. */
static void depot_free_record(tide_buffers *buffers, uint32_t slot, const tide_hand_over *passing)
{
    tide_buffer_record *record = tide_handle_at(buffers, slot);
    tide_assert(!tide_handle_live(record));
    size_t bytes = tide_handle_bytes(buffers, record);
    tide_hand_over_free(buffers, record, passing);
    depot_tell_hook(buffers, TIDE_BUFFER_FREED, slot, record->key, bytes);
    pthread_mutex_lock(&buffers->mutex);
    tide_assert(buffers->bytes_held >= bytes);
    buffers->bytes_held -= bytes;
    tide_handle_give(buffers, slot);
    pthread_mutex_unlock(&buffers->mutex);
}

/* A permit for one more of the bucket, as the cell's credit if there is a cell. Mutex held. */
static bool depot_find_permit(tide_buffers *buffers, tide_magazine *magazine, tide_cell *cell,
                              unsigned key, unsigned bucket)
{
    tide_depot_bucket *depot = tide_depot_at(buffers, key, bucket);
    size_t bytes = tide_bucket_bytes(buffers->policy, bucket);
    if (cell != NULL && depot_cell_idles(cell))
        return true;
    bool taken = depot_take_permit(buffers, depot, bytes) ||
                 (depot_revoke_credits(buffers, magazine, key, bucket) &&
                  depot_take_permit(buffers, depot, bytes));
    if (taken && cell != NULL)
        tide_cell_trust(cell, tide_cell_credit(cell) + 1);
    return taken;
}

/* Into the cell, or the list where there is none. False: a bound is reached. Mutex held. */
static bool depot_keep_buffer(tide_buffers *buffers, tide_magazine *magazine, tide_cell *cell,
                              uint32_t slot)
{
    const tide_buffer_record *record = tide_handle_at(buffers, slot);
    tide_depot_bucket *depot = tide_depot_at(buffers, record->key, record->bucket);
    if (cell != NULL && tide_cell_held(cell) == TIDE_CELL_SLOTS)
        depot_spill_cell(buffers, cell, depot, tide_handle_bytes(buffers, record));
    if (!depot_find_permit(buffers, magazine, cell, record->key, record->bucket))
        return false;
    if (cell != NULL)
        tide_cell_push(cell, slot);
    else
        tide_depot_push(buffers, depot, slot);
    return true;
}

void tide_depot_release(tide_buffers *buffers, tide_magazine *magazine, uint32_t slot,
                        const tide_hand_over *passing, bool keep)
{
    const tide_buffer_record *record = tide_handle_at(buffers, slot);
    tide_assert(magazine == NULL || magazine->buffers == buffers);
    tide_assert(!tide_handle_live(record));
    pthread_mutex_lock(&buffers->mutex);
    tide_depot_bucket *depot = tide_depot_at(buffers, record->key, record->bucket);
    tide_assert(depot != NULL); /* made before the buffer was acquired */
    tide_cell *cell = depot_cell_of(magazine, record->key, record->bucket);
    depot_counts_of(cell, depot)->releases++;
    bool kept = keep && depot_keep_buffer(buffers, magazine, cell, slot);
    depot->dropped += !kept;
    pthread_mutex_unlock(&buffers->mutex);
    if (!kept)
        depot_free_record(buffers, slot, passing);
}

/* ---- trim ------------------------------------------------------------------------------------ */

typedef struct trimming {
    tide_buffers *buffers;
    uint64_t now, ticks;
    bool wait;
    uint32_t first; /* of what is to go: a list */
    tide_trim_summary summary;
} trimming;

/* Must the cached buffer go? */
static bool depot_trim_takes(trimming *t, uint32_t slot)
{
    tide_assert(t->buffers->stopped == 1);
    tide_buffer_record *record = tide_handle_at(t->buffers, slot);
    bool old = t->now - record->tick >= t->ticks || t->now < record->tick;
    bool pinned = tide_buffer_kind(record->key) == TIDE_BUFFER_PINNED;
    return old && (t->wait || !pinned || tide_hand_over_over(t->buffers, record));
}

/* The buffer, taken out of its cell or list, gives its permit up and is among what goes. */
static void depot_trim_add(trimming *t, uint32_t slot, unsigned key, unsigned bucket)
{
    size_t bytes = tide_bucket_bytes(t->buffers->policy, bucket);
    tide_permits_give(t->buffers, tide_depot_at(t->buffers, key, bucket), 1, bytes);
    tide_handle_at(t->buffers, slot)->next = t->first;
    t->first = slot;
    t->summary.slots++;
    t->summary.bytes += bytes;
}

static void depot_trim_cell(trimming *t, tide_cell *cell, unsigned key, unsigned bucket)
{
    for (unsigned at = tide_cell_held(cell); at-- > 0;) {
        if (!depot_trim_takes(t, cell->slots[at]))
            continue;
        depot_trim_add(t, tide_cell_take(cell, at), key, bucket);
        tide_assert(tide_cell_credit(cell) > tide_cell_held(cell));
        tide_cell_trust(cell, tide_cell_credit(cell) - 1);
    }
}

static void depot_trim_list(trimming *t, unsigned key, unsigned bucket)
{
    tide_depot_bucket *depot = tide_depot_at(t->buffers, key, bucket);
    for (uint32_t *link = &depot->first; *link != TIDE_NO_RECORD;) {
        if (depot_trim_takes(t, *link))
            depot_trim_add(t, depot_take_from_list(t->buffers, depot, link), key, bucket);
        else
            link = &tide_handle_at(t->buffers, *link)->next;
    }
}

static void depot_trim_bucket(trimming *t, unsigned key, unsigned bucket)
{
    if (t->buffers->depot[key][bucket].permits == 0)
        return;
    depot_trim_list(t, key, bucket);
    for (tide_magazine *m = t->buffers->magazines; m != NULL; m = m->next)
        if (m->cells[key] != NULL)
            depot_trim_cell(t, &m->cells[key][bucket], key, bucket);
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
            depot_trim_bucket(&t, key, b);
    buffers->trimmed += t.summary.slots;
    tide_magazines_resume(buffers);
    pthread_mutex_unlock(&buffers->mutex);
    for (uint32_t slot = t.first, next; slot != TIDE_NO_RECORD; slot = next) {
        next = tide_handle_at(buffers, slot)->next;
        depot_free_record(buffers, slot, NULL);
    }
    return t.summary;
}
