/* SPDX-License-Identifier: MIT */
/* What a program may say to a site: which types it uses, which tier it stays at, to begin anew. */
#include <tidepool/site.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/registry.h"
#include "runtime/base/ring.h"
#include "runtime/base/type.h"
#include "runtime/scope/plan.h"
#include "runtime/scope/site.h"

/* Locks the registry and lists the site, or fails with the registry unlocked. */
static tide_status steer_begin(tide_site *site, const char *call)
{
    if (site == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the site is NULL");
    tide_attach();
    tide_registry_lock();
    if (tide_site_enlist(site)) {
        tide_assert(site->record != NULL && (unsigned)site->kind < TIDE_KIND_COUNT);
        return TIDE_OK;
    }
    tide_registry_unlock();
    return tide_fail(TIDE_ERROR_MEMORY, call, "no memory to list the site");
}

tide_status tide_site_declare(tide_site *site, const tide_type *types, size_t count)
{
    const char *call = "tide_site_declare";
    if (types == NULL && count != 0)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "types is NULL, count is %zu", count);
    for (size_t i = 0; i < count; i++)
        if (tide_type_facts_of(types[i]) == NULL)
            return tide_type_refuse(types[i], call);
    if (site != NULL && site->kind != TIDE_KIND_SCOPE)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "a site of kind %s declares nothing",
                         tide_kind_name(site->kind));
    TIDE_FORWARD(steer_begin(site, call));
    const tide_plan *plan = tide_plan_table(types, count, call);
    if (plan != NULL) {
        tide_assert(plan->type_count <= count && plan->tier == TIDE_TIER_TABLE);
        site->record->declared = plan;
        site->record->table = site->record->compiled = NULL; /* were for other types */
        tide_site_publish(site);
    }
    tide_registry_unlock();
    return plan != NULL ? TIDE_OK : TIDE_ERROR_MEMORY;
}

tide_status tide_site_pin(tide_site *site, tide_tier tier)
{
    const char *call = "tide_site_pin";
    TIDE_FORWARD(steer_begin(site, call));
    bool possible = tide_site_plan(site, tier, call) != NULL;
    if (possible) {
        site->record->pinned = true;
        site->record->pin = tier;
        tide_site_publish(site);
    }
    tide_registry_unlock();
    return possible ? TIDE_OK : tide_error_status();
}

tide_status tide_site_unpin(tide_site *site)
{
    TIDE_FORWARD(steer_begin(site, "tide_site_unpin"));
    site->record->pinned = false;
    tide_site_publish(site);
    tide_registry_unlock();
    return TIDE_OK;
}

tide_status tide_site_set_user(tide_site *site, void *user)
{
    TIDE_FORWARD(steer_begin(site, "tide_site_set_user"));
    site->record->user = user;
    tide_registry_unlock();
    return TIDE_OK;
}

void *tide_site_user(const tide_site *site)
{
    tide_registry_lock();
    void *user = site != NULL && site->record != NULL ? site->record->user : NULL;
    tide_registry_unlock();
    return user;
}

tide_status tide_site_reset(tide_site *site)
{
    TIDE_FORWARD(steer_begin(site, "tide_site_reset"));
    site->record->pinned = false;
    site->record->declared = NULL;
    site->record->table = site->record->compiled = NULL;
    tide_site_forget(site, false);
    tide_site_publish(site);
    tide_registry_unlock();
    return TIDE_OK;
}
