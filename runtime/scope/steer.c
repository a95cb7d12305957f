/* SPDX-License-Identifier: MIT */
/* What a program may say to a site: which types it uses, which tier it stays at, to begin anew. */
#include <string.h>

#include <tidepool/callsite.h>

#include "runtime/array/array.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/base/ring.h"
#include "runtime/base/type.h"
#include "runtime/dispatch/generic.h"
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
    tide_os_free(site->record->uses.shapes);
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
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "a site of kind %s declares %s",
                         tide_kind_name(kind),
                         kind == TIDE_KIND_ARRAY ? "shapes: tide_site_declare_shapes"
                                                 : "methods: tide_site_declare_dispatch");
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

/* ---- shapes ----------------------------------------------------------------------------- */

static tide_status steer_check_shapes(const tide_site *site, const tide_declared_shape *shapes,
                                      size_t count, const char *call)
{
    size_t length;
    if (site == NULL || shapes == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the %s NULL",
                         site == NULL ? "site is" : "shapes are");
    TIDE_FORWARD(tide_kind_expect(site, TIDE_KIND_ARRAY, call));
    if (count == 0 || count > TIDE_PLAN_METHODS)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "%zu shapes, not 1 to %d", count,
                         (int)TIDE_PLAN_METHODS);
    for (size_t i = 0; i < count; i++) {
        if (tide_type_facts_of(shapes[i].type) == NULL)
            return tide_type_refuse(shapes[i].type, call);
        TIDE_FORWARD(tide_shape_length(shapes[i].ndim, shapes[i].shape, &length, call));
    }
    return TIDE_OK;
}

tide_status tide_site_declare_shapes(tide_site *site, const tide_declared_shape *shapes,
                                     size_t count)
{
    const char *call = "tide_site_declare_shapes";
    TIDE_FORWARD(steer_check_shapes(site, shapes, count, call));
    tide_declared_shape *copy = tide_os_resize(NULL, count * sizeof *copy);
    if (copy == NULL)
        return tide_fail(TIDE_ERROR_MEMORY, call, "no memory for %zu shapes", count);
    memcpy(copy, shapes, count * sizeof *copy);
    tide_status status = steer_begin(site, call);
    if (status != TIDE_OK) {
        tide_os_free(copy);
        return status;
    }
    steer_put_uses(site, (tide_declared_uses){.count = (uint32_t)count, .shapes = copy});
    tide_registry_unlock();
    return TIDE_OK;
}

/* ---- methods ---------------------------------------------------------------------------- */

static tide_status steer_check_site(const tide_site *site, const tide_generic *generic,
                                    const tide_type *types, size_t count, const char *call)
{
    if (site == NULL || generic == NULL || types == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the %s NULL",
                         site == NULL      ? "site is"
                         : generic == NULL ? "generic function is"
                                           : "types are");
    TIDE_FORWARD(tide_kind_expect(site, TIDE_KIND_DISPATCH, call));
    if (count == 0 || count > TIDE_PLAN_METHODS)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "%zu types, not 1 to %d", count,
                         (int)TIDE_PLAN_METHODS);
    return TIDE_OK;
}

/* Each type has a method of its own and comes once: a guard for it may hold. */
static tide_status steer_check_types(const tide_generic *generic, const tide_type *types,
                                     size_t count, const char *call)
{
    tide_assert(count <= TIDE_PLAN_METHODS);
    for (size_t i = 0; i < count; i++) {
        if (!tide_generic_takes(generic, types[i]))
            return tide_generic_refuse(generic, types[i], call);
        if (tide_generic_place(generic, types[i]) == NULL)
            return tide_fail(TIDE_ERROR_TYPE, call, "'%s' has no method of %u's own",
                             tide_generic_name(generic), types[i]);
        for (size_t j = 0; j < i; j++)
            if (types[j] == types[i])
                return tide_fail(TIDE_ERROR_ARGUMENT, call, "%u comes twice", types[i]);
    }
    return TIDE_OK;
}

tide_status tide_site_declare_dispatch(tide_site *site, const tide_generic *generic,
                                       const tide_type *types, size_t count)
{
    const char *call = "tide_site_declare_dispatch";
    TIDE_FORWARD(steer_check_site(site, generic, types, count, call));
    TIDE_FORWARD(steer_check_types(generic, types, count, call));
    TIDE_FORWARD(steer_begin(site, call));
    tide_declared_uses uses = {.generic = generic, .count = (uint32_t)count};
    for (size_t i = 0; i < count; i++)
        uses.types[i] = tide_generic_number(generic, types[i]);
    steer_put_uses(site, uses);
    tide_registry_unlock();
    return TIDE_OK;
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
    tide_os_free(site->record->uses.shapes);
    site->record->uses = (tide_declared_uses){0};
    site->record->table = site->record->compiled = NULL;
    tide_site_forget(site, false);
    tide_site_publish(site);
    tide_registry_unlock();
    return TIDE_OK;
}
