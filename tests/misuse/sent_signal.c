/* SPDX-License-Identifier: MIT */
/* SIGSEGV that somebody sent ends the program as if we were not there. */
#include "diagnosed.h"

#include <signal.h>

int main(void)
{
    EXPECT("here it goes");
    tide_pool *pool = pool_at(TIDE_CHECK_GUARD);
    tide_ones(pool, double, 8);
    fprintf(stderr, "here it goes\n");
    raise(SIGSEGV);
    return 0;
}
