/* SPDX-License-Identifier: MIT */
/* The table of addresses. */
#include "runtime/buffers/store/address.h"

#include "runtime/base/os.h"

enum {
    SLOT_BITS = 21, /* of an entry; the rest of it are bits of the hash */
    EMPTY = 0,
    GONE = 1,
    FIRST = 2, /* the entry of slot 0, without bits of the hash */
    BITS_MIN = 10,
    BITS_MAX = 22 /* four places for each record there can be */
};

#define SLOT_MASK ((UINT32_C(1) << SLOT_BITS) - 1)

_Static_assert(TIDE_BUFFER_MAX + FIRST <= SLOT_MASK, "an entry has room for every slot");
_Static_assert(TIDE_BUFFER_MAX <= 1 << (BITS_MAX - 2), "the largest table is never half full");

typedef struct tide_address_table address_table;

static inline uint64_t address_hash(const void *data)
{
    return (uintptr_t)data * UINT64_C(0x9E3779B97F4A7C15);
}

static inline uint32_t address_entry(uint64_t hash, uint32_t slot)
{
    return (slot + FIRST) | (uint32_t)(hash >> 20) << SLOT_BITS;
}

static inline uint32_t address_load(const address_table *table, uint32_t at)
{
    return __atomic_load_n(&table->entries[at], __ATOMIC_ACQUIRE);
}

static inline void address_store(address_table *table, uint32_t at, uint32_t entry)
{
    __atomic_store_n(&table->entries[at], entry, __ATOMIC_RELEASE);
}

/* ---- tables --------------------------------------------------------------------------------- */

static size_t address_table_bytes(uint32_t count)
{
    return sizeof(address_table) + count * sizeof(uint32_t);
}

static address_table *address_make_table(unsigned bits)
{
    uint32_t count = UINT32_C(1) << bits;
    address_table *table = tide_os_reserve(address_table_bytes(count));
    if (table == NULL)
        return NULL;
    table->shift = 64 - bits;
    table->count = count;
    return table;
}

static void address_put(address_table *table, const void *data, uint32_t slot)
{
    uint64_t hash = address_hash(data);
    uint32_t at = (uint32_t)(hash >> table->shift);
    tide_assert(table->used < table->count);
    while (address_load(table, at) > GONE)
        at = (at + 1) & (table->count - 1);
    table->used += address_load(table, at) == EMPTY;
    address_store(table, at, address_entry(hash, slot));
}

/* All that the old table has, without what is gone, into a larger one, if there is memory. */
static void address_grow(tide_buffers *buffers)
{
    address_table *old = buffers->addresses;
    address_table *table = address_make_table(old == NULL ? BITS_MIN : 64 - old->shift + 1);
    if (table == NULL)
        return;
    for (uint32_t i = 0; old != NULL && i < old->count; i++) {
        uint32_t entry = address_load(old, i);
        if (entry > GONE) {
            uint32_t slot = (entry & SLOT_MASK) - FIRST;
            address_put(table, tide_handle_at(buffers, slot)->data, slot);
        }
    }
    table->older = old;
    __atomic_store_n(&buffers->addresses, table, __ATOMIC_RELEASE);
}

/* ---- added and removed ---------------------------------------------------------------------- */

/* A table that is rather full is slow, but good. */
bool tide_address_add(tide_buffers *buffers, uint32_t slot)
{
    const address_table *table = buffers->addresses;
    if (table == NULL || (table->used >= table->count / 2 && table->shift != 64 - BITS_MAX))
        address_grow(buffers);
    table = buffers->addresses;
    if (table == NULL || table->used >= table->count / 8 * 7)
        return false;
    address_put(buffers->addresses, tide_handle_at(buffers, slot)->data, slot);
    return true;
}

/* Places at the end of a run that hold nothing any more are empty again. */
static void address_clear_end(address_table *table, uint32_t at)
{
    uint32_t mask = table->count - 1;
    if (address_load(table, (at + 1) & mask) != EMPTY)
        return;
    for (; address_load(table, at) == GONE; at = (at - 1) & mask) {
        address_store(table, at, EMPTY);
        table->used--;
    }
}

void tide_address_remove(tide_buffers *buffers, uint32_t slot)
{
    address_table *table = buffers->addresses;
    uint64_t hash = address_hash(tide_handle_at(buffers, slot)->data);
    uint32_t entry = address_entry(hash, slot), at = (uint32_t)(hash >> table->shift);
    while (address_load(table, at) != entry) {
        tide_assert(address_load(table, at) != EMPTY);
        at = (at + 1) & (table->count - 1);
    }
    address_store(table, at, GONE);
    address_clear_end(table, at);
}

void tide_address_end(tide_buffers *buffers)
{
    address_table *table = buffers->addresses;
    while (table != NULL) {
        address_table *older = table->older;
        tide_os_unreserve(table, address_table_bytes(table->count));
        table = older;
    }
}

/* ---- asked ---------------------------------------------------------------------------------- */

/* The handle, if the record stands for that memory and is live. The generation is read first: if
 * the record serves other memory by now, the handle is stale or the address is another. */
static inline tide_buffer address_handle_of(const tide_buffers *buffers, uint32_t slot,
                                            const void *data)
{
    const tide_buffer_record *record = tide_handle_at(buffers, slot);
    uint64_t generation = __atomic_load_n(&record->generation, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&record->data, __ATOMIC_RELAXED) != data || (generation & 1) == 0)
        return (tide_buffer){0};
    unsigned named = __atomic_load_n(&record->named, __ATOMIC_RELAXED);
    return (tide_buffer){tide_handle_slot(slot, named), generation};
}

tide_buffer tide_buffer_of(const tide_buffers *buffers, const void *pointer)
{
    if (TIDE_UNLIKELY(buffers == NULL || pointer == NULL))
        return (tide_buffer){0};
    const address_table *table = __atomic_load_n(&buffers->addresses, __ATOMIC_ACQUIRE);
    if (TIDE_UNLIKELY(table == NULL))
        return (tide_buffer){0};
    uint64_t hash = address_hash(pointer);
    uint32_t bits = address_entry(hash, 0) & ~SLOT_MASK, at = (uint32_t)(hash >> table->shift);
    for (uint32_t tries = 0; tries < table->count; tries++) {
        uint32_t entry = address_load(table, at);
        if (entry == EMPTY)
            break;
        if (entry > GONE && (entry & ~SLOT_MASK) == bits) {
            tide_buffer found = address_handle_of(buffers, (entry & SLOT_MASK) - FIRST, pointer);
            if (TIDE_LIKELY(found.generation != 0))
                return found;
        }
        at = (at + 1) & (table->count - 1);
    }
    return (tide_buffer){0};
}
