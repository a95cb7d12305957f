/* SPDX-License-Identifier: MIT */
/* A pool's end, and what is done around fork. */
#ifndef TIDEPOOL_RUNTIME_POOL_POOL_H
#define TIDEPOOL_RUNTIME_POOL_POOL_H

#include "runtime/pool/core.h"

/* Destroys a pool whatever is open in it. */
void tide_pool_discard(tide_pool *pool, tide_place caller);

/* Registers what is done around fork. While the library is attached. */
void tide_pools_prepare(void);

#endif
