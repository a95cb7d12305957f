/* SPDX-License-Identifier: MIT */
/* What a site loses without code, against what a compile costs. */
#include "jit/learn/pays.h"

#include "jit/events/event.h"
#include "jit/learn/trial.h"
#include "runtime/base/assert.h"
#include "runtime/base/registry.h"
#include "runtime/base/settings.h"
#include "runtime/scope/site.h"

/* ---- the model -------------------------------------------------------------------------- */

/* Nanoseconds that the code of a scope gains a use, as the benchmark has it for two compilers on one
 * machine: its table is nearly as good. */
static const double pays_gain_ns = 0.5;

/* By kind, in nanoseconds. It is rough: the least that loops over a site took on one virtual machine
 * that was busy with other work, entering and leaving, acquiring, dispatching to an empty method. It
 * tells which tier is dearer and by about how much. */
static const struct {
    double use, type; /* by table, and for each type that is known */
    double full;      /* at tier full, few types in the pool       */
} pays_of[TIDE_KIND_COUNT] = {
    [TIDE_KIND_SCOPE] = {.use = 8, .type = 0.4, .full = 22},
    [TIDE_KIND_DISPATCH] = {.use = 6, .full = 8},
};

_Static_assert(TIDE_KIND_COUNT == 2, "each kind has its row");

/* What a batch costs in itself, and each site in it: nanoseconds of the processor. */
static const double pays_batch_ns = 12e6, pays_site_ns = 3e6;

static const double pays_trial_ns = 50e3; /* some hundred uses that are timed */

static double pays_scale = 1; /* what batches were measured to cost, to the model's figure */

static double pays_modelled(uint32_t sites)
{
    tide_assert(sites > 0);
    return pays_batch_ns + sites * pays_site_ns;
}

double tide_pays_cost(void)
{
    return pays_scale * pays_modelled(1);
}

void tide_pays_spent(uint32_t sites, double ns)
{
    enum { MOST = 10 }; /* times as dear, or as cheap: a machine may be that slow */
    double measured = ns / pays_modelled(sites);
    tide_assert(ns >= 0 && pays_scale > 0);
    measured = measured > MOST ? MOST : measured < 1. / MOST ? 1. / MOST : measured;
    __atomic_fetch_add(&tide_learning_figures.spent_us, (uint64_t)(ns / 1e3), __ATOMIC_RELAXED);
    tide_registry_lock();
    pays_scale += (measured - pays_scale) / 2;
    tide_registry_unlock();
}

/* ---- what a use takes ------------------------------------------------------------------- */

/* Of the tier that code is tried against. */
static double pays_modelled_control(tide_kind kind, uint32_t types)
{
    return pays_of[kind].use + types * pays_of[kind].type;
}

static tide_site_rival pays_modelled_use(tide_kind kind, tide_tier tier, uint32_t types)
{
    double control = pays_modelled_control(kind, types);
    tide_assert(control > pays_gain_ns);
    return (tide_site_rival){.tier = tier,
                             .ns = tier == TIDE_TIER_COMPILED ? control - pays_gain_ns
                                   : tier == TIDE_TIER_TABLE  ? control
                                                              : pays_of[kind].full};
}

/* `plan` NULL: the types of the site are not known, and the model counts none. */
static tide_site_rival pays_use_by(const tide_learned *plan, tide_kind kind, tide_tier tier)
{
    uint32_t types = plan != NULL ? plan->items.count : 0;
    tide_trial_figures measured = {0};
    if (plan != NULL)
        measured = tide_trial_measured(plan);
    tide_site_rival use = pays_modelled_use(kind, tier, types);
    if (measured.uses == 0)
        return use;
    if (tier != TIDE_TIER_FULL)
        return (tide_site_rival){.tier = tier,
                                 .ns = tier == TIDE_TIER_TABLE ? measured.control_ns
                                                               : measured.candidate_ns,
                                 .measured = true};
    use.ns *= measured.control_ns / pays_modelled_control(kind, types);
    return use;
}

void tide_pays_describe(const tide_learned *plan, tide_site_information *out)
{
    for (int tier = TIDE_TIER_FULL; tier <= TIDE_TIER_COMPILED; tier++) {
        bool made = plan != NULL ? tide_items_fit(&plan->items) : out->kind == TIDE_KIND_SCOPE;
        if (tier == TIDE_TIER_COMPILED && !made)
            continue;
        tide_site_rival use = pays_use_by(plan, out->kind, (tide_tier)tier);
        if (use.tier == out->tier) {
            out->use_ns = use.ns;
            out->use_measured = use.measured;
        } else if (plan != NULL) {
            tide_assert(out->rival_count < TIDE_TIER_COMPILED);
            out->rivals[out->rival_count++] = use;
        }
    }
}

/* ---- what is lost ----------------------------------------------------------------------- */

/* Nanoseconds of a use: as a trial has measured it, or else as modelled. */
static double pays_measured_gain(const tide_learned *plan)
{
    tide_trial_figures measured = tide_trial_measured(plan);
    return measured.uses == 0 ? pays_gain_ns : measured.control_ns - measured.candidate_ns;
}

/* A trial that the code has lost says that there is nothing to gain. It may have been wrong, so the
 * code gets another chance, but late. */
static double pays_gain_of(const tide_learned *plan)
{
    double gain = pays_measured_gain(plan), least = pays_gain_ns / 10;
    return gain > least && gain > tide_trial_measured(plan).error_ns ? gain : least;
}

void tide_pays_count(tide_learner *learner)
{
    if (learner->site->kind != TIDE_KIND_SCOPE)
        return; /* it has no code that could be missed */
    uint64_t uses = tide_site_uses(learner->site), more = uses - learner->uses_counted;
    tide_assert(uses >= learner->uses_counted);
    learner->uses_counted = uses;
    tide_learned *plan = tide_learner_plan_in_force(learner);
    if (plan == NULL)
        return;
    double gain = pays_measured_gain(plan);
    if (plan->state != TIDE_CODE_ADOPTED)
        plan->uses_without += (double)more;
    else if (gain > 0)
        plan->saved_ns += (double)more * gain;
}

double tide_pays_lost(const tide_learned *plan)
{
    tide_assert(plan->uses_without >= 0);
    if (!tide_items_fit(&plan->items))
        return 0; /* there is no code that could be missed */
    return plan->uses_without * pays_gain_of(plan);
}

/* ---- the decision ----------------------------------------------------------------------- */

static double pays_factor(void)
{
    return tide_setting_get(TIDE_SETTING_break_even);
}

bool tide_pays_compile(const tide_learned *plan)
{
    return tide_pays_lost(plan) >= pays_factor() * tide_pays_cost();
}

bool tide_pays_trial(const tide_learned *plan)
{
    return tide_pays_lost(plan) >= pays_factor() * pays_trial_ns;
}
