/* SPDX-License-Identifier: MIT */
/* The ring of profiles: the functions that the runtime calls when a plan is published, a site is
 * forgotten or its figures are asked for. Also the calls that observe every site and that
 * read one profile. */
#include <string.h>

#include "profiler/observe.h"
#include "profiler/samples/samples.h"
#include "profiler/tally.h"
#include "profiler/window.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/registry.h"
#include "runtime/base/ring.h"
#include "runtime/scope/site.h"

/* ---- the ring --------------------------------------------------------------------------- */

/* The plan to run: the given one, or one that wraps and observes it. Without memory the site
 * is not observed. */
static const tide_plan *attach_publish(tide_site *site, const tide_plan *plan)
{
    tide_assert(plan != NULL && plan->kind == site->kind);
    bool always = tide_observe_always_on();
    if (!(always ? tide_tally_ensure(site) != NULL : tide_window_open(site)))
        return plan;
    const tide_plan *wrapper = tide_observe_wrap(plan);
    tide_assert(wrapper == NULL || tide_observe_wraps(wrapper));
    return wrapper != NULL ? wrapper : plan;
}

static void attach_forget(tide_site *site, bool going)
{
    tide_tally *tally = tide_tally_of(site);
    if (going)
        tide_tally_discard(site);
    else if (tally != NULL)
        tide_tally_clear(tally);
}

static void attach_describe(const tide_site *site, tide_site_information *out)
{
    tide_tally *tally = tide_tally_of(site);
    if (tally == NULL)
        return;
    static tide_site_profile seen; /* guarded by the registry */
    tide_tally_read(tally, &seen);
    out->samples = seen.scopes;
    uint64_t arrays = seen.other; /* each of them one at least */
    for (uint32_t i = 0; i < seen.type_count; i++)
        arrays += seen.types[i].slots;
    if (seen.scopes != 0) {
        out->use_bytes = (double)seen.bytes / (double)seen.scopes;
        out->use_arrays = (double)arrays / (double)seen.scopes;
    }
    out->observed = tide_observe_always_on() || tide_window_open(site);
}

const tide_ring tide_ring_profile = {.attach = tide_samples_prepare,
                                     .took = tide_samples_took,
                                     .gave = tide_samples_gave,
                                     .publish = attach_publish,
                                     .forget = attach_forget,
                                     .describe = attach_describe};

/* ---- everything ------------------------------------------------------------------------- */

/* Publishes the site again, so that it is observed or no longer. */
static bool attach_republish(tide_site *site, void *user)
{
    tide_status *status = user;
    bool wanted = tide_observe_always_on();
    bool possible = !wanted || tide_tally_ensure(site) != NULL;
    if (tide_site_arrived(site)) {
        tide_site_publish(site);
        possible = possible && (!wanted || tide_observe_wraps(site->plan));
    }
    if (!possible)
        *status =
            tide_fail(TIDE_ERROR_MEMORY, "tide_profile_observe", "no memory to observe a site");
    return true;
}

tide_status tide_profile_observe(bool on)
{
    tide_status status = TIDE_OK;
    tide_attach();
    tide_registry_lock();
    tide_observe_always(on);
    tide_site_each(attach_republish, &status);
    tide_registry_unlock();
    return status;
}

/* ---- reading ---------------------------------------------------------------------------- */

tide_status tide_profile_site(const tide_site *site, tide_site_profile *out)
{
    if (site == NULL || out == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_profile_site", "the %s is NULL",
                         site == NULL ? "site" : "result");
    memset(out, 0, sizeof *out);
    tide_registry_lock();
    tide_tally *tally = tide_tally_of(site);
    if (tally != NULL)
        tide_tally_read(tally, out);
    tide_registry_unlock();
    return TIDE_OK;
}
