/* SPDX-License-Identifier: MIT */
/* Compiled code against the general path: random programs run on two pools at once, one with
 * compiled code at every site, one without. After each operation both pools are sound and in the
 * same state.
 *
 * Scopes are entered by compiled code and left by the general path, and the other way round; they
 * are skipped (an outer one ends first) and abandoned (the pool is reset under them). Once a frame
 * was entered the two may differ in which level has saved a shelf, never in its position: a
 * compiled frame has the level around it save what is missing, a general one saves for itself. */
#include "support.h"

#include <dlfcn.h>
#include <stdio.h>

#include <tidepool/array.h>
#include <tidepool/check.h>
#include <tidepool/upkeep.h>

#include "runtime/pool/core.h"
#include "runtime/scope/general.h"
#include "runtime/scope/plan.h"
#include "tests/random.h"

enum { DEPTH = 12, TYPES = TIDE_BUILTIN_COUNT + 8, OPERATIONS = 4000, MIXES = 3 };

static void *object;
static tide_spec specs[16];
static uint32_t spec_count;
static tide_site site; /* of no place: reports say nothing about it */

/* compiled, compiled in and general out, general in and compiled out; and general throughout */
static test_plan plans[16][MIXES], general_plans[16];

/* ---- the sites ---- */

/* Before the acquires stand scopes and frames; FIVE has more types than are compiled: it has a table. */
enum { ACQUIRE = 7, ARRAY = 9, FIVE = 10 };

static void make_specs(void)
{
    const tide_spec all[] = {
        spec_of(TIDE_KIND_SCOPE, "one", false, 3, 0),
        spec_of(TIDE_KIND_SCOPE, "two", false, 3, 7, 0),
        spec_of(TIDE_KIND_SCOPE, "three", false, 1, 3, 20, 0),
        spec_of(TIDE_KIND_SCOPE, "four", true, 2, 3, 7, 16, 0),
        spec_of(TIDE_KIND_FRAME, "frame1", false, 3, 0),
        spec_of(TIDE_KIND_FRAME, "frame4", true, 3, 7, 3, 7, 0),
        spec_of(TIDE_KIND_FRAME, "frame8", false, 9, 2, 9, 2, 9, 1, 5, 2, 0),
        spec_of(TIDE_KIND_ACQUIRE, "acquire1", false, 3, 0),
        spec_of(TIDE_KIND_ACQUIRE, "acquire4", true, 7, 3, 20, 2, 0),
        spec_of(TIDE_KIND_ARRAY, "array", true, 0),
        spec_of(TIDE_KIND_SCOPE, "five", false, 1, 2, 3, 4, 5, 0),
    };
    spec_count = sizeof all / sizeof *all;
    memcpy(specs, all, sizeof all);
    tide_spec *array = &specs[ARRAY];
    spec_add_array(array, TIDE_F64, 2);
    spec_add_array(array, TIDE_I32, 3);
    spec_add_array(array, TIDE_F64, 1);
    spec_add_array(array, TIDE_F64, 0);
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
    object = compile_specs(specs, FIVE);
    for (uint32_t s = 0; s < spec_count; s++) {
        plan_of(&general_plans[s], &specs[s], NULL);
        for (int mix = 0; mix < MIXES; mix++)
            plan_of(&plans[s][mix], &specs[s], s != FIVE ? object : NULL);
        plans[s][1].plan.leave = general_plans[s].plan.leave;
        if (specs[s].kind == TIDE_KIND_SCOPE || specs[s].kind == TIDE_KIND_FRAME)
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
    uint32_t depth, frames; /* frames: open in the pools                         */
    bool framed;            /* a frame was entered since the pools were at the root */
    uint32_t abandoned;     /* so many scopes, the outermost ones, were open at the last reset */
    bool is_frame[DEPTH];
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
    if (!p->framed)
        compare_logs(p);
    if (!p->framed && tide_pool_depth(a->pool) != 0)
        assert_true(a->pool->saved == b->pool->saved);
    for (int i = 0; i < 2; i++)
        if (tide_pool_check(p->sides[i].pool) != TIDE_OK)
            fail_msg("operation %u: %s", p->operation, tide_error_message());
}

/* ---- operations ---- */

static void enter_scope(program *p, uint32_t spec, uint32_t mix)
{
    for (int i = 0; i < 2; i++) {
        side *s = &p->sides[i];
        const tide_plan *plan = plan_at(s, spec, mix);
        plan->enter(&s->scopes[p->depth], s->pool, plan, &site);
        assert_ptr_equal(s->scopes[p->depth].plan, plan);
        assert_ptr_equal(s->scopes[p->depth].pool, s->pool);
    }
    p->is_frame[p->depth++] = false;
}

static void enter_frame(program *p, uint32_t spec, uint32_t mix)
{
    size_t counts[TIDE_TYPED_MAX];
    tide_type types[TIDE_TYPED_MAX];
    uint32_t count = specs[spec].item_count;
    for (uint32_t i = 0; i < count; i++) {
        types[i] = specs[spec].items[i].type;
        counts[i] = draw(p, 40) == 0 ? draw(p, 3000) : draw(p, 60);
    }
    if (draw(p, 8) == 0) /* not the frame that was foreseen */
        types[draw(p, count)] = 1 + draw(p, TYPES);
    for (int i = 0; i < 2; i++) {
        void *data[TIDE_TYPED_MAX] = {NULL};
        side *s = &p->sides[i];
        tide_scope *scope = &s->scopes[p->depth];
        const tide_plan *plan = plan_at(s, spec, mix);
        scope->plan = plan;
        scope->site = &site;
        plan->frame(scope, s->pool, count, types, counts, data);
        assert_ptr_equal(scope->pool, s->pool);
        for (uint32_t k = 0; k < count; k++) {
            assert_non_null(data[k]);
            memset(data[k], 0, counts[k] * tide_type_size(types[k]));
        }
    }
    p->is_frame[p->depth++] = true;
    p->frames++;
    p->framed = true;
}

static void enter(program *p)
{
    uint32_t spec = draw(p, ACQUIRE + 1), mix = draw(p, MIXES);
    spec = spec == ACQUIRE ? FIVE : spec;
    if (p->depth == DEPTH)
        return;
    if (specs[spec].kind == TIDE_KIND_FRAME)
        enter_frame(p, spec, mix);
    else
        enter_scope(p, spec, mix);
}

/* `levels` at once: all but the last, outermost one are skipped. One that was abandoned ends
 * nothing: what was opened after the reset stays open in the pools. */
static void leave(program *p, uint32_t levels)
{
    uint32_t frames = 0;
    if (p->depth < levels)
        return;
    for (uint32_t level = 0; level < levels; level++)
        frames += p->is_frame[--p->depth];
    if (p->depth >= p->abandoned)
        p->frames -= frames;
    else
        p->abandoned = p->depth;
    for (int i = 0; i < 2; i++) {
        tide_scope *scope = &p->sides[i].scopes[p->depth];
        scope->plan->leave(scope);
    }
}

static void acquire(program *p)
{
    tide_type type = 1 + draw(p, TYPES);
    uint32_t spec = ACQUIRE + draw(p, 2);
    size_t n = draw(p, 30) == 0 ? draw(p, 20000) : draw(p, 100);
    if (type == TIDE_BIT)
        return;
    for (int i = 0; i < 2; i++) {
        tide_pool *pool = p->sides[i].pool;
        const tide_plan *plan = plan_at(&p->sides[i], spec, 0);
        void *got = plan->acquire(pool, type, n, plan, &site);
        assert_non_null(got);
        memset(got, 1, n * tide_type_size(type));
        assert_ptr_equal(got, pool->shelves[type].next[-1].data);
    }
}

static void acquire_array(program *p)
{
    const tide_spec *spec = &specs[ARRAY];
    const tide_spec_item *item = &spec->items[draw(p, spec->item_count)];
    int64_t shape[TIDE_NDIM_MAX] = {3, 4, 5};
    tide_type type = item->type;
    if (draw(p, 6) == 0)
        shape[draw(p, 3)] = draw(p, 9);
    if (draw(p, 9) == 0)
        type = TIDE_F32;
    for (int i = 0; i < 2; i++) {
        tide_pool *pool = p->sides[i].pool;
        const tide_plan *plan = plan_at(&p->sides[i], ARRAY, 0);
        tide_array *got = plan->array(pool, type, item->ndim, shape, plan, &site);
        assert_non_null(got);
        assert_int_equal(got->tensor.ndim, item->ndim);
        for (int d = 0; d < item->ndim; d++)
            assert_int_equal(got->tensor.shape[d], shape[d]);
        assert_int_equal(got->type, type);
        assert_ptr_equal(got->tensor.data, got->slot->data);
    }
}

static void abandon(program *p)
{
    p->abandoned = p->depth;
    p->frames = 0;
    memset(p->is_frame, 0, sizeof p->is_frame);
}

static void disturb(program *p)
{
    uint32_t what = draw(p, 40);
    if (what == 0)
        abandon(p);
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
    p->framed = p->framed && tide_pool_depth(p->sides[0].pool) != 0;
    switch (draw(p, 10)) {
    case 0:
    case 1: enter(p); break;
    case 2:
    case 3: leave(p, 1 + (draw(p, 8) == 0 ? draw(p, 3) : 0)); break;
    case 4:
        while (p->depth > 0 && p->operation % 4 == 0)
            leave(p, 1);
        disturb(p);
        break;
    case 5:
    case 6: acquire_array(p); break;
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

/* The programs have been where they should: each counting site has run compiled code often. */
static void test_plain_pools(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++)
        run(&(tide_pool_options){.name = "plain"}, seed);
    for (uint32_t s = 0; s < spec_count; s++)
        if (specs[s].count && runs_of(s) < 20)
            fail_msg("%s ran %llu times", specs[s].stem, (unsigned long long)runs_of(s));
}

/* A careful pool closes every guard: nothing compiled may have run there. */
static void test_careful_pools(void **state)
{
    (void)state;
    uint64_t before[16];
    for (uint32_t s = 0; s < spec_count; s++)
        before[s] = runs_of(s);
    run(&(tide_pool_options){.name = "poisoned", .check = TIDE_CHECK_POISON}, 5);
    run(&(tide_pool_options){.name = "guarded", .check = TIDE_CHECK_GUARD}, 6);
    for (uint32_t s = 0; s < spec_count; s++)
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
