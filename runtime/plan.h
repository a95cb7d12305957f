/* SPDX-License-Identifier: MIT */
/* The plans that exist without a compiler: full, and tables of types. */
#ifndef TIDEPOOL_RUNTIME_PLAN_H
#define TIDEPOOL_RUNTIME_PLAN_H

#include <tidepool/site.h>

/* Saves every shelf the pool has. */
extern const tide_plan tide_plan_full;

/* The table plan of a set of types, made on first demand and kept for good: sites with the same
 * types share it, and a scope may be inside it at any time. The types must exist; repeats are
 * fine. NULL with a message when memory is short. Registry locked. */
const tide_plan *tide_plan_table(const tide_type *types, size_t count, const char *call);

/* Fills a scope that is refused: it does nothing when it ends. */
void tide_scope_refuse(tide_scope *scope, const tide_plan *plan);

#endif
