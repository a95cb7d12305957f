/* SPDX-License-Identifier: MIT */
/* What a scope that is about to end has touched: read from the undo log, and from what its plan
 * kept in the scope itself. */
#ifndef TIDEPOOL_PROFILER_TOUCHES_H
#define TIDEPOOL_PROFILER_TOUCHES_H

#include "profiler/shard.h"

/* Is there anything to be read? Not of a scope that was refused or abandoned. */
bool tide_touches_known(const tide_scope *scope);

/* The types that it touched, each once, ascending; 0: more than there is room for here. */
uint32_t tide_touches_list(const tide_scope *scope, tide_type *types, uint32_t room);

/* Counts the scope in a shard that was entered. Only of a scope with something to be read. */
void tide_touches_count(tide_shard *shard, const tide_scope *scope);

#endif
