/* SPDX-License-Identifier: MIT */
/* Records of buffers: taken for new buffers, given back when their memory is gone, told to
 * hooks. */
#include "runtime/buffers/store/handle.h"

#include "runtime/base/os.h"

/* Even, and different for each record of each instance. */
static uint64_t handle_first_generation(const tide_buffers *buffers, uint32_t slot)
{
    tide_assert(buffers->number != 0);
    uint64_t x = buffers->number * 0x9E3779B97F4A7C15u + slot + (uintptr_t)buffers;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return (x ^ x >> 31) >> 1 & ~(uint64_t)1;
}

uint32_t tide_handle_take(tide_buffers *buffers)
{
    uint32_t slot = buffers->record_free;
    if (slot != TIDE_NO_RECORD) {
        tide_assert(slot < buffers->record_count);
        tide_assert(!tide_handle_live(tide_handle_at(buffers, slot)));
        buffers->record_free = tide_handle_at(buffers, slot)->next;
        return slot;
    }
    slot = buffers->record_count;
    if (slot == TIDE_BUFFER_MAX)
        return TIDE_NO_RECORD;
    tide_assert(tide_handle_at(buffers, slot)->generation == 0); /* never used */
    tide_handle_at(buffers, slot)->generation = handle_first_generation(buffers, slot);
    __atomic_store_n(&buffers->record_count, slot + 1, __ATOMIC_RELEASE);
    return slot;
}

void tide_handle_give(tide_buffers *buffers, uint32_t slot)
{
    tide_buffer_record *record = tide_handle_at(buffers, slot);
    tide_assert(slot < buffers->record_count && slot != buffers->record_free);
    tide_assert(!tide_handle_live(record) && record->mark == NULL); /* losers look at it, too */
    __atomic_store_n(&record->data, NULL, __ATOMIC_RELAXED);
    record->next = buffers->record_free;
    buffers->record_free = slot;
}

void tide_handle_tell(const tide_buffers *buffers, tide_buffer_happening happening, uint32_t slot,
                      size_t asked, uint64_t stream, bool hit)
{
    const tide_buffer_record *record = tide_handle_at(buffers, slot);
    if (TIDE_LIKELY(buffers->hook == NULL))
        return;
    tide_buffer_event event = {.happening = happening,
                               .buffers = (tide_buffers *)(uintptr_t)buffers,
                               .slot = tide_handle_slot(slot, record->named),
                               .asked = asked,
                               .bytes = tide_handle_bytes(record),
                               .flags = tide_buffer_flags(record->key),
                               .stream = stream,
                               .hit = hit};
    tide_lock_assert_none();
    buffers->hook(&event, buffers->user);
}
