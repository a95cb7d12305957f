/* SPDX-License-Identifier: MIT */
/* What a program may say to a site: which types it uses, which tier it stays at, to begin anew. */
#include <string.h>

#include <tidepool/site.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/registry.h"
#include "runtime/base/ring.h"
#include "runtime/base/type.h"
#include "runtime/scope/kind.h"
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

/* Registry locked. */
static tide_status steer_declare(tide_site *site, const tide_type *types, size_t count,
                                 const char *call)
{
    tide_assert(site->kind == TIDE_KIND_SCOPE);
    const tide_plan *plan = tide_plan_table(types, count, call);
    if (plan == NULL)
        return TIDE_ERROR_MEMORY;
    tide_assert(plan->type_count <= count && plan->tier == TIDE_TIER_TABLE);
    site->record->declared = plan;
    site->record->table = site->record->compiled = NULL; /* were for other types */
    tide_site_publish(site);
    return TIDE_OK;
}

/* What is declared of a site that is no scope takes the place of what was. Registry locked. */
static void steer_put_uses(tide_site *site, tide_declared_uses uses)
{
    tide_assert(uses.count <= TIDE_PLAN_METHODS && site->kind != TIDE_KIND_SCOPE);
    site->record->uses = uses;
    site->record->table = site->record->compiled = NULL; /* were for other uses */
    tide_site_publish(site);
}

_Static_assert(TIDE_TYPED_MAX <= TIDE_PLAN_METHODS, "what is declared of a frame has room");

/* How many types may be declared of a site of this kind; 0: none that way. */
static size_t steer_types_max(tide_kind kind)
{
    return kind == TIDE_KIND_SCOPE     ? SIZE_MAX
           : kind == TIDE_KIND_FRAME   ? TIDE_TYPED_MAX
           : kind == TIDE_KIND_ACQUIRE ? TIDE_PLAN_METHODS
                                       : 0;
}

/* A guard for a type that stands there twice would never be reached. */
static tide_status steer_check_order(tide_kind kind, const tide_type *types, size_t count,
                                     const char *call)
{
    size_t most = steer_types_max(kind);
    if (most == 0)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "a site of kind %s declares nothing",
                         tide_kind_name(kind));
    if (kind != TIDE_KIND_SCOPE && (count == 0 || count > most))
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "%zu types, not 1 to %zu", count, most);
    for (size_t i = 0; kind == TIDE_KIND_ACQUIRE && i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (types[j] == types[i])
                return tide_fail(TIDE_ERROR_ARGUMENT, call, "type %u comes twice", types[i]);
    return TIDE_OK;
}

tide_status tide_site_declare(tide_site *site, const tide_type *types, size_t count)
{
    const char *call = "tide_site_declare";
    if (types == NULL && count != 0)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "types is NULL, count is %zu", count);
    for (size_t i = 0; i < count; i++)
        if (tide_type_facts_of(types[i]) == NULL)
            return tide_type_refuse(types[i], call);
    if (site != NULL)
        TIDE_FORWARD(steer_check_order(site->kind, types, count, call));
    TIDE_FORWARD(steer_begin(site, call));
    tide_status status = TIDE_OK;
    if (site->kind == TIDE_KIND_SCOPE) {
        status = steer_declare(site, types, count, call);
    } else {
        tide_declared_uses uses = {.count = (uint32_t)count};
        memcpy(uses.types, types, count * sizeof *types);
        steer_put_uses(site, uses);
    }
    tide_registry_unlock();
    return status;
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
    site->record->uses = (tide_declared_uses){0};
    site->record->table = site->record->compiled = NULL;
    tide_site_forget(site, false);
    tide_site_publish(site);
    tide_registry_unlock();
    return TIDE_OK;
}
