/* SPDX-License-Identifier: MIT */
/* What the runtime keeps of each listed site. */
#ifndef TIDEPOOL_RUNTIME_SCOPE_SITE_H
#define TIDEPOOL_RUNTIME_SCOPE_SITE_H

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

/* Lists a site and gives it a record, unless it is listed. False when memory is short: the
 * site then works, unlisted, at the full tier. Registry locked, as for all below that do
 * not say otherwise. */
bool tide_site_enlist(tide_site *site);

/* Tells policy and profiler to forget it; `going`: as in runtime/base/hooks.h. */
void tide_site_forget(tide_site *site, bool going);

/* The plan of a tier for a listed site; NULL with a message when there is none. */
const tide_plan *tide_site_plan(const tide_site *site, tide_tier tier, const char *call);

/* Publishes the plan that the site's record calls for. The site is listed. */
void tide_site_publish(tide_site *site);

/* A static site was used for the first time: lists it and publishes its first plan. Without memory
 * for that nothing happens. Locks the registry. */
void tide_site_arrive(tide_site *site);

/* Has it a real plan yet? */
bool tide_site_arrived(const tide_site *site);

/* The list, in order of discovery. */
size_t tide_site_list(tide_site *const **sites);

#endif
