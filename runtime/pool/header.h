/* SPDX-License-Identifier: MIT */
/* N-D headers as a pool sees them: memory of the host that belongs to a slot and goes with it, and
 * one type whose arrays are headers themselves. How they are found and filled: runtime/array. */
#ifndef TIDEPOOL_RUNTIME_POOL_HEADER_H
#define TIDEPOOL_RUNTIME_POOL_HEADER_H

#include <tidepool/array.h>
#include <tidepool/inline/array.h>

#include "runtime/base/assert.h"
#include "runtime/pool/core.h"

/* One remembered shape of a slot. */
typedef struct tide_shape_way {
    int ndim; /* -1: empty */
    tide_order order;
    size_t length;
    int64_t shape[TIDE_NDIM_MAX], strides[TIDE_NDIM_MAX];
} tide_shape_way;

/* The headers of one slot. Each keeps its address for as long as the slot exists. */
struct tide_array_cache {
    tide_array *headers[TIDE_NDIM_MAX + 1]; /* by rank */
    uint32_t way_count, turn;               /* the way to be given up next */
    tide_shape_way ways[];
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
void tide_header_forget(tide_pool *pool, tide_slot *slot);

/* The type of headers that are acquired like arrays, so rewound like them. */
tide_type tide_header_type(void);

/* Is it this type? Its slots are always in the host's memory. False while it was never used. */
bool tide_header_is(tide_type type);

/* The row of such headers, or one that was never set up. */
const tide_row *tide_header_row(const tide_pool *pool);

/* A header whose shape and strides are its own: of a view, a reshape, an import. */
typedef struct tide_loose_array {
    tide_array array;
    int64_t shape[TIDE_NDIM_MAX], strides[TIDE_NDIM_MAX];
} tide_loose_array;

#endif
