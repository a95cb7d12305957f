/* SPDX-License-Identifier: MIT */
/* How often sites were used: each pool counts the uses made with it, one word for each site
 * (tide_pool.uses, stored by the owner alone); here they are added up. Uses of pools that have
 * ended are kept.
 *
 * A site gets a number, which says where pools count it. Numbers of sites that are gone are given
 * again: whoever gets one remembers what stood there. */
#ifndef TIDEPOOL_RUNTIME_POOL_USES_H
#define TIDEPOOL_RUNTIME_POOL_USES_H

#include "runtime/pool/core.h"

/* A number that no site has, or 0: there is none left. Registry locked, as for all below. */
uint32_t tide_uses_take_number(void);
void tide_uses_give_number(uint32_t number);

/* The pool leaves the list of all pools: what it has counted is kept, and the pool counts anew. */
void tide_uses_keep(tide_pool *pool);

/* All uses that were ever counted under the number, in all pools that are or were. The owners go on
 * meanwhile: what another thread counts just now may be in it or not. */
uint64_t tide_uses_sum(uint32_t number);

#endif
