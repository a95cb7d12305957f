/* SPDX-License-Identifier: MIT */
/* One buffer is acquired, and asked about. The fast path is an acquire that the thread's cell can
 * serve: plain loads and stores, no lock, and nothing is written that another thread writes. */
#include "runtime/buffers/buffer.h"
#include "runtime/base/shim.h"

/* ---- acquire -------------------------------------------------------------------------------- */

/* From the cell of the thread. False: go by the depot. */
TIDE_INLINE bool buffer_take_quick(tide_buffers *buffers, size_t bytes, size_t bucket,
                                   uint32_t *slot)
{
    tide_magazine *magazine = tide_magazine_known(buffers);
    if (TIDE_UNLIKELY(magazine == NULL) || TIDE_UNLIKELY(!tide_magazine_enter(buffers, magazine)))
        return false;
    tide_cell *cell = tide_cell_at(magazine, bucket);
    uint32_t held = cell->held;
    tide_assert(held <= cell->room && cell->room <= TIDE_CELL_SLOTS);
    if (TIDE_UNLIKELY(held == 0)) {
        tide_magazine_leave(magazine);
        return false;
    }
    *slot = cell->slots[held - 1];
    cell->held = held - 1;
    cell->counts.hits++;
    cell->counts.asked += bytes;
    tide_magazine_leave(magazine);
    return true;
}

/* The buffer is this thread's alone, and becomes live. */
static tide_buffer buffer_hand_out(tide_buffers *buffers, uint32_t slot, const tide_want *want,
                                   bool hit)
{
    tide_buffer_record *record = tide_handle_at(buffers, slot);
    tide_assert(record->key == want->key &&
                tide_handle_bucket(record) >= want->bucket); /* borrowed */
    tide_assert(record->mark == NULL); /* the next use has been ordered after the last one */
    size_t bytes = tide_handle_bytes(record);
    tide_assert(want->bytes <= bytes);
    record->asked = want->bytes;
    if (TIDE_UNLIKELY(tide_buffer_poisoned(buffers, want->key)))
        tide_shim_live(record->data, bytes, bytes); /* all of it: tide_buffer_bytes says so */
    tide_handle_tell(buffers, TIDE_BUFFER_ACQUIRED, slot, want->bytes, want->passing.number, hit);
    return (tide_buffer){tide_handle_slot(slot, record->named), tide_handle_begin(record)};
}

tide_buffer tide_buffer_acquire_wanted(tide_buffers *buffers, const tide_want *want, bool *hit)
{
    uint32_t slot = TIDE_NO_RECORD;
    tide_assert(want->key < TIDE_BUFFER_KEYS && want->bucket < TIDE_BUCKETS);
    *hit =
        want->key == buffers->key && buffer_take_quick(buffers, want->bytes, want->bucket, &slot);
    if (!*hit)
        slot = tide_depot_acquire(buffers, want, hit);
    return slot != TIDE_NO_RECORD ? buffer_hand_out(buffers, slot, want, *hit) : tide_buffer_none;
}

static TIDE_COLD tide_buffer buffer_refuse_size(const tide_buffers *buffers, size_t bytes,
                                                const char *call)
{
    if (buffers == NULL)
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the buffers are NULL");
    else
        tide_fail(TIDE_ERROR_SIZE, call, "%zu bytes of '%s', limit %zu", bytes, buffers->name,
                  TIDE_BUCKET_MAX);
    return tide_buffer_none;
}

bool tide_buffer_want_own(tide_buffers *buffers, size_t bytes, const char *call, tide_want *want)
{
    if (TIDE_UNLIKELY(buffers == NULL || bytes > TIDE_BUCKET_MAX)) {
        buffer_refuse_size(buffers, bytes, call);
        return false;
    }
    *want = (tide_want){.bytes = bytes,
                        .key = buffers->key,
                        .bucket = tide_bucket_of(bytes),
                        .passing = {buffers->stream, buffers->stream_number},
                        .call = call};
    return TIDE_LIKELY(buffers->immediate) ||
           tide_hand_over_find(buffers, want->key, buffers->stream, &want->passing, call) ==
               TIDE_OK;
}

/* In any way. `pointer` NULL: nobody asks where it lies. */
static __attribute__((noinline)) tide_buffer buffer_acquire_any(tide_buffers *buffers, size_t bytes,
                                                                void **pointer)
{
    const char *call = pointer != NULL ? "tide_buffer_acquire_pointer" : "tide_buffer_acquire";
    tide_want want;
    tide_buffer buffer = tide_buffer_none;
    bool hit;
    if (TIDE_LIKELY(tide_buffer_want_own(buffers, bytes, call, &want)))
        buffer = tide_buffer_acquire_wanted(buffers, &want, &hit);
    if (pointer != NULL)
        *pointer = buffer.generation != 0 ? tide_buffer_pointer(buffers, buffer) : NULL;
    return buffer;
}

/* The bucket of a small size is looked up. False: there are no buffers, or none so large. */
TIDE_INLINE bool buffer_find_bucket(const tide_buffers *buffers, size_t bytes, size_t *bucket)
{
    if (TIDE_UNLIKELY(buffers == NULL))
        return false;
    if (TIDE_LIKELY(bytes <= TIDE_BUCKET_SMALL))
        *bucket = buffers->small[(bytes + TIDE_BUCKET_MIN - 1) / TIDE_BUCKET_MIN];
    else if (TIDE_LIKELY(bytes <= TIDE_BUCKET_MAX))
        *bucket = tide_bucket_of(bytes);
    else
        return false;
    return true;
}

/* The other way is called from one place, so that the fast path saves nothing and has no frame. */
TIDE_INLINE tide_buffer buffer_acquire_sized(tide_buffers *buffers, size_t bytes, void **pointer)
{
    size_t bucket;
    uint32_t slot;
    if (TIDE_UNLIKELY(!buffer_find_bucket(buffers, bytes, &bucket) ||
                      !buffer_take_quick(buffers, bytes, bucket, &slot)))
        return buffer_acquire_any(buffers, bytes, pointer);
    tide_buffer_record *record = tide_handle_at(buffers, slot); /* `asked` is for hooks */
    tide_assert(bytes <= tide_handle_bytes(record) && record->mark == NULL);
    if (pointer != NULL)
        *pointer = record->data;
    return (tide_buffer){tide_handle_slot(slot, (unsigned)bucket), tide_handle_begin(record)};
}

tide_buffer tide_buffer_acquire(tide_buffers *buffers, size_t bytes)
{
    return buffer_acquire_sized(buffers, bytes, NULL);
}

tide_buffer tide_buffer_acquire_pointer(tide_buffers *buffers, size_t bytes, void **pointer)
{
    if (TIDE_LIKELY(pointer != NULL))
        return buffer_acquire_sized(buffers, bytes, pointer);
    tide_fail(TIDE_ERROR_ARGUMENT, "tide_buffer_acquire_pointer", "the pointer is NULL");
    return tide_buffer_none;
}

tide_status tide_buffer_acquire_many(tide_buffers *buffers, size_t bytes, size_t count,
                                     tide_buffer *out)
{
    const char *call = "tide_buffer_acquire_many";
    tide_want want;
    tide_failure why;
    size_t done = 0;
    bool hit;
    if (out == NULL && count > 0)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the result is NULL");
    bool known = tide_buffer_want_own(buffers, bytes, call, &want);
    while (known && done < count) {
        out[done] = tide_buffer_acquire_wanted(buffers, &want, &hit);
        known = out[done].generation != 0;
        if (known)
            done++;
    }
    if (known)
        return TIDE_OK;
    tide_failure_keep(&why); /* a hook that is told of the releases may fail in a call of its own */
    (void)tide_buffer_release_many(buffers, out, done);
    tide_failure_restore(&why);
    for (size_t i = 0; i < count; i++)
        out[i] = tide_buffer_none;
    return why.status;
}

TIDE_INLINE tide_buffer buffer_acquire_for(tide_buffers *buffers, size_t bytes, uint32_t flags,
                                           void *stream, tide_yield yield, const char *call)
{
    if (TIDE_UNLIKELY(buffers == NULL || bytes > TIDE_BUCKET_MAX))
        return buffer_refuse_size(buffers, bytes, call);
    tide_want want = {.bytes = bytes,
                      .key = tide_buffer_key(flags),
                      .bucket = tide_bucket_of(bytes),
                      .call = call,
                      .yield = yield};
    if (want.key == TIDE_BUFFER_KEYS) {
        tide_buffer_refuse_flags(flags, call);
        return tide_buffer_none;
    }
    if (tide_hand_over_find(buffers, want.key, stream, &want.passing, call) != TIDE_OK)
        return tide_buffer_none;
    bool hit;
    return tide_buffer_acquire_wanted(buffers, &want, &hit);
}

tide_buffer tide_buffer_acquire_on(tide_buffers *buffers, size_t bytes, uint32_t flags,
                                   void *stream)
{
    return buffer_acquire_for(buffers, bytes, flags, stream, TIDE_YIELD_ALL,
                              "tide_buffer_acquire_on");
}

tide_buffer tide_buffer_acquire_yielding(tide_buffers *buffers, size_t bytes, uint32_t flags,
                                         void *stream, tide_yield yield)
{
    return buffer_acquire_for(buffers, bytes, flags, stream, yield, "tide_buffer_acquire_on");
}

/* On the library's own stream, which then comes after the buffer's last use, or its allocation. The
 * others' memory is handed out when that is over. */
tide_buffer tide_buffer_acquire_ready(tide_buffers *buffers, size_t bytes, uint32_t flags)
{
    void *service = buffers != NULL ? buffers->device->service : NULL;
    tide_buffer buffer = buffer_acquire_for(buffers, bytes, flags, service, TIDE_YIELD_ALL,
                                            "tide_buffer_acquire_ready");
    unsigned key = tide_buffer_key(flags);
    if (buffer.generation == 0 || tide_buffer_plain(buffers, key) || tide_buffer_of_both(key) ||
        buffers->device->methods->wait(buffers->device, service) == TIDE_OK)
        return buffer;
    tide_buffer_give_back(buffers, buffer, service);
    return tide_buffer_none;
}

/* ---- questions ------------------------------------------------------------------------------- */

static TIDE_COLD __attribute__((noinline)) void *buffer_no_pointer(tide_buffers *buffers,
                                                                   tide_buffer buffer)
{
    (void)tide_buffer_find_record(buffers, buffer, "tide_buffer_pointer");
    return NULL;
}

void *tide_buffer_pointer(tide_buffers *buffers, tide_buffer buffer)
{
    if (TIDE_UNLIKELY(buffers == NULL || !tide_handle_named(buffers, buffer)))
        return buffer_no_pointer(buffers, buffer);
    const tide_buffer_record *record = tide_handle_at(buffers, (uint32_t)buffer.slot);
    if (TIDE_UNLIKELY(!tide_handle_good(record, buffer)))
        return buffer_no_pointer(buffers, buffer);
    return __atomic_load_n(&record->data, __ATOMIC_RELAXED);
}

size_t tide_buffer_bytes(tide_buffers *buffers, tide_buffer buffer)
{
    const tide_buffer_record *record =
        tide_buffer_find_record(buffers, buffer, "tide_buffer_bytes");
    return record != NULL ? tide_handle_bytes(record) : 0;
}

size_t tide_buffers_round_up(const tide_buffers *buffers, size_t bytes)
{
    if (buffers == NULL || bytes > TIDE_BUCKET_MAX)
        return 0;
    return tide_bucket_bytes(tide_bucket_of(bytes));
}
