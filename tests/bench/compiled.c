/* SPDX-License-Identifier: MIT */
/* Getting sites compiled. Nothing is believed: the plan in force must be of tier compiled, its code
 * must lie in an object that was loaded for it, and of a twin of each measured site,
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

enum { ROUNDS_MAX = 400 };

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
    const char *name, *file, *function;
    tide_kind kind;
    tide_site **out;
    size_t room, found;
} wanted;

static bool same(const char *left, const char *right)
{
    return left != NULL && right != NULL && strcmp(left, right) == 0;
}

static bool is_wanted(tide_site *site, void *user)
{
    wanted *want = user;
    bool it = want->name != NULL ? same(site->name, want->name)
                                 : site->kind == want->kind && same(site->place.file, want->file) &&
                                       same(site->place.function, want->function);
    if (it && want->found++ < want->room)
        want->out[want->found - 1] = site;
    return true;
}

tide_site *bench_site_named(const char *name)
{
    tide_site *site = NULL;
    wanted want = {.name = name, .out = &site, .room = 1};
    tide_site_each(is_wanted, &want);
    if (want.found != 1)
        bench_die("%zu sites are named %s", want.found, name);
    return site;
}

void bench_sites_in(const char *file, const char *function, tide_kind kind, tide_site **out,
                    size_t count)
{
    wanted want = {.file = file, .function = function, .kind = kind, .out = out, .room = count};
    tide_site_each(is_wanted, &want);
    if (want.found != count)
        bench_die("%zu sites of kind %s in %s, not %zu", want.found, tide_kind_name(kind), function,
                  count);
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

static bool all_compiled(const bench_compiled *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (!compiled(c->sites[i]))
            return false;
    return true;
}

static _Noreturn void give_up(const bench_compiled *c)
{
    for (size_t i = 0; i < c->count; i++) {
        tide_site_information info = ask(c->sites[i]);
        bench_complain("site %s: tier %s, %llu samples, %llu compiles, %s", info.name,
                       tide_tier_name(info.tier), (unsigned long long)info.samples,
                       (unsigned long long)info.compiles, info.reason);
    }
    bench_die("a site that was to be compiled was not");
}

void bench_compile(bench_compiled *c, bench_use_function *use, void *state, uint64_t operations,
                   bool counting)
{
    if (all_compiled(c))
        return;
    double trial = bench_tune("trial", 0), count_runs = bench_tune("count_runs", counting);
    for (int round = 0; !all_compiled(c); round++) {
        if (round == ROUNDS_MAX)
            give_up(c);
        use(state, operations);
        if (tide_step() != TIDE_OK || tide_settle(BENCH_SETTLE_MS) != TIDE_OK)
            bench_die("%s", tide_error_message());
    }
    for (size_t i = 0; i < c->count; i++)
        if (tide_site_pin(c->sites[i], best(c->sites[i])) != TIDE_OK)
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

void bench_prove_executed(const bench_compiled *c, bench_use_function *use, void *state,
                          uint64_t operations, uint64_t slack)
{
    uint64_t before[BENCH_SITES_MAX];
    use(state, operations); /* slots reach their sizes */
    for (size_t i = 0; i < c->count; i++)
        before[i] = ask(c->sites[i]).runs;
    use(state, operations);
    for (size_t i = 0; i < c->count; i++) {
        tide_site_information info = ask(c->sites[i]);
        uint64_t runs = info.runs - before[i];
        if (runs > operations || runs + slack < operations || !is_at_its_best(c->sites[i]))
            bench_die("site %s: %llu uses of compiled code in %llu operations", info.name,
                      (unsigned long long)runs, (unsigned long long)operations);
    }
}

static uint64_t misses(const bench_compiled *c)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < c->count; i++)
        sum += ask(c->sites[i]).misses;
    return sum;
}

void bench_compiled_warm(bench_compiled *c)
{
    c->misses = misses(c);
}

static bool counts(const tide_site *site)
{
    tide_site_information info = ask(site);
    if (info.runs != 0)
        bench_complain("site %s was compiled to count", info.name);
    return info.runs != 0;
}

bool bench_compiled_verify(const bench_compiled *c, uint64_t operations)
{
    for (size_t i = 0; i < c->count; i++)
        if (!is_at_its_best(c->sites[i]) || counts(c->sites[i]))
            return false;
    if ((double)(misses(c) - c->misses) <= c->may_miss * (double)operations)
        return true;
    bench_complain("guards of compiled code failed %llu times",
                   (unsigned long long)(misses(c) - c->misses));
    return false;
}
