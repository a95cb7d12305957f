/* SPDX-License-Identifier: MIT */
/* What the runtime knows of array headers. */
#ifndef TIDEPOOL_RUNTIME_ARRAY_ARRAY_H
#define TIDEPOOL_RUNTIME_ARRAY_ARRAY_H

#include <tidepool/array.h>

#include "runtime/pool/header.h"
#include "runtime/base/type.h"

/* An empty loose array of a type and rank, on this pool, for whoever asked at this place. NULL
 * with a message. */
tide_loose_array *tide_loose_acquire(tide_pool *pool, tide_type type, int ndim, const char *call,
                                     TIDE_PLACE);

/* Is this array, a loose one, still live in this pool? The younger, the sooner it is found. */
bool tide_loose_live(const tide_pool *pool, const tide_array *array);

/* Elements of a shape, refusing a bad rank, a negative extent, an overflow. */
tide_status tide_shape_length(int ndim, const int64_t *shape, size_t *length, const char *call);

/* Strides, in elements, of a shape without gaps. */
void tide_shape_strides(int ndim, const int64_t *shape, tide_order order, int64_t *strides);

/* DLPack's name for a type. False for those it has none for. */
bool tide_dl_type_of(tide_type type, tide_dl_type *out);
tide_dl_device tide_dl_device_of(const tide_device *device);

#endif
