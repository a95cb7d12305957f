/* SPDX-License-Identifier: MIT */
/* stage-1, stage-16: how long from a decision to the publication of its code, per site, for so many
 * sites decided on in one round.
 *
 *   cold   the stager is started for it
 *   warm   the stager is there, and has compiled the form of that code before
 *   fresh  the stager is there; each site, in each block, has a form that it has not compiled
 *
 * The decision is a declaration, which needs no window. Each block has sites of its own, since code
 * stays: so each compile is a real one. */
#define _GNU_SOURCE
#include "stage.h"

#include "tide.h"

#include "jit/learn/round.h"
#include "jit/stager/stager.h"

#include <signal.h>
#include <stdio.h>

#include <tidepool/dynamic.h>
#include <tidepool/learn.h>
#include <tidepool/site.h>

enum { SETS = 3, NAME_ROOM = 32 };

static const tide_type sets[SETS][2] = {
    {TIDE_F64, TIDE_I32}, {TIDE_F32, TIDE_I64}, {TIDE_U8, TIDE_I16}};

typedef enum origin { COLD, WARM, FRESH } origin;

typedef struct stage_state {
    bench_tide *tide;
    tide_site *sites[BENCH_STAGE_SITES];
    const char *name;
    uint32_t count;
    origin source;
    uint64_t turn;
    double started, spent, most, cpu; /* ms; the last: of the processor, as stagers tell */
    double trial, bytes;              /* settings as they were */
    tide_learning_statistics before;
} stage_state;

static bench_tide *shared;
static uint32_t users;

static void must(tide_status status)
{
    if (status != TIDE_OK)
        bench_die("%s", tide_error_message());
}

static tide_learning_statistics learned(void)
{
    tide_learning_statistics now;
    must(tide_learning_stats(&now));
    return now;
}

/* --- the sites ---------------------------------------------------------------------------- */

static void use_sites(stage_state *s)
{
    tide_scope scope;
    for (uint32_t i = 0; i < s->count; i++) {
        must(tide_scope_enter(s->tide->pool, s->sites[i], &scope));
        must(tide_scope_leave(&scope));
    }
}

/* Two of the first twelve types and one of four more: the number-th such set, of 264. Those are
 * more than a stager remembers. */
static void find_set(uint64_t number, tide_type types[3])
{
    enum { TYPES = 12, PAIRS = TYPES * (TYPES - 1) / 2, THIRDS = 4 };
    tide_type first = 1, left = (tide_type)(number % PAIRS);
    while (left >= TYPES - first)
        left -= TYPES - first++;
    types[0] = first;
    types[1] = first + 1 + left;
    types[2] = (tide_type)(TYPES + 1 + number / PAIRS % THIRDS);
}

static void declare(stage_state *s)
{
    const tide_type *types = sets[s->turn % SETS];
    for (uint32_t i = 0; i < s->count; i++) {
        tide_type fresh[3];
        find_set(s->turn * s->count + i, fresh);
        must(s->source == FRESH ? tide_site_declare(s->sites[i], fresh, 3)
                                : tide_site_declare(s->sites[i], types, 2));
    }
    s->turn++;
}

static void make_sites(stage_state *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        char label[NAME_ROOM];
        snprintf(label, sizeof label, "stage-%u %s %u.%u", s->count, s->name, (unsigned)s->turn, i);
        s->sites[i] = tide_site_register(label);
        if (s->sites[i] == NULL)
            bench_die("%s", tide_error_message());
    }
}

static void set_settings(stage_state *s)
{
    s->trial = bench_tune("trial", 0);
    s->bytes = bench_tune("code_bytes", 1e12);
}

static void reset_settings(const stage_state *s)
{
    bench_tune("trial", s->trial);
    bench_tune("code_bytes", s->bytes);
}

void bench_stage_before(void *state)
{
    stage_state *s = state;
    set_settings(s);
    must(tide_settle(BENCH_SETTLE_MS));
    if (s->source == COLD) {
        tide_round_lock();
        if (tide_stager_process() != 0)
            kill(tide_stager_process(), SIGKILL);
        while (tide_stager_process() != 0)
            tide_stager_tend();
        tide_round_unlock();
    }
    make_sites(s);
    declare(s);
    use_sites(s);
    s->before = learned();
    s->started = bench_now();
}

static uint64_t run(void *state, uint64_t operations)
{
    stage_state *s = state;
    must(tide_settle(BENCH_SETTLE_MS));
    return operations == s->count ? operations : 0;
}

/* Every site is at tier compiled, by code that came from where it should. */
void bench_stage_after(void *state)
{
    stage_state *s = state;
    double ms = (bench_now() - s->started) / 1e6 / s->count;
    tide_learning_statistics now = learned();
    uint64_t compiled = now.compiled - s->before.compiled;
    s->cpu += (double)(now.spent_us - s->before.spent_us) / 1e3;
    s->spent += ms;
    if (ms > s->most)
        s->most = ms;
    if (compiled != s->count)
        bench_die("stage: %llu compiled of %u", (unsigned long long)compiled, s->count);
    for (uint32_t i = 0; i < s->count; i++) {
        tide_site_information info;
        must(tide_site_info(s->sites[i], &info));
        if (info.tier != TIDE_TIER_COMPILED)
            bench_die("stage: site %s is at tier %s: %s", info.name, tide_tier_name(info.tier),
                      info.reason);
    }
    reset_settings(s);
}

/* --- the variants ------------------------------------------------------------------------- */

static stage_state *make(const bench_case *job, origin source, const char *name)
{
    stage_state *s = bench_state_make(sizeof *s);
    if (users++ == 0)
        shared = bench_tide_make(job, NULL, BENCH_SHELVES, false);
    s->tide = shared;
    s->count = job->sites;
    s->source = source;
    s->name = name;
    return s;
}

static void *cold_setup(const bench_case *job)
{
    return make(job, COLD, "cold");
}

static void *warm_setup(const bench_case *job)
{
    return make(job, WARM, "warm");
}

static void *fresh_setup(const bench_case *job)
{
    return make(job, FRESH, "fresh");
}

static void prove(void *state, uint64_t operations)
{
    stage_state *s = state;
    (void)operations;
    for (int i = 0; i < SETS; i++) {
        bench_stage_before(s);
        run(s, s->count);
        bench_stage_after(s);
    }
    s->spent = s->most = s->cpu = 0;
}

static bool verify(void *state, uint64_t operations)
{
    (void)state;
    (void)operations;
    return true; /* each block was looked at */
}

/* Of one site. */
static size_t milliseconds(void *state, uint64_t operations, bench_figure *out, size_t room)
{
    const stage_state *s = state;
    if (room < 3)
        return 0;
    out[0] = (bench_figure){"ms_mean", s->spent * s->count / (double)operations};
    out[1] = (bench_figure){"ms_max", s->most};
    out[2] = (bench_figure){"ms_cpu", s->cpu / (double)operations};
    return 3;
}

static void teardown(void *state)
{
    stage_state *s = state;
    if (--users == 0)
        bench_tide_free(shared);
    bench_state_free(s, sizeof *s);
}

#define STAGE_VARIANT(name)                       \
    static const bench_variant variant_##name = { \
        #name, BENCH_MISSING_STAGER, name##_setup, prove, run, verify, teardown, milliseconds};
STAGE_VARIANT(cold)
STAGE_VARIANT(warm)
STAGE_VARIANT(fresh)

const bench_variant *const bench_stage_variants[] = {
    &variant_cold,
    &variant_warm,
    &variant_fresh,
    NULL,
};
