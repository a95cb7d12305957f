/* SPDX-License-Identifier: MIT */
/* Opens, ends and reads the windows of a site; the use that fills one closes it (observe.c). */
#include "profiler/window.h"

#include <string.h>

#include "profiler/observe.h"
#include "profiler/tally.h"
#include "runtime/base/assert.h"
#include "runtime/base/os.h"

bool tide_window_begin(tide_site *site, uint64_t uses)
{
    tide_assert(uses > 0 && site->record != NULL);
    tide_tally *tally = tide_tally_ensure(site);
    if (tally == NULL)
        return false;
    const tide_plan *plan = __atomic_load_n(&site->plan, __ATOMIC_RELAXED);
    if (tide_site_arrived(site) && !tide_observe_wraps(plan) && tide_observe_wrap(plan) == NULL)
        return false; /* most likely this plan is the one to be wrapped */
    int64_t tickets = uses < INT64_MAX ? (int64_t)uses : INT64_MAX;
    tide_assert(tickets > 0);
    __atomic_store_n(&tally->remaining, tickets, __ATOMIC_RELAXED);
    return true;
}

bool tide_window_open(const tide_site *site)
{
    const tide_tally *tally = tide_tally_of(site);
    return tally != NULL && __atomic_load_n(&tally->remaining, __ATOMIC_RELAXED) > 0;
}

void tide_window_end(tide_site *site)
{
    tide_tally *tally = tide_tally_of(site);
    if (tally != NULL)
        __atomic_store_n(&tally->remaining, 0, __ATOMIC_RELAXED);
    tide_site_publish(site);
}

/* Adds what was harvested to what was taken before. (Without memory the sum stays as it was: a
 * window less is told. Who takes this one has it.) */
static void window_move_recent(tide_tally *tally)
{
    static tide_site_profile before; /* guarded by the registry */
    tide_profile_unpack(tally->before, &before);
    tide_profile_add(&before, tally->recent, 1);
    (void)tide_profile_pack(&tally->before, &before);
    if (tide_tally_counting(tally)) {
        memset(tally->recent, 0, sizeof *tally->recent);
        return;
    }
    tide_os_free(tally->recent);
    tally->recent = NULL;
}

void tide_window_take(tide_site *site, tide_site_profile *out)
{
    memset(out, 0, sizeof *out);
    tide_tally *tally = tide_tally_of(site);
    if (tally == NULL)
        return;
    tide_tally_harvest(tally);
    if (tally->recent != NULL) {
        *out = *tally->recent;
        tide_assert(out->type_count <= TIDE_PROFILE_TYPES);
        window_move_recent(tally);
    }
}
