/* SPDX-License-Identifier: MIT */
/* Uses an array after its mark was rewound: the code that rewound is named. */
#include "diagnosed.h"

void rewind_it(tide_pool *pool, tide_mark mark);
void rewind_it(tide_pool *pool, tide_mark mark)
{
    need(tide_rewind(pool, mark) == TIDE_OK);
}

int main(void)
{
    tide_pool *pool = pool_at(TIDE_CHECK_GUARD);
    tide_mark mark = tide_checkpoint(pool);
    double *array = tide_fill(pool, double, 8, 1.5); ACQUIRED_HERE;
    rewind_it(pool, mark);
    EXPECT("  rewound   by a call at rewind_it+0x");
    EXPECT("  used      use+0x");
    return use(array) != 0;
}
