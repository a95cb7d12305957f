/* SPDX-License-Identifier: MIT */
/* What the runtime keeps of each listed site. */
#ifndef TIDEPOOL_RUNTIME_SITE_H
#define TIDEPOOL_RUNTIME_SITE_H

#include <tidepool/site.h>

typedef struct tide_site_record {
    bool pinned;
    tide_tier pin;
    const tide_plan *declared; /* table plan of the types declared; NULL: none were */
    void *profile;             /* the observer's own */
} tide_site_record;

/* Publishes the plan that the site's record calls for. Registry locked, site listed. */
void tide_site_publish(tide_site *site);

#endif
