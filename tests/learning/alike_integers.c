/* SPDX-License-Identifier: MIT */
#define ALIKE_TYPE int32_t
#include "alike.h"

bool alike_integers(tide_pool *pool, size_t n)
{
    return alike(pool, n);
}
