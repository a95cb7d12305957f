/* SPDX-License-Identifier: MIT */
/* Filling elements, for raw acquires and arrays alike. */
#ifndef TIDEPOOL_RUNTIME_FILL_H
#define TIDEPOOL_RUNTIME_FILL_H

#include <tidepool/type.h>

/* n elements, each a copy of *value (for TIDE_BIT a bool); value NULL: all zero. */
void tide_fill_elements(void *data, tide_type type, size_t n, const void *value);

/* The number one of a numeric built-in type; NULL with a message for others. */
const void *tide_one_of(tide_type type, const char *call);

#endif
