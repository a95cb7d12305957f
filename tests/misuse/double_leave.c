/* SPDX-License-Identifier: MIT */
/* Leaves a scope that an older one has taken along. */
#include <tidepool/dynamic.h>

#include "diagnosed.h"

int main(void)
{
    tide_pool *pool = pool_at(TIDE_CHECK_POISON);
    tide_scope outer, inner;
    need(tide_scope_enter(pool, NULL, &outer) == TIDE_OK);
    need(tide_scope_enter(pool, NULL, &inner) == TIDE_OK);
    EXPECT("tidepool: leaked scope: ");
    need(tide_scope_leave(&outer) == TIDE_OK);
    need_refused(tide_scope_leave(&inner), TIDE_ERROR_STALE,
                 "tide_scope_leave: the scope was rewound already in pool 'the pool'");
    need(tide_scope_leave(&outer) == TIDE_ERROR_STALE);
    return 0;
}
