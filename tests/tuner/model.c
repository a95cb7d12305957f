/* SPDX-License-Identifier: MIT */
/* model [plain]: a worker without work, whose cost is computed from knobs, variants and sites, some of
 * which are badly set. plain: nothing is badly set. */
#define _GNU_SOURCE
#include <math.h>
#include <signal.h>
#include <time.h>

#include <tidepool/dynamic.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/tidepool.h>
#include <tidepool/tunable.h>

TIDE_MEASURED(model_measured, "round");
TIDE_KNOB(model_tile, "tile", 1, 1024, 32);
TIDE_KNOB(model_batch, "batch", 1, 256, 4);
TIDE_KNOB(model_depth, "depth", 0, 64, 8);
TIDE_VARIANTS(model_way, "way", "slow", "quick", "slowest");

static tide_site *model_declared, *model_pinned;

static double model_distance(const tide_tunable *knob)
{
    double from = (double)tide_tunable_value(knob) + 1, to = (double)knob->initial + 1;
    return fabs(log2(from / to));
}

static void model_use(tide_pool *pool, tide_site *site)
{
    tide_scope scope;
    (void)tide_scope_enter(pool, site, &scope);
    (void)tide_acquire(pool, double, 8);
    (void)tide_scope_leave(&scope);
}

/* Nanoseconds of a round: more, the farther what is set is from what is best. */
static double model_cost(uint32_t way)
{
    static const double ways[] = {500, 0, 900};
    tide_site_information declared, pinned;
    (void)tide_site_info(model_declared, &declared);
    (void)tide_site_info(model_pinned, &pinned);
    return 100 * (1000 + ways[way] + 300 * model_distance(&model_tile) +
                  200 * model_distance(&model_batch) + 100 * model_distance(&model_depth) +
                  (declared.type_count > 1 ? 100.0 * declared.type_count : 0) +
                  (pinned.pinned ? 250 : 0));
}

static void model_round(tide_pool *pool)
{
    model_use(pool, model_declared);
    model_use(pool, model_pinned);
    uint32_t way;
    {
        TIDE_MEASURE(&model_way, 0, which);
        TIDE_MEASURE_AS(which, 1000 * (1 + (which + 2) % 3)); /* "quick" is the fastest */
        way = which;
    }
    TIDE_MEASURE(&model_measured, 0, unused);
    TIDE_MEASURE_AS(unused, model_cost(way));
    (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

/* Three knobs, a variant, a declaration and a pin that are wrong. */
static void model_begin(bool plain)
{
    static const tide_type wrong[] = {TIDE_F32, TIDE_I8, TIDE_I16, TIDE_I64};
    model_declared = tide_site_register("declared");
    model_pinned = tide_site_register("pinned");
    if (plain)
        return;
    (void)tide_tunable_set(&model_tile, 1);
    (void)tide_tunable_set(&model_batch, 256);
    (void)tide_tunable_set(&model_depth, 0);
    (void)tide_tunable_pin(&model_way, 0, "slowest");
    (void)tide_site_declare(model_declared, wrong, 4);
    (void)tide_site_pin(model_pinned, TIDE_TIER_FULL);
}

static volatile sig_atomic_t model_ended;

static void model_end(int number)
{
    (void)number;
    model_ended = 1;
}

int main(int count, char **args)
{
    (void)args;
    (void)signal(SIGTERM, model_end);
    model_begin(count > 1);
    while (!model_ended)
        model_round(tide_pool_local());
    return 0;
}
