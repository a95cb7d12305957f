/* SPDX-License-Identifier: MIT */
/* The memory of one slot, and what else a pool takes from a device. */
#ifndef TIDEPOOL_RUNTIME_POOL_MEMORY_H
#define TIDEPOOL_RUNTIME_POOL_MEMORY_H

#include "runtime/pool/core.h"

/* One request for a slot. */
typedef struct tide_slot_request {
    size_t n, bytes; /* elements, and what they take */
    tide_place place;
    const char *call;
    bool guarded; /* its turn to end at an inaccessible page */
    size_t keep;  /* bytes of what the slot holds that new memory starts with */
} tide_slot_request;

/* Can the slot's own memory serve the request? */
static inline bool tide_slot_fits(const tide_slot *slot, const tide_slot_record *record,
                                  const tide_slot_request *request)
{
    return slot->data != NULL && request->n <= record->capacity;
}

/* Memory of the kind (TIDE_MEMORY_…) for work on the pool's stream, which is the device's or the
 * device is the host. Where there is none, buffers give back what they have cached, and the program
 * is asked, the pool shut; as often as that helps. TIDE_ERROR_MEMORY and TIDE_ERROR_LIMIT without a
 * message. */
tide_status tide_memory_allocate(tide_pool *pool, tide_device *device, int memory, size_t bytes,
                                 size_t align, void **data);

/* New memory for a slot; the old is released only once the new is there. A guard that cannot be had
 * is done without: then the slot's own memory serves, if it can. (It would grow each time.) An
 * error changes nothing. */
tide_status tide_slot_allocate(tide_pool *pool, tide_row *row, tide_slot *slot,
                               const tide_slot_request *request);

#endif
