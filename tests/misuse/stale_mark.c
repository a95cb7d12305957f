/* SPDX-License-Identifier: MIT */
/* Rewinds a mark twice. */
#include "diagnosed.h"

int main(void)
{
    tide_pool *pool = pool_at(TIDE_CHECK_POISON);
    tide_mark mark = tide_checkpoint(pool);
    need(tide_rewind(pool, mark) == TIDE_OK);
    need_refused(tide_rewind(pool, mark), TIDE_ERROR_STALE,
                 "tide_rewind: mark 1 of pool 'the pool' has been rewound already");
    return 0;
}
