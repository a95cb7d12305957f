/* SPDX-License-Identifier: MIT */
/* What the runtime keeps of each listed site. */
#ifndef TIDEPOOL_RUNTIME_SITE_H
#define TIDEPOOL_RUNTIME_SITE_H

#include <tidepool/site.h>

typedef struct tide_site_record {
    bool pinned;
    tide_tier pin;
    const tide_plan *declared; /* table plan of the types declared; NULL: none were   */
    const tide_plan *table;    /* the same of the types learned, by policy            */
    const tide_plan *compiled; /* by policy; NULL: none is in force                   */
    void *profile;             /* the observer's own */
    void *learner;             /* policy's own       */
} tide_site_record;

/* Publishes the plan that the site's record calls for. Registry locked, site listed. */
void tide_site_publish(tide_site *site);

/* A static site was used for the first time: lists it and publishes its first plan. Without memory
 * for that nothing happens. */
void tide_site_arrive(tide_site *site);

/* Has it a real plan yet? Registry locked. */
bool tide_site_arrived(const tide_site *site);

/* The list. Registry locked. */
size_t tide_site_list(tide_site *const **sites);

#endif
