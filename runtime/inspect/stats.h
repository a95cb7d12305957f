/* SPDX-License-Identifier: MIT */
/* What a pool holds, read by any thread while its owner goes on. */
#ifndef TIDEPOOL_RUNTIME_INSPECT_STATS_H
#define TIDEPOOL_RUNTIME_INSPECT_STATS_H

#include <tidepool/upkeep.h>

#include "runtime/pool/core.h"

/* By the owner, or with the registry locked. */
void tide_pool_read(const tide_pool *pool, tide_pool_statistics *out);

#endif
