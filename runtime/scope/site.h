/* SPDX-License-Identifier: MIT */
/* What the runtime keeps of each listed site. */
#ifndef TIDEPOOL_RUNTIME_SCOPE_SITE_H
#define TIDEPOOL_RUNTIME_SCOPE_SITE_H

#include <tidepool/site.h>

typedef struct tide_site_record {
    uint64_t id; /* in the order of discovery, from 1; no other site of the process has had it */
    uint64_t uses_before; /* what stood under its number when it was counted anew            */
    bool pinned;
    tide_tier pin;
    const tide_plan *declared; /* table of the types that the program declared; NULL: none */
    const tide_plan *table;    /* table of the types learned                             */
    const tide_plan *compiled; /* NULL: none is in force                                 */
    void *profile;             /* the observer's own */
    void *learner;             /* learning's own     */
    void *user;                /* the tuner's own    */
} tide_site_record;

/* Lists a site and gives it a record, unless it is listed. False when memory is short: the
 * site then works, unlisted, at the full tier. Registry locked, as for all below that do
 * not say otherwise. */
bool tide_site_enlist(tide_site *site);

/* Tells the rings to forget it; `going`: as in runtime/base/ring.h. */
void tide_site_forget(tide_site *site, bool going);

/* How often it was used, as pools have counted; 0: it has no number, as more sites than are counted
 * have none, or is a dispatch. */
uint64_t tide_site_uses(const tide_site *site);

/* The plan of a tier for a listed site; NULL with a message when there is none. */
const tide_plan *tide_site_plan(const tide_site *site, tide_tier tier, const char *call);

/* Publishes the plan that the site's record calls for. The site is listed. */
void tide_site_publish(tide_site *site);

/* A static site was used for the first time: lists it and publishes its first plan. Without memory
 * for that nothing happens. Locks the registry. */
void tide_site_arrive(tide_site *site);

/* Has it a real plan yet? */
bool tide_site_arrived(const tide_site *site);

/* What people call it: its name, else its function, else "?". */
static inline const char *tide_site_name(const tide_site *site)
{
    const char *name = site->name != NULL ? site->name : site->place.function;
    return name != NULL && name[0] != '\0' ? name : "?";
}

/* The list, in order of discovery. */
size_t tide_site_list(tide_site *const **sites);

#endif
