/* SPDX-License-Identifier: MIT */
/* The headers that a slot keeps, freed; and the type of headers that are arrays of
 * a pool themselves. */
#include "runtime/pool/header.h"

#include "runtime/base/assert.h"
#include "runtime/base/os.h"

_Static_assert(offsetof(tide_header, array) == 0, "a loose header begins its slot's memory");
_Static_assert(TIDE_NO_TYPE == 0, "a cell that was never set leads to a row that is never set up");

void tide_header_forget(tide_slot *slot)
{
    if (slot->array == NULL)
        return;
    struct tide_array_cache *cache = slot->array->cache;
    tide_assert(cache != NULL);
    for (int rank = 0; rank <= TIDE_NDIM_MAX; rank++)
        tide_os_free(cache->headers[rank]);
    tide_os_free(cache);
    slot->array = NULL;
    slot->form = 0;
}

static tide_type header_cell; /* 0 while no such header was ever made */

tide_type tide_header_type(void)
{
    return tide_type_cached(&header_cell, "tide_array header", sizeof(tide_header),
                            _Alignof(tide_header));
}

bool tide_header_is(tide_type type)
{
    tide_assert(type != TIDE_NO_TYPE);
    return type == __atomic_load_n(&header_cell, __ATOMIC_RELAXED);
}

const tide_row *tide_header_row(const tide_pool *pool)
{
    return &pool->core->rows.by_type[__atomic_load_n(&header_cell, __ATOMIC_RELAXED)];
}
