/* SPDX-License-Identifier: MIT */
/* One buffer: acquired, released, asked about.
 *
 * The fast paths are an acquire that the thread's cell can serve and a release that the cell has
 * room for. They take no lock and write nothing that another thread writes. Beyond plain loads and
 * stores the two cost one atomic exchange, of the generation. */
#include "runtime/base/error.h"
#include "runtime/base/shim.h"
#include "runtime/buffers/depot.h"

static const tide_buffer buffer_none;

/* ---- acquire -------------------------------------------------------------------------------- */

/* From the cell of the thread; TIDE_NO_RECORD: there is nothing. */
TIDE_INLINE uint32_t buffer_take_cached(tide_buffers *buffers, tide_magazine *magazine,
                                        const tide_want *want)
{
    tide_assert(magazine == NULL || magazine->buffers == buffers);
    uint32_t slot = TIDE_NO_RECORD;
    if (TIDE_UNLIKELY(magazine == NULL || magazine->cells[want->key] == NULL) ||
        TIDE_UNLIKELY(!tide_magazine_enter(magazine)))
        return slot;
    tide_cell *cell = &magazine->cells[want->key][want->bucket];
    unsigned held = tide_cell_held(cell);
    tide_assert(held <= tide_cell_credit(cell) && tide_cell_credit(cell) <= TIDE_CELL_SLOTS);
    if (TIDE_LIKELY(held > 0)) {
        if (TIDE_LIKELY(tide_buffer_plain(buffers, want->key))) {
            slot = cell->slots[held - 1];
            tide_cell_hold(cell, held - 1);
        } else {
            slot = tide_cell_find(buffers, cell, want);
        }
    }
    if (TIDE_LIKELY(slot != TIDE_NO_RECORD)) {
        cell->counts.hits++;
        cell->counts.asked += want->bytes;
    }
    tide_magazine_leave(magazine);
    return slot;
}

static TIDE_COLD void buffer_tell_hook(tide_buffers *buffers, tide_buffer_happening happening,
                                       const tide_buffer_record *record, uint64_t stream, bool hit)
{
    buffers->hook(&(tide_buffer_event){.happening = happening,
                                       .buffers = buffers,
                                       .slot = (uint64_t)(record - buffers->records),
                                       .asked = record->asked,
                                       .bytes = tide_handle_bytes(buffers, record),
                                       .flags = tide_buffer_flags(record->key),
                                       .stream = stream,
                                       .hit = hit},
                  buffers->user);
}

/* Must checks forbid cached memory to the host? Only memory that no device uses. */
static bool buffer_poisoned(const tide_buffers *buffers, unsigned key)
{
    return buffers->careful && tide_buffer_plain(buffers, key);
}

TIDE_INLINE tide_buffer buffer_acquire(tide_buffers *buffers, const tide_want *want)
{
    tide_assert(want->key < TIDE_BUFFER_KEYS && want->bucket < TIDE_BUCKETS);
    tide_magazine *magazine = tide_magazine_of(buffers);
    uint32_t slot = buffer_take_cached(buffers, magazine, want);
    bool hit = true;
    if (TIDE_UNLIKELY(slot == TIDE_NO_RECORD)) {
        slot = tide_depot_acquire(buffers, magazine, want, &hit);
        if (slot == TIDE_NO_RECORD)
            return buffer_none;
    }
    tide_buffer_record *record = tide_handle_at(buffers, slot);
    tide_assert(record->key == want->key && record->bucket == want->bucket);
    tide_assert(record->mark == NULL); /* the next use has been ordered after the last one */
    tide_assert(want->bytes <= tide_handle_bytes(buffers, record));
    record->asked = want->bytes;
    if (TIDE_UNLIKELY(buffer_poisoned(buffers, want->key)))
        tide_shim_live(record->data, want->bytes, tide_handle_bytes(buffers, record));
    if (TIDE_UNLIKELY(buffers->hook != NULL))
        buffer_tell_hook(buffers, TIDE_BUFFER_ACQUIRED, record, want->passing.number, hit);
    return tide_handle_begin(buffers, record);
}

static TIDE_COLD tide_buffer buffer_refuse_size(const tide_buffers *buffers, size_t bytes,
                                                const char *call)
{
    if (buffers == NULL)
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the buffers are NULL");
    else
        tide_fail(TIDE_ERROR_SIZE, call, "%zu bytes of '%s', limit %zu", bytes, buffers->name,
                  TIDE_BUCKET_MAX);
    return buffer_none;
}

tide_buffer tide_buffer_acquire(tide_buffers *buffers, size_t bytes)
{
    const char *call = "tide_buffer_acquire";
    if (TIDE_UNLIKELY(buffers == NULL || bytes > TIDE_BUCKET_MAX))
        return buffer_refuse_size(buffers, bytes, call);
    tide_want want = {.bytes = bytes,
                      .key = tide_buffer_key(buffers->flags),
                      .bucket = tide_bucket_of(buffers->policy, bytes),
                      .passing = {buffers->stream, buffers->stream_number},
                      .call = call};
    if (TIDE_UNLIKELY(!buffers->immediate) &&
        tide_hand_over_find(buffers, want.key, buffers->stream, &want.passing, call) != TIDE_OK)
        return buffer_none;
    return buffer_acquire(buffers, &want);
}

tide_buffer tide_buffer_acquire_on(tide_buffers *buffers, size_t bytes, uint32_t flags,
                                   void *stream)
{
    const char *call = "tide_buffer_acquire_on";
    if (TIDE_UNLIKELY(buffers == NULL || bytes > TIDE_BUCKET_MAX))
        return buffer_refuse_size(buffers, bytes, call);
    tide_want want = {.bytes = bytes,
                      .key = tide_buffer_key(flags),
                      .bucket = tide_bucket_of(buffers->policy, bytes),
                      .call = call};
    if (want.key == TIDE_BUFFER_KEYS) {
        tide_fail(TIDE_ERROR_ARGUMENT, call,
                  "no buffers have flags %#x: kinds are 0 to %d, tags 0 to %d", flags,
                  TIDE_BUFFER_KINDS - 1, TIDE_BUFFER_TAGS - 1);
        return buffer_none;
    }
    if (tide_hand_over_find(buffers, want.key, stream, &want.passing, call) != TIDE_OK)
        return buffer_none;
    return buffer_acquire(buffers, &want);
}

/* ---- release -------------------------------------------------------------------------------- */

/* Says what is wrong with the handle, and counts it: who releases twice seldom looks
 * at the status. */
static TIDE_COLD tide_status buffer_refuse_handle(tide_buffers *buffers, tide_buffer handle,
                                                  const char *call)
{
    pthread_mutex_lock(&buffers->mutex);
    buffers->refused++;
    pthread_mutex_unlock(&buffers->mutex);
    const tide_buffer_record *record = tide_handle_of(buffers, handle);
    if (record == NULL)
        return tide_fail(TIDE_ERROR_STALE, call, "slot %zu is no buffer of '%s', which has had %u",
                         (size_t)handle.slot, buffers->name, buffers->record_count);
    uint64_t now = __atomic_load_n(&record->generation, __ATOMIC_RELAXED);
    uint64_t since = now - handle.generation;
    if ((handle.generation & 1) == 0 || since == 0 || since > UINT32_MAX)
        return tide_fail(TIDE_ERROR_STALE, call,
                         "generation %#zx of slot %zu never was a buffer of '%s'",
                         (size_t)handle.generation, (size_t)handle.slot, buffers->name);
    return tide_fail(TIDE_ERROR_STALE, call, "the buffer in slot %zu of '%s' has been released%s",
                     (size_t)handle.slot, buffers->name,
                     since > 1 ? ", and its memory acquired again since" : "");
}

/* Into the cell of the thread, if that has an idle credit for it. */
TIDE_INLINE bool buffer_put_into_cell(tide_magazine *magazine, uint32_t slot, unsigned key,
                                      unsigned bucket)
{
    if (TIDE_UNLIKELY(magazine == NULL || magazine->cells[key] == NULL) ||
        TIDE_UNLIKELY(!tide_magazine_enter(magazine)))
        return false;
    tide_cell *cell = &magazine->cells[key][bucket];
    unsigned held = tide_cell_held(cell);
    bool room = held < tide_cell_credit(cell);
    if (TIDE_LIKELY(room)) {
        tide_assert(held < TIDE_CELL_SLOTS);
        cell->slots[held] = slot;
        tide_cell_hold(cell, held + 1);
        cell->counts.releases++;
    }
    tide_magazine_leave(magazine);
    return room;
}

/* Its handle has ended: the record is this thread's alone now. */
TIDE_INLINE void buffer_release(tide_buffers *buffers, tide_buffer_record *record,
                                const tide_hand_over *passing)
{
    uint32_t slot = (uint32_t)(record - buffers->records);
    tide_assert(!tide_handle_live(record) && record->mark == NULL);
    tide_assert(record->asked <= tide_handle_bytes(buffers, record));
    bool keep = true;
    if (TIDE_UNLIKELY(!tide_buffer_plain(buffers, record->key)))
        keep = tide_hand_over_leave(buffers, record, passing);
    if (TIDE_UNLIKELY(buffer_poisoned(buffers, record->key)))
        tide_shim_dead(record->data, tide_handle_bytes(buffers, record));
    if (TIDE_UNLIKELY(buffers->hook != NULL))
        buffer_tell_hook(buffers, TIDE_BUFFER_RELEASED, record, passing->number, false);
    record->tick = tide_buffers_now();
    tide_magazine *magazine = tide_magazine_of(buffers);
    if (TIDE_UNLIKELY(!keep || !buffer_put_into_cell(magazine, slot, record->key, record->bucket)))
        tide_depot_release(buffers, magazine, slot, passing, keep);
}

/* The record of a handle, checked before anything is asked of a device. NULL with a message when
 * the handle is not good. */
TIDE_INLINE tide_buffer_record *buffer_find_record(tide_buffers *buffers, tide_buffer handle,
                                                   const char *call)
{
    if (TIDE_UNLIKELY(buffers == NULL)) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the buffers are NULL");
        return NULL;
    }
    tide_buffer_record *record = tide_handle_of(buffers, handle);
    if (TIDE_LIKELY(record != NULL && tide_handle_good(record, handle)))
        return record;
    buffer_refuse_handle(buffers, handle, call);
    return NULL;
}

/* On a lost device nothing is kept. */
static tide_status buffer_give_up(tide_buffers *buffers, tide_buffer_record *record,
                                  tide_buffer handle, void *stream, const char *call)
{
    uint32_t slot = (uint32_t)(record - buffers->records);
    if (!tide_handle_end(record, handle))
        return buffer_refuse_handle(buffers, handle, call);
    tide_depot_release(buffers, tide_magazine_of(buffers), slot,
                       &(tide_hand_over){.stream = stream}, false);
    return TIDE_OK;
}

/* A release that may have to leave a mark in the stream. What can be refused is, before
 * the handle ends. */
static tide_status buffer_release_ordered(tide_buffers *buffers, tide_buffer_record *record,
                                          tide_buffer handle, void *stream, const char *call)
{
    tide_device *device = buffers->device;
    tide_hand_over passing;
    bool plain = tide_buffer_plain(buffers, record->key);
    if (!plain &&
        tide_device_lost(device)) /* nothing runs there any more, nothing will be acquired */
        return buffer_give_up(buffers, record, handle, stream, call);
    TIDE_FORWARD(tide_hand_over_find(buffers, record->key, stream, &passing, call));
    if (!plain && device->methods->capturing(device, stream))
        return tide_fail(TIDE_ERROR_STATE, call,
                         "a graph is captured on the stream: each of its launches would use the "
                         "buffer of '%s' again",
                         buffers->name);
    if (!tide_handle_end(record, handle))
        return buffer_refuse_handle(buffers, handle, call);
    buffer_release(buffers, record, &passing);
    return TIDE_OK;
}

tide_status tide_buffer_release(tide_buffers *buffers, tide_buffer buffer)
{
    const char *call = "tide_buffer_release";
    tide_buffer_record *record = buffer_find_record(buffers, buffer, call);
    if (TIDE_UNLIKELY(record == NULL))
        return tide_error_status();
    if (TIDE_UNLIKELY(!buffers->immediate))
        return buffer_release_ordered(buffers, record, buffer, buffers->stream, call);
    if (TIDE_UNLIKELY(!tide_handle_end(record, buffer)))
        return buffer_refuse_handle(buffers, buffer, call);
    buffer_release(buffers, record, &(tide_hand_over){buffers->stream, buffers->stream_number});
    return TIDE_OK;
}

tide_status tide_buffer_release_on(tide_buffers *buffers, tide_buffer buffer, void *stream)
{
    const char *call = "tide_buffer_release_on";
    tide_buffer_record *record = buffer_find_record(buffers, buffer, call);
    if (record == NULL)
        return tide_error_status();
    return buffer_release_ordered(buffers, record, buffer, stream, call);
}

/* ---- questions ------------------------------------------------------------------------------- */

void *tide_buffer_pointer(tide_buffers *buffers, tide_buffer buffer)
{
    const tide_buffer_record *record = buffer_find_record(buffers, buffer, "tide_buffer_pointer");
    return record != NULL ? __atomic_load_n(&record->data, __ATOMIC_RELAXED) : NULL;
}

size_t tide_buffer_bytes(tide_buffers *buffers, tide_buffer buffer)
{
    const tide_buffer_record *record = buffer_find_record(buffers, buffer, "tide_buffer_bytes");
    return record != NULL ? tide_handle_bytes(buffers, record) : 0;
}

size_t tide_buffers_round_up(const tide_buffers *buffers, size_t bytes)
{
    if (buffers == NULL || bytes > TIDE_BUCKET_MAX)
        return 0;
    return tide_bucket_bytes(buffers->policy, tide_bucket_of(buffers->policy, bytes));
}
