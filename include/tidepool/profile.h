/* SPDX-License-Identifier: MIT */
/* The profile: what the scopes of each site were seen to acquire.
 *
 * Observing swaps a site's plan for one that reads the undo log when the scope ends; a site
 * that is not observed pays nothing. */
#ifndef TIDEPOOL_PROFILE_H
#define TIDEPOOL_PROFILE_H

#include <stdio.h>
#include <tidepool/site.h>

TIDE_BEGIN_DECLS

/* What the observed scopes of one site did with one type. */
typedef struct tide_profile_type {
    tide_type type;
    uint64_t scopes;     /* scopes that touched it               */
    uint64_t slots;      /* slots they took, added up            */
    uint32_t slots_most; /* most slots one scope took            */
} tide_profile_type;

typedef struct tide_site_profile {
    uint64_t scopes;                /* scopes observed                                       */
    uint64_t other;                 /* touches of types for which the profile had no place   */
    uint32_t type_count;            /* entries of `types`                                    */
    tide_profile_type types[32];    /* in order of first sight                               */
} tide_site_profile;

/* Observes every site, known now or later, until switched off. Any thread. TIDE_ERROR_MEMORY
 * when a site's profile cannot be allocated (that site is then not observed). */
TIDE_API tide_status tide_profile_observe(bool on);

/* What was observed of one site; all zero if nothing was. Any thread; while scopes run, the
 * figures are each exact but not of one moment. */
TIDE_API tide_status tide_profile_site(const tide_site *site, tide_site_profile *out);

/* Prints, for each site that was observed: place, tier, scopes, and a line for each type. */
TIDE_API tide_status tide_profile_print(FILE *out);

TIDE_END_DECLS

#endif
