/* SPDX-License-Identifier: MIT */
/* Free slots of one pool given back by its owner: runtime/pool/trim.c. */
#ifndef TIDEPOOL_RUNTIME_POOL_TRIM_H
#define TIDEPOOL_RUNTIME_POOL_TRIM_H

#include "runtime/pool/core.h"

/* tide_pool_trim of this pool alone: kept shells of others stay. Owner only. */
void tide_pool_trim_slots(tide_pool *pool);

/* TIDE_ERROR_STATE until a capture that has begun has ended. */
tide_status tide_trim_admit(const tide_pool *pool, const char *call);

/* One pass over the free slots of the type, or of TIDE_ALL_TYPES, for these of TIDE_REQUEST_TRIM_UNUSED,
 * _WASTED and _COMPACT; 0: all that is free goes. What was used in the last passes, of which the setting
 * `trim_after` says how many, is the pool's working set, and stays. Owner only. */
tide_trim_summary tide_trim_each_row(tide_pool *pool, tide_type type, uint32_t requests);

#endif
