/* SPDX-License-Identifier: MIT */
/* A pool's end, and what ends with it. */
#ifndef TIDEPOOL_RUNTIME_POOL_POOL_H
#define TIDEPOOL_RUNTIME_POOL_POOL_H

#include "runtime/pool/core.h"

/* A room above that keeps something in pools says here how it ends. */
typedef struct tide_pool_ending {
    void (*empty)(tide_pool *pool);   /* the pool is emptied; NULL: nothing                  */
    void (*destroy)(tide_pool *pool); /* it is destroyed, and everything in it was rewound */
} tide_pool_ending;

enum { TIDE_ENDINGS_MAX = 4 };

/* Adds one, called after those added before. While the hooks are attached, before any pool. */
void tide_pool_add_ending(tide_pool_ending ending);

/* Destroys a pool whatever is open in it. */
void tide_pool_discard(tide_pool *pool, tide_place caller);

/* Registers what is done around fork. While the library is attached. */
void tide_pools_prepare(void);

#endif
