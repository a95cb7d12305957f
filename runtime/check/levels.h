/* SPDX-License-Identifier: MIT */
/* Which scopes are open, and where they were opened: kept by pools that check, so that reports
 * can name places. A stack beside the undo log; other pools have none. */
#ifndef TIDEPOOL_RUNTIME_CHECK_LEVELS_H
#define TIDEPOOL_RUNTIME_CHECK_LEVELS_H

#include "runtime/pool/pool.h"

/* A level opened: remember where. Without memory the place is forgotten, nothing else. */
void tide_levels_push(tide_pool *pool, uint64_t tag, tide_place place);

/* The level `tag` closes: returns its place, and reports younger ones that were left open. */
tide_place tide_levels_pop(tide_pool *pool, uint64_t tag);

/* Every level is gone, by a reset. */
void tide_levels_clear(tide_pool *pool);

#endif
