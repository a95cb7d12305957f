/* SPDX-License-Identifier: MIT */
#define ALIKE_TYPE double
#include "alike.h"

bool alike_reals(tide_pool *pool, size_t n)
{
    return alike(pool, n);
}
