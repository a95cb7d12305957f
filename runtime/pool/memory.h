/* SPDX-License-Identifier: MIT */
/* The memory of one slot, and what else a pool takes from a device. */
#ifndef TIDEPOOL_RUNTIME_POOL_MEMORY_H
#define TIDEPOOL_RUNTIME_POOL_MEMORY_H

#include "runtime/pool/core.h"

/* One request for a slot. */
typedef struct tide_slot_request {
    const tide_type_facts *facts; /* of the row's type */
    size_t n, bytes;              /* elements, and what they take */
    tide_place place;
    const char *call;
    bool guarded; /* its turn to end at an inaccessible page */
    bool shrink;  /* the slot has more memory than it is to have */
    size_t keep;  /* bytes of what the slot holds that new memory starts with */
} tide_slot_request;

/* Can the slot's own memory serve the request? */
static inline bool tide_slot_fits(const tide_slot *slot, const tide_slot_record *record,
                                  const tide_slot_request *request)
{
    return slot->data != NULL && request->n <= record->capacity;
}

/* Memory that is wanted of a device, and the slot that it is for, if it is for one. */
typedef struct tide_memory_want {
    tide_device *device;
    int memory; /* TIDE_MEMORY_… */
    size_t bytes, align;
    tide_row *row;       /* of the slot that it is for; NULL: for none */
    tide_slot *slot;     /* may be given up for it, with others; NULL: none may */
    tide_buffer *buffer; /* drawn from the pool's buffers, and named here; NULL: from the device */
} tide_memory_want;

/* Such memory, for work on the pool's stream. Where it is short, free slots of the pool are given
 * back, then what other pools and buffers do not use, and the program is asked, the pool shut; as
 * often as that helps. TIDE_ERROR_MEMORY and TIDE_ERROR_LIMIT of a device without a message. */
tide_status tide_memory_allocate(tide_pool *pool, const tide_memory_want *want, void **data);

/* New memory for a slot; the old is released once the new is there, but where memory is short
 * before that, if nothing in it is kept. A guard that cannot be had is done without: then the slot's
 * own memory serves, if it can. (It would grow each time.) An error changes nothing that is live. */
tide_status tide_slot_allocate(tide_pool *pool, tide_row *row, tide_slot *slot,
                               const tide_slot_request *request);

#endif
