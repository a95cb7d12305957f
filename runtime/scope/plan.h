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

/* Fills in a scope that is refused: it does nothing when it ends. The plan is one to leave by. */
void tide_scope_refuse(tide_scope *scope, const tide_plan *plan);

#endif
