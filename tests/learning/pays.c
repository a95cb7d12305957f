/* SPDX-License-Identifier: MIT */
/* Code is ordered for sites that have lost as much without it as it costs, and for no others. The
 * test writes itself how often a pool has counted a site, so it may have been used for hours. */
#include "learning.h"

#include <stdio.h>
#include <stdlib.h>

#include <tidepool/learn.h>
#include <tidepool/site.h>

#include "jit/learn/pays.h"
#include "runtime/scope/site.h"

static int pays_setup(void **state)
{
    learning_setup(state);
    set("break_even", 1);
    set("window_every", 1);
    for (int i = 0; i < 50; i++)
        tide_pays_spent(1, 15e6); /* whatever compiles have cost before: the model's figure */
    return 0;
}

enum { WINDOW = 200 };

/* Takes a window, and has the pool count so many uses more. */
static void window_and(use *u, uint64_t more)
{
    expect_ok(tide_step()); /* opens it */
    use_times(u, WINDOW);
    assert_int_not_equal(u->site->number, 0);
    learning_pool->uses[u->site->number] += more;
    expect_ok(tide_step()); /* takes it */
}

static void a_site_that_is_seldom_used_is_never_compiled(void **state)
{
    (void)state;
    need_stager();
    use u = use_of("pays: seldom", TIDE_KIND_SCOPE, learning_pool, 2, TIDE_F64, TIDE_I32);
    uint64_t ordered = learned().ordered;
    for (int i = 0; i < 20; i++)
        window_and(&u, 100);
    assert_int_equal(info_of(u.site).uses, 20 * (WINDOW + 100));
    assert_int_equal(learned().ordered, ordered);
    assert_int_equal(tier_of(u.site), TIDE_TIER_TABLE);
    assert_string_equal(reason_of(u.site),
                        "code for it would cost more than the site has lost without; later");
}

static const tide_learned *plan_of_site(const tide_site *site)
{
    const tide_learner *learner = site->record->learner;
    assert_true(learner->in_force < learner->plan_count);
    return learner->plans[learner->in_force];
}

static void a_hot_site_is_compiled_once_it_has_lost_what_that_costs(void **state)
{
    (void)state;
    need_stager();
    use u = use_of("pays: hot", TIDE_KIND_SCOPE, learning_pool, 2, TIDE_F64, TIDE_I32);
    uint64_t ordered = learned().ordered;
    window_and(&u, 0);
    window_and(&u, 400000); /* 0.2 ms */
    assert_int_equal(learned().ordered, ordered);
    window_and(&u, 800000000); /* 0.4 s */
    assert_int_equal(learned().ordered, ordered + 1);
    assert_true(tide_pays_lost(plan_of_site(u.site)) ==
                0); /* another compile must be earned anew */
    set("window_every", 100);
    until(&u, TIDE_TIER_COMPILED);
    assert_int_equal(learned().ordered, ordered + 1);
    use_times(&u, 1);
    expect_executed(&u, 10);
    tide_site_information info = info_of(u.site);
    assert_true(info.compile_ns > 1e5 && info.saved_ns < 1e6);
    learning_pool->uses[u.site->number] += 800000000; /* at 0.5 ns, which no trial has corrected */
    assert_true(info_of(u.site).saved_ns >= 0.4e9 && info_of(u.site).saved_ns < 0.401e9);
    assert_true(info_of(u.site).compile_ns == info.compile_ns);
}

/* What is declared needs no window. */
static void a_declared_site_is_compiled_when_it_is_hot(void **state)
{
    (void)state;
    need_stager();
    use u = use_of("pays: declared", TIDE_KIND_SCOPE, learning_pool, 2, TIDE_F64, TIDE_U32);
    expect_ok(tide_site_declare(u.site, u.types, u.count));
    uint64_t ordered = learned().ordered;
    use_times(&u, 1);
    expect_ok(tide_step());
    assert_int_equal(learned().ordered, ordered);
    for (int i = 0; i < 5; i++) {
        learning_pool->uses[u.site->number] += 20000000; /* 10 ms */
        expect_ok(tide_step());
    }
    assert_int_equal(info_of(u.site).samples, 0);
    assert_int_equal(learned().ordered, ordered + 1);
}

/* What the stager took of the processor takes the place of the model's figure. */
static void a_compile_is_measured(void **state)
{
    (void)state;
    need_stager();
    for (int i = 0; i < 20; i++)
        tide_pays_spent(1, 0); /* a compile that costs nothing: a tenth of the model is the least */
    double cheap = tide_pays_cost();
    use u = use_of("pays: measured", TIDE_KIND_SCOPE, learning_pool, 2, TIDE_U8, TIDE_I32);
    set("break_even", 0);
    set("window_every", 100);
    until(&u, TIDE_TIER_COMPILED);
    assert_true(tide_pays_cost() > cheap); /* for this one cost something */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_site_that_is_seldom_used_is_never_compiled, pays_setup,
                                        learning_teardown),
        cmocka_unit_test_setup_teardown(a_hot_site_is_compiled_once_it_has_lost_what_that_costs,
                                        pays_setup, learning_teardown),
        cmocka_unit_test_setup_teardown(a_declared_site_is_compiled_when_it_is_hot, pays_setup,
                                        learning_teardown),
        cmocka_unit_test_setup_teardown(a_compile_is_measured, pays_setup, learning_teardown),
    };
    return cmocka_run_group_tests_name("learning: pays", tests, learning_make_pool,
                                       learning_drop_pool);
}
