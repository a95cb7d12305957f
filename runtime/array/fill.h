/* SPDX-License-Identifier: MIT */
/* Filling elements, for raw acquires and arrays alike. */
#ifndef TIDEPOOL_RUNTIME_ARRAY_FILL_H
#define TIDEPOOL_RUNTIME_ARRAY_FILL_H

#include <tidepool/pool.h>

/* n elements of an array of the pool, each a copy of *value (for TIDE_BIT a bool); value NULL: all
 * zero. On a device: queued on the pool's stream, and declared streams come after it. */
tide_status tide_fill_elements(tide_pool *pool, void *data, tide_type type, size_t n,
                               const void *value);

/* The number one of a numeric built-in type; NULL with a message for others. */
const void *tide_one_of(tide_type type, const char *call);

#endif
