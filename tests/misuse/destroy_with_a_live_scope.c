/* SPDX-License-Identifier: MIT */
/* Destroys a pool in which a scope is open. */
#include "diagnosed.h"

int main(void)
{
    tide_pool *pool = pool_at(TIDE_CHECK_POISON);
    EXPECT("tidepool: tide_pool_destroy: pool 'the pool' has 1 open scopes or marks");
    TIDE_SCOPE(pool);
    need(tide_pool_destroy(pool) == TIDE_ERROR_STATE);
    return 0;
}
