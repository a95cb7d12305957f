/* SPDX-License-Identifier: MIT */
/* The cost model: from the figures of a site to the plan it should have. Pure: no site, no lock. */
#include "jit/learn/decide.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/settings.h"
#include "runtime/scope/kind.h"

#define CONSTANT(name) tide_constant_get(TIDE_CONSTANT_##name)

_Static_assert((int)TIDE_PATTERN_WORDS <= (int)TIDE_ITEMS_MAX, "the types of a frame are items");
_Static_assert((int)TIDE_PROFILE_PATTERNS <= (int)TIDE_ITEMS_MAX,
               "all patterns of a profile can be candidates");

/* ---- items ------------------------------------------------------------------------------ */

static bool decide_same_item(const tide_item *a, const tide_item *b)
{
    return a->type == b->type && a->ndim == b->ndim;
}

bool tide_items_same(const tide_items *a, const tide_items *b)
{
    if (a->count != b->count || a->generic != b->generic)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (!decide_same_item(&a->items[i], &b->items[i]))
            return false;
    return true;
}

/* How many different types there are: compiled code keeps one place for each in the scope. */
static uint32_t decide_count_distinct(const tide_items *items)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < items->count; i++) {
        uint32_t first = 0;
        while (items->items[first].type != items->items[i].type)
            first++;
        count += first == i;
    }
    tide_assert(count <= items->count);
    return count;
}

bool tide_items_fit(tide_kind kind, const tide_items *items)
{
    tide_assert(kind < TIDE_KIND_COUNT && items->count <= TIDE_ITEMS_MAX);
    switch (kind) {
    case TIDE_KIND_SCOPE: return items->count != 0 && items->count <= TIDE_SCOPE_SAVED;
    case TIDE_KIND_FRAME: return decide_count_distinct(items) <= TIDE_SCOPE_SAVED;
    default: return tide_kind_compiles(kind);
    }
}

/* A profile may come from a file: is this a type, a rank and as many extents? */
static bool decide_is_array(const tide_profile_pattern *pattern)
{
    return pattern->length >= 2 && pattern->words[1] >= 0 && pattern->words[1] <= TIDE_NDIM_MAX &&
           pattern->length == 2 + (uint32_t)pattern->words[1];
}

/* The item that a pattern of an array site stands for: code does not depend on the extents. */
static tide_item decide_item_of_array(const tide_profile_pattern *pattern)
{
    tide_assert(decide_is_array(pattern));
    return (tide_item){.type = (tide_type)pattern->words[0], .ndim = (int32_t)pattern->words[1]};
}

static tide_items decide_items_of_frame(const tide_profile_pattern *pattern)
{
    tide_assert(pattern->length <= TIDE_PATTERN_WORDS);
    tide_items items = {.count = pattern->length};
    for (uint32_t i = 0; i < pattern->length; i++)
        items.items[i].type = (tide_type)pattern->words[i];
    return items;
}

/* The pattern of a dispatch is the address of its generic function. NULL: there is not just one. */
static const struct tide_generic *decide_generic_of(tide_kind kind, const tide_site_profile *seen)
{
    if (kind != TIDE_KIND_DISPATCH || seen->pattern_count != 1 || seen->patterns[0].length != 1)
        return NULL;
    return (const struct tide_generic *)(uintptr_t)seen->patterns[0].words[0];
}

/* ---- how often -------------------------------------------------------------------------- */

static double decide_part_of_uses(uint64_t count, const tide_site_profile *seen)
{
    return seen->scopes == 0 ? 0 : (double)count / (double)seen->scopes;
}

/* The part of a scope's uses that touched the type. */
static double decide_part_touching(const tide_site_profile *seen, tide_type type)
{
    for (uint32_t i = 0; i < seen->type_count; i++)
        if (seen->types[i].type == type)
            return decide_part_of_uses(seen->types[i].scopes, seen);
    return 0;
}

static bool decide_in_items(const tide_items *items, tide_type type)
{
    for (uint32_t i = 0; i < items->count; i++)
        if (items->items[i].type == type)
            return true;
    return false;
}

/* The part of an array site's uses that had this type and rank, in any shape that has a place. */
static double decide_part_ranked(const tide_site_profile *seen, const tide_item *item)
{
    double part = 0;
    for (uint32_t i = 0; i < seen->pattern_count; i++) {
        const tide_profile_pattern *pattern = &seen->patterns[i];
        if (!decide_is_array(pattern))
            continue;
        tide_item that = decide_item_of_array(pattern);
        if (decide_same_item(&that, item))
            part += decide_part_of_uses(pattern->scopes, seen);
    }
    return part;
}

/* The part of a frame's uses that had exactly these types. */
static double decide_part_framed(const tide_site_profile *seen, const tide_items *items)
{
    for (uint32_t i = 0; i < seen->pattern_count; i++) {
        tide_items that = decide_items_of_frame(&seen->patterns[i]);
        if (tide_items_same(&that, items))
            return decide_part_of_uses(seen->patterns[i].scopes, seen);
    }
    return 0;
}

/* ---- what it costs ---------------------------------------------------------------------- */

static double decide_cost_of_scope(const tide_site_profile *seen, const tide_items *items)
{
    double cost = items->count * CONSTANT(cost_save) +
                  decide_part_of_uses(seen->other, seen) * CONSTANT(cost_touch);
    for (uint32_t i = 0; i < seen->type_count; i++)
        if (!decide_in_items(items, seen->types[i].type))
            cost += decide_part_of_uses(seen->types[i].scopes, seen) * CONSTANT(cost_touch);
    return cost;
}

/* One guard after the other; `often` says how often each holds. */
static double decide_cost_of_chain(const double *often, uint32_t count)
{
    tide_assert(count <= TIDE_ITEMS_MAX);
    double cost = 0, rest = 1;
    for (uint32_t i = 0; i < count; i++) {
        cost += often[i] * (i * CONSTANT(cost_skip) + CONSTANT(cost_static));
        rest -= often[i];
    }
    return cost + (rest > 0 ? rest : 0) * (count * CONSTANT(cost_skip) + CONSTANT(cost_dynamic));
}

double tide_cost(tide_kind kind, const tide_site_profile *seen, const tide_items *items)
{
    double often[TIDE_ITEMS_MAX];
    tide_assert(kind < TIDE_KIND_COUNT && items->count <= TIDE_ITEMS_MAX);
    if (kind == TIDE_KIND_SCOPE)
        return decide_cost_of_scope(seen, items);
    if (kind == TIDE_KIND_FRAME) {
        often[0] = decide_part_framed(seen, items);
        return decide_cost_of_chain(often, items->count != 0);
    }
    bool foreseen = items->generic == decide_generic_of(kind, seen);
    for (uint32_t i = 0; i < items->count; i++)
        often[i] = !foreseen                 ? 0
                   : kind == TIDE_KIND_ARRAY ? decide_part_ranked(seen, &items->items[i])
                                             : decide_part_touching(seen, items->items[i].type);
    return decide_cost_of_chain(often, items->count);
}

/* ---- the ideal plan --------------------------------------------------------------------- */

static int decide_by_type(const void *left, const void *right)
{
    tide_type a = ((const tide_item *)left)->type, b = ((const tide_item *)right)->type;
    return (a > b) - (a < b);
}

/* A type is worth saving if its touches would cost more. If none is, the plan of no types is still
 * better than the general one, which saves all that the pool has. */
static void decide_ideal_scope(const tide_site_profile *seen, tide_choice *out)
{
    tide_items *items = &out->items;
    tide_assert(items->count == 0 && seen->type_count <= TIDE_PROFILE_TYPES);
    for (uint32_t i = 0; i < seen->type_count; i++)
        if (decide_part_of_uses(seen->types[i].scopes, seen) * CONSTANT(cost_touch) >
            CONSTANT(cost_save))
            items->items[items->count++].type = seen->types[i].type;
    qsort(items->items, items->count, sizeof *items->items, decide_by_type);
    out->reason = items->count > TIDE_SCOPE_SAVED ? TIDE_REASON_many_types
                  : items->count != 0             ? TIDE_REASON_decided
                  : seen->type_count != 0         ? TIDE_REASON_none_recurs
                                                  : TIDE_REASON_nothing_seen;
}

/* What a chain might test for, the most frequent first; each comes once. */
typedef struct candidates {
    uint32_t count;
    tide_item items[TIDE_ITEMS_MAX];
    double often[TIDE_ITEMS_MAX];
} candidates;

static void decide_add_candidate(candidates *all, tide_item item, double often)
{
    uint32_t at = all->count++;
    tide_assert(all->count <= TIDE_ITEMS_MAX);
    for (; at > 0 && all->often[at - 1] < often; at--) {
        all->items[at] = all->items[at - 1];
        all->often[at] = all->often[at - 1];
    }
    all->items[at] = item;
    all->often[at] = often;
}

static bool decide_is_candidate(const candidates *all, const tide_item *item)
{
    for (uint32_t i = 0; i < all->count; i++)
        if (decide_same_item(&all->items[i], item))
            return true;
    return false;
}

static void decide_find_candidates(tide_kind kind, const tide_site_profile *seen, candidates *out)
{
    out->count = 0;
    tide_assert(seen->type_count <= TIDE_PROFILE_TYPES);
    tide_assert(seen->pattern_count <= TIDE_PROFILE_PATTERNS);
    for (uint32_t i = 0; kind != TIDE_KIND_ARRAY && i < seen->type_count; i++)
        decide_add_candidate(out, (tide_item){.type = seen->types[i].type},
                             decide_part_of_uses(seen->types[i].scopes, seen));
    for (uint32_t i = 0; kind == TIDE_KIND_ARRAY && i < seen->pattern_count; i++) {
        if (!decide_is_array(&seen->patterns[i]))
            continue;
        tide_item item = decide_item_of_array(&seen->patterns[i]);
        if (!decide_is_candidate(out, &item))
            decide_add_candidate(out, item, decide_part_ranked(seen, &item));
    }
}

/* As many guards as cost least, tried from one upward. */
static void decide_ideal_chain(tide_kind kind, const tide_site_profile *seen, tide_choice *out)
{
    candidates all;
    decide_find_candidates(kind, seen, &all);
    double least = CONSTANT(cost_dynamic);
    uint32_t count = all.count, best = 0, guards_max = (uint32_t)CONSTANT(guards_max);
    for (uint32_t guards = 1; guards <= count && guards <= guards_max; guards++) {
        double cost = decide_cost_of_chain(all.often, guards);
        if (cost < least) {
            least = cost;
            best = guards;
        }
    }
    double other = decide_part_of_uses(seen->other, seen);
    bool many = count > guards_max && all.often[guards_max] > CONSTANT(other_max);
    tide_assert(best <= count && best <= guards_max);
    out->items.count = best;
    out->items.generic = decide_generic_of(kind, seen);
    memcpy(out->items.items, all.items, best * sizeof *all.items);
    bool function = kind != TIDE_KIND_DISPATCH || out->items.generic != NULL;
    if (function && best != 0 && !many && other <= CONSTANT(other_max))
        return;
    out->what = TIDE_CHOICE_STAY;
    out->reason = !function                     ? TIDE_REASON_no_method
                  : many                        ? TIDE_REASON_megamorphic
                  : other > CONSTANT(other_max) ? TIDE_REASON_others
                  : count > 1                   ? TIDE_REASON_megamorphic
                                                : TIDE_REASON_general_better;
}

/* A frame's code is for one sequence of types. */
static void decide_ideal_frame(const tide_site_profile *seen, tide_choice *out)
{
    if (seen->pattern_count != 0)
        out->items = decide_items_of_frame(&seen->patterns[0]);
    if (!tide_items_fit(TIDE_KIND_FRAME, &out->items)) {
        out->what = TIDE_CHOICE_STAY;
        out->reason = TIDE_REASON_many_types;
        return;
    }
    if (out->items.count == 0 ||
        tide_cost(TIDE_KIND_FRAME, seen, &out->items) >= CONSTANT(cost_dynamic)) {
        out->what = TIDE_CHOICE_STAY;
        out->reason = TIDE_REASON_general_better;
    }
}

static void decide_ideal(tide_kind kind, const tide_site_profile *seen, tide_choice *out)
{
    *out = (tide_choice){.what = TIDE_CHOICE_NEW, .reason = TIDE_REASON_decided};
    if (kind == TIDE_KIND_SCOPE)
        decide_ideal_scope(seen, out);
    else if (kind == TIDE_KIND_FRAME)
        decide_ideal_frame(seen, out);
    else
        decide_ideal_chain(kind, seen, out);
}

/* ---- deciding --------------------------------------------------------------------------- */

/* Takes the cheapest earlier plan, if it is good enough. Of two that cost the same it takes the one
 * in force. */
static void decide_prefer_earlier(tide_kind kind, const tide_site_profile *seen,
                                  const tide_items *const *earlier, uint32_t count,
                                  uint32_t in_force, tide_choice *out)
{
    uint32_t best = in_force;
    double least = in_force != TIDE_NO_PLAN ? tide_cost(kind, seen, earlier[in_force]) : 0;
    for (uint32_t i = 0; i < count; i++) {
        double cost = tide_cost(kind, seen, earlier[i]);
        if (best == TIDE_NO_PLAN || cost < least) {
            best = i;
            least = cost;
        }
    }
    if (best == TIDE_NO_PLAN || least > tide_cost(kind, seen, &out->items) * CONSTANT(threshold))
        return;
    tide_assert(best < count);
    out->what = best == in_force ? TIDE_CHOICE_STAY : TIDE_CHOICE_OLD;
    out->reason = best == in_force ? TIDE_REASON_kept : TIDE_REASON_reused;
    out->old = best;
}

void tide_decide(tide_kind kind, const tide_site_profile *seen, const tide_items *const *earlier,
                 uint32_t earlier_count, uint32_t in_force, tide_choice *out)
{
    tide_assert(in_force == TIDE_NO_PLAN || in_force < earlier_count);
    *out = (tide_choice){.what = TIDE_CHOICE_STAY, .reason = TIDE_REASON_few_samples};
    if (seen->scopes < CONSTANT(sample_min))
        return;
    decide_ideal(kind, seen, out);
    if (out->what != TIDE_CHOICE_STAY)
        decide_prefer_earlier(kind, seen, earlier, earlier_count, in_force, out);
    else if (kind != TIDE_KIND_SCOPE && in_force != TIDE_NO_PLAN &&
             tide_cost(kind, seen, earlier[in_force]) >
                 CONSTANT(cost_dynamic) * CONSTANT(threshold))
        out->what = TIDE_CHOICE_GENERAL;
}
