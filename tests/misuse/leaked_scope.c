/* SPDX-License-Identifier: MIT */
/* Leaves a scope by longjmp. */
#include "diagnosed.h"

static jmp_buf out;

static void work(tide_pool *pool)
{
    TIDE_SCOPE(pool); OPENED_HERE("tidepool: leaked scope: the one opened at ");
    tide_zeros(pool, double, 10);
    longjmp(out, 1);
}

static void around(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    if (setjmp(out) == 0)
        work(pool);
}

int main(void)
{
    EXPECT(" in pool 'the pool' was left open; the scope around it cleaned up");
    around(pool_at(TIDE_CHECK_POISON));
    return 0;
}
