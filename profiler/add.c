/* SPDX-License-Identifier: MIT */
/* Adds one profile to another, and packs what is kept. What both saw is summed; the most frequent
 * types keep a place. The result depends on the two profiles and the weight only. */
#include <stdlib.h>
#include <string.h>

#include "profiler/add.h"
#include "runtime/base/assert.h"
#include "runtime/base/os.h"

/* The sum, or the largest number if the sum does not fit. */
static uint64_t add_saturating(uint64_t left, uint64_t right)
{
    return left > UINT64_MAX - right ? UINT64_MAX : left + right;
}

/* Rounded down: a part stays no larger than its whole, and old figures fade to nothing. */
static uint64_t add_weigh(uint64_t count, double weight)
{
    if (weight == 1)
        return count;
    double weighed = (double)count * weight;
    return weighed < 0x1p63 ? (uint64_t)weighed : UINT64_C(1) << 63;
}

/* ---- types ------------------------------------------------------------------------------ */

/* The most frequent first; of equals the smaller number first. */
static int add_compare_types(const void *left, const void *right)
{
    const tide_profile_type *a = left, *b = right;
    if (a->scopes != b->scopes)
        return a->scopes > b->scopes ? -1 : 1;
    return (a->type > b->type) - (a->type < b->type);
}

/* Adds a type to the array, or its figures to those that the array has of it. */
static void add_type(tide_profile_type *all, uint32_t *count, tide_profile_type type)
{
    if (type.scopes == 0)
        return;
    for (uint32_t i = 0; i < *count; i++) {
        if (all[i].type != type.type)
            continue;
        all[i].scopes = add_saturating(all[i].scopes, type.scopes);
        all[i].slots = add_saturating(all[i].slots, type.slots);
        if (all[i].slots_max < type.slots_max)
            all[i].slots_max = type.slots_max;
        return;
    }
    tide_assert(*count < 2 * TIDE_PROFILE_TYPES);
    all[(*count)++] = type;
}

static void add_types(tide_site_profile *into, const tide_site_profile *from, double weight)
{
    tide_profile_type all[2 * TIDE_PROFILE_TYPES];
    uint32_t count = into->type_count;
    memcpy(all, into->types, count * sizeof *all);
    for (uint32_t i = 0; i < from->type_count; i++) {
        tide_profile_type type = from->types[i];
        type.scopes = add_weigh(type.scopes, weight);
        type.slots = add_weigh(type.slots, weight);
        add_type(all, &count, type);
    }
    qsort(all, count, sizeof *all, add_compare_types);
    into->type_count = count < TIDE_PROFILE_TYPES ? count : TIDE_PROFILE_TYPES;
    memcpy(into->types, all, into->type_count * sizeof *all);
    tide_assert(count == 0 || into->types[0].scopes >= all[count - 1].scopes);
    for (uint32_t i = into->type_count; i < count; i++)
        into->other = add_saturating(into->other, all[i].scopes);
}

/* ---- all of it -------------------------------------------------------------------------- */

void tide_profile_add(tide_site_profile *into, const tide_site_profile *from, double weight)
{
    tide_assert(weight >= 0 && into != from);
    tide_assert(into->type_count <= TIDE_PROFILE_TYPES && from->type_count <= TIDE_PROFILE_TYPES);
    uint64_t uses = add_weigh(from->scopes, weight);
    if (uses != 0)
        tide_profile_add_generic(into, from->generic);
    into->scopes = add_saturating(into->scopes, uses);
    into->bytes = add_saturating(into->bytes, add_weigh(from->bytes, weight));
    into->other = add_saturating(into->other, add_weigh(from->other, weight));
    add_types(into, from, weight);
}

/* ---- packed ----------------------------------------------------------------------------- */

struct tide_packed_profile {
    uint64_t scopes, bytes, other;
    const struct tide_generic *generic;
    uint32_t type_count;
    tide_profile_type types[];
};

bool tide_profile_pack(tide_packed_profile **packed, const tide_site_profile *profile)
{
    size_t types = profile->type_count * sizeof *profile->types;
    tide_packed_profile *made = tide_os_resize(NULL, sizeof *made + types);
    if (made == NULL)
        return false;
    *made = (tide_packed_profile){profile->scopes, profile->bytes, profile->other, profile->generic,
                                  profile->type_count};
    memcpy(made->types, profile->types, types);
    tide_os_free(*packed);
    *packed = made;
    return true;
}

void tide_profile_unpack(const tide_packed_profile *packed, tide_site_profile *out)
{
    memset(out, 0, sizeof *out);
    if (packed == NULL)
        return;
    out->scopes = packed->scopes;
    out->bytes = packed->bytes;
    out->other = packed->other;
    out->generic = packed->generic;
    out->type_count = packed->type_count;
    tide_assert(out->type_count <= TIDE_PROFILE_TYPES);
    memcpy(out->types, packed->types, packed->type_count * sizeof *out->types);
}

uint64_t tide_packed_scopes(const tide_packed_profile *packed)
{
    return packed != NULL ? packed->scopes : 0;
}
