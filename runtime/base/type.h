/* SPDX-License-Identifier: MIT */
/* What the runtime knows of an element type. */
#ifndef TIDEPOOL_RUNTIME_BASE_TYPE_H
#define TIDEPOOL_RUNTIME_BASE_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include <tidepool/type.h>

#include "runtime/base/assert.h"

typedef struct tide_type_facts {
    const char *name;
    size_t size;  /* bytes; 0 for TIDE_BIT */
    size_t align; /* bytes                 */
} tide_type_facts;

/* The facts of a type, or NULL (no message) when there is none of this number. No lock. */
const tide_type_facts *tide_type_facts_of(tide_type type);

/* Refuses a type that there is none of: TIDE_ERROR_TYPE. But if the call got no type because the
 * registration just before found no memory or number, it is that failure, and says so. */
tide_status tide_type_refuse(tide_type type, const char *call);

/* The type of this identity if there is one, else TIDE_NO_TYPE: registers nothing. */
tide_type tide_type_known(const tide_type_facts *facts);

/* Bytes that n elements take: whole words for bits. False when they overflow. */
static inline bool tide_type_bytes(const tide_type_facts *facts, size_t n, size_t *bytes)
{
    tide_assert(facts != NULL && bytes != NULL);
    if (facts->size == 0) { /* nothing overflows, but a negative count shall be one here, too */
        *bytes = (n / 64 + (n % 64 != 0)) * 8;
        return n <= PTRDIFF_MAX;
    }
    return !__builtin_mul_overflow(n, facts->size, bytes);
}

/* Elements that so many bytes hold. */
static inline size_t tide_type_fit(const tide_type_facts *facts, size_t bytes)
{
    if (facts->size != 0)
        return bytes / facts->size;
    return bytes > SIZE_MAX / 8 ? SIZE_MAX : bytes * 8;
}

#endif
