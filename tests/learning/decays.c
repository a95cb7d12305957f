/* SPDX-License-Identifier: MIT */
/* Nothing that learning counts against a site or the stager grows for good: what was long ago
 * counts less and less, and a site that is not used is no reason for anything. */
#include "learning.h"

#include <stdio.h>

#include <tidepool/learn.h>
#include <tidepool/site.h>

#include "jit/learn/budget.h"
#include "jit/learn/learner.h"
#include "jit/learn/round.h"
#include "runtime/base/settings.h"
#include "runtime/scope/site.h"

static uint64_t round_now(void)
{
    tide_round_lock();
    uint64_t round = tide_round_number();
    tide_round_unlock();
    return round;
}

static void steps(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        expect_ok(tide_step());
}

static tide_learned *plan_in_force(const use *u)
{
    tide_learned *plan = tide_learner_plan_in_force(u->site->record->learner);
    assert_non_null(plan);
    return plan;
}

/* ---- back-off ---------------------------------------------------------------------------- */

static void a_plan_that_fails_no_more_is_forgiven(void **state)
{
    (void)state;
    enum { LONGEST = 256, LEAST = 8 };
    use u = use_of("decays: forgiven", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    set("break_even", 1e6); /* it is wanted as code, and never pays */
    learn_windows(&u, 2);
    tide_learned *plan = plan_in_force(&u);
    plan->state = TIDE_CODE_REQUESTED; /* however long that takes: it may fail again */
    plan->back_off = LONGEST;
    plan->retry_round = round_now();
    steps(2 * LONGEST);
    assert_int_equal(plan->back_off, LONGEST);
    plan->state = TIDE_CODE_NONE;
    plan->retry_round = round_now() + LONGEST;
    steps(LONGEST); /* it is left alone, and nothing is forgiven */
    assert_int_equal(plan->back_off, LONGEST);
    uint64_t last = LONGEST;
    for (unsigned i = 0; i < 2 * LONGEST; i++) {
        steps(1);
        assert_true(plan->back_off == last || plan->back_off == last / 2);
        last = plan->back_off;
    }
    assert_int_equal(plan->back_off, LEAST);
    assert_int_equal(plan->state, TIDE_CODE_WANTED);
}

static void failed_batches_of_long_ago_make_no_rest(void **state)
{
    (void)state;
    enum { LONGEST = 16, FAILURES = 12 };
    set("back_off_max", LONGEST);
    uint64_t round = round_now();
    assert_true(tide_budget_note(true, round));
    for (unsigned i = 0; i < FAILURES; i++)
        (void)tide_budget_note(false, ++round);
    assert_int_equal(tide_budget_take(round + LONGEST - 1), TIDE_REASON_backing_off);
    assert_int_equal(tide_budget_take(round + LONGEST), TIDE_REASON_none);
    round += LONGEST + 1; /* one has gone by: the next failure is as bad as the last one */
    assert_false(tide_budget_note(false, round));
    round += (LONGEST + 1) * (FAILURES + 1);
    assert_true(tide_budget_note(false, round)); /* the first of a few */
    assert_true(tide_budget_note(false, ++round));
    assert_false(tide_budget_note(false, ++round));
    assert_true(tide_budget_note(true, round));
    steps(round - round_now() + LONGEST);
}

/* ---- misses ------------------------------------------------------------------------------ */

static void patience_with_misses_wears_off(void **state)
{
    (void)state;
    set("window_every", 4);
    for (tide_kind kind = TIDE_KIND_SCOPE; kind <= TIDE_KIND_ACQUIRE; kind += TIDE_KIND_ACQUIRE) {
        use u = use_of(kind == TIDE_KIND_SCOPE ? "decays: scope" : "decays: acquire", kind,
                       learning_pool, 1, TIDE_F64);
        learn_windows(&u, 2);
        tide_learner *learner = u.site->record->learner;
        learner->misses_max = 1 << 12;
        steps(2 * 4 * 12 + 2 * 4);
        assert_int_equal(learner->misses_max, tide_constant_whole(TIDE_CONSTANT_misses));
    }
}

/* ---- idle sites -------------------------------------------------------------------------- */

static unsigned gave_up;

static void hear(const tide_event *event, void *user)
{
    const use *u = user;
    gave_up += event->kind == TIDE_EVENT_GAVE_UP && event->site == u->site;
}

/* Windows open and close, and nobody uses the site. */
static void a_site_that_is_not_used_stays_what_it_is(void **state)
{
    (void)state;
    need_stager();
    for (tide_kind kind = 0; kind < TIDE_KIND_COUNT; kind++) {
        char name[32];
        snprintf(name, sizeof name, "decays: idle %s", tide_kind_name(kind));
        use u = use_of(name, kind, learning_pool, 1, TIDE_F64);
        set("window_every", 100);
        until(&u, TIDE_TIER_COMPILED);
        set("window_every", 4);
        set("window_rounds", 3);
        const char *reason = reason_of(u.site);
        uint64_t generation = info_of(u.site).generation, seen = 0;
        gave_up = 0;
        tide_event_set_handler(hear, &u);
        for (unsigned i = 0; i < 600; i++) {
            steps(1);
            seen += info_of(u.site).observed;
        }
        tide_event_set_handler(NULL, NULL);
        assert_true(seen > 100);
        assert_int_equal(gave_up, 0);
        assert_string_equal(reason_of(u.site), reason);
        assert_int_equal(info_of(u.site).generation, generation);
        assert_true(u.site->record->learner != NULL);
        expect_types(u.site, 1, TIDE_F64);
        assert_int_equal(tier_of(u.site), TIDE_TIER_COMPILED);
        expect_executed(&u, 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(a_plan_that_fails_no_more_is_forgiven),
        LEARNING_TEST(failed_batches_of_long_ago_make_no_rest),
        LEARNING_TEST(patience_with_misses_wears_off),
        LEARNING_TEST(a_site_that_is_not_used_stays_what_it_is),
    };
    return cmocka_run_group_tests_name("learning: decays", tests, learning_make_pool,
                                       learning_drop_pool);
}
