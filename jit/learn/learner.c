/* SPDX-License-Identifier: MIT */
/* Makes and frees learners and plans, gives plans their code, puts plans in force. What to do with a
 * site is decided elsewhere (jit/learn/force.c). */
#include "jit/learn/learner.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "jit/events/event.h"
#include "jit/learn/background.h"
#include "jit/learn/pays.h"
#include "jit/learn/round.h"
#include "jit/learn/trial.h"
#include "profiler/observe.h"
#include "profiler/window.h"
#include "runtime/base/assert.h"
#include "runtime/base/hash.h"
#include "runtime/base/os.h"
#include "runtime/base/settings.h"
#include "runtime/dispatch/generic.h"
#include "runtime/scope/compiled.h"
#include "runtime/scope/plan.h"
#include "runtime/scope/site.h"

/* "tide_scope_", types as far as there is room, "_", 16 digits. */
enum { NAMES_ROOM = TIDE_SPEC_STEM - 18 };

/* ---- making ----------------------------------------------------------------------------- */

tide_learner *tide_learner_of(tide_site *site)
{
    static uint64_t made; /* guarded by the registry */
    tide_assert(site->record != NULL);
    if (site->record->learner != NULL)
        return site->record->learner;
    tide_learner *learner = tide_os_resize(NULL, sizeof *learner);
    if (learner == NULL)
        return NULL;
    *learner = (tide_learner){.site = site, .number = ++made, .in_force = TIDE_NO_PLAN};
    learner->misses_max = tide_constant_whole(TIDE_CONSTANT_misses);
    site->record->learner = learner;
    return learner;
}

const tide_site_profile *tide_learner_evidence(const tide_learner *learner)
{
    static tide_site_profile evidence; /* guarded by the registry: stacks may be small */
    tide_profile_unpack(learner->evidence, &evidence);
    return &evidence;
}

bool tide_learner_set_evidence(tide_learner *learner, const tide_site_profile *evidence)
{
    return tide_profile_pack(&learner->evidence, evidence);
}

/* What stands behind a scope's types: its plan by either tier, and the shelves. */
typedef struct learned_scope {
    tide_plan table, code;
    uint32_t shelves[];
} learned_scope;

_Static_assert(_Alignof(learned_scope) == _Alignof(tide_plan) &&
                   _Alignof(tide_dispatch_table) == _Alignof(tide_plan),
               "either may stand where a plan may");
_Static_assert(offsetof(learned_scope, table) == 0 && offsetof(tide_dispatch_table, plan) == 0,
               "a plan's `table` is either's address");

/* A plan of these types, all zero but for them and for where its `table` stands. */
static tide_learned *learner_allocate_plan(tide_learner *learner, const tide_items *items)
{
    bool scope = learner->site->kind == TIDE_KIND_SCOPE;
    size_t types = offsetof(tide_learned, items.types) + items->count * sizeof *items->types;
    size_t start = (types + _Alignof(tide_plan) - 1) / _Alignof(tide_plan) * _Alignof(tide_plan);
    size_t bytes = start + (scope ? sizeof(learned_scope) + items->count * sizeof(uint32_t)
                                  : sizeof(tide_dispatch_table));
    tide_learned *plan = tide_os_resize(NULL, bytes);
    if (plan == NULL)
        return NULL;
    memset(plan, 0, bytes);
    plan->learner = learner;
    plan->items.count = items->count;
    plan->items.generic = items->generic;
    memcpy(plan->items.types, items->types, items->count * sizeof *items->types);
    plan->table = (tide_plan *)(void *)((char *)plan + start);
    return plan;
}

/* What both tiers of a scope's plan say of its types. */
static tide_plan learner_describe_scope(const tide_items *items, const uint32_t *shelves,
                                        tide_tier tier)
{
    tide_plan made = {
        .tier = tier, .type_count = items->count, .types = items->types, .shelves = shelves};
    tide_plan_bring_near(&made);
    tide_plan_use_table(&made);
    return made;
}

/* Until its code is loaded `code` is a table, by which a scope that is open leaves, too. */
static void learner_fill_scope(tide_learned *plan)
{
    learned_scope *both = (learned_scope *)plan->table;
    const tide_items *items = &plan->items;
    for (uint32_t i = 0; i < items->count; i++)
        both->shelves[i] = tide_plan_shelf(items->types[i]);
    both->table = learner_describe_scope(items, both->shelves, TIDE_TIER_TABLE);
    if (items->count != 0) /* else each touch would be a miss */
        both->table.counts = &plan->table_counts;
    both->code = learner_describe_scope(items, both->shelves, TIDE_TIER_COMPILED);
    both->code.counts = &plan->code_counts;
    plan->code = &both->code;
}

/* False: a type has no method of its own. */
static bool learner_fill_dispatch(tide_learned *plan)
{
    *plan->table = (tide_plan){.kind = TIDE_KIND_DISPATCH,
                               .tier = TIDE_TIER_TABLE,
                               .type_count = plan->items.count,
                               .types = plan->items.types,
                               .counts = &plan->table_counts};
    return tide_dispatch_use_table((tide_dispatch_table *)plan->table, plan->items.generic);
}

static tide_learned *learner_make_plan(tide_learner *learner, const tide_items *items,
                                       tide_reason *why)
{
    tide_assert(items->count <= TIDE_ITEMS_MAX);
    tide_learned *plan = learner_allocate_plan(learner, items);
    *why = TIDE_REASON_no_memory;
    if (plan == NULL)
        return NULL;
    tide_assert(plan->state == TIDE_CODE_NONE);
    if (learner->site->kind == TIDE_KIND_SCOPE) {
        learner_fill_scope(plan);
    } else if (!learner_fill_dispatch(plan)) {
        *why = TIDE_REASON_no_method;
        tide_os_free(plan);
        return NULL;
    }
    return plan;
}

/* Room for one plan more: they are few. */
static bool learner_reserve(tide_learner *learner)
{
    size_t bytes = (learner->plan_count + 1) * sizeof(tide_learned *);
    tide_learned **plans = tide_os_resize(learner->plans, bytes);
    if (plans != NULL)
        learner->plans = plans;
    return plans != NULL;
}

tide_learned *tide_learner_plan(tide_learner *learner, const tide_items *items, uint32_t *number,
                                tide_reason *why)
{
    for (*number = 0; *number < learner->plan_count; ++*number)
        if (tide_items_same(&learner->plans[*number]->items, items))
            return learner->plans[*number];
    bool full = learner->plan_count >= (uint32_t)tide_constant_get(TIDE_CONSTANT_plans_max);
    *why = full ? TIDE_REASON_too_many_plans : TIDE_REASON_no_memory;
    if (full || !learner_reserve(learner))
        return NULL;
    tide_learned *plan = learner_make_plan(learner, items, why);
    tide_assert(*number == learner->plan_count);
    if (plan != NULL)
        learner->plans[learner->plan_count++] = plan;
    return plan;
}

/* ---- code ------------------------------------------------------------------------------- */

void tide_learned_load(tide_learned *plan, void *enter, void *leave)
{
    tide_assert(plan->state < TIDE_CODE_LOADED && enter != NULL);
    plan->state = TIDE_CODE_LOADED;
    tide_enter_function *code;
    tide_leave_function *end;
    memcpy(&code, &enter, sizeof code);
    memcpy(&end, &leave, sizeof end);
    __atomic_store_n(&plan->code->enter, code, __ATOMIC_RELEASE);
    __atomic_store_n(&plan->code->leave, end, __ATOMIC_RELEASE);
}

uint64_t tide_learned_form(const tide_learned *plan)
{
    bool counts = tide_setting_get(TIDE_SETTING_count_runs) != 0;
    return tide_hash_bytes(plan->items.types, plan->items.count * sizeof *plan->items.types) +
           counts;
}

/* Names the code to a reader of a native profile: the types, then the number. */
static void learned_name(const tide_learned *plan, tide_spec *out)
{
    char words[NAMES_ROOM];
    int at = snprintf(words, NAMES_ROOM, "tide_scope");
    for (uint32_t i = 0; i < out->item_count && at < NAMES_ROOM; i++)
        at += snprintf(words + at, (size_t)(NAMES_ROOM - at), "_%s", out->items[i].name);
    for (char *c = words; *c != '\0'; c++)
        if (!tide_spec_is_word_byte(*c))
            *c = '_';
    snprintf(out->stem, sizeof out->stem, "%s_%016" PRIx64, words, tide_learned_form(plan));
    tide_assert(strlen(out->stem) > strlen(words));
}

void tide_learned_spec(const tide_learned *plan, tide_spec *out)
{
    tide_assert(tide_items_fit(&plan->items));
    *out = (tide_spec){.count = tide_setting_get(TIDE_SETTING_count_runs) != 0,
                       .item_count = plan->items.count};
    for (uint32_t i = 0; i < out->item_count; i++) {
        out->items[i].type = plan->items.types[i];
        snprintf(out->items[i].name, sizeof out->items[i].name, "%s",
                 tide_type_name(plan->items.types[i]));
    }
    learned_name(plan, out);
}

/* ---- in force --------------------------------------------------------------------------- */

tide_learned *tide_learner_plan_in_force(const tide_learner *learner)
{
    tide_assert(learner->in_force == TIDE_NO_PLAN || learner->in_force < learner->plan_count);
    return learner->in_force != TIDE_NO_PLAN ? learner->plans[learner->in_force] : NULL;
}

uint64_t tide_learned_misses(const tide_learned *plan)
{
    return __atomic_load_n(&plan->table_counts.misses, __ATOMIC_RELAXED) +
           __atomic_load_n(&plan->code_counts.misses, __ATOMIC_RELAXED);
}

tide_learned *tide_learned_of(const tide_plan *plan)
{
    uintptr_t types = (uintptr_t)plan->types;
    tide_learned *of = (tide_learned *)(types - offsetof(tide_learned, items.types));
    tide_assert(plan == of->table || plan == of->code);
    tide_assert(of->learner->plan_count != 0);
    return of;
}

static void learned_arm_counts(tide_plan_counts *counts, uint64_t more)
{
    uint64_t misses = __atomic_load_n(&counts->misses, __ATOMIC_RELAXED);
    __atomic_store_n(&counts->alarm, more != 0 ? misses + more : 0, __ATOMIC_RELAXED);
}

void tide_learned_arm(tide_learned *plan, uint64_t more)
{
    if (tide_constant_get(TIDE_CONSTANT_adapt) == 0)
        more = 0; /* rounds look at the misses */
    learned_arm_counts(&plan->table_counts, more);
    learned_arm_counts(&plan->code_counts, more);
}

bool tide_learned_armed(const tide_learned *plan)
{
    return __atomic_load_n(&plan->table_counts.alarm, __ATOMIC_RELAXED) != 0;
}

void tide_learner_use(tide_learner *learner, uint32_t number, tide_reason reason)
{
    tide_assert(number == TIDE_NO_PLAN || number < learner->plan_count);
    tide_site_record *record = learner->site->record;
    tide_pays_count(learner);
    tide_learned *plan = number != TIDE_NO_PLAN ? learner->plans[number] : NULL;
    bool scope = learner->site->kind == TIDE_KIND_SCOPE;
    record->table = plan != NULL ? plan->table : NULL;
    record->compiled = plan != NULL && plan->state == TIDE_CODE_ADOPTED ? plan->code : NULL;
    learner->in_force = number;
    learner->misses_seen = plan != NULL ? tide_learned_misses(plan) : 0;
    if (plan != NULL)
        tide_learned_arm(plan, scope ? learner->misses_max : 0);
    learner->reason = reason;
    const tide_plan *before = __atomic_load_n(&learner->site->plan, __ATOMIC_RELAXED);
    tide_site_publish(learner->site);
    const tide_plan *after = __atomic_load_n(&learner->site->plan, __ATOMIC_RELAXED);
    if (before != after) {
        learner->generation++;
        tide_event_note(TIDE_EVENT_PUBLISHED, learner->site, after->tier, reason, "");
    }
}

/* ---- the hooks -------------------------------------------------------------------------- */

/* A scope's types are put in force at once, and the next windows correct what the first one saw;
 * a dispatch waits for a whole window. */
uint64_t tide_learner_first_window(const tide_site *site)
{
    if (site->kind != TIDE_KIND_SCOPE || tide_constant_get(TIDE_CONSTANT_adapt) == 0)
        return tide_constant_whole(TIDE_CONSTANT_window_calls);
    double uses = tide_constant_get(TIDE_CONSTANT_window_first);
    double least = tide_constant_get(TIDE_CONSTANT_sample_min);
    return (uint64_t)(uses > least ? uses : least);
}

/* The site gets its first plan, and is observed from its first use, unless its types are known: a
 * loaded profile may decide nothing. */
static void learner_welcome(tide_site *site)
{
    tide_learner *learner = tide_learner_of(site);
    if (learner == NULL)
        return;
    learner->reason = TIDE_REASON_found;
    tide_event_note(TIDE_EVENT_FOUND, site, TIDE_TIER_FULL, TIDE_REASON_found, "");
    if (site->record->pinned || site->record->declared != NULL || learner->in_force != TIDE_NO_PLAN)
        return;
    learner->window = tide_window_begin(site, tide_learner_first_window(site));
}

/* The hook: which plan the site gets in place of the one that the runtime would publish. */
const tide_plan *tide_learner_publish(tide_site *site, const tide_plan *plan)
{
    tide_learner *learner = site->record->learner;
    if (tide_setting_get(TIDE_SETTING_learn) != 0 && !tide_site_arrived(site) &&
        (learner == NULL || learner->reason == TIDE_REASON_none || learner->prior))
        learner_welcome(site);
    else if (learner != NULL && !site->record->pinned && !tide_round_held())
        tide_background_need(); /* the program steers it */
    if (learner == NULL || learner->in_force == TIDE_NO_PLAN)
        return plan;
    tide_assert(learner->in_force < learner->plan_count);
    return tide_trial_wrap(learner->plans[learner->in_force], plan);
}

/* Its site is going, so nobody can be inside. */
static void learner_free_plan(tide_learned *plan)
{
    tide_observe_drop(plan->table);
    if (plan->code != NULL)
        tide_observe_drop(plan->code);
    tide_os_free(plan->trial);
    tide_os_free(plan);
}

static void learner_free(tide_learner *learner)
{
    for (uint32_t i = 0; i < learner->plan_count; i++)
        learner_free_plan(learner->plans[i]);
    tide_os_free(learner->plans);
    tide_os_free(learner->evidence);
    tide_os_free(learner);
}

/* The plans stay: scopes may be inside, and the next profile may want them again. */
static void learner_start_again(tide_learner *learner)
{
    tide_learned *plan = tide_learner_plan_in_force(learner);
    if (plan != NULL)
        tide_trial_end(learner, plan);
    for (uint32_t i = 0; i < learner->plan_count; i++)
        tide_trial_forget(learner->plans[i]);
    learner->in_force = TIDE_NO_PLAN;
    tide_os_free(learner->evidence);
    learner->evidence = NULL;
    learner->windows = learner->next_window = learner->quiet_since = 0;
    learner->uses_counted = 0;
    learner->misses_max = tide_constant_whole(TIDE_CONSTANT_misses);
    learner->prior = learner->fresh = learner->at_once = false;
    learner->misses_seen = learner->uses_changed = 0;
    learner->reason = TIDE_REASON_reset;
    tide_assert(learner->in_force == TIDE_NO_PLAN);
}

void tide_learner_forget(tide_site *site, bool going)
{
    tide_learner *learner = site->record->learner;
    if (learner == NULL)
        return;
    tide_assert(learner->site == site);
    if (!going) {
        learner_start_again(learner);
        return;
    }
    site->record->learner = NULL;
    learner_free(learner);
}

/* Of all its plans. */
static void learner_describe_plans(const tide_learner *learner, tide_site_information *out)
{
    for (uint32_t i = 0; i < learner->plan_count; i++) {
        const tide_learned *plan = learner->plans[i];
        out->compile_ns += plan->compile_ns;
        out->saved_ns += plan->saved_ns;
        out->misses += tide_learned_misses(plan);
        out->runs += __atomic_load_n(&plan->code_counts.runs, __ATOMIC_RELAXED);
    }
    tide_assert(out->compile_ns >= 0 && out->saved_ns >= 0);
}

static void learner_describe_plan_in_force(const tide_learned *plan, tide_site_information *out)
{
    out->lost_ns = tide_pays_lost(plan);
    tide_trial_figures measured = tide_trial_measured(plan);
    out->trial_uses = measured.uses;
    out->trial_ns = measured.control_ns;
    out->trial_code_ns = measured.candidate_ns;
    out->trial_error_ns = measured.error_ns;
}

void tide_learner_describe(const tide_site *site, tide_site_information *out)
{
    tide_learner *learner = site->record->learner;
    tide_reason why = learner != NULL ? learner->reason : TIDE_REASON_none;
    out->reason = tide_reason_words(out->pinned ? TIDE_REASON_pinned : why);
    out->reason_code = tide_reason_code(out->pinned ? TIDE_REASON_pinned : why);
    if (learner == NULL)
        return;
    tide_pays_count(learner);
    out->generation = learner->generation;
    out->compiles = learner->compiles;
    learner_describe_plans(learner, out);
    const tide_learned *plan = tide_learner_plan_in_force(learner);
    if (plan != NULL)
        learner_describe_plan_in_force(plan, out);
    tide_pays_describe(plan, out);
}
