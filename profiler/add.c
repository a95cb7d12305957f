/* SPDX-License-Identifier: MIT */
/* Adds one profile to another, and packs what is kept. What both saw is summed; the most frequent
 * types and patterns keep a place. The result depends on the two profiles and the weight only. */
#include <stdlib.h>
#include <string.h>

#include "profiler/window.h"
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

/* ---- patterns --------------------------------------------------------------------------- */

static int add_compare_words(const tide_profile_pattern *a, const tide_profile_pattern *b)
{
    if (a->length != b->length)
        return a->length < b->length ? -1 : 1;
    for (uint32_t i = 0; i < a->length; i++)
        if (a->words[i] != b->words[i])
            return a->words[i] < b->words[i] ? -1 : 1;
    return 0;
}

static int add_compare_patterns(const void *left, const void *right)
{
    const tide_profile_pattern *a = left, *b = right;
    if (a->scopes != b->scopes)
        return a->scopes > b->scopes ? -1 : 1;
    return add_compare_words(a, b);
}

static void add_pattern(tide_profile_pattern *all, uint32_t *count, tide_profile_pattern pattern)
{
    tide_assert(pattern.length <= TIDE_PATTERN_WORDS);
    if (pattern.scopes == 0)
        return;
    for (uint32_t i = 0; i < *count; i++) {
        if (add_compare_words(&all[i], &pattern) != 0)
            continue;
        all[i].scopes = add_saturating(all[i].scopes, pattern.scopes);
        return;
    }
    tide_assert(*count < 2 * TIDE_PROFILE_PATTERNS);
    all[(*count)++] = pattern;
}

static void add_patterns(tide_site_profile *into, const tide_site_profile *from, double weight)
{
    tide_profile_pattern all[2 * TIDE_PROFILE_PATTERNS];
    uint32_t count = into->pattern_count;
    memcpy(all, into->patterns, count * sizeof *all);
    for (uint32_t i = 0; i < from->pattern_count; i++) {
        tide_profile_pattern pattern = from->patterns[i];
        pattern.scopes = add_weigh(pattern.scopes, weight);
        add_pattern(all, &count, pattern);
    }
    qsort(all, count, sizeof *all, add_compare_patterns);
    into->pattern_count = count < TIDE_PROFILE_PATTERNS ? count : TIDE_PROFILE_PATTERNS;
    memcpy(into->patterns, all, into->pattern_count * sizeof *all);
    for (uint32_t i = into->pattern_count; i < count; i++)
        into->pattern_other = add_saturating(into->pattern_other, all[i].scopes);
}

/* ---- all of it -------------------------------------------------------------------------- */

void tide_profile_add(tide_site_profile *into, const tide_site_profile *from, double weight)
{
    tide_assert(weight >= 0 && into != from);
    tide_assert(into->type_count <= TIDE_PROFILE_TYPES && from->type_count <= TIDE_PROFILE_TYPES);
    tide_assert(into->pattern_count <= TIDE_PROFILE_PATTERNS);
    tide_assert(from->pattern_count <= TIDE_PROFILE_PATTERNS);
    into->scopes = add_saturating(into->scopes, add_weigh(from->scopes, weight));
    into->bytes = add_saturating(into->bytes, add_weigh(from->bytes, weight));
    into->other = add_saturating(into->other, add_weigh(from->other, weight));
    into->pattern_other =
        add_saturating(into->pattern_other, add_weigh(from->pattern_other, weight));
    add_types(into, from, weight);
    add_patterns(into, from, weight);
}

/* ---- packed ----------------------------------------------------------------------------- */

/* Behind it stand the types, and then the patterns: of each its words only. */
struct tide_packed_profile {
    uint64_t scopes, bytes, other, pattern_other;
    uint32_t type_count, pattern_count;
    tide_profile_type types[];
};

typedef struct packed_pattern {
    uint64_t scopes;
    uint64_t length;
    int64_t words[];
} packed_pattern;

static size_t packed_pattern_bytes(const tide_profile_pattern *pattern)
{
    return sizeof(packed_pattern) + pattern->length * sizeof *pattern->words;
}

static size_t packed_bytes(const tide_site_profile *profile)
{
    size_t bytes = sizeof(tide_packed_profile) + profile->type_count * sizeof *profile->types;
    for (uint32_t i = 0; i < profile->pattern_count; i++)
        bytes += packed_pattern_bytes(&profile->patterns[i]);
    return bytes;
}

static void pack_figures(tide_packed_profile *to, const tide_site_profile *from)
{
    *to = (tide_packed_profile){from->scopes,        from->bytes,      from->other,
                                from->pattern_other, from->type_count, from->pattern_count};
    memcpy(to->types, from->types, from->type_count * sizeof *from->types);
    char *at = (char *)&to->types[from->type_count];
    for (uint32_t i = 0; i < from->pattern_count; i++) {
        const tide_profile_pattern *pattern = &from->patterns[i];
        packed_pattern *packed = (packed_pattern *)(void *)at;
        packed->scopes = pattern->scopes;
        packed->length = pattern->length;
        memcpy(packed->words, pattern->words, pattern->length * sizeof *pattern->words);
        at += packed_pattern_bytes(pattern);
    }
    tide_assert((size_t)(at - (char *)to) == packed_bytes(from));
}

bool tide_profile_pack(tide_packed_profile **packed, const tide_site_profile *profile)
{
    tide_packed_profile *made = tide_os_resize(NULL, packed_bytes(profile));
    if (made == NULL)
        return false;
    pack_figures(made, profile);
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
    out->pattern_other = packed->pattern_other;
    out->type_count = packed->type_count;
    out->pattern_count = packed->pattern_count;
    memcpy(out->types, packed->types, packed->type_count * sizeof *out->types);
    const char *at = (const char *)&packed->types[packed->type_count];
    for (uint32_t i = 0; i < out->pattern_count; i++) {
        const packed_pattern *from = (const packed_pattern *)(const void *)at;
        tide_profile_pattern *to = &out->patterns[i];
        to->scopes = from->scopes;
        to->length = (uint32_t)from->length;
        tide_assert(to->length <= TIDE_PATTERN_WORDS);
        memcpy(to->words, from->words, to->length * sizeof *to->words);
        at += packed_pattern_bytes(to);
    }
}

uint64_t tide_packed_scopes(const tide_packed_profile *packed)
{
    return packed != NULL ? packed->scopes : 0;
}
