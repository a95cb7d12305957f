/* SPDX-License-Identifier: MIT */
/* Destroys a pool in which a scope is open. */
#include "diagnosed.h"

int main(void)
{
    tide_pool *pool = pool_at(TIDE_CHECK_POISON);
    TIDE_SCOPE(pool);
    need_refused(tide_pool_destroy(pool), TIDE_ERROR_STATE,
                 "tide_pool_destroy: pool 'the pool' has 1 open scopes or marks");
    return 0;
}
