/* SPDX-License-Identifier: MIT */
/* One round of what a background thread would do, by hand. */
#include <tidepool/learn.h>

#include "runtime/pool.h"
#include "runtime/seam.h"
#include "runtime/settings.h"

static void request(tide_pool *pool, void *user)
{
    tide_pool_request(pool, *(const uint32_t *)user);
}

/* Asks for nothing when both are switched off: that takes back what was asked for before. */
tide_status tide_step(void)
{
    tide_seam_attach();
    uint32_t requests = 0;
    if (tide_setting_get(TIDE_SETTING_auto_trim) != 0)
        requests |= TIDE_REQUEST_TRIM;
    if (tide_setting_get(TIDE_SETTING_auto_compact) != 0)
        requests |= TIDE_REQUEST_COMPACT;
    tide_pool_each(request, &requests);
    return TIDE_OK;
}
