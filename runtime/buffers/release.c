/* SPDX-License-Identifier: MIT */
/* A buffer is released. The fast path is a release that the thread's cell has room for: plain loads
 * and stores, no lock. */
#include "runtime/base/os.h"
#include "runtime/base/shim.h"
#include "runtime/buffers/buffer.h"

/* ---- refused -------------------------------------------------------------------------------- */

TIDE_COLD tide_status tide_buffer_refuse_handle(tide_buffers *buffers, tide_buffer handle,
                                                const char *call)
{
    tide_lock_take(&buffers->mutex);
    buffers->refused++;
    tide_lock_let_go(&buffers->mutex);
    const tide_buffer_record *record = tide_handle_of(buffers, handle);
    if (record == NULL)
        return tide_fail(TIDE_ERROR_STALE, call, "slot %zu is no buffer of '%s', which has had %u",
                         (size_t)(uint32_t)handle.slot, buffers->name,
                         __atomic_load_n(&buffers->record_count, __ATOMIC_RELAXED));
    uint64_t now = __atomic_load_n(&record->generation, __ATOMIC_RELAXED);
    uint64_t since = now - handle.generation;
    if ((handle.generation & 1) == 0 || since == 0 || since > UINT32_MAX)
        return tide_fail(TIDE_ERROR_STALE, call,
                         "generation %#zx of slot %zu never was a buffer of '%s'",
                         (size_t)handle.generation, (size_t)(uint32_t)handle.slot, buffers->name);
    return tide_fail(TIDE_ERROR_STALE, call, "the buffer in slot %zu of '%s' has been released%s",
                     (size_t)(uint32_t)handle.slot, buffers->name,
                     since > 1 ? ", and its memory acquired again since" : "");
}

/* ---- the cold side -------------------------------------------------------------------------- */

/* Its handle has ended: the record is this thread's alone now. `mark`: of its last use, if there
 * could be one. */
static void release_ended(tide_buffers *buffers, tide_buffer_record *record,
                          const tide_hand_over *passing, void *mark)
{
    uint32_t slot = (uint32_t)(record - buffers->records);
    tide_assert(!tide_handle_live(record) && record->mark == NULL);
    bool keep = true;
    if (TIDE_UNLIKELY(!tide_buffer_plain(buffers, record->key))) {
        record->stream = passing->number;
        record->mark = mark;
        keep = tide_hand_over_keeps(buffers, record->key, passing, mark);
    }
    if (TIDE_UNLIKELY(tide_buffer_poisoned(buffers, record->key)))
        tide_shim_dead(record->data, tide_handle_bytes(record));
    tide_handle_tell(buffers, TIDE_BUFFER_RELEASED, slot, record->asked, passing->number, false);
    record->tick = tide_buffers_now();
    tide_depot_release(buffers, slot, passing, keep);
}

/* Not kept: on a lost device, or since the stream's own order is all there is. */
static tide_status release_give_up(tide_buffers *buffers, tide_buffer_record *record,
                                   tide_buffer handle, void *stream, const char *call)
{
    uint32_t slot = (uint32_t)(record - buffers->records);
    if (!tide_handle_end(record, handle))
        return tide_buffer_refuse_handle(buffers, handle, call);
    tide_depot_release(buffers, slot, &(tide_hand_over){.stream = stream}, false);
    return TIDE_OK;
}

/* May the memory go? Memory that a stream gives back goes behind the work that uses it. Other memory goes
 * at once, so the host waits here until the stream's work is over. False: the stream is captured, and
 * nobody can wait for it. */
static bool release_may_go(const tide_buffers *buffers, unsigned key, void *stream)
{
    return tide_buffer_plain(buffers, key) || tide_hand_over_goes_by_stream(buffers, key) ||
           tide_device_stream_over(buffers->device, stream);
}

/* Where it may not go it stays live for good. Nobody else has the handle. */
void tide_buffer_give_back(tide_buffers *buffers, tide_buffer handle, void *stream)
{
    tide_status status = tide_buffer_release_on(buffers, handle, stream);
    if (TIDE_LIKELY(status == TIDE_OK || status == TIDE_ERROR_STALE))
        return;
    tide_buffer_record *record = tide_handle_at(buffers, (uint32_t)handle.slot);
    tide_assert(tide_handle_live(record));
    if (release_may_go(buffers, record->key, stream))
        (void)release_give_up(buffers, record, handle, stream, "give up");
}

/* A release that may have to leave a mark in the stream. What can be refused is, before
 * the handle ends. */
static tide_status release_ordered(tide_buffers *buffers, tide_buffer_record *record,
                                   tide_buffer handle, void *stream, const char *call)
{
    tide_device *device = buffers->device;
    tide_hand_over passing;
    void *mark = NULL;
    /* Another thread may release it just now; then this is another buffer's key, and the end
     * fails. */
    unsigned key = __atomic_load_n(&record->key, __ATOMIC_RELAXED);
    bool plain = tide_buffer_plain(buffers, key);
    if (!plain &&
        tide_device_lost(device)) /* nothing runs there any more, nothing will be acquired */
        return release_give_up(buffers, record, handle, stream, call);
    TIDE_FORWARD(tide_hand_over_find(buffers, key, stream, &passing, call));
    if (!plain)
        TIDE_FORWARD(tide_hand_over_mark(buffers, key, &passing, call, &mark));
    if (!tide_handle_end(record, handle)) {
        if (mark != NULL)
            device->methods->mark_drop(device, mark);
        return tide_buffer_refuse_handle(buffers, handle, call);
    }
    release_ended(buffers, record, &passing, mark);
    return TIDE_OK;
}

/* Into a cell, to the depot, or refused. */
static tide_status release_any(tide_buffers *buffers, tide_buffer buffer, const char *call)
{
    tide_buffer_record *record = tide_buffer_find_record(buffers, buffer, call);
    if (TIDE_UNLIKELY(record == NULL))
        return tide_error_status();
    if (TIDE_UNLIKELY(!buffers->immediate))
        return release_ordered(buffers, record, buffer, buffers->stream, call);
    if (TIDE_UNLIKELY(!tide_handle_end(record, buffer)))
        return tide_buffer_refuse_handle(buffers, buffer, call);
    release_ended(buffers, record, &(tide_hand_over){buffers->stream, buffers->stream_number},
                  NULL);
    return TIDE_OK;
}

/* ---- the fast path -------------------------------------------------------------------------- */

/* In the thread's magazine. Only buffers of the instance's own key go this way: of others the handle
 * says more than the bucket. False: nothing has changed. */
TIDE_INLINE bool release_quick(tide_buffers *buffers, tide_magazine *magazine, tide_buffer handle)
{
    size_t bucket = handle.slot >> TIDE_HANDLE_BUCKET;
    if (TIDE_UNLIKELY(!tide_handle_named(buffers, handle)) || TIDE_UNLIKELY(bucket >= TIDE_BUCKETS))
        return false;
    tide_buffer_record *record = tide_handle_at(buffers, (uint32_t)handle.slot);
    if (TIDE_UNLIKELY((handle.generation & 1) == 0) ||
        TIDE_UNLIKELY(__atomic_load_n(&record->generation, __ATOMIC_ACQUIRE) !=
                      handle.generation) ||
        TIDE_UNLIKELY(!tide_handle_fits(record, handle)))
        return false;
    tide_cell *cell = tide_cell_at(magazine, bucket);
    uint32_t held = cell->held;
    if (TIDE_UNLIKELY(held >= cell->room))
        return false;
    tide_assert(tide_handle_good(record, handle) && record->mark == NULL);
    tide_assert(record->key == buffers->key);
    __atomic_store_n(&record->generation, handle.generation + 1, __ATOMIC_RELEASE);
    record->tick = tide_buffers_now();
    cell->slots[held] = (uint32_t)handle.slot;
    cell->held = held + 1;
    cell->counts.releases++;
    return true;
}

/* Into the thread's cell. False: nothing has changed. */
TIDE_INLINE bool release_into_cell(tide_buffers *buffers, size_t named, uint64_t generation)
{
    tide_magazine *magazine = TIDE_LIKELY(buffers != NULL) ? tide_magazine_known(buffers) : NULL;
    if (TIDE_UNLIKELY(magazine == NULL) || TIDE_UNLIKELY(!tide_magazine_enter(buffers, magazine)))
        return false;
    bool done = release_quick(buffers, magazine, (tide_buffer){named, generation});
    tide_magazine_leave(magazine);
    return done;
}

tide_status tide_buffer_release(tide_buffers *buffers, tide_buffer buffer)
{
    if (TIDE_LIKELY(release_into_cell(buffers, buffer.slot, buffer.generation)))
        return TIDE_OK;
    return release_any(buffers, buffer, "tide_buffer_release");
}

static tide_status release_many(tide_buffers *buffers, const tide_buffer *handles, size_t count,
                                const char *call)
{
    tide_status refused = TIDE_OK;
    for (size_t i = 0; i < count; i++)
        if (!release_into_cell(buffers, handles[i].slot, handles[i].generation) &&
            release_any(buffers, handles[i], call) != TIDE_OK)
            refused = tide_error_status();
    return refused;
}

tide_status tide_buffer_release_many(tide_buffers *buffers, const tide_buffer *handles,
                                     size_t count)
{
    const char *call = "tide_buffer_release_many";
    if (buffers == NULL || (handles == NULL && count > 0))
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the %s NULL",
                         buffers == NULL ? "buffers are" : "handles are");
    return release_many(buffers, handles, count, call);
}

tide_status tide_buffer_release_on(tide_buffers *buffers, tide_buffer buffer, void *stream)
{
    const char *call = "tide_buffer_release_on";
    if (buffers != NULL && buffers->quick && stream == NULL)
        return release_many(buffers, &buffer, 1, call); /* of the host, whose only stream that is */
    tide_buffer_record *record = tide_buffer_find_record(buffers, buffer, call);
    if (record == NULL)
        return tide_error_status();
    return release_ordered(buffers, record, buffer, stream, call);
}

/* The library's own stream has no work that lasts: what it marks there is over at once. */
tide_status tide_buffer_release_idle(tide_buffers *buffers, tide_buffer buffer)
{
    const char *call = "tide_buffer_release_idle";
    tide_buffer_record *record = tide_buffer_find_record(buffers, buffer, call);
    if (record == NULL)
        return tide_error_status();
    return release_ordered(buffers, record, buffer, buffers->device->service, call);
}
