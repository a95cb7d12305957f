/* SPDX-License-Identifier: MIT */
/* Random programs: levels of every form nested in each other, arrays used on the pool's stream and
 * on others, declared where they are used, work in flight all the time. The fake driver's hazard
 * check must find nothing, each kernel must see what it should; and the same programs with one
 * declaration left out must be found out. */
#include <setjmp.h>
#include <stdlib.h>

#include <tidepool/callsite.h>
#include <tidepool/check.h>
#include <tidepool/device.h>
#include <tidepool/dynamic.h>
#include <tidepool/learn.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

#include "support.h"
#include "tests/random.h"

enum { STREAMS = 3, ARRAYS = 24, DEEPEST = 5 };

/* An array, and where it was used last: the program orders its own uses, as it has to. */
typedef struct used_array {
    void *data;
    size_t bytes;
    uint8_t value;
    bool written;
    unsigned streams; /* that have used it */
} used_array;

typedef struct program {
    bench bench;
    void *streams[STREAMS]; /* the first is the pool's */
    unsigned declared;
    used_array arrays[ARRAYS];
    unsigned count, steps;
    rng random;
    bool forgetful; /* says nothing of other streams */
} program;

static uint32_t draw(program *p, uint32_t below)
{
    return (uint32_t)rng_below(&p->random, below);
}

/* ---- steps -------------------------------------------------------------------------------- */

static void remember(program *p, void *data, size_t bytes)
{
    if (data != NULL && p->count < ARRAYS)
        p->arrays[p->count++] = (used_array){.data = data, .bytes = bytes};
}

static void acquire(program *p)
{
    static const tide_type types[] = {TIDE_F32, TIDE_U8, TIDE_F64, TIDE_F16};
    tide_type type = types[draw(p, 4)];
    size_t n = 1 + draw(p, draw(p, 8) == 0 ? 5000 : 300);
    void *data = tide_acquire_type(p->bench.pool, type, n);
    assert_non_null(data);
    remember(p, data, n * tide_type_size(type));
}

static void use(program *p)
{
    if (p->count == 0)
        return;
    used_array *array = &p->arrays[draw(p, p->count)];
    unsigned on = draw(p, STREAMS);
    if ((p->declared >> on & 1) == 0)
        on = 0;
    for (unsigned i = 0; i < STREAMS; i++) /* after all that used it before */
        if (i != on && (array->streams >> i & 1) != 0)
            fake_order(p->streams[i], p->streams[on]);
    array->streams |= 1u << on;
    if (array->written && draw(p, 2) == 0) {
        expect(p->streams[on], array->data, array->bytes, array->value);
        return;
    }
    array->value = (uint8_t)draw(p, 256);
    array->written = true;
    put(p->streams[on], array->data, array->bytes, array->value);
}

static void declare(program *p)
{
    unsigned on = 1 + draw(p, STREAMS - 1);
    p->declared |= 1u << on;
    if (!p->forgetful)
        expect_ok(tide_pool_use_on(p->bench.pool, p->streams[on]));
    else /* what the program can see for itself, it orders */
        fake_order(p->streams[0], p->streams[on]);
}

static void zeros(program *p)
{
    size_t n = 1 + draw(p, 200);
    void *data = tide_zeros_type(p->bench.pool, TIDE_I32, n);
    assert_non_null(data);
    remember(p, data, n * 4);
    if (p->count == 0)
        return;
    used_array *array = &p->arrays[p->count - 1];
    if (array->data == data)
        array->written = true;
}

/* ---- levels ------------------------------------------------------------------------------- */

static void level(program *p, unsigned depth);

static void body(program *p, unsigned depth)
{
    unsigned arrays = p->count, declared = p->declared;
    for (uint32_t steps = 1 + draw(p, 6); steps > 0 && p->steps > 0; steps--) {
        p->steps--;
        switch (draw(p, 8)) {
        case 0:
        case 1: acquire(p); break;
        case 2:
        case 3:
        case 4: use(p); break;
        case 5: draw(p, 3) == 0 ? declare(p) : zeros(p); break;
        default:
            if (depth < DEEPEST)
                level(p, depth + 1);
        }
    }
    p->count = arrays;
    p->declared = declared;
}

static void in_a_scope(program *p, unsigned depth)
{
    TIDE_SCOPE(p->bench.pool);
    body(p, depth);
}

static void in_a_typed_scope(program *p, unsigned depth)
{
    TIDE_SCOPE_TYPES(p->bench.pool, float, uint8_t);
    body(p, depth);
}

static void in_a_frame(program *p, unsigned depth)
{
    TIDE_FRAME(p->bench.pool, (float, x, 100), (uint8_t, y, 333), (float, z, 50));
    assert_non_null(x);
    unsigned arrays = p->count;
    remember(p, x, 400);
    remember(p, y, 333);
    remember(p, z, 200);
    body(p, depth);
    p->count = arrays;
}

static void in_a_frame_that_is_a_site(program *p, unsigned depth)
{
    TIDE_FRAME_SITE(p->bench.pool, (double, x, 20), (uint8_t, y, 10));
    unsigned arrays = p->count;
    remember(p, x, 160);
    remember(p, y, 10);
    body(p, depth);
    p->count = arrays;
}

static void in_a_loop(program *p, unsigned depth)
{
    size_t times = 1 + draw(p, 4);
    TIDE_LOOP(p->bench.pool, i, times)
    body(p, depth);
}

static void under_a_mark(program *p, unsigned depth)
{
    tide_mark mark = tide_checkpoint(p->bench.pool);
    body(p, depth);
    expect_ok(tide_rewind(p->bench.pool, mark));
}

static void in_a_foreign_scope(program *p, unsigned depth)
{
    tide_scope scope;
    expect_ok(tide_scope_enter(p->bench.pool, NULL, &scope));
    body(p, depth);
    expect_ok(tide_scope_leave(&scope));
}

static void leave_open(program *p, unsigned depth, jmp_buf *out)
{
    TIDE_SCOPE(p->bench.pool);
    body(p, depth);
    longjmp(*out, 1);
}

/* The scope inside is left open; the one around it cleans up. */
static void in_a_scope_that_is_skipped(program *p, unsigned depth)
{
    unsigned arrays = p->count, declared = p->declared;
    TIDE_SCOPE(p->bench.pool);
    jmp_buf out;
    if (setjmp(out) == 0)
        leave_open(p, depth, &out);
    p->count = arrays;
    p->declared = declared;
}

static void level(program *p, unsigned depth)
{
    static void (*const forms[])(program *, unsigned) = {
        in_a_scope, in_a_typed_scope, in_a_frame,         in_a_frame_that_is_a_site,
        in_a_loop,  under_a_mark,     in_a_foreign_scope, in_a_scope_that_is_skipped};
    forms[draw(p, sizeof forms / sizeof *forms)](p, depth);
}

/* ---- whole programs ------------------------------------------------------------------------- */

static void between(program *p)
{
    switch (draw(p, 12)) {
    case 0: (void)tide_pool_trim(p->bench.pool, TIDE_ALL_TYPES); break;
    case 1: (void)tide_pool_compact(p->bench.pool, TIDE_ALL_TYPES); break;
    case 2: expect_ok(tide_pool_empty(p->bench.pool)); break;
    case 3: expect_ok(tide_pool_request(p->bench.pool, TIDE_REQUEST_TRIM)); break;
    case 4: expect_ok(tide_pool_wait(p->bench.pool)); break;
    case 5: fake_synchronise_all(); break;
    default: expect_ok(tide_pool_reset(p->bench.pool));
    }
}

static void run(uint32_t seed, bool forgetful, tide_pool_options options)
{
    program p = {.random = {seed}, .forgetful = forgetful, .declared = 1};
    p.bench = bench_start_with(seed, options);
    p.streams[0] = p.bench.stream;
    for (int i = 1; i < STREAMS; i++)
        p.streams[i] = fake_stream_create(0);
    for (int i = 0; i < 12; i++) {
        p.steps = 60;
        level(&p, 1);
        between(&p);
    }
    fake_synchronise_all();
    if (!forgetful) {
        bench_end(&p.bench);
    } else {
        expect_ok(tide_pool_destroy(p.bench.pool));
        expect_ok(tide_device_close(p.bench.device));
        fake_stream_destroy(p.bench.stream);
    }
    for (int i = 1; i < STREAMS; i++)
        fake_stream_destroy(p.streams[i]);
}

static void repeat(uint32_t seeds, tide_pool_options options)
{
    for (uint32_t seed = 1; seed <= scaled(seeds, 10); seed++)
        run(seed, false, options);
}

static void declared_work_is_always_ordered(void **state)
{
    (void)state;
    repeat(300, (tide_pool_options){0});
}

static bool quiet(tide_report_kind kind, const char *text, void *user)
{
    (void)kind, (void)text, (void)user;
    return false;
}

static void also_in_a_pool_that_poisons(void **state)
{
    (void)state;
    tide_report_set_handler(quiet, NULL); /* of scopes that were skipped */
    repeat(60, (tide_pool_options){.check = TIDE_CHECK_POISON});
}

static void also_in_a_pool_that_is_disabled(void **state)
{
    (void)state;
    repeat(60, (tide_pool_options){.disabled = true});
}

static void also_at_the_table_tier(void **state)
{
    (void)state;
    expect_ok(tide_tune_set("tier", 1));
    repeat(100, (tide_pool_options){0});
    expect_ok(tide_tune_set("tier", 0));
}

static bool count_compiled(tide_site *site, void *user)
{
    tide_site_information info;
    expect_ok(tide_site_info(site, &info));
    *(unsigned *)user += info.tier == TIDE_TIER_COMPILED;
    return true;
}

/* Where there is a stager, sites come to run code that it compiled. */
static void also_with_what_was_learned(void **state)
{
    (void)state;
    unsigned compiled = 0;
    expect_ok(tide_tune_set("trial", 0));
    for (uint32_t seed = 1; seed <= scaled(200, 50); seed++) {
        run(seed, false, (tide_pool_options){0});
        expect_ok(tide_step());
        if (seed % 25 == 0)
            expect_ok(tide_settle(60000));
    }
    tide_site_each(count_compiled, &compiled);
    print_message("%u sites compiled\n", compiled);
    assert_true(compiled > 0 || getenv("TIDEPOOL_STAGER") == NULL);
}

/* That nothing was found above means something only if what is wrong is found. */
static void undeclared_work_is_mostly_found_out(void **state)
{
    (void)state;
    unsigned found = 0;
    const uint32_t programs = (uint32_t)scaled(100, 20);
    for (uint32_t seed = 1; seed <= programs; seed++) {
        run(seed, true, (tide_pool_options){0});
        found += fake_hazard() != NULL;
    }
    print_message("%u of %u programs found out\n", found, programs);
    assert_true(found >= programs / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(declared_work_is_always_ordered),
        cmocka_unit_test(also_in_a_pool_that_poisons),
        cmocka_unit_test(also_in_a_pool_that_is_disabled),
        cmocka_unit_test(also_at_the_table_tier),
        cmocka_unit_test(also_with_what_was_learned),
        cmocka_unit_test(undeclared_work_is_mostly_found_out),
    };
    tide_tune_set("background", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
