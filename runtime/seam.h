/* SPDX-License-Identifier: MIT */
/* The seams through which the runtime meets what stands above it: a table of callbacks, and one
 * call that lets policy set the defaults before anything is made.
 *
 * The third seam is the plan pointer of each site (tidepool/site.h). Beyond these the runtime
 * knows no profile, no policy and no environment. */
#ifndef TIDEPOOL_RUNTIME_SEAM_H
#define TIDEPOOL_RUNTIME_SEAM_H

#include <tidepool/site.h>

typedef struct tide_callbacks {
    /* The plan to publish where the runtime would publish `plan`; may return `plan` itself.
     * Called with the registry locked. */
    const tide_plan *(*publish)(tide_site *site, const tide_plan *plan);
    /* Forget what was observed and learned. `going`: the site's module is being unloaded, so no
     * scope can be inside it; else scopes may be. Called with the registry locked. */
    void (*forget)(tide_site *site, bool going);
    /* Fills in what profile and policy know of a site. Called with the registry locked. */
    void (*describe)(const tide_site *site, tide_site_information *out);
} tide_callbacks;

/* What the profiler and policy want to hear; each may leave members NULL. Set while the seam is
 * attached, before any site is published, and not changed again. */
extern tide_callbacks tide_callbacks_profile, tide_callbacks_policy;

/* Defined by policy, declared here by who needs it: called once before the first pool, setting
 * or published site of the process. */
void tide_policy_attach(void);

/* Makes that call, the first time. Any thread. */
void tide_seam_attach(void);

#endif
