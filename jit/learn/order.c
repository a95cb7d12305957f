/* SPDX-License-Identifier: MIT */
/* A compile that the program orders: it need not pay. */
#include <tidepool/site.h>

#include "jit/learn/background.h"
#include "jit/learn/force.h"
#include "jit/learn/watch.h"
#include "profiler/files/loaded.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/registry.h"
#include "runtime/base/ring.h"
#include "runtime/base/settings.h"
#include "runtime/scope/site.h"

static tide_status order_refuse(const tide_site *site, const char *why)
{
    return tide_fail(TIDE_ERROR_STATE, "tide_site_compile_now", "site '%.60s': %s",
                     tide_site_name(site), why);
}

static tide_status order_check_declared(const tide_learner *learner)
{
    const tide_site_record *record = learner->site->record;
    tide_items items = tide_watch_declared(record);
    if (tide_items_fit(&items))
        return TIDE_OK;
    return order_refuse(learner->site, record->declared->type_count == 0
                                           ? "no types are declared"
                                           : "more types are declared than code saves");
}

/* Has a round something to make a plan of, or a plan? Its code is for at most so many types. */
static tide_status order_check_known(const tide_learner *learner)
{
    static tide_site_profile prior; /* guarded by the registry */
    uint32_t number = learner->in_force;
    if (learner->site->record->declared != NULL)
        return order_check_declared(learner);
    if (number == TIDE_NO_PLAN)
        return learner->windows == 0 && tide_profile_prior(learner->site, &prior)
                   ? TIDE_OK
                   : order_refuse(learner->site, "nothing is known of its types yet, or nothing "
                                                 "recurs: they may be declared");
    return tide_items_fit(&learner->plans[number]->items)
               ? TIDE_OK
               : order_refuse(learner->site, "it has no types, or more than code saves");
}

/* Registry locked. Whether code that is being made, tried or run is what is asked for, the next
 * round knows: by then what was declared last is in force. */
static tide_status order_code(tide_site *site)
{
    if (site->record->pinned)
        return order_refuse(site, "it is pinned");
    if (site->kind != TIDE_KIND_SCOPE)
        return order_refuse(site, "a dispatch has no code of its own");
    tide_learner *learner = tide_learner_of(site);
    if (learner == NULL)
        return tide_fail(TIDE_ERROR_MEMORY, "tide_site_compile_now", "no memory to learn of it");
    TIDE_FORWARD(order_check_known(learner));
    tide_learned *plan = tide_learner_plan_in_force(learner);
    if (plan != NULL && !tide_items_fit(&plan->items))
        plan = NULL; /* what was declared comes in its place */
    if (plan != NULL && plan->state < TIDE_CODE_REQUESTED)
        plan->state = TIDE_CODE_WANTED;
    if (plan != NULL && plan->state != TIDE_CODE_REQUESTED)
        plan->retry_round = 0;
    tide_assert(plan == NULL || plan->state != TIDE_CODE_NONE);
    learner->at_once = true;
    return TIDE_OK;
}

tide_status tide_site_compile_now(tide_site *site)
{
    const char *call = "tide_site_compile_now";
    if (site == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the site is NULL");
    tide_attach();
    if (tide_setting_get(TIDE_SETTING_learn) == 0)
        return order_refuse(site, "learning is off (setting learn)");
    tide_registry_lock();
    tide_status status = tide_site_enlist(site)
                             ? order_code(site)
                             : tide_fail(TIDE_ERROR_MEMORY, call, "no memory to list the site");
    tide_registry_unlock();
    if (status == TIDE_OK)
        tide_background_wanted(); /* who does the next round */
    return status;
}
