/* SPDX-License-Identifier: MIT */
/* Element types: small dense integers, process-wide, built in or registered at run time. Any thread. */
#ifndef TIDEPOOL_TYPE_H
#define TIDEPOOL_TYPE_H

#include <tidepool/inline/type.h>
#include <tidepool/status.h>

TIDE_BEGIN_DECLS

/* Means all types, where a call allows that. */
#define TIDE_ALL_TYPES UINT32_MAX

/* Registers an element type, or finds the one with the same name, size (bytes, ≥ 1) and alignment
 * (bytes, a power of two ≤ 4096 that divides the size), which together identify a type: two files may
 * each have their own `struct point`. The name is copied. TIDE_NO_TYPE with a message:
 * TIDE_ERROR_ARGUMENT (name), TIDE_ERROR_SIZE, TIDE_ERROR_LIMIT (no id is left), TIDE_ERROR_MEMORY. */
TIDE_API tide_type tide_type_register(const char *name, size_t size, size_t align);

/* Name of a type ("f64", "struct point"), for good. NULL with a message for an unknown type. */
TIDE_API const char *tide_type_name(tide_type type);

/* Bytes of one element; 0 for TIDE_BIT (eight to a byte), and 0 with a message when unknown. */
TIDE_API size_t tide_type_size(tide_type type);

TIDE_END_DECLS

/* tide_type_of(T): the id of any complete C type T for which `T *` is a pointer to it: a constant for
 * a built-in type; any other is registered on first use, by name, size and alignment. A type with a
 * comma stands in parentheses: tide_acquire(pool, (std::pair<int, int>), n). */
#ifndef __cplusplus
#define tide_type_of(...) TIDE_TYPE_OF(TIDE_UNIQUE(tide_cell_), TIDE_BARE(__VA_ARGS__))
#else
#define tide_type_of(...) (::tidepool::type_of<TIDE_BARE(__VA_ARGS__)>())
#endif

#endif
