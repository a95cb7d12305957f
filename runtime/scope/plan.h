/* SPDX-License-Identifier: MIT */
/* The plans that exist without a compiler: full, and tables of types. */
#ifndef TIDEPOOL_RUNTIME_SCOPE_PLAN_H
#define TIDEPOOL_RUNTIME_SCOPE_PLAN_H

#include <tidepool/site.h>

/* What a site runs as long as nothing is known of it, by kind. A scope's plan saves every shelf
 * that the pool has. (They are made in kind.c.) */
extern const tide_plan tide_plans_general[TIDE_KIND_COUNT];

tide_enter_function tide_plan_enter_full;
tide_leave_function tide_plan_leave_full;

/* The table plan of a set of types. It is made on first demand and kept for good: sites with the
 * same types share it, and a scope may be inside it at any time. The types must exist; they may
 * repeat. NULL with a message when memory is short. Registry locked. */
const tide_plan *tide_plan_table(const tide_type *types, size_t count, const char *call);

/* Gives a scope's plan, whose types and shelves are filled in, the code of a table. */
void tide_plan_use_table(tide_plan *plan);

/* Sets `near` from `shelves`. Before the plan is published. */
void tide_plan_bring_near(tide_plan *plan);

/* Where a type's shelf lies in a pool, in bytes. */
static inline uint32_t tide_plan_shelf(tide_type type)
{
    _Static_assert(sizeof(tide_pool) <= UINT32_MAX, "the place of every shelf fits");
    return (uint32_t)(offsetof(tide_pool, shelves) + type * sizeof(tide_shelf));
}

/* A scope saves the shelves' states at entry, either in `saved` or in the log. In the second case
 * the lowest bit of `base` is set, so `base` never equals the log's top. The guard of the first
 * case asks whether the log's top is still `base`; it therefore also tells the two cases apart. */
TIDE_INLINE tide_entry *tide_base_logged(tide_entry *base)
{
    return (tide_entry *)(void *)((char *)base + 1);
}

TIDE_INLINE bool tide_scope_logged(const tide_scope *scope)
{
    return ((uintptr_t)scope->base & 1) != 0;
}

TIDE_INLINE tide_entry *tide_scope_base(const tide_scope *scope)
{
    return (tide_entry *)((uintptr_t)scope->base & ~(uintptr_t)1);
}

_Static_assert(_Alignof(tide_entry) > 1, "the lowest bit of a base is free to mark it");

/* Fills in a scope that is refused: it does nothing when it ends. The plan is one to leave by. */
void tide_scope_refuse(tide_scope *scope, const tide_plan *plan);

#endif
