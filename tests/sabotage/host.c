/* SPDX-License-Identifier: MIT */
/* A program that computes something with sites of every kind, learns meanwhile, and prints its
 * answer and what became of the learning. Whatever is done to the tools it learns by, the answer
 * is the same. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <tidepool/array.h>
#include <tidepool/generic.h>
#include <tidepool/learn.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/tidepool.h>

#include "tests/hooks.h"

enum { ROUNDS = 120, PHASE = 60, USES = 60 };

static tide_pool *pool;
static tide_generic *total;
static uint64_t answer;

/* ---- the work ---------------------------------------------------------------------------- */

static void add(uint64_t value)
{
    answer = answer * UINT64_C(6364136223846793005) + value + 1;
}

static void give_up(const char *what)
{
    fprintf(stderr, "host: %s: %s\n", what, tide_error_message());
    exit(1);
}

typedef struct vector {
    const void *data;
    size_t n;
} vector;

static void total_f64(void *args)
{
    const vector *v = args;
    double sum = 0;
    for (size_t i = 0; i < v->n; i++)
        sum += ((const double *)v->data)[i];
    add((uint64_t)sum);
}

static void total_i32(void *args)
{
    const vector *v = args;
    uint64_t sum = 0;
    for (size_t i = 0; i < v->n; i++)
        sum += (uint64_t)((const int32_t *)v->data)[i];
    add(sum);
}

static void fill(void *data, tide_type type, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        if (type == TIDE_F64)
            ((double *)data)[i] = (double)(seed + i);
        else
            ((int32_t *)data)[i] = (int32_t)(seed + i);
}

/* A scope with a temporary of a type that changes, and one that does not. */
static void work_scope(tide_type type, unsigned seed)
{
    TIDE_SCOPE(pool);
    size_t n = 5 + seed % 20;
    void *data = tide_acquire_type(pool, type, n);
    float *weights = tide_acquire(pool, float, n);
    if (data == NULL || weights == NULL)
        give_up("work_scope");
    fill(data, type, n, seed);
    for (size_t i = 0; i < n; i++)
        weights[i] = (float)(i % 3);
    vector v = {data, n};
    TIDE_DISPATCH(total, type, &v);
    add((uint64_t)weights[n - 1]);
}

static void work_inner(unsigned seed)
{
    TIDE_SCOPE(pool);
    double *a = tide_acquire(pool, double, 8);
    int32_t *b = tide_acquire(pool, int32_t, 4);
    if (a == NULL || b == NULL)
        give_up("work_inner");
    fill(a, TIDE_F64, 8, seed);
    fill(b, TIDE_I32, 4, seed + 1);
    add((uint64_t)(a[7] + b[3]));
}

static void work_data(tide_type type, unsigned seed)
{
    const int64_t shape[] = {2, 3};
    TIDE_SCOPE(pool);
    void *first = tide_acquire(pool, double, 1), *second = tide_acquire(pool, int32_t, 1);
    void *data = tide_acquire_type(pool, type, 7);
    const tide_array *array = tide_array_acquire(pool, type, 2, shape);
    if (first == NULL || second == NULL || data == NULL || array == NULL)
        give_up("work_data");
    fill(data, type, 7, seed);
    fill(array->tensor.data, type, 6, seed + 3);
    vector v = {data, 7}, w = {array->tensor.data, 6};
    TIDE_DISPATCH(total, type, &v);
    TIDE_DISPATCH(total, type, &w);
}

static void work(unsigned round)
{
    for (unsigned i = 0; i < USES; i++) {
        unsigned seed = round * USES + i;
        tide_type type = round / PHASE % 2 == 0 ? TIDE_F64 : TIDE_I32;
        work_scope(type, seed);
        work_inner(seed);
        work_data(type, seed);
    }
}

/* ---- what became of it ------------------------------------------------------------------- */

struct sum {
    unsigned sites, compiled;
    uint64_t runs;
    const char *reason;
};

static bool sum_up(tide_site *site, void *user)
{
    struct sum *sum = user;
    tide_site_information info;
    if (tide_site_info(site, &info) != TIDE_OK || info.samples == 0 ||
        info.kind == TIDE_KIND_DISPATCH)
        return true;
    sum->sites++;
    sum->compiled += info.tier == TIDE_TIER_COMPILED;
    sum->runs += info.runs;
    sum->reason = info.reason;
    return true;
}

static void report(void)
{
    struct sum sum = {0};
    tide_learning_statistics s;
    if (tide_learning_stats(&s) != TIDE_OK)
        give_up("tide_learning_stats");
    tide_site_each(sum_up, &sum);
    printf("{\"answer\": %" PRIu64 ", \"sites\": %u, \"compiled_sites\": %u, \"runs\": %" PRIu64
           ", \"ordered\": %" PRIu64 ", \"compiled\": %" PRIu64 ", \"failed\": %" PRIu64
           ", \"stagers\": %" PRIu64 ", \"rounds\": %" PRIu64 ", \"reason\": \"%s\"}\n",
           answer, sum.sites, sum.compiled, sum.runs, s.ordered, s.compiled, s.failed, s.stagers,
           s.rounds, sum.reason != NULL ? sum.reason : "");
}

int main(void)
{
    const char *deadline = getenv("SABOTAGE_DEADLINE");
    set_constant("stager_idle", 0); /* else a slow machine would start one more */
    if (deadline != NULL)
        set_constant("stager_deadline", strtod(deadline, NULL));
    pool = tide_pool_create(NULL);
    total = tide_generic_create("total");
    if (pool == NULL || total == NULL || tide_generic_add(total, TIDE_F64, total_f64) != TIDE_OK ||
        tide_generic_add(total, TIDE_I32, total_i32) != TIDE_OK)
        give_up("the beginning");
    for (unsigned round = 0; round < ROUNDS; round++) {
        work(round);
        (void)tide_step();
        if (tide_settle(240000) != TIDE_OK)
            give_up("tide_settle");
    }
    report();
    return 0;
}
