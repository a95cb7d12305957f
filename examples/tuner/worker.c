/* SPDX-License-Identifier: MIT */
/* Work to be tuned, of one kind until it is told to end:
 *
 *   transform     butterflies over a signal, in blocks: knob "block", variants "radix"
 *   film          frames that are smoothed: knob "strip", temporaries from a pool
 *   interpreter   a small program; each of its call sites is a site of the library's
 *   model         no work, but a cost that is computed from knobs, variants and sites, some of which
 *                 are badly set: for tests. "model plain": the same with nothing badly set
 *
 * What a round takes is measured under the name "round". */
#define _GNU_SOURCE
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tidepool/callsite.h>
#include <tidepool/dynamic.h>
#include <tidepool/site.h>
#include <tidepool/tidepool.h>
#include <tidepool/tunable.h>

TIDE_MEASURED(worker_round, "round");

static volatile sig_atomic_t worker_ended;

static void worker_end(int number)
{
    (void)number;
    worker_ended = 1;
}

/* ---- transform ---------------------------------------------------------------------------- */

TIDE_VARIANTS(transform_radix, "radix", "2", "4");

static void transform_pass(double *x, size_t from, size_t to, size_t half)
{
    for (size_t i = from; i < to; i++) {
        size_t at = i / half * 2 * half + i % half;
        double a = x[at], b = x[at + half];
        x[at] = (a + b) / 2;
        x[at + half] = (a - b) / 2;
    }
}

/* Passes by one (radix 2) or by two at a time over a block, so that a block stays in the cache. */
static void transform_round(tide_pool *pool)
{
    enum { N = 1 << 14 };
    TIDE_SCOPE_NAMED(pool, "transform");
    double *x = tide_acquire(pool, double, N);
    if (x == NULL)
        abort();
    for (size_t i = 0; i < N; i++)
        x[i] = (double)(i % 17);
    size_t block = (size_t)1 << tide_tunable("block", 4, 13);
    TIDE_MEASURE(&transform_radix, 0, which);
    for (size_t half = 1; half < N; half <<= 1 + which)
        for (size_t from = 0; from < N / 2; from += block) {
            size_t to = from + block < N / 2 ? from + block : N / 2;
            transform_pass(x, from, to, half);
            if (which == 1 && half * 2 < N)
                transform_pass(x, from, to, half * 2);
        }
}

/* ---- film --------------------------------------------------------------------------------- */

static void film_smooth(tide_pool *pool, const float *from, float *to, size_t width, size_t rows)
{
    TIDE_SCOPE_NAMED(pool, "smooth");
    float *line = tide_acquire(pool, float, width);
    if (line == NULL)
        abort();
    for (size_t y = 1; y + 1 < rows; y++) {
        for (size_t x = 0; x < width; x++)
            line[x] =
                (from[(y - 1) * width + x] + from[y * width + x] + from[(y + 1) * width + x]) / 3;
        for (size_t x = 1; x + 1 < width; x++)
            to[y * width + x] = (line[x - 1] + line[x] + line[x + 1]) / 3;
    }
}

static void film_round(tide_pool *pool)
{
    enum { WIDTH = 256, HEIGHT = 128 };
    TIDE_FRAME(pool, (float, frame, WIDTH *HEIGHT), (float, smooth, WIDTH *HEIGHT));
    if (frame == NULL)
        abort();
    for (size_t i = 0; i < WIDTH * HEIGHT; i++)
        frame[i] = (float)(i % 255);
    size_t strip = (size_t)tide_tunable("strip", 3, HEIGHT);
    for (size_t y = 0; y + strip <= HEIGHT; y += strip - 2)
        film_smooth(pool, frame + y * WIDTH, smooth + y * WIDTH, WIDTH, strip);
}

/* ---- interpreter -------------------------------------------------------------------------- */

enum { CALLS = 4 };

static const struct interpreter_call {
    const char *site;
    const char *type;
    size_t count;
} interpreter_program[CALLS] = {{"call 0: sum", "f64", 100},
                                {"call 1: names", "i8", 300},
                                {"call 2: index", "i32", 50},
                                {"call 3: sum", "f32", 80}};

/* A call opens a scope of its own site, and has temporaries of a type that only the program knows. */
static void interpreter_step(tide_pool *pool, const struct interpreter_call *call, tide_site *site)
{
    tide_scope scope;
    if (site == NULL || tide_scope_enter(pool, site, &scope) != TIDE_OK)
        abort();
    for (int64_t i = tide_tunable("unroll", 1, 8); i > 0; i--)
        if (tide_acquire_type(pool, tide_type_find(call->type), call->count) == NULL)
            abort();
    (void)tide_scope_leave(&scope);
}

static void interpreter_round(tide_pool *pool)
{
    static tide_site *sites[CALLS];
    for (int i = 0; i < CALLS; i++) {
        if (sites[i] == NULL)
            sites[i] = tide_site_register(interpreter_program[i].site);
        interpreter_step(pool, &interpreter_program[i], sites[i]);
    }
}

/* ---- model -------------------------------------------------------------------------------- */

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
    TIDE_MEASURE(&worker_round, 0, unused);
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

/* ---- all ---------------------------------------------------------------------------------- */

int main(int count, char **args)
{
    static const struct {
        const char *kind;
        void (*round)(tide_pool *pool);
    } kinds[] = {
        {"transform", transform_round}, {"film", film_round}, {"interpreter", interpreter_round}};
    const char *kind = count > 1 ? args[1] : "";
    (void)signal(SIGTERM, worker_end);
    (void)signal(SIGINT, SIG_IGN); /* the service tells it */
    if (strncmp(kind, "model", 5) == 0) {
        model_begin(strcmp(kind, "model plain") == 0);
        while (!worker_ended)
            model_round(tide_pool_local());
        return 0;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        while (strcmp(kinds[i].kind, kind) == 0 && !worker_ended) {
            {
                TIDE_MEASURE(&worker_round, 0, unused);
                kinds[i].round(tide_pool_local());
            }
            (void)nanosleep(&(struct timespec){.tv_nsec = 2000000},
                            NULL); /* the example leaves the machine some time */
        }
    if (worker_ended)
        return 0;
    fprintf(stderr, "tuner-worker: transform, film, interpreter or model\n");
    return 2;
}
