/* SPDX-License-Identifier: MIT */
/* Reads from the undo log what a scope touched, just before the scope ends, and counts it. */
#include "profiler/touches.h"

#include "runtime/base/assert.h"
#include "runtime/pool/level.h"
#include "runtime/pool/row.h"
#include "runtime/scope/plan.h"

/* What is done with each type that a scope touched: its row, and the slots from `first` on. */
typedef void touches_found(void *user, const tide_row *row, const tide_slot *first, uint32_t slots);

/* A shelf that was saved and not used counts for nothing. */
static void touches_find(const tide_pool *pool, const tide_shelf *shelf, const tide_slot *then,
                         touches_found *found, void *user)
{
    if (shelf->next != then)
        found(user, tide_row_of(pool, shelf), then, (uint32_t)(shelf->next - then));
}

/* The shelves that the plan saved in the scope itself, not in the log. */
static void touches_find_saved(const tide_scope *scope, touches_found *found, void *user)
{
    const tide_plan *plan = scope->plan;
    tide_assert(!tide_scope_logged(scope) && plan->type_count <= TIDE_SCOPE_SAVED);
    for (uint32_t i = 0; i < plan->type_count; i++)
        touches_find(scope->pool, &scope->pool->shelves[plan->types[i]], scope->saved[i], found,
                     user);
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
        touches_find(pool, entry->shelf, entry->next, found, user);
    }
    if (!tide_scope_logged(scope))
        touches_find_saved(scope, found, user);
}

typedef struct touches_counted {
    tide_shard *shard;
    const tide_pool_core *core;
    uint64_t bytes;
} touches_counted;

/* Of very many slots the first ones stand for all: a window must not cost what it observes. */
static uint64_t touches_bytes(const tide_pool_core *core, const tide_row *row,
                              const tide_slot *first, uint32_t slots)
{
    enum { LOOKED_AT = 64 };
    const tide_type_facts *facts = tide_type_facts_of(row->type);
    uint32_t looked = slots < LOOKED_AT ? slots : LOOKED_AT;
    uint64_t sum = 0;
    tide_assert(facts != NULL && slots > 0);
    for (uint32_t i = 0; i < looked; i++) {
        size_t bytes = 0;
        tide_type_bytes(facts, tide_slot_length(core, tide_slot_record_of(row, first + i)), &bytes);
        sum += bytes;
    }
    return looked == slots ? sum : (uint64_t)((double)sum / looked * slots);
}

static void touches_count_one(void *user, const tide_row *row, const tide_slot *first,
                              uint32_t slots)
{
    touches_counted *counted = user;
    tide_shard_count_type(counted->shard, row->type, slots);
    counted->bytes += touches_bytes(counted->core, row, first, slots);
}

void tide_touches_count(tide_shard *shard, const tide_scope *scope)
{
    touches_counted counted = {.shard = shard, .core = scope->pool->core};
    tide_shard_count(shard, NULL);
    touches_each(scope, touches_count_one, &counted);
    tide_shard_count_bytes(shard, counted.bytes);
}

/* The types found so far, ascending; `count` goes on beyond the room. */
typedef struct touches_list {
    tide_type *types;
    uint32_t count, room;
} touches_list;

static void touches_list_one(void *user, const tide_row *row, const tide_slot *first,
                             uint32_t slots)
{
    touches_list *list = user;
    (void)first;
    (void)slots;
    if (list->count++ >= list->room)
        return;
    uint32_t at = list->count - 1;
    for (; at > 0 && list->types[at - 1] > row->type; at--)
        list->types[at] = list->types[at - 1];
    tide_assert(row->type != TIDE_NO_TYPE && (at == 0 || list->types[at - 1] <= row->type));
    list->types[at] = row->type;
}

uint32_t tide_touches_list(const tide_scope *scope, tide_type *types, uint32_t room)
{
    touches_list list = {types, 0, room};
    touches_each(scope, touches_list_one, &list);
    tide_assert(room > 0);
    return list.count <= room ? list.count : 0;
}
