/* SPDX-License-Identifier: MIT */
/* One function in two translation units, each with a type of its own: their sites differ in
 * nothing that can be read. */
#ifndef TIDEPOOL_TESTS_ALIKE_H
#define TIDEPOOL_TESTS_ALIKE_H

#include <tidepool/tidepool.h>

bool alike_reals(tide_pool *pool, size_t n);
bool alike_integers(tide_pool *pool, size_t n);

#ifdef ALIKE_TYPE
static bool alike(tide_pool *pool, size_t n)
{
    TIDE_SCOPE(pool);
    return tide_acquire(pool, ALIKE_TYPE, n) != NULL;
}
#endif

#endif
