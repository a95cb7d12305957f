/* SPDX-License-Identifier: MIT */
/* The cost model: from the figures of a site to the plan it should have. Pure: no site, no lock. */
#include "jit/learn/decide.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/settings.h"

#define CONSTANT(name) tide_constant_get(TIDE_CONSTANT_##name)

/* ---- items ------------------------------------------------------------------------------ */

bool tide_items_same(const tide_items *a, const tide_items *b)
{
    tide_assert(a->count <= TIDE_ITEMS_MAX && b->count <= TIDE_ITEMS_MAX);
    return a->count == b->count && a->generic == b->generic &&
           memcmp(a->types, b->types, a->count * sizeof *a->types) == 0;
}

bool tide_items_fit(const tide_items *items)
{
    tide_assert(items->count <= TIDE_ITEMS_MAX);
    return items->generic == NULL && items->count != 0 && items->count <= TIDE_SCOPE_SAVED;
}

/* ---- how often -------------------------------------------------------------------------- */

static double decide_part_of_uses(uint64_t count, const tide_site_profile *seen)
{
    return seen->scopes == 0 ? 0 : (double)count / (double)seen->scopes;
}

/* The part of the uses that touched the type, or dispatched on it. */
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
        if (items->types[i] == type)
            return true;
    return false;
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

double tide_cost(const tide_site_profile *seen, const tide_items *items)
{
    double often[TIDE_ITEMS_MAX];
    tide_assert(items->count <= TIDE_ITEMS_MAX);
    if (items->generic == NULL)
        return decide_cost_of_scope(seen, items);
    bool foreseen = items->generic == seen->generic;
    for (uint32_t i = 0; i < items->count; i++)
        often[i] = foreseen ? decide_part_touching(seen, items->types[i]) : 0;
    return decide_cost_of_chain(often, items->count);
}

/* ---- the ideal plan --------------------------------------------------------------------- */

static int decide_by_type(const void *left, const void *right)
{
    tide_type a = *(const tide_type *)left, b = *(const tide_type *)right;
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
            items->types[items->count++] = seen->types[i].type;
    qsort(items->types, items->count, sizeof *items->types, decide_by_type);
    out->reason = items->count > TIDE_SCOPE_SAVED ? TIDE_REASON_many_types
                  : items->count != 0             ? TIDE_REASON_decided
                  : seen->type_count != 0         ? TIDE_REASON_none_recurs
                                                  : TIDE_REASON_nothing_seen;
}

/* As many guards as cost least, tried from one upward. A chain tests for types in the order of the
 * profile: the most frequent first. */
static void decide_ideal_dispatch(const tide_site_profile *seen, tide_choice *out)
{
    double often[TIDE_ITEMS_MAX], least = CONSTANT(cost_dynamic);
    uint32_t count = seen->type_count, best = 0, guards_max = (uint32_t)CONSTANT(guards_max);
    tide_assert(count <= TIDE_ITEMS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        out->items.types[i] = seen->types[i].type;
        often[i] = decide_part_of_uses(seen->types[i].scopes, seen);
    }
    for (uint32_t guards = 1; guards <= count && guards <= guards_max; guards++) {
        double cost = decide_cost_of_chain(often, guards);
        if (cost < least) {
            least = cost;
            best = guards;
        }
    }
    bool others = decide_part_of_uses(seen->other, seen) > CONSTANT(other_max);
    bool many = count > guards_max && often[guards_max] > CONSTANT(other_max);
    tide_assert(best <= count && best <= guards_max);
    out->items.count = best;
    out->items.generic = seen->generic;
    if (out->items.generic != NULL && best != 0 && !many && !others)
        return;
    out->what = TIDE_CHOICE_STAY;
    out->reason = out->items.generic == NULL ? TIDE_REASON_several_functions
                  : many                     ? TIDE_REASON_megamorphic
                  : others                   ? TIDE_REASON_others
                  : count > 1                ? TIDE_REASON_megamorphic
                                             : TIDE_REASON_general_better;
}

static void decide_ideal(tide_kind kind, const tide_site_profile *seen, tide_choice *out)
{
    *out = (tide_choice){.what = TIDE_CHOICE_NEW, .reason = TIDE_REASON_decided};
    if (kind == TIDE_KIND_SCOPE)
        decide_ideal_scope(seen, out);
    else
        decide_ideal_dispatch(seen, out);
}

/* ---- deciding --------------------------------------------------------------------------- */

/* Takes the cheapest earlier plan, if it is good enough. Of two that cost the same it takes the one
 * in force. */
static void decide_prefer_earlier(const tide_site_profile *seen, const tide_items *const *earlier,
                                  uint32_t count, uint32_t in_force, tide_choice *out)
{
    uint32_t best = in_force;
    double least = in_force != TIDE_NO_PLAN ? tide_cost(seen, earlier[in_force]) : 0;
    for (uint32_t i = 0; i < count; i++) {
        double cost = tide_cost(seen, earlier[i]);
        if (best == TIDE_NO_PLAN || cost < least) {
            best = i;
            least = cost;
        }
    }
    if (best == TIDE_NO_PLAN || least > tide_cost(seen, &out->items) * CONSTANT(threshold))
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
        decide_prefer_earlier(seen, earlier, earlier_count, in_force, out);
    else if (kind != TIDE_KIND_SCOPE && in_force != TIDE_NO_PLAN &&
             tide_cost(seen, earlier[in_force]) > CONSTANT(cost_dynamic) * CONSTANT(threshold))
        out->what = TIDE_CHOICE_GENERAL;
}
