/* SPDX-License-Identifier: MIT */
/* The depot of an instance: what a thread's cell cannot serve or keep comes here. Permits are given
 * out and taken back, memory is taken from the device. (Given back it is in
 * runtime/buffers/store/trim.c.) */
#include "runtime/buffers/store/depot.h"

#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/probe.h"
#include "runtime/buffers/store/address.h"
#include "runtime/buffers/store/tray.h"
#include "runtime/device/budget.h"

enum {
    GATHER_FROM = 256 << 10, /* bytes: for a buffer of so many it always pays to stop all threads */
    GATHER_SKIP_MAX = 255,   /* misses of smaller ones that in the end allocate at once           */
    LOOKS_MAX = 64           /* buffers of a list: the first is ready, but for pinned memory that
                                is in use, and in a capture. Everybody waits meanwhile           */
};

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

/* So many permits, or as many as the bounds leave. */
static unsigned depot_take_permits(tide_buffers *buffers, tide_depot_bucket *depot, size_t bytes,
                                   unsigned count)
{
    tide_assert(buffers->bytes_permitted <= buffers->bytes_max && count <= TIDE_CELL_SLOTS);
    uint32_t numbers =
        depot->permits < buffers->count_max ? buffers->count_max - depot->permits : 0;
    size_t rest = buffers->bytes_max - buffers->bytes_permitted;
    count = count < numbers ? count : numbers;
    if (count * bytes > rest) /* no overflow: a bucket has at most TIDE_BUCKET_MAX bytes */
        count = (unsigned)(rest / bytes);
    depot->permits += count;
    buffers->bytes_permitted += count * bytes;
    return count;
}

/* False: a bound is reached. */
static bool depot_take_permit(tide_buffers *buffers, tide_depot_bucket *depot, size_t bytes)
{
    return depot_take_permits(buffers, depot, bytes, 1) == 1;
}

/* The latest of the tray, which has plain buffers only. */
static uint32_t depot_find_on_tray(tide_buffers *buffers, tide_depot_bucket *depot,
                                   const tide_want *want)
{
    uint32_t slot;
    if (tide_tray_take(depot, &slot, 1) == 0)
        return TIDE_NO_RECORD;
    tide_assert(tide_buffer_plain(buffers, want->key));
    tide_permits_give(buffers, depot, 1, tide_bucket_bytes(buffers->policy, want->bucket));
    return slot;
}

uint32_t tide_depot_find(tide_buffers *buffers, tide_depot_bucket *depot, const tide_want *want)
{
    unsigned looks = 0;
    uint32_t slot = depot_find_on_tray(buffers, depot, want);
    for (uint32_t *link = &depot->first;
         slot == TIDE_NO_RECORD && *link != TIDE_NO_RECORD && looks < LOOKS_MAX; looks++) {
        tide_buffer_record *record = tide_handle_at(buffers, *link);
        if (tide_hand_over_ready(buffers, record, &want->passing)) {
            slot = tide_depot_take(buffers, depot, link);
            tide_permits_give(buffers, depot, 1, tide_handle_bytes(buffers, record));
        }
        link = &record->next;
    }
    return slot;
}

/* ---- between cells and lists; mutex held ----------------------------------------------------- */

/* NULL: the thread has no magazine, or no memory for cells. */
static tide_cell *depot_cell_of(tide_magazine *magazine, unsigned key, unsigned bucket)
{
    if (magazine == NULL || !tide_cells_make(magazine, key))
        return NULL;
    tide_cell *cell = &magazine->cells[key][bucket];
    tide_cell_set_up(cell, tide_bucket_bytes(magazine->buffers->policy, bucket));
    return cell;
}

static tide_buffer_counts *depot_counts_of(tide_cell *cell, tide_depot_bucket *depot)
{
    return cell != NULL ? &cell->counts : &depot->counts;
}

/* The cell's latest are its thread's from now on. Where nothing is owned any more nobody asks, and
 * the records stay with the processor that has them. */
static void depot_own_latest(const tide_buffers *buffers, const tide_cell *cell, unsigned count)
{
    unsigned held = tide_cell_held(cell);
    if (!tide_buffers_owned(buffers))
        return;
    for (unsigned i = held - count; i < held; i++)
        tide_cell_own(buffers, cell, tide_handle_at(buffers, cell->slots[i]));
}

/* Half a cell from the tray and the list, or a whole one if that was its last need, too; the latest
 * on top. The buffers bring their permits along, but for as many as the cell has idle credits. */
static void depot_refill_cell(tide_buffers *buffers, tide_cell *cell, tide_depot_bucket *depot,
                              size_t bytes)
{
    unsigned held = tide_cell_held(cell), credit = tide_cell_credit(cell);
    unsigned count = cell->last == TIDE_CELL_REFILLED ? cell->room : (cell->room + 1u) / 2;
    count = count < cell->room - held ? count : cell->room - held;
    count = count < depot->cached ? count : depot->cached;
    unsigned first = count - tide_tray_count(depot, count);
    for (unsigned i = first; i-- > 0;)
        cell->slots[held + i] = tide_depot_take(buffers, depot, &depot->first);
    tide_tray_take(depot, cell->slots + held + first, count - first);
    unsigned idle = credit - held < count ? credit - held : count;
    tide_permits_give(buffers, depot, idle, bytes);
    tide_cell_trust(cell, credit + count - idle);
    tide_cell_hold(cell, held + count);
    depot_own_latest(buffers, cell, count);
    cell->last = TIDE_CELL_REFILLED;
}

/* The oldest half of a full cell, or three quarters if that was its last need, too, to the tray,
 * or, unless they are plain, to the list. (Three quarters of a cell with room for up to three are
 * all.) They take their permits along if there are no others. */
static void depot_spill_cell(tide_buffers *buffers, tide_cell *cell, tide_depot_bucket *depot,
                             size_t bytes, bool plain)
{
    unsigned quarters = cell->last == TIDE_CELL_SPILLED ? 3 : 2;
    unsigned count = (cell->room + 1u) * quarters / 4;
    tide_assert(tide_cell_held(cell) == cell->room && 0 < count && count <= cell->room);
    unsigned without = count - depot_take_permits(buffers, depot, bytes, count);
    tide_cell_trust(cell, tide_cell_credit(cell) - without);
    if (plain)
        tide_tray_put(buffers, depot, cell->slots, count);
    else
        for (unsigned i = 0; i < count; i++)
            tide_depot_push(buffers, depot, cell->slots[i]);
    tide_cell_forget_oldest(cell, count);
    cell->last = TIDE_CELL_SPILLED;
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

/* Is it this miss's turn to stop everybody? Each time fewer of those of small buffers do: a miss
 * that allocates instead makes one more, so soon none is needed. At a bound it makes none, for one
 * more is not kept; there each gathers. */
static bool depot_gather_pays(const tide_buffers *buffers, tide_depot_bucket *depot, size_t bytes)
{
    tide_assert(depot->skipped <= depot->skip && depot->skip <= GATHER_SKIP_MAX);
    bool bound = depot->permits >= buffers->count_max ||
                 bytes > buffers->bytes_max - buffers->bytes_permitted;
    if (bytes >= GATHER_FROM || bound)
        return true;
    if (depot->skipped < depot->skip) {
        depot->skipped++;
        return false;
    }
    depot->skipped = 0;
    if (depot->skip < GATHER_SKIP_MAX)
        depot->skip = (uint16_t)(2 * depot->skip + 1);
    return true;
}

/* The buffers of all other cells of the bucket come to the list. False: none was seen there, or it
 * does not pay. */
static bool depot_gather_cells(tide_buffers *buffers, const tide_magazine *own,
                               const tide_want *want)
{
    size_t bytes = tide_bucket_bytes(buffers->policy, want->bucket);
    if (!depot_any_other_cell(buffers, own, want->key, want->bucket, depot_cell_holds) ||
        !depot_gather_pays(buffers, tide_depot_at(buffers, want->key, want->bucket), bytes))
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

/* The background thread does not age an instance that needs the program or a driver for it. */
static void depot_age_in_passing(tide_buffers *buffers)
{
    if (buffers->hook != NULL || !buffers->immediate)
        tide_depot_age(buffers);
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

/* Whatever is cached of the bucket, wherever it is. Mutex held. */
static uint32_t depot_find_cached(tide_buffers *buffers, tide_magazine *magazine, tide_cell *cell,
                                  tide_depot_bucket *depot, const tide_want *want)
{
    uint32_t slot = cell != NULL ? tide_cell_find(buffers, cell, want) : TIDE_NO_RECORD;
    if (slot != TIDE_NO_RECORD)
        return slot;
    slot = tide_depot_find(buffers, depot, want);
    size_t bytes = tide_bucket_bytes(buffers->policy, want->bucket);
    if (slot == TIDE_NO_RECORD && depot_gather_cells(buffers, magazine, want))
        slot = tide_depot_find(buffers, depot, want);
    if (cell == NULL)
        return slot;
    if (slot != TIDE_NO_RECORD || cell->room == 0)
        tide_cell_grow(cell, bytes);
    if (slot != TIDE_NO_RECORD)
        depot_refill_cell(buffers, cell, depot, bytes);
    return slot;
}

/* All that is cached of the device's memory is given back, and the device asked once more; then
 * again as often as somebody gives some back. */
static tide_status depot_allocate_again(tide_buffers *buffers, const tide_want *want, size_t bytes,
                                        void **data)
{
    tide_device *device = tide_hand_over_device_of(buffers, want->key);
    tide_status status = TIDE_ERROR_MEMORY;
    unsigned asked = 0;
    for (bool again = true; again;) {
        (void)tide_depot_press(buffers->device);
        status =
            tide_hand_over_allocate(buffers, want->key, bytes, &want->passing, want->call, data);
        again = tide_budget_asks(device, status, asked) && tide_budget_ask(device, bytes, &asked);
    }
    return status;
}

/* Memory of the device. Mutex not held. */
static tide_status depot_allocate(tide_buffers *buffers, const tide_want *want, size_t bytes,
                                  void **data)
{
    tide_status status =
        tide_hand_over_allocate(buffers, want->key, bytes, &want->passing, want->call, data);
    if (status != TIDE_ERROR_MEMORY && status != TIDE_ERROR_LIMIT)
        return status;
    tide_lock_take(&buffers->mutex);
    buffers->pressed++;
    tide_lock_let_go(&buffers->mutex);
    TIDE_USDT(buffers_pressed, buffers, (const char *)buffers->name, bytes);
    status = depot_allocate_again(buffers, want, bytes, data);
    if (status == TIDE_ERROR_LIMIT)
        return tide_budget_refuse(tide_hand_over_device_of(buffers, want->key), bytes, want->call);
    if (status != TIDE_ERROR_MEMORY)
        return status;
    tide_lock_take(&buffers->mutex);
    size_t held = buffers->bytes_held;
    tide_lock_let_go(&buffers->mutex);
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
    __atomic_store_n(&record->key, (uint16_t)want->key, __ATOMIC_RELAXED);
    __atomic_store_n(&record->bucket, (uint16_t)want->bucket, __ATOMIC_RELAXED);
    __atomic_store_n(&record->data, data, __ATOMIC_RELAXED);
}

/* Memory was allocated or freed. Nothing is locked: the hook may want locks of the program that
 * others have who call us. */
static void depot_tell_hook(const tide_buffers *buffers, tide_buffer_happening happening,
                            uint32_t slot, unsigned key, size_t bytes)
{
    if (buffers->hook != NULL)
        tide_handle_tell(buffers,
                         &(tide_buffer_event){
                             .happening = happening,
                             .slot = tide_handle_slot(slot, tide_handle_at(buffers, slot)->bucket),
                             .bytes = bytes,
                             .flags = tide_buffer_flags(key)});
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
    tide_lock_take(&buffers->mutex);
    bool moved = false;
    if (allocated) {
        tide_depot_bucket *depot = tide_depot_at(buffers, want->key, want->bucket);
        depot->misses++;
        depot_counts_of(cell, depot)->asked += want->bytes;
        buffers->bytes_held += bytes;
        if (buffers->bytes_held > buffers->bytes_high)
            buffers->bytes_high = buffers->bytes_held;
        moved = tide_depot_use_moved(buffers, bytes);
        tide_address_add(buffers, slot);
    } else {
        tide_address_break(buffers);
        buffers->failed++;
        tide_handle_give(buffers, slot);
    }
    tide_lock_let_go(&buffers->mutex);
    if (moved)
        tide_depot_trim_unused(buffers, want);
    return allocated ? slot : TIDE_NO_RECORD;
}

/* Mutex held, and let go. */
static TIDE_COLD uint32_t depot_refuse_books(tide_buffers *buffers, const tide_want *want)
{
    buffers->failed++;
    tide_lock_let_go(&buffers->mutex);
    tide_fail(TIDE_ERROR_MEMORY, want->call, "no memory to remember buffers of '%s'",
              buffers->name);
    return TIDE_NO_RECORD;
}

/* A record, whose address was promised; TIDE_NO_RECORD: all are taken, and the promise is broken.
 * Mutex held. */
static uint32_t depot_take_record(tide_buffers *buffers)
{
    uint32_t slot = tide_handle_take(buffers);
    if (slot == TIDE_NO_RECORD)
        tide_address_break(buffers);
    return slot;
}

/* All records are taken, or no more can be written to: what is only cached gives its own back.
 * Mutex not held. */
static TIDE_COLD uint32_t depot_take_record_of_cached(tide_buffers *buffers, const tide_want *want)
{
    uint32_t slot = TIDE_NO_RECORD;
    tide_depot_trim(buffers, 0, true);
    tide_lock_take(&buffers->mutex);
    if (tide_address_promise(buffers))
        slot = depot_take_record(buffers);
    buffers->failed += slot == TIDE_NO_RECORD;
    bool most = buffers->record_count == TIDE_BUFFER_MAX;
    tide_lock_let_go(&buffers->mutex);
    if (slot != TIDE_NO_RECORD)
        return slot;
    if (most)
        tide_fail(TIDE_ERROR_LIMIT, want->call, "'%s' has %d buffers, limit %d", buffers->name,
                  TIDE_BUFFER_MAX, TIDE_BUFFER_MAX);
    else
        tide_fail(TIDE_ERROR_MEMORY, want->call, "no memory to remember buffers of '%s'",
                  buffers->name);
    return slot;
}

/* Whatever is cached, counted: of its bucket, else of a larger one. Mutex held. */
static uint32_t depot_acquire_cached(tide_buffers *buffers, tide_magazine *magazine,
                                     tide_cell *cell, const tide_want *want)
{
    unsigned bucket = want->bucket;
    tide_depot_bucket *depot = tide_depot_at(buffers, want->key, bucket);
    uint32_t slot = depot_find_cached(buffers, magazine, cell, depot, want);
    if (slot == TIDE_NO_RECORD) {
        slot = tide_depot_borrow(buffers, magazine, want, &bucket);
        cell = cell != NULL ? &magazine->cells[want->key][bucket] : NULL;
        depot = tide_depot_at(buffers, want->key, bucket);
    }
    if (slot == TIDE_NO_RECORD)
        return slot;
    depot_counts_of(cell, depot)->hits++;
    depot_counts_of(cell, depot)->asked += want->bytes;
    return slot;
}

uint32_t tide_depot_acquire(tide_buffers *buffers, tide_magazine *magazine, const tide_want *want,
                            bool *hit)
{
    tide_assert(magazine == NULL || magazine->buffers == buffers);
    if (tide_buffers_of_ours(buffers, want->call) != TIDE_OK)
        return TIDE_NO_RECORD;
    depot_age_in_passing(buffers);
    tide_lock_take(&buffers->mutex);
    if (!depot_make_buckets(buffers, want->key))
        return depot_refuse_books(buffers, want);
    tide_cell *cell = depot_cell_of(magazine, want->key, want->bucket);
    uint32_t slot = depot_acquire_cached(buffers, magazine, cell, want);
    *hit = slot != TIDE_NO_RECORD;
    if (!*hit) {
        if (!tide_address_promise(buffers))
            return depot_refuse_books(buffers, want);
        slot = depot_take_record(buffers);
    }
    tide_lock_let_go(&buffers->mutex);
    if (slot == TIDE_NO_RECORD)
        slot = depot_take_record_of_cached(buffers, want);
    if (*hit || slot == TIDE_NO_RECORD)
        return slot;
    return depot_fill_record(buffers, slot, cell, want);
}

/* ---- release --------------------------------------------------------------------------------- */

void tide_depot_free(tide_buffers *buffers, uint32_t slot, const tide_hand_over *passing)
{
    tide_buffer_record *record = tide_handle_at(buffers, slot);
    tide_assert(!tide_handle_live(record));
    size_t bytes = tide_handle_bytes(buffers, record);
    tide_hand_over_free(buffers, record, passing);
    depot_tell_hook(buffers, TIDE_BUFFER_FREED, slot, record->key, bytes);
    tide_lock_take(&buffers->mutex);
    tide_assert(buffers->bytes_held >= bytes);
    buffers->bytes_held -= bytes;
    tide_handle_give(buffers, slot);
    tide_lock_let_go(&buffers->mutex);
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
    if (cell != NULL && cell->room == 0)
        cell = NULL;
    if (cell != NULL && tide_cell_held(cell) == cell->room)
        depot_spill_cell(buffers, cell, depot, tide_handle_bytes(buffers, record),
                         tide_buffer_plain(buffers, record->key));
    if (!depot_find_permit(buffers, magazine, cell, record->key, record->bucket))
        return false;
    if (cell != NULL)
        tide_cell_push(buffers, cell, slot);
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
    depot_age_in_passing(buffers);
    tide_lock_take(&buffers->mutex);
    tide_depot_bucket *depot = tide_depot_at(buffers, record->key, record->bucket);
    tide_assert(depot != NULL); /* made before the buffer was acquired */
    tide_cell *cell = depot_cell_of(magazine, record->key, record->bucket);
    depot_counts_of(cell, depot)->releases++;
    bool kept = keep && depot_keep_buffer(buffers, magazine, cell, slot);
    depot->dropped += !kept;
    if (!kept)
        tide_address_remove(buffers, slot);
    tide_lock_let_go(&buffers->mutex);
    if (!kept)
        tide_depot_free(buffers, slot, passing);
}
