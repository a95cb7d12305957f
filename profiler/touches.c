/* SPDX-License-Identifier: MIT */
/* Reads from the undo log what a scope touched, just before the scope ends, and counts it. */
#include "profiler/touches.h"

#include "runtime/base/assert.h"
#include "runtime/pool/log.h"
#include "runtime/pool/row.h"

/* The types that a scope touched, ascending, as many as a pattern has room for;
 * `length` counts all. */
typedef struct type_set {
    uint32_t length;
    int64_t words[TIDE_PATTERN_WORDS];
} type_set;

static void touches_insert_type(type_set *set, tide_type type)
{
    tide_assert(type != TIDE_NO_TYPE && type < TIDE_TYPE_LIMIT);
    if (set->length++ >= TIDE_PATTERN_WORDS)
        return;
    uint32_t at = set->length - 1;
    for (; at > 0 && set->words[at - 1] > (int64_t)type; at--)
        set->words[at] = set->words[at - 1];
    tide_assert(at < TIDE_PATTERN_WORDS && (at == 0 || set->words[at - 1] <= (int64_t)type));
    set->words[at] = type;
}

/* A shelf that was saved and not used counts for nothing. */
static void touches_count_slots(tide_shard *shard, type_set *set, tide_type type,
                                const tide_slot *now, const tide_slot *then)
{
    uint32_t slots = (uint32_t)(now - then);
    if (slots == 0)
        return;
    tide_shard_count_type(shard, type, slots);
    touches_insert_type(set, type);
}

/* Counts the shelves that the plan saved in the scope itself, not in the log. */
static void touches_count_saved(tide_shard *shard, type_set *set, const tide_scope *scope)
{
    const tide_plan *plan = scope->plan;
    tide_assert(!tide_scope_logged(scope) && plan->type_count <= TIDE_SCOPE_SAVED);
    for (uint32_t i = 0; i < plan->type_count; i++)
        touches_count_slots(shard, set, plan->types[i], scope->pool->shelves[plan->types[i]].next,
                            scope->saved[i]);
}

/* Did the scope, or an entry below this one, save the same shelf before? Then a level that was left
 * open saved it again, and the older state accounts for all slots. */
static bool touches_saved_below(const tide_scope *scope, const tide_entry *entry)
{
    for (const tide_entry *below = tide_scope_base(scope); below != entry; below++)
        if (below->shelf == entry->shelf)
            return true;
    const tide_plan *plan = scope->plan;
    for (uint32_t i = 0; !tide_scope_logged(scope) && i < plan->type_count; i++)
        if (&scope->pool->shelves[plan->types[i]] == entry->shelf)
            return true;
    return false;
}

bool tide_touches_known(const tide_scope *scope)
{
    const tide_pool *pool = scope->pool;
    return pool != tide_pool_refusing() &&
           (pool->tag == scope->tag || !tide_abandoned(pool, scope->tag));
}

/* A shelf has two entries only if a scope inside was left open. The tag tells whether one was; only
 * then each entry is compared with all entries below it. */
void tide_touches_count(tide_shard *shard, const tide_scope *scope)
{
    const tide_pool *pool = scope->pool;
    tide_assert(tide_touches_known(scope));
    bool leaked = pool->tag != scope->tag, nested = false;
    type_set set = {0};
    tide_shard_count(shard);
    for (const tide_entry *entry = tide_scope_base(scope); entry < pool->log_top; entry++) {
        if (!tide_shelf_real(pool, entry->shelf) || (leaked && touches_saved_below(scope, entry)))
            continue;
        touches_count_slots(shard, &set, tide_row_of(pool, entry->shelf)->type, entry->shelf->next,
                            entry->next);
        nested = nested || (entry->saved_at != scope->outer && entry->shelf->next != entry->next);
    }
    if (!tide_scope_logged(scope))
        touches_count_saved(shard, &set, scope);
    if (nested)
        tide_shard_count_nested(shard);
    tide_shard_count_pattern(shard, set.words, set.length);
}
