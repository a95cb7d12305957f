/* SPDX-License-Identifier: MIT */
/* Arrays of careful pools that stop being live: poisoned, or their memory given back. */
#include <string.h>

#include "runtime/base/shim.h"
#include "runtime/pool/row.h"
#include "runtime/pool/streams.h"

/* All ones: NaN in every floating type, -1 or the largest value in the integers. */
enum { POISON = 0xFF };

/* On the pool's stream: after all that used the array, before all that will use its memory. If the
 * device refuses, the array is not poisoned. */
static void retire_poison_device(const tide_pool *pool, void *data, size_t bytes)
{
    tide_device *device = pool->core->device;
    const unsigned char pattern = POISON;
    if (tide_streams_own(pool, "tide_rewind") == TIDE_OK)
        (void)device->methods->fill(device, pool->core->streams.own, data, &pattern, 1, bytes);
}

static void retire_slot(tide_pool *pool, tide_row *row, tide_slot *slot)
{
    tide_pool_core *core = pool->core;
    tide_slot_record *record = tide_slot_record_of(row, slot);
    size_t used = 0;
    tide_assert(record->live && slot < row->shelf->next);
    tide_type_bytes(tide_type_facts_of(row->type), record->length, &used);
    tide_assert(used <= record->bytes || record->exported != NULL);
    record->live = false;
    record->length = 0;
    if (record->exported != NULL)
        return; /* a consumer may be reading it */
    if (core->capture != NULL && core->disabled && !row->device->host)
        return; /* a graph may use it: runtime/graph/capture.c takes it */
    if (core->disabled || record->guard != NULL) {
        tide_slot_hollow(pool, row, slot);
    } else if (core->poison && row->device->host) {
        tide_assert(slot->data != NULL && used <= record->bytes);
        memset(slot->data, POISON, used);
        tide_shim_dead(slot->data, record->bytes);
    } else if (core->poison) {
        retire_poison_device(pool, slot->data, used);
    }
}

void tide_row_retire(tide_pool *pool, tide_row *row, tide_slot *first)
{
    tide_assert(pool->core->careful); /* else the records do not say what is live */
    tide_assert(first >= row->slots && first <= row->slots + row->count);
    for (tide_slot *slot = first; slot < row->shelf->next; slot++)
        if (tide_slot_record_of(row, slot)->live)
            retire_slot(pool, row, slot);
}
