/* SPDX-License-Identifier: MIT */
/* Events as probes: at the moment when they are noted, heard by somebody or not. */
#ifndef TIDEPOOL_JIT_EVENTS_PROBE_H
#define TIDEPOOL_JIT_EVENTS_PROBE_H

#include <tidepool/learn.h>

#include "runtime/base/probe.h"

#define TIDE_EVENT_USDT(event) TIDE_USDT(event, site, id, name, (int)tier, reason)

/* The site's number and name, the tier after the event, the reason's code. */
static inline void tide_event_probe(tide_event_kind kind, const tide_site *site, uint64_t id,
                                    const char *name, tide_tier tier, const char *reason)
{
    (void)site, (void)id, (void)name, (void)tier, (void)reason; /* without probes */
    switch (kind) {
    case TIDE_EVENT_FOUND: TIDE_EVENT_USDT(site_found); break;
    case TIDE_EVENT_STAGED: TIDE_EVENT_USDT(site_staged); break;
    case TIDE_EVENT_PUBLISHED: TIDE_EVENT_USDT(site_published); break;
    case TIDE_EVENT_MISSED: TIDE_EVENT_USDT(site_missed); break;
    case TIDE_EVENT_GAVE_UP: TIDE_EVENT_USDT(site_gave_up); break;
    }
}

#endif
