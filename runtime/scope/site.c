/* SPDX-License-Identifier: MIT */
/* The list of sites, the plan that each of them runs, and what may be asked about them. */
#define _GNU_SOURCE
#include "runtime/scope/site.h"

#include <link.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/process.h"
#include "runtime/base/registry.h"
#include "runtime/base/ring.h"
#include "runtime/base/settings.h"
#include "runtime/base/type.h"
#include "runtime/pool/core.h"
#include "runtime/pool/uses.h"
#include "runtime/scope/plan.h"

/* In order of discovery. Guarded by the registry. */
static struct {
    tide_site **sites;
    size_t count, room;
    uint64_t ids; /* the last one given */
} site_list;

/* ---- listing ---------------------------------------------------------------------------- */

/* Room in the list for one more. */
static bool site_reserve(void)
{
    if (site_list.count < site_list.room)
        return true;
    size_t room = site_list.room == 0 ? 64 : site_list.room * 2;
    tide_site **sites = tide_os_resize(site_list.sites, room * sizeof *sites);
    if (sites == NULL)
        return false;
    site_list.sites = sites;
    site_list.room = room;
    tide_assert(site_list.count < site_list.room);
    return true;
}

/* A thread that enters it just then counts its use elsewhere, one at most. */
static void site_count_anew(tide_site *site, uint32_t number)
{
    __atomic_store_n(&site->number, number, __ATOMIC_RELAXED);
    site->record->uses_before = number != 0 ? tide_uses_sum(number) : 0;
}

uint64_t tide_site_uses(const tide_site *site)
{
    if (site->number == 0 || site->kind == TIDE_KIND_DISPATCH || site->record == NULL)
        return 0;
    uint64_t sum = tide_uses_sum(site->number);
    tide_assert(sum >= site->record->uses_before);
    return sum - site->record->uses_before;
}

/* What has no number is not counted, nor is a dispatch, which has no pool: then the least is told
 * that can have been. */
static void site_tell_uses(const tide_site *site, tide_site_information *out)
{
    const uint64_t least[] = {out->samples, out->misses, out->runs};
    out->uses_counted = site->number != 0 && site->kind != TIDE_KIND_DISPATCH;
    out->uses = tide_site_uses(site);
    for (size_t i = 0; i < sizeof least / sizeof *least; i++)
        out->uses = out->uses > least[i] ? out->uses : least[i];
}

bool tide_site_enlist(tide_site *site)
{
    tide_assert((unsigned)site->kind < TIDE_KIND_COUNT);
    if (site->record != NULL)
        return true;
    if (!site_reserve())
        return false;
    tide_site_record *record = tide_os_resize(NULL, sizeof *record);
    if (record == NULL)
        return false;
    *record = (tide_site_record){.id = ++site_list.ids};
    site->record = record;
    site_count_anew(site, tide_uses_take_number());
    tide_assert(site_list.count < site_list.room);
    site_list.sites[site_list.count++] = site;
    return true;
}

void tide_site_forget(tide_site *site, bool going)
{
    site_count_anew(site, site->number);
    TIDE_RINGS_CALL_INWARD(ring, forget)
    tide_rings[ring]->forget(site, going);
}

/* The site's module is being unloaded. (Should it stay after all, the site arrives again.) */
static void site_delist(tide_site *site)
{
    tide_assert(site->record != NULL);
    tide_site_forget(site, true);
    tide_uses_give_number(site->number);
    __atomic_store_n(&site->number, 0, __ATOMIC_RELAXED);
    tide_os_free(site->record);
    site->record = NULL;
    __atomic_store_n(&site->plan, &tide_plans_arriving[site->kind], __ATOMIC_RELEASE);
}

/* ---- publishing ------------------------------------------------------------------------- */

/* The types learned are newer than those declared. Without any, a table of none: every type is
 * saved when it is touched. */
static const tide_plan *site_table_of(const tide_site *site, const char *call)
{
    const tide_site_record *record = site->record;
    tide_assert(record != NULL);
    if (record->table != NULL || record->declared != NULL)
        return record->table != NULL ? record->table : record->declared;
    if (site->kind == TIDE_KIND_SCOPE)
        return tide_plan_table(NULL, 0, call);
    tide_fail(TIDE_ERROR_STATE, call, "no table was learned for the site yet");
    return NULL;
}

const tide_plan *tide_site_plan(const tide_site *site, tide_tier tier, const char *call)
{
    tide_assert(site->record != NULL && (unsigned)site->kind < TIDE_KIND_COUNT);
    if (tier == TIDE_TIER_FULL)
        return &tide_plans_general[site->kind];
    if (tier == TIDE_TIER_TABLE)
        return site_table_of(site, call);
    if (tier == TIDE_TIER_COMPILED && site->record->compiled != NULL)
        return site->record->compiled;
    tide_fail(TIDE_ERROR_STATE, call, "the site has no plan of tier %d (%s)", (int)tier,
              tide_tier_name(tier));
    return NULL;
}

/* A pin to compiled code outlasts the code: until there is new code, the next best tier is used. */
static tide_tier site_tier_wanted(const tide_site *site)
{
    const tide_site_record *record = site->record;
    if (record->pinned && (record->pin != TIDE_TIER_COMPILED || record->compiled != NULL))
        return record->pin;
    if (record->compiled != NULL)
        return TIDE_TIER_COMPILED;
    if (record->declared != NULL || record->table != NULL)
        return TIDE_TIER_TABLE;
    return site->kind == TIDE_KIND_SCOPE && tide_setting_get(TIDE_SETTING_tier) != 0
               ? TIDE_TIER_TABLE
               : TIDE_TIER_FULL;
}

void tide_site_publish(tide_site *site)
{
    tide_assert(site->record != NULL);
    const tide_plan *plan = tide_site_plan(site, site_tier_wanted(site), "tide_site_publish");
    if (plan == NULL)
        plan = &tide_plans_general[site->kind];
    TIDE_RINGS_CALL_INWARD(ring, publish)
    plan = tide_rings[ring]->publish(site, plan);
    tide_assert(plan != NULL && plan->kind == site->kind &&
                plan != &tide_plans_arriving[site->kind]);
    __atomic_store_n(&site->plan, plan, __ATOMIC_RELEASE);
}

bool tide_site_arrived(const tide_site *site)
{
    return __atomic_load_n(&site->plan, __ATOMIC_RELAXED) != &tide_plans_arriving[site->kind];
}

void tide_site_arrive(tide_site *site)
{
    tide_registry_lock();
    if (tide_site_enlist(site) && !tide_site_arrived(site))
        tide_site_publish(site);
    tide_registry_unlock();
}

size_t tide_site_list(tide_site *const **sites)
{
    tide_assert(site_list.count <= site_list.room);
    *sites = site_list.sites;
    return site_list.count;
}

/* ---- modules ---------------------------------------------------------------------------- */

void tide_module_enter(tide_site *const *first, tide_site *const *last, const void *anchor)
{
    (void)anchor;
    tide_registry_lock();
    for (tide_site *const *site = first; site != last; site++)
        tide_site_enlist(*site); /* what cannot be listed now is listed when first entered */
    tide_registry_unlock();
}

typedef struct site_module {
    uintptr_t anchor, first, last; /* `last` is the address after the end */
} site_module;

/* 1, which ends the visit, if the module contains the anchor. */
static int site_find_module(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    site_module *module = user;
    bool inside = false;
    module->first = UINTPTR_MAX, module->last = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD)
            continue;
        uintptr_t start = info->dlpi_addr + header->p_vaddr, end = start + header->p_memsz;
        inside |= module->anchor >= start && module->anchor < end;
        module->first = start < module->first ? start : module->first;
        module->last = end > module->last ? end : module->last;
    }
    return inside;
}

static void site_delist_module(const site_module *module)
{
    size_t kept = 0;
    for (size_t i = 0; i < site_list.count; i++) {
        uintptr_t address = (uintptr_t)site_list.sites[i];
        if (address >= module->first && address < module->last)
            site_delist(site_list.sites[i]);
        else
            site_list.sites[kept++] = site_list.sites[i];
    }
    site_list.count = kept;
    if (kept == 0) {
        tide_os_free(site_list.sites);
        site_list.sites = NULL;
        site_list.room = 0;
    }
}

/* Sites that C++ keeps out of the module's list are found by their address. When the process ends
 * the module stays, and other threads may be inside of its sites. */
void tide_module_leave(const void *anchor)
{
    site_module module = {.anchor = (uintptr_t)anchor};
    if (tide_exit_begun() || dl_iterate_phdr(site_find_module, &module) == 0)
        return;
    tide_assert(module.first < module.last);
    tide_registry_lock();
    site_delist_module(&module);
    tide_registry_unlock();
}

/* ---- asking ----------------------------------------------------------------------------- */

size_t tide_site_count(void)
{
    tide_registry_lock();
    size_t count = site_list.count;
    tide_registry_unlock();
    return count;
}

void tide_site_each(bool (*visit)(tide_site *site, void *user), void *user)
{
    tide_registry_lock();
    for (size_t i = 0; i < site_list.count && visit(site_list.sites[i], user); i++)
        continue;
    tide_registry_unlock();
}

tide_status tide_site_info(const tide_site *site, tide_site_information *out)
{
    if (site == NULL || out == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_site_info", "the %s is NULL",
                         site == NULL ? "site" : "result");
    const tide_plan *plan = __atomic_load_n(&site->plan, __ATOMIC_ACQUIRE);
    tide_assert(plan != NULL && (plan->type_count == 0 || plan->types != NULL));
    tide_registry_lock();
    *out = (tide_site_information){
        .name = tide_site_name(site),
        .function = site->place.function != NULL ? site->place.function : "",
        .file = site->place.file != NULL ? site->place.file : "",
        .line = site->place.line,
        .kind = site->kind,
        .tier = plan->tier,
        .pinned = site->record != NULL && site->record->pinned,
        .declared = site->record != NULL && site->record->declared != NULL,
        .type_count = plan->type_count,
        .reason = "",
        .reason_code = "",
        .id = site->record != NULL ? site->record->id : 0,
    };
    for (uint32_t i = 0; i < plan->type_count && i < TIDE_SITE_TYPES; i++)
        out->types[i] = plan->types[i];
    if (site->record != NULL)
        TIDE_RINGS_CALL(describe, site, out);
    site_tell_uses(site, out);
    tide_registry_unlock();
    return TIDE_OK;
}

const char *tide_tier_name(tide_tier tier)
{
    static const char *const names[] = {"full", "table", "compiled"};
    _Static_assert(sizeof names / sizeof *names == TIDE_TIER_COMPILED + 1, "each tier has a name");
    return (unsigned)tier < sizeof names / sizeof *names ? names[tier] : "unknown";
}
