/* SPDX-License-Identifier: MIT */
/* Trials: what wins, what loses, what shows no difference, through noise, interrupts and rhythms;
 * and that a use on trial is made once, and rightly. The clock is the test's own. */
#define _GNU_SOURCE
#include "learning.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/dynamic.h>
#include <tidepool/generic.h>
#include <tidepool/learn.h>
#include <tidepool/profile.h>
#include <tidepool/site.h>

#include "jit/learn/test_hooks.h"
#include "tests/hooks.h"
#include "tests/random.h"

/* ---- the clock --------------------------------------------------------------------------- */

/* What a timed call takes by either plan, and what else happens to it. */
static uint64_t control_ns, candidate_ns; /* atomic, as threads read them */
static uint64_t noise_ns;                 /* up to so much is added, at random */
static unsigned interrupted; /* one call in so many is interrupted for 50 µs; 0: none */
static unsigned rhythm;      /* every so manyth call takes 1 µs more; 0: none */

enum { CLOCK_NS = 7 }; /* that looking at it takes */

static _Thread_local uint64_t calls;
static _Thread_local rng chance;

static uint64_t disturbance(void)
{
    uint64_t ns = noise_ns != 0 ? rng_below(&chance, noise_ns) : 0;
    calls++;
    if (rhythm != 0 && calls % rhythm == 0)
        ns += 1000;
    if (interrupted != 0 && rng_below(&chance, interrupted) == 0)
        ns += 50000;
    return ns;
}

static bool looks_at_thread, thread_seen; /* while something is timed */

static uint64_t clock_of_tests(const tide_plan *timed)
{
    static _Thread_local uint64_t now;
    static _Thread_local bool within;
    if (timed == NULL)
        return now += CLOCK_NS;
    within = !within;
    if (looks_at_thread)
        thread_seen |= tide_background_running();
    if (!within)
        now += CLOCK_NS + disturbance() +
               __atomic_load_n(timed->tier == TIDE_TIER_COMPILED ? &candidate_ns : &control_ns,
                               __ATOMIC_RELAXED);
    return now;
}

enum { WARM_UP = 32, BURST = 256 }; /* uses */

static int trial_setup(void **state)
{
    settings_of_tests();
    set("trial", 1);
    set("trial_burst", BURST);
    set("window_every", 1e6); /* none opens in the middle, however long a compile takes */
    tide_trial_clock = clock_of_tests;
    control_ns = 1000;
    candidate_ns = 100;
    noise_ns = interrupted = rhythm = 0;
    calls = 0;
    chance.state = 1;
    (void)state;
    return 0;
}

#define TRIAL_TEST(function) \
    cmocka_unit_test_setup_teardown(function, trial_setup, learning_teardown)

static const char on_trial[] = "compiled; on trial";

/* Until the trial is open; none of its uses has been made. Before it is compiled the site has all
 * of its first windows, which would interrupt the trial. */
static void open_trial(const use *u)
{
    need_stager();
    set("break_even", 1e6);
    for (unsigned i = 0; i < 150; i++) {
        use_times(u, 20);
        expect_ok(tide_step());
    }
    set("break_even", 0);
    for (unsigned i = 0; i < 50 && strcmp(reason_of(u->site), on_trial) != 0; i++) {
        expect_ok(tide_step());
        settle();
    }
    assert_string_equal(reason_of(u->site), on_trial);
}

/* Makes the uses that warm up, then a burst, and has the trial judged. */
static void hold_trial(const use *u)
{
    use_times(u, WARM_UP);
    expect_ok(tide_step());
    use_times(u, BURST);
    expect_ok(tide_step());
}

static use tried(const char *purpose)
{
    char name[64];
    snprintf(name, sizeof name, "trials: %s", purpose);
    return use_of(name, TIDE_KIND_SCOPE, learning_pool, 2, TIDE_F64, TIDE_I32);
}

static void a_burst_that_is_full_wants_nothing_while_nothing_is_learned(void **state)
{
    (void)state;
    use u = tried("wants nothing");
    open_trial(&u);
    allow_background();
    set("learn", 0);
    use_times(&u, WARM_UP);
    assert_false(tide_background_running());
    set("background", 0);
    set("learn", 1);
    expect_ok(tide_step());
    use_times(&u, BURST);
    expect_ok(tide_step());
    assert_int_equal(tier_of(u.site), TIDE_TIER_COMPILED);
}

/* Else a trial is as slow as rounds that nobody wants. */
static void a_burst_that_is_full_wants_the_next_round(void **state)
{
    (void)state;
    use u = tried("wants");
    open_trial(&u);
    allow_background();
    use_times(&u, WARM_UP - 1);
    assert_false(tide_background_running());
    tide_scope scope;
    looks_at_thread = true;
    tide_scope_enter(learning_pool, u.site, &scope);
    looks_at_thread = false;
    assert_false(thread_seen); /* a use is timed without that */
    assert_true(tide_background_running());
    tide_scope_leave(&scope);
    until(&u, TIDE_TIER_COMPILED);
    expect_ok(tide_background_stop());
}

/* ---- winning and losing ------------------------------------------------------------------ */

static void what_is_faster_is_adopted(void **state)
{
    (void)state;
    use u = tried("wins");
    open_trial(&u);
    uint64_t won = learned().won;
    assert_int_equal(tier_of(u.site), TIDE_TIER_TABLE);
    hold_trial(&u);
    assert_int_equal(tier_of(u.site), TIDE_TIER_COMPILED);
    assert_string_equal(reason_of(u.site), "compiled code won its trial");
    assert_int_equal(learned().won, won + 1);
    expect_executed(&u, 100);
}

static void what_is_no_faster_is_given_up_and_tried_again_later(void **state)
{
    (void)state;
    candidate_ns = 1100;
    use u = tried("loses");
    open_trial(&u);
    uint64_t lost = learned().lost;
    hold_trial(&u);
    assert_int_equal(tier_of(u.site), TIDE_TIER_TABLE);
    assert_non_null(strstr(reason_of(u.site), "no faster"));
    assert_int_equal(learned().lost, lost + 1);
    uint64_t compiles = info_of(u.site).compiles;
    for (unsigned i = 0; i < 6; i++) {
        use_times(&u, 10);
        expect_ok(tide_step());
    }
    assert_int_equal(learned().lost, lost + 1); /* left alone */
    for (unsigned i = 0; i < 300; i++) {
        use_times(&u, 10);
        expect_ok(tide_step());
        settle();
    }
    assert_in_range(learned().lost, lost + 2, lost + 10);
    assert_int_equal(info_of(u.site).compiles, compiles); /* the code is there */
    assert_int_equal(tier_of(u.site), TIDE_TIER_TABLE);
    candidate_ns = 100;
    for (unsigned i = 0; i < 700 && tier_of(u.site) != TIDE_TIER_COMPILED; i++) {
        use_times(&u, 10);
        expect_ok(tide_step());
        settle();
    }
    expect_executed(&u, 10);
    candidate_ns = 1100;
}

static void the_margin_decides_close_trials(void **state)
{
    (void)state;
    use narrow = tried("by 1 %"), enough = tried("by 3 %"), tie = tried("tie");
    control_ns = 1010;
    candidate_ns = 1000;
    open_trial(&narrow);
    hold_trial(&narrow);
    assert_int_equal(tier_of(narrow.site), TIDE_TIER_TABLE);
    control_ns = 1030;
    open_trial(&enough);
    hold_trial(&enough);
    assert_int_equal(tier_of(enough.site), TIDE_TIER_COMPILED);
    control_ns = 1000;
    set("trial_margin", 1);
    open_trial(&tie);
    hold_trial(&tie);
    assert_int_equal(tier_of(tie.site), TIDE_TIER_TABLE);
}

/* Without a difference there is no end before all uses are made, and then no winner. */
static void what_shows_no_difference_ends_without_a_winner(void **state)
{
    (void)state;
    set("trial_margin", 1);
    set("trial_calls", WARM_UP + 2 * BURST);
    candidate_ns = control_ns;
    use u = tried("even");
    open_trial(&u);
    uint64_t lost = learned().lost;
    hold_trial(&u);
    assert_string_equal(reason_of(u.site), on_trial);
    hold_trial(&u);
    assert_non_null(strstr(reason_of(u.site), "has not shown"));
    assert_int_equal(tier_of(u.site), TIDE_TIER_TABLE);
    assert_int_equal(learned().lost, lost + 1);
}

/* ---- what disturbs ----------------------------------------------------------------------- */

/* Holds trials until it has a verdict. How many bursts did it take? */
static unsigned bursts_of(const use *u)
{
    unsigned bursts = 0;
    open_trial(u);
    for (; bursts < 200 && strcmp(reason_of(u->site), on_trial) == 0; bursts++)
        hold_trial(u);
    assert_in_range(bursts, 1, 199);
    return bursts;
}

/* A gain of 10 ns in noise of up to 150 ns is not seen in one burst, and is seen in the end; the
 * figures say how sure they are. */
static void noise_takes_more_uses(void **state)
{
    (void)state;
    noise_ns = 150;
    control_ns = 110;
    candidate_ns = 100;
    use u = tried("noise");
    assert_true(bursts_of(&u) > 1);
    assert_int_equal(tier_of(u.site), TIDE_TIER_COMPILED);
    tide_site_information info = info_of(u.site);
    double gain = info.trial_ns - info.trial_code_ns;
    assert_true(info.trial_uses > BURST && info.trial_error_ns > 0);
    assert_true(gain > 4 * info.trial_error_ns); /* it was decided */
    assert_true(gain > 20 - 5 * info.trial_error_ns && gain < 20 + 5 * info.trial_error_ns);
    assert_true(info.trial_ns > 2 * (110 + 65) &&
                info.trial_ns < 2 * (110 + 85)); /* enters and leaves; the clock's part is off */
}

/* Equal plans in noise: twenty trials, and none is won. */
static void noise_makes_no_winner(void **state)
{
    (void)state;
    noise_ns = 200;
    control_ns = candidate_ns = 100;
    for (unsigned i = 0; i < 20; i++) {
        char purpose[32];
        snprintf(purpose, sizeof purpose, "noise %u", i);
        use u = tried(purpose);
        (void)bursts_of(&u);
        assert_int_equal(tier_of(u.site), TIDE_TIER_TABLE);
    }
}

static void interrupts_do_not_hide_a_gain(void **state)
{
    (void)state;
    interrupted = 40;
    control_ns = 150;
    candidate_ns = 100;
    use u = tried("interrupted");
    (void)bursts_of(&u);
    assert_int_equal(tier_of(u.site), TIDE_TIER_COMPILED);
    assert_true(info_of(u.site).trial_ns < 400); /* 50 µs in 40 looks would be 2500 */
}

/* Whatever the period of a program, neither plan gets its slow uses. */
static void a_rhythm_favours_neither_plan(void **state)
{
    (void)state;
    static const unsigned periods[] = {2, 3, 7, 8, 13, 16, 26, 32, 42, 50, 64};
    control_ns = candidate_ns = 500;
    set("trial_margin", 1);
    for (unsigned i = 0; i < sizeof periods / sizeof *periods; i++) {
        char purpose[32];
        rhythm = periods[i];
        snprintf(purpose, sizeof purpose, "rhythm %u", rhythm);
        use u = tried(purpose);
        (void)bursts_of(&u);
        assert_non_null(strstr(reason_of(u.site), "has not shown"));
        tide_site_information info = info_of(u.site);
        assert_true(info.trial_uses > 3000);
        double gain = info.trial_ns - info.trial_code_ns;
        assert_true(gain < 5 * info.trial_error_ns + 1 && -gain < 5 * info.trial_error_ns + 1);
    }
}

/* ---- uses on trial ----------------------------------------------------------------------- */

/* Either plan makes its part of the uses; compiled code says how many. */
static void each_use_is_made_once_by_one_of_the_two(void **state)
{
    (void)state;
    use u = tried("once");
    open_trial(&u);
    uint64_t runs = info_of(u.site).runs;
    use_times(&u, WARM_UP);
    runs = info_of(u.site).runs - runs; /* the first use may serve a request, and is general */
    assert_in_range(runs, WARM_UP / 2 - 1, WARM_UP / 2);
    uint64_t before = info_of(u.site).runs;
    use_times(&u, BURST); /* of no burst: by the plan in force */
    assert_int_equal(info_of(u.site).runs, before);
}

/* What the trial has measured is told, of one use, to programs and on the page. */
static void a_trial_tells_its_figures(void **state)
{
    (void)state;
    use u = tried("figures");
    control_ns = 500;
    assert_true(info_of(u.site).trial_uses == 0 && info_of(u.site).trial_ns == 0);
    open_trial(&u);
    hold_trial(&u);
    tide_site_information info = info_of(u.site);
    assert_int_equal(info.trial_uses, BURST);
    assert_true(info.trial_ns == 2 * 500 && info.trial_code_ns == 2 * 100); /* enters and leaves */
    assert_true(info.trial_error_ns == 0);
    assert_true(info.use_measured && info.use_ns == 2 * 100 && info.rival_count == 2);
    assert_true(info.rivals[1].tier == TIDE_TIER_TABLE && info.rivals[1].measured);
    assert_true(info.rivals[1].ns == 2 * 500);
    assert_true(learned().spent_us > 0);
    char *text = NULL;
    size_t length = 0;
    FILE *page = open_memstream(&text, &length);
    expect_ok(tide_profile_print(page));
    assert_int_equal(fclose(page), 0);
    assert_non_null(strstr(text, info.reason));
    assert_non_null(strstr(text, "last trial: "));
    free(text);
}

static void a_site_on_trial_may_be_pinned_reset_and_observed(void **state)
{
    (void)state;
    use u = tried("disturbed");
    open_trial(&u);
    use_times(&u, 3);
    expect_ok(tide_site_reset(u.site));
    assert_int_equal(tier_of(u.site), TIDE_TIER_FULL);
    for (unsigned i = 0; i < 300 && strcmp(reason_of(u.site), on_trial) != 0; i++) {
        use_times(&u, 10);
        expect_ok(tide_step());
    }
    assert_string_equal(reason_of(u.site), on_trial);
    expect_ok(tide_profile_observe(true));
    use_times(&u, 3);
    expect_ok(tide_profile_observe(false));
    use_times(&u, 2);
    expect_ok(tide_site_pin(u.site, TIDE_TIER_FULL));
    use_times(&u, 20);
    expect_ok(tide_step());
    assert_int_equal(tier_of(u.site), TIDE_TIER_FULL);
    expect_ok(tide_site_unpin(u.site));
    for (unsigned i = 0; i < 60 && tier_of(u.site) != TIDE_TIER_COMPILED; i++)
        hold_trial(&u);
    use_times(&u, 300);
    settle();
    expect_executed(&u, 10);
}

/* ---- threads ----------------------------------------------------------------------------- */

enum { THREADS = 4, SITES = 5 };

static struct {
    use uses[SITES];
    bool stop, failed; /* atomic */
    unsigned passes;   /* atomic: over all sites */
} crew;

static void *work(void *unused)
{
    tide_pool *own = tide_pool_create(NULL);
    while (!__atomic_load_n(&crew.stop, __ATOMIC_RELAXED)) {
        for (unsigned s = 0; s < SITES; s++) {
            use u = crew.uses[s];
            u.pool = own;
            if (!use_once(&u))
                __atomic_store_n(&crew.failed, true, __ATOMIC_RELAXED);
        }
        __atomic_fetch_add(&crew.passes, 1, __ATOMIC_RELAXED);
    }
    tide_pool_destroy(own);
    return unused;
}

/* Where one thread runs at a time (Valgrind) the one that steps is far ahead of those that use the sites: no
 * trial would come to its end between two resets. */
static void wait_for_passes(unsigned count)
{
    const unsigned from = __atomic_load_n(&crew.passes, __ATOMIC_RELAXED);
    while (__atomic_load_n(&crew.passes, __ATOMIC_RELAXED) - from < count)
        sched_yield();
}

/* Trials are won and lost at random while all threads use the sites. */
static void trials_are_held_under_threads(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    need_stager();
    set("window_every", 2);
    set("back_off_max", 2);
    set("plans_max", 4);
    for (unsigned s = 0; s < SITES; s++)
        crew.uses[s] = tried("threads");
    crew.stop = crew.failed = false;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
    const uint64_t before = learned().won + learned().lost, wanted = 2;
    const size_t rounds = scaled(3000, 300);
    for (unsigned i = 0; i < rounds && learned().won + learned().lost < before + wanted; i++) {
        __atomic_store_n(&candidate_ns, i % 3 == 0 ? 100 : 5000, __ATOMIC_RELAXED);
        wait_for_passes(BURST);
        expect_ok(tide_step());
        if (i % 50 == 49)
            expect_ok(tide_site_reset(crew.uses[i / 50 % SITES].site));
        settle();
    }
    __atomic_store_n(&crew.stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_false(crew.failed);
    assert_true(learned().won + learned().lost > before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRIAL_TEST(a_burst_that_is_full_wants_nothing_while_nothing_is_learned),
        TRIAL_TEST(a_burst_that_is_full_wants_the_next_round),
        TRIAL_TEST(what_is_faster_is_adopted),
        TRIAL_TEST(what_is_no_faster_is_given_up_and_tried_again_later),
        TRIAL_TEST(the_margin_decides_close_trials),
        TRIAL_TEST(what_shows_no_difference_ends_without_a_winner),
        TRIAL_TEST(noise_takes_more_uses),
        TRIAL_TEST(noise_makes_no_winner),
        TRIAL_TEST(interrupts_do_not_hide_a_gain),
        TRIAL_TEST(a_rhythm_favours_neither_plan),
        TRIAL_TEST(each_use_is_made_once_by_one_of_the_two),
        TRIAL_TEST(a_trial_tells_its_figures),
        TRIAL_TEST(a_site_on_trial_may_be_pinned_reset_and_observed),
        TRIAL_TEST(trials_are_held_under_threads),
    };
    return cmocka_run_group_tests_name("learning: trials", tests, learning_make_pool,
                                       learning_drop_pool);
}
