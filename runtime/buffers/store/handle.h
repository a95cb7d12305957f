/* SPDX-License-Identifier: MIT */
/* Records and the handles that name them. A handle is good while its generation is the record's.
 * The record's generation is odd while the buffer is live and grows by one with each acquire and
 * each release, also when the record serves another buffer. So a handle that has been released is
 * never good again. Generations start anywhere, so that neither a handle of another instance nor
 * one that somebody made up is good. */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_STORE_HANDLE_H
#define TIDEPOOL_RUNTIME_BUFFERS_STORE_HANDLE_H

#include "runtime/buffers/store/instance.h"

/* A record for a new buffer, or TIDE_NO_RECORD: there are TIDE_BUFFER_MAX already, or the system
 * has no memory for more. Mutex held. */
uint32_t tide_handle_take(tide_buffers *buffers);

/* The record stands for no memory any more, and is free. Mutex held. */
void tide_handle_give(tide_buffers *buffers, uint32_t slot);

TIDE_INLINE tide_buffer_record *tide_handle_at(const tide_buffers *buffers, uint32_t slot)
{
    tide_assert(slot < TIDE_BUFFER_MAX);
    return &buffers->records[slot];
}

/* ---- what a handle says ---- */

/* The record's number, and above it the bucket, and whether the key is another than the instance's,
 * at which no fast path looks. A release finds its cell by what the handle says, before it has read
 * the record: else the next acquire of the cell, which needs what the release wrote there, would
 * wait for two more reads, one after the other. */
enum { TIDE_HANDLE_BUCKET = 32, TIDE_HANDLE_OTHER_KEY = 256 };

_Static_assert((int)TIDE_BUCKETS <= (int)TIDE_HANDLE_OTHER_KEY, "a bucket is in front of that bit");

TIDE_INLINE uint64_t tide_handle_slot(uint32_t slot, unsigned named)
{
    tide_assert(slot < TIDE_BUFFER_MAX && named < 2 * TIDE_HANDLE_OTHER_KEY);
    return slot | (uint64_t)named << TIDE_HANDLE_BUCKET;
}

/* The bucket of a record. */
TIDE_INLINE unsigned tide_handle_bucket(const tide_buffer_record *record)
{
    return __atomic_load_n(&record->named, __ATOMIC_RELAXED) & (TIDE_HANDLE_OTHER_KEY - 1);
}

/* Does the handle name a record, good or not? */
TIDE_INLINE bool tide_handle_named(const tide_buffers *buffers, tide_buffer handle)
{
    uint32_t count = __atomic_load_n(&buffers->record_count, __ATOMIC_ACQUIRE);
    tide_assert(count <= TIDE_BUFFER_MAX);
    return (uint32_t)handle.slot < count;
}

/* The record that a handle names; NULL: it names none. */
TIDE_INLINE tide_buffer_record *tide_handle_of(const tide_buffers *buffers, tide_buffer handle)
{
    return TIDE_LIKELY(tide_handle_named(buffers, handle))
               ? &buffers->records[(uint32_t)handle.slot]
               : NULL;
}

/* Is that the bucket of the record? Of a stale handle it may be by chance. */
TIDE_INLINE bool tide_handle_fits(const tide_buffer_record *record, tide_buffer handle)
{
    return handle.slot >> TIDE_HANDLE_BUCKET == __atomic_load_n(&record->named, __ATOMIC_RELAXED);
}

TIDE_INLINE bool tide_handle_good(const tide_buffer_record *record, tide_buffer handle)
{
    return (handle.generation & 1) != 0 &&
           __atomic_load_n(&record->generation, __ATOMIC_ACQUIRE) == handle.generation &&
           tide_handle_fits(record, handle);
}

/* For assertions of who has the record for itself: then nobody else can change the answer. */
TIDE_INLINE bool tide_handle_live(const tide_buffer_record *record)
{
    return (__atomic_load_n(&record->generation, __ATOMIC_RELAXED) & 1) != 0;
}

/* The buffer becomes live; returns its generation. Nobody else can see it. */
TIDE_INLINE uint64_t tide_handle_begin(tide_buffer_record *record)
{
    uint64_t generation = __atomic_load_n(&record->generation, __ATOMIC_RELAXED) + 1;
    tide_assert((generation & 1) != 0);
    __atomic_store_n(&record->generation, generation, __ATOMIC_RELEASE);
    return generation;
}

/* The buffer is live no more. Of all who try with one handle exactly one succeeds. */
TIDE_INLINE bool tide_handle_end(tide_buffer_record *record, tide_buffer handle)
{
    uint64_t generation = handle.generation; /* the handle itself may stay in registers */
    return (generation & 1) != 0 && tide_handle_fits(record, handle) &&
           __atomic_compare_exchange_n(&record->generation, &generation, generation + 1, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Bytes of its memory. */
static inline size_t tide_handle_bytes(const tide_buffer_record *record)
{
    return tide_bucket_bytes(tide_handle_bucket(record));
}

/* Tells the hook, if there is one, with nothing locked: it may want locks of the program that others
 * have who call us. `asked`, `stream` and `hit` are of acquires and releases. */
void tide_handle_tell(const tide_buffers *buffers, tide_buffer_happening happening, uint32_t slot,
                      size_t asked, uint64_t stream, bool hit);

#endif
