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

/* What is done with each type that a scope touched. */
typedef void touches_found(void *user, tide_type type, uint32_t slots);

/* A shelf that was saved and not used counts for nothing. */
static void touches_find(touches_found *found, void *user, tide_type type, const tide_slot *now,
                         const tide_slot *then)
{
    if (now != then)
        found(user, type, (uint32_t)(now - then));
}

/* The shelves that the plan saved in the scope itself, not in the log. */
static void touches_find_saved(const tide_scope *scope, touches_found *found, void *user)
{
    const tide_plan *plan = scope->plan;
    tide_assert(!tide_scope_logged(scope) && plan->type_count <= TIDE_SCOPE_SAVED);
    for (uint32_t i = 0; i < plan->type_count; i++)
        touches_find(found, user, plan->types[i], scope->pool->shelves[plan->types[i]].next,
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

/* A shelf has two entries only if a scope inside was left open or abandoned. The tag tells; only
 * then each entry is compared with all entries below it. */
static void touches_each(const tide_scope *scope, touches_found *found, void *user)
{
    const tide_pool *pool = scope->pool;
    tide_assert(tide_touches_known(scope));
    bool leaked = pool->tag != scope->tag;
    for (const tide_entry *entry = tide_scope_base(scope); entry < pool->log_top; entry++) {
        if (!tide_shelf_real(pool, entry->shelf) || (leaked && touches_saved_below(scope, entry)))
            continue;
        touches_find(found, user, tide_row_of(pool, entry->shelf)->type, entry->shelf->next,
                     entry->next);
    }
    if (!tide_scope_logged(scope))
        touches_find_saved(scope, found, user);
}

typedef struct touches_counted {
    tide_shard *shard;
    type_set set;
} touches_counted;

static void touches_count_one(void *user, tide_type type, uint32_t slots)
{
    touches_counted *counted = user;
    tide_shard_count_type(counted->shard, type, slots);
    touches_insert_type(&counted->set, type);
}

void tide_touches_count(tide_shard *shard, const tide_scope *scope)
{
    touches_counted counted = {.shard = shard};
    tide_shard_count(shard);
    touches_each(scope, touches_count_one, &counted);
    tide_shard_count_pattern(shard, counted.set.words, counted.set.length);
}

static void touches_list_one(void *user, tide_type type, uint32_t slots)
{
    (void)slots;
    touches_insert_type(user, type);
}

uint32_t tide_touches_list(const tide_scope *scope, tide_type *types, uint32_t room)
{
    type_set set = {0};
    touches_each(scope, touches_list_one, &set);
    tide_assert(room > 0);
    if (set.length > TIDE_PATTERN_WORDS || set.length > room)
        return 0;
    for (uint32_t i = 0; i < set.length; i++)
        types[i] = (tide_type)set.words[i];
    return set.length;
}
