/* SPDX-License-Identifier: MIT */
/* N-D headers as a pool sees them: memory of the host that belongs to a slot and goes with it, and
 * one type whose arrays are headers themselves. How they are found and filled: runtime/array. */
#ifndef TIDEPOOL_RUNTIME_POOL_HEADER_H
#define TIDEPOOL_RUNTIME_POOL_HEADER_H

#include <tidepool/array.h>
#include <tidepool/inline/array.h>

#include "runtime/base/assert.h"
#include "runtime/pool/core.h"

/* A header with its shape and strides. */
typedef struct tide_header {
    tide_array array; /* first */
    int64_t shape[TIDE_NDIM_MAX], strides[TIDE_NDIM_MAX];
} tide_header;

/* The headers of one slot, by rank; NULL: none yet. Each keeps its address for as long as the slot
 * exists. */
struct tide_array_cache {
    tide_header *headers[TIDE_NDIM_MAX + 1];
};

/* Sets how many elements the slot admits from now on, and whether fast paths find its last header
 * ready: it is if its array fits. Nobody else sets either. */
static inline void tide_slot_admit(tide_slot *slot, size_t limit)
{
    const tide_array *last = slot->array;
    tide_assert(limit == 0 || slot->data != NULL);
    slot->limit = limit;
    slot->form = last != NULL && last->length < limit ? last->form : 0;
}

/* Frees the headers that a slot keeps. */
void tide_header_forget(tide_slot *slot);

/* The type of headers that are acquired like arrays, so rewound like them. */
tide_type tide_header_type(void);

/* Is it this type? Its slots are always in the host's memory. False while it was never used. */
bool tide_header_is(tide_type type);

/* The row of such headers, or one that was never set up. */
const tide_row *tide_header_row(const tide_pool *pool);

#endif
