/* SPDX-License-Identifier: MIT */
/* What steps give back by themselves: what a loop did not use lately. Its steps may take turns. */
#include <tidepool/learn.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

#include "arrays_support.h"
#include "hooks.h"

/* A compact looks at LARGE slots: `compact_gain` is set to a quarter of that. */
enum { LARGE = 64 << 10, SMALL = 1000, AFTER = 4 };

static void set_auto(double trim, double compact)
{
    expect_ok(tide_tune_set("auto_trim", trim));
    expect_ok(tide_tune_set("auto_compact", compact));
}

static void nothing(tide_pool *pool, void *state)
{
    (void)pool;
    (void)state;
}

/* A type that no form knows. */
static void take_working_set(tide_pool *pool, void *state)
{
    const size_t *arrays = state;
    for (size_t i = 0; i < *arrays; i++)
        take(pool, TIDE_F32, SMALL, (unsigned)i);
}

struct turns {
    unsigned step, kinds; /* of steps, which take turns */
};

/* Each kind of step needs an array of its own size: small, or one that a compact looks at. */
static void take_in_turn(tide_pool *pool, void *state)
{
    const struct turns *turns = state;
    unsigned kind = turns->step % turns->kinds;
    take(pool, kind % 2 == 0 ? TIDE_F32 : TIDE_U8, kind == 0 ? SMALL : kind * LARGE, kind);
}

static void steps_trim_nothing_that_steps_use_in_turn(const scene *s)
{
    if (s->kind->disabled || s->kind->check == TIDE_CHECK_GUARD)
        return;
    for (unsigned kinds = 2; kinds <= 4; kinds += 2) {
        struct turns turns = {0, kinds};
        uint64_t before = 0;
        set_auto(1, 1);
        for (; turns.step < 5 * kinds; turns.step++) {
            form_run(s->form, s->pool, take_in_turn, &turns);
            expect_ok(tide_step());
            if (turns.step == 2 * kinds)
                before = stats_of(s->pool).allocations;
        }
        assert_int_equal(stats_of(s->pool).allocations, before);
    }
    set_auto(0, 1);
    CHECK_POOL(s->pool);
}

static void take_bytes(tide_pool *pool, void *state)
{
    take(pool, TIDE_U8, *(const size_t *)state, 1);
}

/* Once the loop does other work, what it used before goes after so many steps, and not before. */
static void steps_trim_what_so_many_of_them_did_not_use(const scene *s)
{
    if (s->kind->disabled || s->kind->check == TIDE_CHECK_GUARD)
        return;
    size_t bytes = LARGE;
    set_auto(0, 1);
    form_run(s->form, s->pool, take_bytes, &bytes);
    bytes = 100;
    for (unsigned step = 0; step <= AFTER; step++) {
        assert_true(stats_of(s->pool).bytes_held >= LARGE);
        expect_ok(tide_step());
        form_repeat(s->form, s->pool, 2, take_bytes, &bytes);
    }
    assert_true(stats_of(s->pool).bytes_held < LARGE);
    CHECK_POOL(s->pool);
}

/* Each of the slots, and no other, that was not used from one service to the next. */
static void steps_trim_what_was_not_used_since_the_last_one(const scene *s)
{
    size_t arrays = 5;
    if (s->kind->disabled || s->kind->check == TIDE_CHECK_GUARD)
        return;
    set_auto(1, 0);
    expect_ok(tide_tune_set("trim_after", 1));
    form_run(s->form, s->pool, take_working_set, &arrays);
    arrays = 2;
    for (unsigned i = 0; i < 3; i++) {
        expect_ok(tide_step());
        form_run(s->form, s->pool, take_working_set, &arrays);
        assert_int_equal(slots_with_memory(s->pool, TIDE_F32), i == 0 ? 5 : 2);
    }
    expect_ok(tide_pool_request(s->pool, TIDE_REQUEST_TRIM)); /* the program's own frees all */
    form_run(s->form, s->pool, nothing, NULL);
    assert_int_equal(slots_with_memory(s->pool, TIDE_F32), 0);
    expect_ok(tide_tune_set("trim_after", AFTER));
    set_auto(0, 1);
    CHECK_POOL(s->pool);
}

static const form_case cases[] = {
    CASE_SLOTS(steps_trim_nothing_that_steps_use_in_turn),
    CASE_SLOTS(steps_trim_what_so_many_of_them_did_not_use),
    CASE_SLOTS(steps_trim_what_was_not_used_since_the_last_one),
};

int main(void)
{
    tide_tune_set("trim_after", AFTER);
    set_constant("compact_gain", LARGE / 4 / 1024);
    return forms_main("lately", cases, sizeof cases / sizeof *cases, NULL, 0);
}
