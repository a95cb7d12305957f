/* SPDX-License-Identifier: MIT */
/* Guarded arrays: memory that ends at an inaccessible page and becomes inaccessible as a whole
 * when the array is rewound, so that the first stale or overflowing access stops the program,
 * with a report of where the array was acquired, where its scope was opened, and where it was
 * used. Rewound arrays stay in a bounded quarantine before their addresses are used again.
 *
 * An array's end is rounded up to its alignment (64 bytes or more); the gap holds a pattern that
 * is verified when the array is rewound. */
#ifndef TIDEPOOL_RUNTIME_CHECK_GUARD_H
#define TIDEPOOL_RUNTIME_CHECK_GUARD_H

#include <tidepool/inline/layout.h>

#include "runtime/base/type.h"

typedef struct tide_guard tide_guard;

/* Which acquires of a pool are guarded: one of so many, at random. */
typedef struct tide_guard_turns {
    uint32_t every; /* of so many one; 0: none                         */
    uint32_t in;    /* the next to be guarded, in so many; 0: not yet drawn */
    uint32_t rest;  /* acquires left of its round when that one is done     */
} tide_guard_turns;

/* Counts an acquire. Is it one to be guarded? */
bool tide_guard_turn(tide_guard_turns *turns);
static inline bool tide_guard_due(tide_guard_turns *turns)
{
    return TIDE_UNLIKELY(turns->every != 0) && tide_guard_turn(turns);
}

/* Installs the fault handler, once. */
void tide_guard_prepare(void);

/* A guarded array of `used` bytes; *data is its first byte. The name is copied. NULL when memory or
 * mappings are short. */
tide_guard *tide_guard_create(const char *pool_name, tide_type type, size_t n, size_t used,
                              size_t align, tide_place acquired, void **data);

/* Bytes mapped for an array of `used`, the guard page not counted. */
size_t tide_guard_size(size_t used, size_t align);
size_t tide_guard_bytes(const tide_guard *guard);

/* The array is no longer live: verifies its end, makes it inaccessible, puts it in quarantine. */
void tide_guard_retire(tide_guard *guard, tide_place rewound);

#endif
