/* SPDX-License-Identifier: MIT */
/* Observation by plan swap: an observing plan wraps the plan in force and, when the scope ends,
 * reads in the undo log what it touched. A site that is not observed runs its plan unwrapped. */
#include <search.h>
#include <string.h>

#include <tidepool/profile.h>
#include <tidepool/scope.h>

#include "runtime/assert.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/os.h"
#include "runtime/registry.h"
#include "runtime/seam.h"
#include "runtime/row.h"
#include "runtime/site.h"

enum { PROFILE_TYPES = sizeof((tide_site_profile *)0)->types / sizeof(tide_profile_type) };

/* One wrapper for each plan that was ever observed: plans are few and kept for good. */
typedef struct observing_plan {
    tide_plan plan;
    const tide_plan *wrapped;
} observing_plan;

static void *wrappers; /* by the plan they wrap; guarded by the registry */
static bool observing; /* guarded by the registry */

/* ---- counting --------------------------------------------------------------------------- */

static void add(uint64_t *counter, uint64_t amount)
{
    __atomic_fetch_add(counter, amount, __ATOMIC_RELAXED);
}

static void raise_to(uint32_t *most, uint32_t value)
{
    uint32_t seen = __atomic_load_n(most, __ATOMIC_RELAXED);
    while (seen < value && !__atomic_compare_exchange_n(most, &seen, value, true, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED))
        continue;
}

/* The profile's place for a type, claimed on first sight; NULL when all are taken. */
static tide_profile_type *place_of(tide_site_profile *profile, tide_type type)
{
    for (uint32_t i = 0; i < PROFILE_TYPES; i++) {
        tide_profile_type *place = &profile->types[i];
        tide_type seen = __atomic_load_n(&place->type, __ATOMIC_RELAXED);
        if (seen == TIDE_NO_TYPE &&
            __atomic_compare_exchange_n(&place->type, &seen, type, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return place;
        if (seen == type)
            return place;
    }
    return NULL;
}

/* A shelf that the plan saved and the scope did not need counts for nothing. */
static void count_slots(tide_site_profile *profile, tide_type type, const tide_slot *now,
                        const tide_slot *then)
{
    uint32_t slots = (uint32_t)(now - then);
    if (slots == 0)
        return;
    tide_profile_type *place = place_of(profile, type);
    if (place == NULL) {
        add(&profile->other, 1);
        return;
    }
    add(&place->scopes, 1);
    add(&place->slots, slots);
    raise_to(&place->slots_most, slots);
}

/* What the plan kept in the scope instead of the log. */
static void count_saved(tide_site_profile *profile, const tide_scope *scope)
{
    const tide_plan *plan = scope->plan;
    for (uint32_t i = 0; i < plan->type_count; i++)
        count_slots(profile, plan->types[i], scope->pool->shelves[plan->types[i]].next,
                    scope->saved[i]);
}

/* Did the scope, or an entry below this one, save the same shelf already? Then a level left open
 * saved it again, and the older state counts all of it. */
static bool stands_below(const tide_scope *scope, const tide_entry *entry)
{
    for (const tide_entry *below = scope->base; below != entry; below++)
        if (below->shelf == entry->shelf)
            return true;
    const tide_plan *plan = scope->plan;
    for (uint32_t i = 0; scope->saved[0] != NULL && i < plan->type_count; i++)
        if (&scope->pool->shelves[plan->types[i]] == entry->shelf)
            return true;
    return false;
}

/* An inner scope's entry can only stand among those of a scope that was left open; the tag says
 * whether there is one, and the quadratic look back is only for that case. */
static void count_scope(tide_site_profile *profile, const tide_scope *scope)
{
    const tide_pool *pool = scope->pool;
    bool leaked = pool->tag != scope->tag;
    add(&profile->scopes, 1);
    for (const tide_entry *entry = scope->base; entry < pool->log_top; entry++) {
        if (!tide_shelf_real(pool, entry->shelf) || (leaked && stands_below(scope, entry)))
            continue;
        count_slots(profile, tide_row_of(pool, entry->shelf)->type, entry->shelf->next,
                    entry->next);
    }
    if (scope->saved[0] != NULL)
        count_saved(profile, scope);
}

/* ---- the observing plan ----------------------------------------------------------------- */

static void enter(tide_scope *scope, tide_pool *pool, const tide_plan *plan, tide_site *site)
{
    const observing_plan *self = (const observing_plan *)plan;
    self->wrapped->enter(scope, pool, self->wrapped, site);
    scope->plan = plan;
    scope->site = site;
}

static void leave(tide_scope *scope)
{
    const observing_plan *self = (const observing_plan *)scope->plan;
    const tide_site_record *record = scope->site->record;
    tide_site_profile *profile =
        record != NULL ? __atomic_load_n(&record->profile, __ATOMIC_ACQUIRE) : NULL;
    tide_pool *pool = scope->pool;
    if (profile != NULL && pool != tide_pool_refusing() &&
        (pool->tag == scope->tag || !tide_abandoned(pool, scope->tag)))
        count_scope(profile, scope);
    scope->plan = self->wrapped;
    self->wrapped->leave(scope);
}

static int compare(const void *left, const void *right)
{
    const tide_plan *a = ((const observing_plan *)left)->wrapped;
    const tide_plan *b = ((const observing_plan *)right)->wrapped;
    return (a > b) - (a < b);
}

/* NULL when memory is short. */
static const tide_plan *wrap(const tide_plan *plan)
{
    observing_plan *made = tide_os_resize(NULL, sizeof *made);
    if (made == NULL)
        return NULL;
    *made = (observing_plan){.plan = *plan, .wrapped = plan};
    made->plan.enter = enter;
    made->plan.leave = leave;
    observing_plan *const *found =
        tide_os_faulted(sizeof(void *)) ? NULL : tsearch(made, &wrappers, compare);
    if (found == NULL || *found != made)
        tide_os_free(made);
    return found != NULL ? &(*found)->plan : NULL;
}

/* ---- the seam --------------------------------------------------------------------------- */

static bool ensure_profile(tide_site_record *record)
{
    if (record->profile != NULL)
        return true;
    tide_site_profile *profile = tide_os_resize(NULL, sizeof *profile);
    if (profile == NULL)
        return false;
    memset(profile, 0, sizeof *profile);
    __atomic_store_n(&record->profile, profile, __ATOMIC_RELEASE);
    return true;
}

static const tide_plan *publish(tide_site *site, const tide_plan *plan)
{
    if (!observing || site->kind != TIDE_KIND_SCOPE || !ensure_profile(site->record))
        return plan;
    const tide_plan *wrapper = wrap(plan);
    return wrapper != NULL ? wrapper : plan;
}

static void clear(tide_site_profile *profile)
{
    __atomic_store_n(&profile->scopes, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&profile->other, 0, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < PROFILE_TYPES; i++) {
        tide_profile_type *place = &profile->types[i];
        __atomic_store_n(&place->scopes, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&place->slots, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&place->slots_most, 0, __ATOMIC_RELAXED);
    }
}

/* Scopes inside the site may still count, so a profile keeps its address, and its types their
 * places, until the module goes. */
static void forget(tide_site *site, bool going)
{
    tide_site_profile *profile = site->record->profile;
    if (profile == NULL)
        return;
    if (!going) {
        clear(profile);
        return;
    }
    site->record->profile = NULL;
    tide_os_free(profile);
}

static bool republish(tide_site *site, void *user)
{
    tide_status *status = user;
    bool arrived = tide_site_arrived(site);
    bool possible = !observing || ensure_profile(site->record);
    if (arrived)
        tide_site_publish(site);
    if (!possible || (observing && arrived && site->kind == TIDE_KIND_SCOPE && site->plan->enter != enter))
        *status = tide_fail(TIDE_ERROR_MEMORY, "tide_profile_observe",
                            "no memory to observe a site");
    return true;
}

tide_status tide_profile_observe(bool on)
{
    tide_status status = TIDE_OK;
    tide_seam_attach();
    tide_registry_lock();
    tide_callbacks_profile = (tide_callbacks){publish, forget, NULL};
    observing = on;
    tide_site_each(republish, &status);
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
    const tide_site_profile *profile = site->record != NULL ? site->record->profile : NULL;
    if (profile != NULL) {
        out->scopes = __atomic_load_n(&profile->scopes, __ATOMIC_RELAXED);
        out->other = __atomic_load_n(&profile->other, __ATOMIC_RELAXED);
        for (uint32_t i = 0; i < PROFILE_TYPES; i++) {
            const tide_profile_type *place = &profile->types[i];
            tide_profile_type seen = {
                .type = __atomic_load_n(&place->type, __ATOMIC_RELAXED),
                .scopes = __atomic_load_n(&place->scopes, __ATOMIC_RELAXED),
                .slots = __atomic_load_n(&place->slots, __ATOMIC_RELAXED),
                .slots_most = __atomic_load_n(&place->slots_most, __ATOMIC_RELAXED),
            };
            if (seen.scopes != 0)
                out->types[out->type_count++] = seen;
        }
    }
    tide_registry_unlock();
    return TIDE_OK;
}
