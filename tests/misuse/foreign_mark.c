/* SPDX-License-Identifier: MIT */
/* Rewinds one pool to the mark of another. */
#include "diagnosed.h"

int main(void)
{
    tide_pool *pool = pool_at(TIDE_CHECK_POISON);
    tide_mark mark = tide_checkpoint(pool_at(TIDE_CHECK_POISON));
    need_refused(tide_rewind(pool, mark), TIDE_ERROR_ARGUMENT,
                 "tide_rewind: the mark is of another pool, not of pool 'the pool'");
    return 0;
}
