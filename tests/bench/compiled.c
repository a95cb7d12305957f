/* SPDX-License-Identifier: MIT */
/* Getting a site compiled. Nothing is believed: the plan in force must be of tier compiled, its code
 * must lie in an object that was loaded for it, and of a twin of the measured site,
 * compiled to count, every single use must have been counted. */
#define _GNU_SOURCE
#include "compiled.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tidepool/learn.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>

enum { ROUNDS_MAX = 400, SETTLE_MS = 60000 };

void bench_learning_prepare(void)
{
#if BENCH_HAVE_STAGER
    setenv("TIDEPOOL_STAGER", BENCH_STAGER, 0);
#endif
    bench_tune("background", 0);
    bench_tune("break_even", 0); /* what it costs or gains is measured, so it must be there */
}

double bench_tune(const char *name, double value)
{
    double before = 0;
    if (tide_tune_get(name, &before) != TIDE_OK || tide_tune_set(name, value) != TIDE_OK)
        bench_die("%s", tide_error_message());
    return before;
}

/* --- finding sites ------------------------------------------------------------------------ */

typedef struct wanted {
    const char *name;
    tide_site *site;
    size_t found;
} wanted;

static bool note_if_wanted(tide_site *site, void *user)
{
    wanted *want = user;
    if (site->name != NULL && strcmp(site->name, want->name) == 0) {
        want->site = site;
        want->found++;
    }
    return true;
}

tide_site *bench_site_named(const char *name)
{
    wanted want = {.name = name};
    tide_site_each(note_if_wanted, &want);
    if (want.found != 1)
        bench_die("%zu sites are named %s", want.found, name);
    return want.site;
}

/* --- compiling ---------------------------------------------------------------------------- */

static tide_site_information ask(const tide_site *site)
{
    tide_site_information info;
    if (tide_site_info(site, &info) != TIDE_OK)
        bench_die("%s", tide_error_message());
    return info;
}

/* A dispatch has no code of its own. */
static tide_tier best(const tide_site *site)
{
    return site->kind == TIDE_KIND_DISPATCH ? TIDE_TIER_TABLE : TIDE_TIER_COMPILED;
}

/* An open window would be what is measured. */
static bool compiled(const tide_site *site)
{
    tide_site_information info = ask(site);
    return info.tier == best(site) && !info.observed;
}

static _Noreturn void give_up(const tide_site *site)
{
    tide_site_information info = ask(site);
    bench_die("site %s was not compiled: tier %s, %llu samples, %llu compiles, %s", info.name,
              tide_tier_name(info.tier), (unsigned long long)info.samples,
              (unsigned long long)info.compiles, info.reason);
}

void bench_compile(tide_site *site, bench_use_function *use, void *state, uint64_t operations,
                   bool counting)
{
    if (compiled(site))
        return;
    double trial = bench_tune("trial", 0), count_runs = bench_tune("count_runs", counting);
    for (int round = 0; !compiled(site); round++) {
        if (round == ROUNDS_MAX)
            give_up(site);
        use(state, operations);
        if (tide_step() != TIDE_OK || tide_settle(SETTLE_MS) != TIDE_OK)
            bench_die("%s", tide_error_message());
    }
    if (tide_site_pin(site, best(site)) != TIDE_OK)
        bench_die("%s", tide_error_message());
    bench_tune("trial", trial);
    bench_tune("count_runs", count_runs);
}

/* --- is it what runs? --------------------------------------------------------------------- */

static const char here_is;

/* Loaded code, not this program's, in which the library is; of a dispatch its table. */
static bool is_at_its_best(tide_site *site)
{
    Dl_info where, here;
    const tide_plan *plan = __atomic_load_n(&site->plan, __ATOMIC_ACQUIRE);
    tide_enter_function *code = __atomic_load_n(&plan->enter, __ATOMIC_RELAXED);
    void *address;
    memcpy(&address, &code, sizeof address);
    if (best(site) == TIDE_TIER_TABLE && plan->tier == TIDE_TIER_TABLE)
        return true;
    if (plan->tier == TIDE_TIER_COMPILED && dladdr(address, &where) != 0 &&
        dladdr(&here_is, &here) != 0 && where.dli_fbase != here.dli_fbase &&
        where.dli_saddr == address)
        return true;
    bench_complain("site %s runs no compiled code: tier %s", ask(site).name,
                   tide_tier_name(plan->tier));
    return false;
}

void bench_prove_executed(tide_site *site, bench_use_function *use, void *state,
                          uint64_t operations)
{
    use(state, operations); /* slots reach their sizes */
    uint64_t before = ask(site).runs;
    use(state, operations);
    uint64_t runs = ask(site).runs - before;
    if (runs != operations || !is_at_its_best(site))
        bench_die("site %s: %llu uses of compiled code in %llu operations", site->name,
                  (unsigned long long)runs, (unsigned long long)operations);
}

void bench_compiled_warm(bench_compiled *c)
{
    if (c->site != NULL)
        c->misses = ask(c->site).misses;
}

bool bench_compiled_verify(const bench_compiled *c, uint64_t operations)
{
    if (c->site == NULL)
        return true;
    tide_site_information info = ask(c->site);
    if (!is_at_its_best(c->site))
        return false;
    if (info.runs != 0) {
        bench_complain("site %s was compiled to count", info.name);
        return false;
    }
    if ((double)(info.misses - c->misses) <= c->may_miss * (double)operations)
        return true;
    bench_complain("guards of compiled code failed %llu times",
                   (unsigned long long)(info.misses - c->misses));
    return false;
}
