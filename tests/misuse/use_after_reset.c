/* SPDX-License-Identifier: MIT */
/* Uses an array of the root after a reset, and says so through a report function, too. */
#include <tidepool/check.h>

#include "diagnosed.h"

static bool count(tide_report_kind kind, const char *text, void *user)
{
    int *reports = user;
    ++*reports;
    fprintf(stderr, "heard %d of kind %d: %.17s\n", *reports, (int)kind, text);
    return true;
}

void reset(tide_pool *pool);
void reset(tide_pool *pool)
{
    need(tide_pool_reset(pool) == TIDE_OK);
}

int main(void)
{
    static int reports;
    tide_pool *pool = pool_at(TIDE_CHECK_GUARD);
    double *array = tide_acquire_type(pool, TIDE_F64, 8);
    tide_report_set_handler(count, &reports);
    reset(pool);
    EXPECT("heard 1 of kind 3: use after rewind:");
    EXPECT("tidepool: use after rewind");
    EXPECT("  acquired  main+0x");
    EXPECT("  rewound   by a call at reset+0x");
    return use(array) != 0;
}
