/* SPDX-License-Identifier: MIT */
#include "jit/learn/decide.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/settings.h"

tide_thresholds tide_thresholds_now(void)
{
    return (tide_thresholds){
        .save = tide_setting_get(TIDE_SETTING_cost_save),
        .touch = tide_setting_get(TIDE_SETTING_cost_touch),
        .skip = tide_setting_get(TIDE_SETTING_cost_skip),
        .hit = tide_setting_get(TIDE_SETTING_cost_static),
        .dynamic = tide_setting_get(TIDE_SETTING_cost_dynamic),
        .threshold = tide_setting_get(TIDE_SETTING_threshold),
        .other_max = tide_setting_get(TIDE_SETTING_other_max),
        .sample_min = (uint64_t)tide_setting_get(TIDE_SETTING_sample_min),
        .guards_max = (uint32_t)tide_setting_get(TIDE_SETTING_guards_max),
        .types_max = (uint32_t)tide_setting_get(TIDE_SETTING_types_max),
    };
}

/* ---- items ------------------------------------------------------------------------------ */

static bool same_item(tide_kind kind, const tide_item *a, const tide_item *b)
{
    return a->type == b->type &&
           (kind != TIDE_KIND_ARRAY ||
            (a->ndim == b->ndim &&
             memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0));
}

bool tide_items_same(tide_kind kind, const tide_items *a, const tide_items *b)
{
    if (a->count != b->count || a->nested != b->nested)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (!same_item(kind, &a->items[i], &b->items[i]))
            return false;
    return true;
}

/* The item that a pattern of an array site stands for: type, rank, extents. */
static tide_item item_of_array(const tide_profile_pattern *pattern)
{
    tide_item item = {.type = (tide_type)pattern->words[0], .ndim = (int32_t)pattern->words[1]};
    for (int32_t d = 0; d < item.ndim; d++)
        item.shape[d] = pattern->words[2 + d];
    return item;
}

static bool sane_array(const tide_profile_pattern *pattern)
{
    return pattern->length >= 2 && pattern->words[1] >= 0 &&
           pattern->words[1] <= TIDE_NDIM_MAX &&
           pattern->length == 2 + (uint32_t)pattern->words[1];
}

static tide_items items_of_frame(const tide_profile_pattern *pattern)
{
    tide_items items = {.count = pattern->length};
    for (uint32_t i = 0; i < pattern->length; i++)
        items.items[i].type = (tide_type)pattern->words[i];
    return items;
}

/* ---- how often -------------------------------------------------------------------------- */

static double part(uint64_t count, const tide_site_profile *seen)
{
    return seen->scopes == 0 ? 0 : (double)count / (double)seen->scopes;
}

/* Of a scope's uses: those that touched the type. */
static double touched(const tide_site_profile *seen, tide_type type)
{
    for (uint32_t i = 0; i < seen->type_count; i++)
        if (seen->types[i].type == type)
            return part(seen->types[i].scopes, seen);
    return 0;
}

static bool in_items(const tide_items *items, tide_type type)
{
    for (uint32_t i = 0; i < items->count; i++)
        if (items->items[i].type == type)
            return true;
    return false;
}

/* Of an array site's uses: those of exactly this shape. */
static double shaped(const tide_site_profile *seen, const tide_item *item)
{
    for (uint32_t i = 0; i < seen->pattern_count; i++) {
        const tide_profile_pattern *pattern = &seen->patterns[i];
        if (!sane_array(pattern))
            continue;
        tide_item that = item_of_array(pattern);
        if (same_item(TIDE_KIND_ARRAY, &that, item))
            return part(pattern->scopes, seen);
    }
    return 0;
}

static double framed(const tide_site_profile *seen, const tide_items *items)
{
    for (uint32_t i = 0; i < seen->pattern_count; i++) {
        tide_items that = items_of_frame(&seen->patterns[i]);
        if (tide_items_same(TIDE_KIND_FRAME, &that, items))
            return part(seen->patterns[i].scopes, seen);
    }
    return 0;
}

/* ---- what it costs ---------------------------------------------------------------------- */

static double cost_of_scope(const tide_site_profile *seen, const tide_items *items,
                            const tide_thresholds *at)
{
    double cost = items->count * at->save + part(seen->other, seen) * at->touch;
    if (items->count != 0 && !items->nested)
        cost += part(seen->nested, seen) * at->save; /* by the log, with loops */
    for (uint32_t i = 0; i < seen->type_count; i++)
        if (!in_items(items, seen->types[i].type))
            cost += part(seen->types[i].scopes, seen) * at->touch;
    return cost;
}

/* One guard after the other; `often` says how often each holds. */
static double cost_of_chain(const double *often, uint32_t count, const tide_thresholds *at)
{
    double cost = 0, rest = 1;
    for (uint32_t i = 0; i < count; i++) {
        cost += often[i] * (i * at->skip + at->hit);
        rest -= often[i];
    }
    return cost + (rest > 0 ? rest : 0) * (count * at->skip + at->dynamic);
}

double tide_cost(tide_kind kind, const tide_site_profile *seen, const tide_items *items,
                 const tide_thresholds *at)
{
    double often[TIDE_ITEMS_MAX];
    if (kind == TIDE_KIND_SCOPE)
        return cost_of_scope(seen, items, at);
    if (kind == TIDE_KIND_FRAME) {
        often[0] = framed(seen, items);
        return cost_of_chain(often, items->count != 0, at);
    }
    for (uint32_t i = 0; i < items->count; i++)
        often[i] = kind == TIDE_KIND_ARRAY ? shaped(seen, &items->items[i])
                                           : touched(seen, items->items[i].type);
    return cost_of_chain(often, items->count, at);
}

/* ---- the ideal plan --------------------------------------------------------------------- */

static int by_type(const void *left, const void *right)
{
    tide_type a = ((const tide_item *)left)->type, b = ((const tide_item *)right)->type;
    return (a > b) - (a < b);
}

/* If more than this part of a scope's uses open inside a level that has not saved its types, a
 * second form of its code is worth compiling. */
#define NESTED_OFTEN 0.1

/* A type is worth saving if its touches would cost more. */
static void ideal_scope(const tide_site_profile *seen, const tide_thresholds *at, tide_choice *out)
{
    tide_items *items = &out->items;
    for (uint32_t i = 0; i < seen->type_count; i++)
        if (part(seen->types[i].scopes, seen) * at->touch > at->save)
            items->items[items->count++].type = seen->types[i].type;
    qsort(items->items, items->count, sizeof *items->items, by_type);
    items->nested = items->count <= TIDE_SCOPE_SAVED && part(seen->nested, seen) > NESTED_OFTEN;
    out->compile = items->count <= at->types_max;
    out->reason = out->compile ? TIDE_REASON_decided : TIDE_REASON_many_types;
    if (items->count == 0) {
        out->what = TIDE_CHOICE_STAY;
        out->reason = TIDE_REASON_nothing_seen;
    }
}

/* What a chain might test for, the most frequent first, as the profile has them. */
static uint32_t candidates(tide_kind kind, const tide_site_profile *seen, tide_item *out,
                           double *often)
{
    uint32_t count = 0;
    if (kind != TIDE_KIND_ARRAY) {
        for (; count < seen->type_count; count++) {
            out[count] = (tide_item){.type = seen->types[count].type};
            often[count] = part(seen->types[count].scopes, seen);
        }
        return count;
    }
    for (uint32_t i = 0; i < seen->pattern_count; i++)
        if (sane_array(&seen->patterns[i])) {
            out[count] = item_of_array(&seen->patterns[i]);
            often[count++] = part(seen->patterns[i].scopes, seen);
        }
    return count;
}

/* As many guards as pay for themselves, tried from none upward. */
static void ideal_chain(tide_kind kind, const tide_site_profile *seen, const tide_thresholds *at,
                        tide_choice *out)
{
    tide_item items[TIDE_ITEMS_MAX];
    double often[TIDE_ITEMS_MAX], least = at->dynamic;
    uint32_t count = candidates(kind, seen, items, often), best = 0;
    for (uint32_t guards = 1; guards <= count && guards <= at->guards_max; guards++) {
        double cost = cost_of_chain(often, guards, at);
        if (cost < least) {
            least = cost;
            best = guards;
        }
    }
    uint64_t other = kind == TIDE_KIND_ARRAY ? seen->pattern_other : seen->other;
    bool many = count > at->guards_max && often[at->guards_max] > at->other_max;
    out->items.count = best;
    memcpy(out->items.items, items, best * sizeof *items);
    if (best != 0 && !many && part(other, seen) <= at->other_max)
        return;
    out->what = TIDE_CHOICE_STAY;
    out->reason = many                                  ? TIDE_REASON_megamorphic
                  : part(other, seen) > at->other_max ? TIDE_REASON_others
                                                        : TIDE_REASON_general_better;
}

/* Types that differ: as many as these a compiled frame keeps in its scope. */
static uint32_t distinct(const tide_items *items)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < items->count; i++) {
        uint32_t first = 0;
        while (items->items[first].type != items->items[i].type)
            first++;
        count += first == i;
    }
    return count;
}

/* A frame's code is for one sequence of types. */
static void ideal_frame(const tide_site_profile *seen, const tide_thresholds *at, tide_choice *out)
{
    if (seen->pattern_count != 0)
        out->items = items_of_frame(&seen->patterns[0]);
    if (distinct(&out->items) > TIDE_SCOPE_SAVED) {
        out->what = TIDE_CHOICE_STAY;
        out->reason = TIDE_REASON_many_types;
        return;
    }
    if (out->items.count == 0 || tide_cost(TIDE_KIND_FRAME, seen, &out->items, at) >= at->dynamic) {
        out->what = TIDE_CHOICE_STAY;
        out->reason = TIDE_REASON_general_better;
    }
}

static void ideal(tide_kind kind, const tide_site_profile *seen, const tide_thresholds *at,
                  tide_choice *out)
{
    *out = (tide_choice){
        .what = TIDE_CHOICE_NEW, .reason = TIDE_REASON_decided, .compile = true};
    if (kind == TIDE_KIND_SCOPE)
        ideal_scope(seen, at, out);
    else if (kind == TIDE_KIND_FRAME)
        ideal_frame(seen, at, out);
    else
        ideal_chain(kind, seen, at, out);
}

/* ---- deciding --------------------------------------------------------------------------- */

/* The cheapest earlier plan, if it is good enough; the one in force if there is nothing between
 * them. */
static void prefer_earlier(tide_kind kind, const tide_site_profile *seen,
                           const tide_items *const *earlier, uint32_t count, uint32_t in_force,
                           const tide_thresholds *at, tide_choice *out)
{
    uint32_t best = in_force;
    double least = in_force != TIDE_NO_PLAN ? tide_cost(kind, seen, earlier[in_force], at) : 0;
    for (uint32_t i = 0; i < count; i++) {
        double cost = tide_cost(kind, seen, earlier[i], at);
        if (best == TIDE_NO_PLAN || cost < least) {
            best = i;
            least = cost;
        }
    }
    if (best == TIDE_NO_PLAN || least > out->cost * at->threshold)
        return;
    out->what = best == in_force ? TIDE_CHOICE_STAY : TIDE_CHOICE_OLD;
    out->reason = best == in_force ? TIDE_REASON_kept : TIDE_REASON_reused;
    out->old = best;
}

void tide_decide(tide_kind kind, const tide_site_profile *seen, const tide_items *const *earlier,
                 uint32_t earlier_count, uint32_t in_force, const tide_thresholds *at,
                 tide_choice *out)
{
    tide_assert(in_force == TIDE_NO_PLAN || in_force < earlier_count);
    if (seen->scopes < at->sample_min) {
        *out = (tide_choice){.what = TIDE_CHOICE_STAY, .reason = TIDE_REASON_few_samples};
        return;
    }
    ideal(kind, seen, at, out);
    if (out->what == TIDE_CHOICE_STAY) {
        if (kind != TIDE_KIND_SCOPE && in_force != TIDE_NO_PLAN &&
            tide_cost(kind, seen, earlier[in_force], at) > at->dynamic * at->threshold)
            out->what = TIDE_CHOICE_GENERAL;
        return;
    }
    out->cost = tide_cost(kind, seen, &out->items, at);
    out->cost_in_force = in_force != TIDE_NO_PLAN
                             ? tide_cost(kind, seen, earlier[in_force], at)
                             : tide_cost(kind, seen, &(tide_items){0}, at);
    prefer_earlier(kind, seen, earlier, earlier_count, in_force, at, out);
}
