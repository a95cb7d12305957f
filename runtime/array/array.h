/* SPDX-License-Identifier: MIT */
/* What the runtime knows of array headers. */
#ifndef TIDEPOOL_RUNTIME_ARRAY_ARRAY_H
#define TIDEPOOL_RUNTIME_ARRAY_ARRAY_H

#include <tidepool/array.h>

#include "runtime/base/type.h"
#include "runtime/pool/header.h"

/* An empty header of a type and rank, whose memory is on the pool's device. */
void tide_header_set_up(tide_header *header, const tide_pool *pool, tide_type type, int ndim);

/* Such a one as an array of the pool itself, for whoever asked at this place: a *loose* header. NULL
 * with a message. */
tide_header *tide_loose_acquire(tide_pool *pool, tide_type type, int ndim, const char *call,
                                TIDE_PLACE);

/* Is this array a loose one that is still live in this pool? A young one is found sooner. */
bool tide_loose_live(const tide_pool *pool, const tide_array *array);

/* The live slot that has this header, or NULL. It is found by its address alone: an array that is
 * no longer live may say anything in its header, and a trim may have freed that. */
tide_slot *tide_array_live_slot(const tide_pool *pool, const tide_array *header);

/* Gives the array in a live slot, whose header this is, another shape of the same rank. */
void tide_array_set_shape(tide_slot *slot, tide_array *header, const int64_t *shape, size_t length);

/* The elements of a shape. Refuses a bad rank, a negative extent and a product that overflows, also
 * if another extent is 0. */
tide_status tide_shape_length(int ndim, const int64_t *shape, size_t *length, const char *call);

/* Strides, in elements, of a shape without gaps that tide_shape_length accepts. */
void tide_shape_strides(int ndim, const int64_t *shape, tide_order order, int64_t *strides);

/* DLPack's name for a type. False for a type that has none there; *out is opaque bytes then, or a
 * bit. */
bool tide_dl_type_of(tide_type type, tide_dl_type *out);

#endif
