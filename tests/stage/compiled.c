/* SPDX-License-Identifier: MIT */
/* Compiled code against the general path: random programs run on two pools at once, one with
 * compiled code at every site, one without. After each operation both pools are sound and in the
 * same state.
 *
 * Scopes are entered by compiled code and left by the general path, and the other way round; they
 * are skipped (an outer one ends first) and abandoned (the pool is reset under them). */
#include "support.h"

#include <dlfcn.h>
#include <stdio.h>

#include <tidepool/check.h>
#include <tidepool/upkeep.h>

#include "runtime/pool/core.h"
#include "runtime/scope/plan.h"
#include "tests/random.h"

enum { DEPTH = 12, TYPES = TIDE_BUILTIN_COUNT + 8, OPERATIONS = 4000, SPECS = 4, MIXES = 3 };

static void *object;
static tide_spec specs[SPECS];
static tide_site site; /* of no place: reports say nothing about it */

/* compiled, compiled in and general out, general in and compiled out; and general throughout */
static test_plan plans[SPECS][MIXES], general_plans[SPECS];

/* ---- the sites ---- */

/* Code that counts shows where it has run. Code that ships does not count: half of these do. */
static bool spec_counts(uint32_t spec)
{
    return spec % 2 == 0;
}

static void make_specs(void)
{
    specs[0] = spec_of("one", spec_counts(0), 3, 0);
    specs[1] = spec_of("two", spec_counts(1), 3, 7, 0);
    specs[2] = spec_of("three", spec_counts(2), 1, 3, 20, 0);
    specs[3] = spec_of("four", spec_counts(3), 2, 3, 7, 16, 0);
}

/* Skipped scopes are what the programs are about. */
static bool silence(tide_report_kind kind, const char *text, void *user)
{
    (void)text;
    (void)user;
    return kind != TIDE_REPORT_LEAK;
}

static int set_up(void **state)
{
    (void)state;
    tide_report_set_handler(silence, NULL);
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "kind %d", i);
        assert_int_not_equal(tide_type_register(name, 24, 8), TIDE_NO_TYPE);
    }
    make_specs();
    object = compile_specs(specs, SPECS);
    for (uint32_t s = 0; s < SPECS; s++) {
        plan_of(&general_plans[s], &specs[s], NULL);
        for (int mix = 0; mix < MIXES; mix++)
            plan_of(&plans[s][mix], &specs[s], object);
        plans[s][1].plan.leave = general_plans[s].plan.leave;
        plans[s][2].plan.enter = general_plans[s].plan.enter;
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(dlclose(object), 0);
    remove_test_folder();
    return 0;
}

/* ---- two pools ---- */

typedef struct side {
    tide_pool *pool;
    bool compiled;
    tide_scope scopes[DEPTH];
} side;

typedef struct program {
    side sides[2];
    rng random;
    uint32_t depth;
    uint32_t abandoned; /* so many scopes, the outermost ones, were open at the last reset */
    uint32_t operation;
} program;

static uint32_t draw(program *p, uint32_t below)
{
    return (uint32_t)rng_below(&p->random, below);
}

static const tide_plan *plan_at(const side *s, uint32_t spec, uint32_t mix)
{
    return s->compiled ? &plans[spec][mix].plan : &general_plans[spec].plan;
}

/* Which slot of the shelf's row; -1: none is set up. */
static ptrdiff_t index_in(const side *s, const tide_shelf *shelf, const tide_slot *next)
{
    const tide_pool_core *core = s->pool->core;
    for (uint32_t i = 0; i < core->rows.used_count; i++)
        if (core->rows.used[i]->shelf == shelf)
            return next - core->rows.used[i]->slots;
    if (next != NULL)
        fail_msg("shelf %td is not set up", shelf - s->pool->shelves);
    return -1;
}

static void compare_logs(const program *p)
{
    const side *a = &p->sides[0], *b = &p->sides[1];
    const tide_entry *x = a->pool->core->log.start, *y = b->pool->core->log.start;
    assert_int_equal(a->pool->log_top - x, b->pool->log_top - y);
    for (; x < a->pool->log_top; x++, y++) {
        assert_int_equal(x->shelf - a->pool->shelves, y->shelf - b->pool->shelves);
        if (!tide_shelf_real(a->pool, x->shelf)) /* an exchange: its words are its own */
            continue;
        assert_int_equal(index_in(a, x->shelf, x->next), index_in(b, y->shelf, y->next));
    }
}

static void compare(const program *p)
{
    const side *a = &p->sides[0], *b = &p->sides[1];
    assert_true(a->pool->tag == b->pool->tag);
    for (tide_type t = 1; t <= TYPES; t++) {
        const tide_shelf *x = &a->pool->shelves[t], *y = &b->pool->shelves[t];
        assert_int_equal(index_in(a, x, x->next), index_in(b, y, y->next));
    }
    compare_logs(p);
    if (tide_pool_depth(a->pool) != 0)
        assert_true(a->pool->saved == b->pool->saved);
    for (int i = 0; i < 2; i++)
        if (tide_pool_check(p->sides[i].pool) != TIDE_OK)
            fail_msg("operation %u: %s", p->operation, tide_error_message());
}

/* ---- operations ---- */

static void enter(program *p)
{
    uint32_t spec = draw(p, SPECS), mix = draw(p, MIXES);
    if (p->depth == DEPTH)
        return;
    for (int i = 0; i < 2; i++) {
        side *s = &p->sides[i];
        const tide_plan *plan = plan_at(s, spec, mix);
        plan->enter(&s->scopes[p->depth], s->pool, plan, &site);
        assert_ptr_equal(s->scopes[p->depth].plan, plan);
        assert_ptr_equal(s->scopes[p->depth].pool, s->pool);
    }
    p->depth++;
}

/* `levels` at once: all but the last, outermost one are skipped. One that was abandoned ends
 * nothing: what was opened after the reset stays open in the pools. */
static void leave(program *p, uint32_t levels)
{
    if (p->depth < levels)
        return;
    p->depth -= levels;
    if (p->depth < p->abandoned)
        p->abandoned = p->depth;
    for (int i = 0; i < 2; i++) {
        tide_scope *scope = &p->sides[i].scopes[p->depth];
        scope->plan->leave(scope);
    }
}

static void acquire(program *p)
{
    tide_type type = 1 + draw(p, TYPES);
    size_t n = draw(p, 30) == 0 ? draw(p, 20000) : draw(p, 100);
    if (type == TIDE_BIT)
        return;
    for (int i = 0; i < 2; i++) {
        tide_pool *pool = p->sides[i].pool;
        void *got = tide_acquire_type(pool, type, n);
        assert_non_null(got);
        memset(got, 1, n * tide_type_size(type));
        assert_ptr_equal(got, pool->shelves[type].next[-1].data);
    }
}

static void disturb(program *p)
{
    uint32_t what = draw(p, 40);
    if (what == 0)
        p->abandoned = p->depth;
    for (int i = 0; i < 2; i++) {
        tide_pool *pool = p->sides[i].pool;
        if (what == 0)
            assert_int_equal(tide_pool_reset(pool), TIDE_OK);
        else if (what == 1)
            tide_pool_trim(pool, TIDE_ALL_TYPES);
        else if (what == 2)
            tide_pool_compact(pool, TIDE_ALL_TYPES);
    }
}

static void step(program *p)
{
    switch (draw(p, 8)) {
    case 0:
    case 1: enter(p); break;
    case 2:
    case 3: leave(p, 1 + (draw(p, 8) == 0 ? draw(p, 3) : 0)); break;
    case 4:
        while (p->depth > 0 && p->operation % 4 == 0)
            leave(p, 1);
        disturb(p);
        break;
    default: acquire(p);
    }
}

/* ---- programs ---- */

static void compare_statistics(const program *p)
{
    tide_pool_statistics pools[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(tide_pool_stats(p->sides[i].pool, &pools[i]), TIDE_OK);
    assert_true(pools[0].allocations == pools[1].allocations);
}

static void run(const tide_pool_options *options, uint64_t seed)
{
    program p = {.random = {seed}};
    for (int i = 0; i < 2; i++) {
        p.sides[i].compiled = i == 0;
        p.sides[i].pool = tide_pool_create(options);
        assert_non_null(p.sides[i].pool);
    }
    for (p.operation = 0; p.operation < OPERATIONS; p.operation++) {
        step(&p);
        compare(&p);
    }
    compare_statistics(&p);
    while (p.depth > 0)
        leave(&p, 1);
    compare(&p);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tide_pool_reset(p.sides[i].pool), TIDE_OK);
        assert_int_equal(tide_pool_destroy(p.sides[i].pool), TIDE_OK);
    }
}

static uint64_t runs_of(uint32_t spec)
{
    uint64_t runs = 0;
    for (int mix = 0; mix < MIXES; mix++)
        runs += plans[spec][mix].counts.runs;
    return runs;
}

/* The programs have been where they should: each site that counts has run compiled code often. */
static void test_plain_pools(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++)
        run(&(tide_pool_options){.name = "plain"}, seed);
    for (uint32_t s = 0; s < SPECS; s++)
        if (spec_counts(s) ? runs_of(s) < 20 : runs_of(s) != 0)
            fail_msg("%s ran %llu times", specs[s].stem, (unsigned long long)runs_of(s));
}

/* A careful pool closes every guard: nothing compiled may have run there. */
static void test_careful_pools(void **state)
{
    (void)state;
    uint64_t before[SPECS];
    for (uint32_t s = 0; s < SPECS; s++)
        before[s] = runs_of(s);
    run(&(tide_pool_options){.name = "poisoned", .check = TIDE_CHECK_POISON}, 5);
    run(&(tide_pool_options){.name = "guarded", .check = TIDE_CHECK_GUARD}, 6);
    for (uint32_t s = 0; s < SPECS; s++)
        assert_true(runs_of(s) == before[s]);
}

int main(int count, char **args)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_pools),
        cmocka_unit_test(test_careful_pools),
    };
    if (count != 2)
        return 2;
    stager = args[1];
    return cmocka_run_group_tests_name("stage: compiled", tests, set_up, tear_down);
}
