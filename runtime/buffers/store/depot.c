/* SPDX-License-Identifier: MIT */
/* The depot of an instance: what a thread's cell cannot serve or keep comes here. (Memory from the device:
 * allocate.c. Which memory goes when: trim.c.) */
#include "runtime/buffers/store/depot.h"

#include <string.h>

#include "runtime/base/error.h"
#include "runtime/base/node.h"
#include "runtime/base/os.h"
#include "runtime/base/ring.h"
#include "runtime/base/shim.h"
#include "runtime/buffers/store/address.h"
#include "runtime/device/budget.h"

enum {
    LOOKS_MAX = 64,          /* buffers, the latest first: that is ready, but for pinned memory in
                               use, and in a capture. Everybody waits meanwhile */
    BORROW_FROM = 128 << 10, /* bytes: what smaller ones would save is not worth a look */
    CUT_MOST = 8
};

/* ---- arrays of cached buffers; mutex held --------------------------------------------------- */

/* The key's buckets, if there are none yet. False: no memory. */
static bool depot_make_buckets(tide_buffers *buffers, unsigned key)
{
    if (buffers->depot[key] != NULL)
        return true;
    size_t bytes = TIDE_BUCKETS * buffers->nodes * sizeof(tide_depot_bucket);
    tide_depot_bucket *all = tide_os_resize(NULL, bytes);
    if (all != NULL)
        memset(all, 0, bytes);
    buffers->depot[key] = all;
    return all != NULL;
}

static bool depot_make_room(tide_depot_bucket *depot, uint32_t count)
{
    if (count <= depot->room - depot->cached)
        return true;
    uint32_t room = depot->room * 2 + 64;
    uint32_t *slots = tide_os_resize(depot->slots, room * sizeof *slots);
    tide_assert(count <= TIDE_CELL_SLOTS);
    if (slots == NULL)
        return false;
    depot->slots = slots;
    depot->room = room;
    return true;
}

/* The node of the calling thread, for buffers of the key. */
static unsigned depot_node(const tide_buffers *buffers, unsigned key)
{
    return buffers->nodes > 1 && tide_buffer_plain(buffers, key) ? tide_node() % buffers->nodes : 0;
}

/* Where the bucket has something cached, the calling thread's own node first; or node 0's. */
static tide_depot_bucket *depot_nearest(const tide_buffers *buffers, unsigned key, unsigned bucket)
{
    tide_depot_bucket *first = tide_depot_at(buffers, key, bucket);
    if (buffers->nodes == 1)
        return first;
    unsigned own = depot_node(buffers, key);
    for (unsigned n = 0; n < buffers->nodes; n++) {
        tide_depot_bucket *depot = first + (own + n) % buffers->nodes * TIDE_BUCKETS;
        if (depot->cached > 0)
            return depot;
    }
    return first;
}

/* As many as the bounds and the memory for the array leave, the oldest first; returns how many. */
static uint32_t depot_put(tide_buffers *buffers, unsigned key, unsigned bucket,
                          const uint32_t *slots, uint32_t count)
{
    size_t bytes = tide_bucket_bytes(bucket);
    tide_depot_bucket *first = tide_depot_at(buffers, key, bucket);
    tide_depot_bucket *depot = first + depot_node(buffers, key) * TIDE_BUCKETS;
    uint32_t cached = tide_depot_cached(first, buffers->nodes);
    uint32_t numbers = cached < buffers->count_max ? buffers->count_max - cached : 0;
    size_t rest =
        buffers->bytes_max > buffers->bytes_cached ? buffers->bytes_max - buffers->bytes_cached : 0;
    count = count < numbers ? count : numbers;
    if (count * bytes > rest) /* a division is dear, and seldom needed */
        count = (uint32_t)(rest / bytes);
    if (count == 0 || !depot_make_room(depot, count))
        return 0;
    memcpy(depot->slots + depot->cached, slots, count * sizeof *slots);
    depot->cached += count;
    buffers->bytes_cached += count * bytes;
    return count;
}

void tide_depot_close_gap(tide_buffers *buffers, tide_depot_bucket *depot, unsigned bucket,
                          uint32_t to, uint32_t from)
{
    uint32_t gone = from - to;
    tide_assert(to < from && from <= depot->cached);
    if (from < depot->cached) /* seldom: the latest go first */
        memmove(depot->slots + to, depot->slots + from,
                (depot->cached - from) * sizeof *depot->slots);
    depot->cached -= gone;
    buffers->bytes_cached -= gone * tide_bucket_bytes(bucket);
}

static uint32_t depot_take(tide_buffers *buffers, tide_depot_bucket *depot, unsigned bucket,
                           uint32_t at)
{
    uint32_t slot = depot->slots[at];
    tide_assert(tide_handle_bucket(tide_handle_at(buffers, slot)) == bucket);
    tide_depot_close_gap(buffers, depot, bucket, at, at + 1);
    return slot;
}

/* The latest that may be used on the stream. `order` false: only such as need no order, since they
 * were last used there or their work is known to be over. */
static uint32_t depot_find_ready(tide_buffers *buffers, tide_depot_bucket *depot, unsigned bucket,
                                 const tide_want *want, bool order)
{
    for (uint32_t i = 0; i < depot->cached && i < LOOKS_MAX; i++) {
        uint32_t at = depot->cached - 1 - i;
        tide_buffer_record *record = tide_handle_at(buffers, depot->slots[at]);
        if ((order || record->stream == 0 || record->stream == want->passing.number) &&
            tide_hand_over_ready(buffers, record, &want->passing))
            return depot_take(buffers, depot, bucket, at);
    }
    return TIDE_NO_RECORD;
}

static uint32_t depot_find(tide_buffers *buffers, unsigned bucket, const tide_want *want)
{
    tide_depot_bucket *depot = depot_nearest(buffers, want->key, bucket);
    if (depot->cached == 0)
        return TIDE_NO_RECORD;
    if (tide_buffer_plain(buffers, want->key))
        return depot_take(buffers, depot, bucket, depot->cached - 1);
    uint32_t slot = TIDE_NO_RECORD;
    if (!tide_buffer_of_both(want->key)) /* the host waits for these, whatever their stream */
        slot = depot_find_ready(buffers, depot, bucket, want, false);
    return slot != TIDE_NO_RECORD ? slot : depot_find_ready(buffers, depot, bucket, want, true);
}

/* May buffers be cut to that size? Hooks have been told of the larger one. */
static bool depot_may_cut(const tide_buffers *buffers, unsigned key, size_t bytes)
{
    return tide_hand_over_device_of(buffers, key) == &tide_device_host && buffers->hook == NULL &&
           !buffers->kept && tide_host_maps(bytes);
}

/* A buffer of one bucket becomes one of a smaller one. Returns what it had: tide_host_cut waits
 * until the mutex is let go. */
static size_t depot_cut(tide_buffers *buffers, uint32_t slot, unsigned bucket)
{
    tide_buffer_record *record = tide_handle_at(buffers, slot);
    size_t had = tide_handle_bytes(record), bytes = tide_bucket_bytes(bucket);
    tide_assert(!tide_handle_live(record) && bytes >= BORROW_FROM && bytes < had);
    if (tide_buffer_poisoned(buffers, record->key))
        tide_shim_release((char *)record->data + bytes, had - bytes);
    buffers->bytes_held -= had - bytes;
    unsigned named = (record->named & TIDE_HANDLE_OTHER_KEY) | bucket;
    __atomic_store_n(&record->named, (uint16_t)named, __ATOMIC_RELAXED);
    return had;
}

/* A large request whose own size has nothing cached takes a cached buffer of a larger one. Else each
 * size would keep the most that it ever needed at once, and sizes seldom need their most at the same
 * time: with 64 buffers of random sizes that is nearly three times of what is live.
 *
 * The larger one, of `had` bytes, is cut to the size, so that arrays that get smaller hold no more than
 * they need; one of more than CUT_MOST times the size is not, for a small request would wait long. If
 * its size is wanted again later, sizes take turns: from then on it is lent whole, to requests of half
 * its size at least. Near a limit the difference might be what a later request is refused
 * for: there it is cut, or stays cached, to be given back. */
static uint32_t depot_borrow(tide_buffers *buffers, const tide_want *want, unsigned *bucket,
                             size_t *had)
{
    size_t bytes = tide_bucket_bytes(want->bucket);
    uint32_t slot = TIDE_NO_RECORD;
    tide_depot_bucket *own = tide_depot_at(buffers, want->key, want->bucket);
    own->cut = own->cut == TIDE_CUT_LATELY ? TIDE_CUT_NO_MORE : own->cut;
    bool may_cut = depot_may_cut(buffers, want->key, bytes);
    bool limited = tide_budget_is_near(tide_hand_over_device_of(buffers, want->key));
    for (unsigned b = want->bucket + 1;
         bytes >= BORROW_FROM && slot == TIDE_NO_RECORD && b < TIDE_BUCKETS &&
         tide_bucket_bytes(b) <= CUT_MOST * bytes;
         b++) {
        tide_depot_bucket *depot = tide_depot_at(buffers, want->key, b);
        bool cuts = may_cut && (limited || depot->cut != TIDE_CUT_NO_MORE);
        if (!cuts && (limited || tide_bucket_bytes(b) > 2 * bytes))
            continue;
        slot = depot_find(buffers, b, want);
        *bucket = b;
        if (cuts && slot != TIDE_NO_RECORD) {
            depot->cut = depot->cut == TIDE_CUT_NEVER ? TIDE_CUT_LATELY : depot->cut;
            *had = depot_cut(buffers, slot, want->bucket);
            *bucket = want->bucket;
        }
    }
    return slot;
}

/* ---- between cells and arrays; mutex held --------------------------------------------------- */

/* A cell has room for FIRST bytes, and from when the depot refills it for MAX bytes: so a thread that
 * only releases what others acquire keeps next to nothing from them. Large buffers come to no cell: all
 * threads find them in the depot. */
enum { CELL_BYTES_FIRST = 16 << 10, CELL_BYTES_MAX = 2 << 20, CELL_LARGE = 512 << 10 };

/* Most buffers of so many bytes that a cell may hold, which no bound counts: a small part of what
 * the bounds are. */
static unsigned depot_cell_most(const tide_buffers *buffers, size_t bytes, size_t cell_bytes)
{
    size_t all = buffers->bytes_max / 64 < cell_bytes ? buffers->bytes_max / 64 : cell_bytes;
    size_t most = bytes < CELL_LARGE ? all / bytes : 0;
    most = most < TIDE_CELL_SLOTS ? most : TIDE_CELL_SLOTS;
    return (unsigned)(most < buffers->count_max / 64 ? most : buffers->count_max / 64);
}

/* NULL: the thread has no magazine, or nobody watches what would come to it. */
static tide_cell *depot_cell_of(const tide_buffers *buffers, tide_magazine *magazine,
                                unsigned bucket)
{
    if (magazine == NULL || !buffers->watched)
        return NULL;
    tide_cell *cell = &magazine->cells[bucket];
    if (cell->room == 0)
        cell->room = depot_cell_most(buffers, tide_bucket_bytes(bucket), CELL_BYTES_FIRST);
    return cell;
}

/* As many as the depot has, up to a full cell. */
static void depot_refill_cell(tide_buffers *buffers, tide_cell *cell, tide_depot_bucket *depot,
                              unsigned bucket)
{
    uint32_t count = cell->room < depot->cached ? cell->room : depot->cached;
    uint32_t from = depot->cached - count;
    tide_assert(cell->held == 0);
    if (count == 0)
        return;
    memcpy(cell->slots, depot->slots + from, count * sizeof cell->slots[0]);
    tide_depot_close_gap(buffers, depot, bucket, from, depot->cached);
    cell->held = count;
}

/* The oldest of a cell come to the depot, or go. */
static void depot_take_oldest(tide_buffers *buffers, tide_cell *cell, tide_depot_bucket *depot,
                              unsigned bucket, unsigned count, uint32_t *going)
{
    tide_assert(count <= cell->held);
    unsigned kept = depot_put(buffers, buffers->key, bucket, cell->slots, count);
    for (unsigned i = kept; i < count; i++)
        tide_depot_let_go(buffers, cell->slots[i], going);
    depot->dropped += count - kept;
    tide_cell_forget_oldest(cell, count);
}

uint32_t tide_depot_collect(tide_buffers *buffers, tide_magazine *magazine)
{
    uint32_t going = TIDE_NO_RECORD;
    tide_assert(magazine->buffers == buffers);
    for (unsigned b = 0; b < TIDE_BUCKETS && buffers->depot[buffers->key] != NULL; b++) {
        tide_cell *cell = &magazine->cells[b];
        tide_depot_bucket *depot = tide_depot_at(buffers, buffers->key, b);
        depot_take_oldest(buffers, cell, depot, b, cell->held, &going);
        depot->counts.hits += cell->counts.hits;
        depot->counts.releases += cell->counts.releases;
        depot->counts.asked += cell->counts.asked;
        cell->counts = (tide_buffer_counts){0};
    }
    return going;
}

/* ---- records ------------------------------------------------------------------------------- */

/* The record of a buffer that is new. */
static void depot_set_up_record(tide_buffers *buffers, uint32_t slot, const tide_want *want,
                                void *data)
{
    tide_buffer_record *record = tide_handle_at(buffers, slot);
    tide_assert(!tide_handle_live(record) && record->data == NULL && record->mark == NULL);
    __atomic_store_n(&record->key, (uint16_t)want->key, __ATOMIC_RELAXED);
    unsigned named =
        want->key == buffers->key ? want->bucket : want->bucket | TIDE_HANDLE_OTHER_KEY;
    __atomic_store_n(&record->named, (uint16_t)named, __ATOMIC_RELAXED);
    __atomic_store_n(&record->data, data, __ATOMIC_RELAXED);
}

void tide_depot_let_go(tide_buffers *buffers, uint32_t slot, uint32_t *going)
{
    tide_address_remove(buffers, slot);
    tide_handle_at(buffers, slot)->next = *going;
    *going = slot;
}

/* Nobody finds the buffer any more. Mutex not held. */
static void depot_free(tide_buffers *buffers, uint32_t slot, const tide_hand_over *passing)
{
    tide_buffer_record *record = tide_handle_at(buffers, slot);
    tide_assert(!tide_handle_live(record));
    size_t bytes = tide_handle_bytes(record);
    tide_hand_over_free(buffers, record, passing);
    tide_handle_tell(buffers, TIDE_BUFFER_FREED, slot, 0, 0, false);
    tide_lock_take(&buffers->mutex);
    tide_assert(buffers->bytes_held >= bytes);
    buffers->bytes_held -= bytes;
    tide_handle_give(buffers, slot);
    tide_lock_let_go(&buffers->mutex);
}

void tide_depot_free_all(tide_buffers *buffers, uint32_t going, const tide_hand_over *passing)
{
    for (uint32_t slot = going, next; slot != TIDE_NO_RECORD; slot = next) {
        next = tide_handle_at(buffers, slot)->next;
        depot_free(buffers, slot, passing);
    }
}

static TIDE_COLD uint32_t depot_fail(tide_buffers *buffers, const tide_want *want, bool most)
{
    tide_lock_take(&buffers->mutex);
    buffers->failed++;
    tide_lock_let_go(&buffers->mutex);
    if (most)
        tide_fail(TIDE_ERROR_LIMIT, want->call, "'%s' has %d buffers, limit %d", buffers->name,
                  TIDE_BUFFER_MAX, TIDE_BUFFER_MAX);
    else
        tide_fail(TIDE_ERROR_MEMORY, want->call, "no memory to remember buffers of '%s'",
                  buffers->name);
    return TIDE_NO_RECORD;
}

/* A record. If all are taken, what is only cached gives its own back.
 * TIDE_NO_RECORD with a message: there is none. Mutex not held. */
static uint32_t depot_take_record(tide_buffers *buffers, const tide_want *want)
{
    tide_lock_take(&buffers->mutex);
    uint32_t slot = tide_handle_take(buffers);
    tide_lock_let_go(&buffers->mutex);
    if (TIDE_LIKELY(slot != TIDE_NO_RECORD))
        return slot;
    tide_depot_trim(buffers, NULL, 0, true);
    tide_lock_take(&buffers->mutex);
    slot = tide_handle_take(buffers);
    bool most = buffers->record_count == TIDE_BUFFER_MAX;
    tide_lock_let_go(&buffers->mutex);
    return slot != TIDE_NO_RECORD ? slot : depot_fail(buffers, want, most);
}

/* The buffer is the instance's, and counts. False: there is no memory to find it by its address. */
static bool depot_add(tide_buffers *buffers, uint32_t slot, const tide_want *want, size_t bytes)
{
    tide_lock_take(&buffers->mutex);
    bool added = tide_address_add(buffers, slot);
    buffers->bytes_held += bytes;
    if (added) {
        tide_depot_bucket *depot = tide_depot_at(buffers, want->key, want->bucket);
        depot->misses++;
        depot->counts.asked += want->bytes;
        if (buffers->bytes_held > buffers->bytes_high)
            buffers->bytes_high = buffers->bytes_held;
    }
    tide_lock_let_go(&buffers->mutex);
    return added;
}

/* A buffer that is new. */
static uint32_t depot_make(tide_buffers *buffers, const tide_want *want)
{
    size_t bytes = tide_bucket_bytes(want->bucket);
    uint32_t slot = depot_take_record(buffers, want);
    void *data = NULL;
    if (slot == TIDE_NO_RECORD)
        return slot;
    if (tide_depot_allocate(buffers, want, bytes, &data) != TIDE_OK) {
        tide_lock_take(&buffers->mutex);
        buffers->failed += want->yield == TIDE_YIELD_ALL;
        tide_handle_give(buffers, slot);
        tide_lock_let_go(&buffers->mutex);
        return TIDE_NO_RECORD;
    }
    depot_set_up_record(buffers, slot, want, data);
    TIDE_RINGS_CALL(took, data, bytes, 0, (tide_place){TIDE_NOWHERE});
    tide_handle_tell(buffers, TIDE_BUFFER_ALLOCATED, slot, 0, 0, false);
    if (!depot_add(buffers, slot, want, bytes)) {
        depot_free(buffers, slot, &want->passing);
        return depot_fail(buffers, want, false);
    }
    return slot;
}

/* ---- age ------------------------------------------------------------------------------------- */

/* The background thread does not age an instance that needs the program or a driver for it. */
static void depot_age_in_passing(tide_buffers *buffers)
{
    if (!tide_buffers_age_themselves(buffers))
        tide_depot_age(buffers);
}

/* Something comes to be cached. True: the background thread is to be told. Mutex held. */
static bool depot_watch(tide_buffers *buffers)
{
    bool begins = !buffers->watched && tide_buffers_age_themselves(buffers);
    __atomic_store_n(&buffers->watched, true, __ATOMIC_RELAXED);
    return begins;
}

/* ---- acquire --------------------------------------------------------------------------------- */

/* Whatever is cached of the bucket; the latest of it. Mutex held. */
static uint32_t depot_find_cached(tide_buffers *buffers, tide_cell *cell, const tide_want *want)
{
    if (cell == NULL)
        return depot_find(buffers, want->bucket, want);
    tide_depot_bucket *depot = depot_nearest(buffers, want->key, want->bucket);
    if (cell->held == 0 && depot->cached > 0)
        cell->room = depot_cell_most(buffers, tide_bucket_bytes(want->bucket), CELL_BYTES_MAX);
    if (cell->held == 0 && cell->room > 0)
        depot_refill_cell(buffers, cell, depot, want->bucket);
    return cell->held > 0 ? cell->slots[--cell->held] : depot_find(buffers, want->bucket, want);
}

/* The magazine, if the thread has one that such buffers may come to. */
static tide_magazine *depot_magazine_for(tide_buffers *buffers, unsigned key)
{
    return key == buffers->key ? tide_magazine_of(buffers) : NULL;
}

/* Samples of memory are told, too. */
static void depot_shorten(void *data, size_t had, size_t bytes)
{
    TIDE_RINGS_CALL(gave, data);
    tide_host_cut(data, had, bytes);
    tide_budget_give(&tide_device_host, had - bytes);
    TIDE_RINGS_CALL(took, data, bytes, 0, (tide_place){TIDE_NOWHERE});
}

/* Whatever is cached, counted: of its bucket, else of a larger one. `made` false: no memory for the
 * depot. */
static uint32_t depot_acquire_cached(tide_buffers *buffers, tide_magazine *magazine,
                                     const tide_want *want, bool *made)
{
    uint32_t slot = TIDE_NO_RECORD;
    unsigned bucket = want->bucket;
    size_t had = 0;
    tide_lock_take(&buffers->mutex);
    *made = depot_make_buckets(buffers, want->key);
    if (*made) {
        slot = depot_find_cached(buffers, depot_cell_of(buffers, magazine, bucket), want);
        if (slot == TIDE_NO_RECORD)
            slot = depot_borrow(buffers, want, &bucket, &had);
        tide_depot_bucket *depot = tide_depot_at(buffers, want->key, bucket);
        if (slot != TIDE_NO_RECORD) {
            depot->counts.hits++;
            depot->counts.asked += want->bytes;
        }
    }
    tide_lock_let_go(&buffers->mutex);
    if (had != 0)
        depot_shorten(tide_handle_at(buffers, slot)->data, had, tide_bucket_bytes(bucket));
    return slot;
}

uint32_t tide_depot_acquire(tide_buffers *buffers, const tide_want *want, bool *hit)
{
    bool made;
    if (tide_buffers_of_ours(buffers, want->call) != TIDE_OK)
        return TIDE_NO_RECORD;
    depot_age_in_passing(buffers);
    uint32_t slot =
        depot_acquire_cached(buffers, depot_magazine_for(buffers, want->key), want, &made);
    *hit = slot != TIDE_NO_RECORD;
    if (!made)
        return depot_fail(buffers, want, false);
    return *hit ? slot : depot_make(buffers, want);
}

/* ---- release --------------------------------------------------------------------------------- */

/* Into the cell, or the array where there is none; or it goes. Mutex held. */
static void depot_keep(tide_buffers *buffers, tide_cell *cell, tide_depot_bucket *depot,
                       uint32_t slot, uint32_t *going)
{
    unsigned bucket = tide_handle_bucket(tide_handle_at(buffers, slot));
    if (cell != NULL && cell->room > 0) {
        if (cell->held == cell->room) /* three quarters of a full one; all of three and fewer */
            depot_take_oldest(buffers, cell, depot, bucket, (cell->room + 1u) * 3 / 4, going);
        tide_cell_push(cell, slot);
    } else if (depot_put(buffers, tide_handle_at(buffers, slot)->key, bucket, &slot, 1) == 0) {
        depot->dropped++;
        tide_depot_let_go(buffers, slot, going);
    }
}

void tide_depot_release(tide_buffers *buffers, uint32_t slot, const tide_hand_over *passing,
                        bool keep)
{
    const tide_buffer_record *record = tide_handle_at(buffers, slot);
    tide_magazine *magazine = depot_magazine_for(buffers, record->key);
    uint32_t going = TIDE_NO_RECORD;
    tide_assert(!tide_handle_live(record));
    depot_age_in_passing(buffers);
    tide_lock_take(&buffers->mutex);
    bool begins = depot_watch(buffers);
    unsigned bucket = tide_handle_bucket(record);
    tide_depot_bucket *depot = tide_depot_at(buffers, record->key, bucket);
    tide_cell *cell = depot_cell_of(buffers, magazine, bucket);
    tide_assert(depot != NULL); /* made before the buffer was acquired */
    (cell != NULL ? &cell->counts : &depot->counts)->releases++;
    if (keep) {
        depot_keep(buffers, cell, depot, slot, &going);
    } else {
        depot->dropped++;
        tide_depot_let_go(buffers, slot, &going);
    }
    tide_lock_let_go(&buffers->mutex);
    if (begins)
        TIDE_RINGS_CALL(need);
    tide_depot_free_all(buffers, going, passing);
}
