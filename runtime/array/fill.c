/* SPDX-License-Identifier: MIT */
/* Acquires that start with a value, the filling that they and N-D arrays share, and counting bits. */
#include <string.h>

#include <tidepool/acquire.h>
#include <tidepool/bits.h>
#include <tidepool/dynamic.h>

#include "runtime/array/fill.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/type.h"
#include "runtime/check/report.h"
#include "runtime/pool/streams.h"

/* Bits beyond n in the last word are 0, so that whole words can be counted. */
static tide_status fill_bits(tide_device *device, void *stream, uint64_t *words, size_t n,
                             bool value)
{
    tide_assert(n > 0);
    const uint64_t all = value ? UINT64_MAX : 0;
    const uint64_t last = value ? ((uint64_t)1 << n % 64) - 1 : 0;
    if (n >= 64)
        TIDE_FORWARD(device->methods->fill(device, stream, words, &all, 8, n / 64));
    return n % 64 == 0 ? TIDE_OK
                       : device->methods->fill(device, stream, words + n / 64, &last, 8, 1);
}

/* Queues the fill. Where the size overflows there is no such array, so nothing to fill. */
static tide_status fill_on(tide_device *device, void *stream, void *data, tide_type type, size_t n,
                           const void *value)
{
    static const uint8_t zero;
    const tide_type_facts *facts = tide_type_facts_of(type);
    size_t bytes = 0;
    tide_assert(facts != NULL && device->methods->fill != NULL);
    if (n == 0 || !tide_type_bytes(facts, n, &bytes))
        return TIDE_OK;
    tide_assert(bytes > 0);
    if (value == NULL)
        return device->methods->fill(device, stream, data, &zero, 1, bytes);
    if (type == TIDE_BIT)
        return fill_bits(device, stream, data, n, *(const bool *)value);
    tide_assert(facts->size > 0 && bytes == n * facts->size);
    return device->methods->fill(device, stream, data, value, facts->size, n);
}

tide_status tide_fill_elements(tide_pool *pool, void *data, tide_type type, size_t n,
                               const void *value)
{
    const tide_pool_core *core = pool->core;
    TIDE_FORWARD(tide_streams_own(pool, "tide_fill"));
    tide_status status = fill_on(core->device, core->streams.own, data, type, n, value);
    return tide_streams_finish(pool, status, "tide_fill");
}

static void *fill_acquired(tide_pool *pool, tide_type type, size_t n, const void *value, TIDE_PLACE)
{
    void *data = TIDE_LIKELY(type < TIDE_TYPE_LIMIT)
                     ? tide_acquire_inline(pool, type, n, TIDE_PASS_PLACE)
                     : tide_acquire_slow(pool, type, n, TIDE_PASS_PLACE);
    bool filled = data != NULL && tide_fill_elements(pool, data, type, n, value) == TIDE_OK;
    return filled ? data : NULL;
}

void *tide_fill_at(tide_pool *pool, tide_type type, size_t n, const void *value, TIDE_PLACE)
{
    if (value != NULL)
        return fill_acquired(pool, type, n, value, TIDE_PASS_PLACE);
    tide_fail(TIDE_ERROR_ARGUMENT, "tide_fill", "the value is NULL");
    return NULL;
}

void *tide_zeros_at(tide_pool *pool, tide_type type, size_t n, TIDE_PLACE)
{
    return fill_acquired(pool, type, n, NULL, TIDE_PASS_PLACE);
}

/* The number one, in each numeric type; NULL for other types. */
static const void *fill_number_one(tide_type type)
{
    static const uint64_t integer = 1; /* every little-endian integer starts with it */
    static const tide_f16 f16 = {0x3C00};
    static const tide_bf16 bf16 = {0x3F80};
    static const float f32 = 1;
    static const double f64 = 1;
    static const float c64[2] = {1, 0};
    static const double c128[2] = {1, 0};
    static const bool truth = true;
    switch (type) {
    case TIDE_F16: return &f16;
    case TIDE_BF16: return &bf16;
    case TIDE_F32: return &f32;
    case TIDE_F64: return &f64;
    case TIDE_C64: return c64;
    case TIDE_C128: return c128;
    case TIDE_BOOL:
    case TIDE_BIT: return &truth;
    default: return type != TIDE_NO_TYPE && type <= TIDE_BUILTIN_COUNT ? &integer : NULL;
    }
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "`integer` above relies on it");

const void *tide_one_of(tide_type type, const char *call)
{
    const void *value = fill_number_one(type);
    const tide_type_facts *facts = tide_type_facts_of(type);
    if (value == NULL)
        tide_fail(TIDE_ERROR_TYPE, call, "%s is no numeric built-in type",
                  facts != NULL ? facts->name : "an unknown type");
    return value;
}

void *tide_ones_at(tide_pool *pool, tide_type type, size_t n, TIDE_PLACE)
{
    const void *value = tide_one_of(type, "tide_ones");
    return value != NULL ? fill_acquired(pool, type, n, value, TIDE_PASS_PLACE) : NULL;
}

/* ---- bits ------------------------------------------------------------------------------- */

size_t tide_bits_count(const uint64_t *bits, size_t n)
{
    size_t count = 0, whole = n / 64, rest = n % 64;
    for (size_t i = 0; i < whole; i++)
        count += (size_t)__builtin_popcountll(bits[i]);
    if (rest != 0)
        count += (size_t)__builtin_popcountll(bits[whole] & (((uint64_t)1 << rest) - 1));
    return count;
}
