/* SPDX-License-Identifier: MIT */
/* The invariants of a pool, as code that walks them. */
#ifndef TIDEPOOL_RUNTIME_POOL_INVARIANTS_H
#define TIDEPOOL_RUNTIME_POOL_INVARIANTS_H

#include "runtime/pool/core.h"

/* Shelves, slots and log, without allocating. False with a message that names what is broken. */
bool tide_pool_invariants_hold(const tide_pool *pool);

#endif
