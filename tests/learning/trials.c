/* SPDX-License-Identifier: MIT */
/* Trials: what wins, what loses, what cannot be tried; and that a rehearsal leaves no trace. The
 * clock is the test's own. */
#define _GNU_SOURCE
#include "learning.h"

#include <pthread.h>
#include <stdio.h>

#include "jit/learn/rehearse.h"
#include "jit/learn/test_hooks.h"

/* ---- the clock --------------------------------------------------------------------------- */

/* A rehearsal looks at the clock four times: around the plan in force, then around the
 * candidate. */
static uint64_t control_ns, candidate_ns; /* atomic, as threads read them */

static uint64_t clock_of_tests(void)
{
    static _Thread_local uint64_t now, looks;
    switch (looks++ % 4) {
    case 1: now += __atomic_load_n(&control_ns, __ATOMIC_RELAXED); break;
    case 3: now += __atomic_load_n(&candidate_ns, __ATOMIC_RELAXED); break;
    default: now += 7;
    }
    return now;
}

static int trial_setup(void **state)
{
    settings_of_tests();
    set("trial", 1);
    tide_rehearse_clock = clock_of_tests;
    control_ns = 1000;
    candidate_ns = 100;
    (void)state;
    return 0;
}

#define TRIAL_TEST(function) \
    cmocka_unit_test_setup_teardown(function, trial_setup, learning_teardown)

static const char on_trial[] = "compiled; on trial";

/* Until the trial is open; none of its uses has been made. */
static void open_trial(const use *u)
{
    need_stager();
    for (unsigned i = 0; i < 50 && strcmp(reason_of(u->site), on_trial) != 0; i++)
        learn_windows(u, 1);
    assert_string_equal(reason_of(u->site), on_trial);
}

/* Makes the trial's uses and has it judged. */
static void hold_trial(const use *u)
{
    use_times(u, 8);
    expect_ok(tide_step());
}

static use tried(const char *purpose, tide_kind kind)
{
    char name[64];
    snprintf(name, sizeof name, "trials: %s %s", purpose, tide_kind_name(kind));
    return use_of(name, kind, learning_pool, 2, TIDE_F64, TIDE_I32);
}

#define EACH_KIND(kind) for (tide_kind kind = 0; kind < TIDE_KIND_COUNT; kind++)

static tide_tier tier_without_code(tide_kind kind)
{
    return kind == TIDE_KIND_SCOPE ? TIDE_TIER_TABLE : TIDE_TIER_FULL;
}

/* ---- winning and losing ------------------------------------------------------------------ */

static void what_is_faster_is_adopted(void **state)
{
    (void)state;
    EACH_KIND(kind)
    {
        use u = tried("wins", kind);
        open_trial(&u);
        uint64_t won = learned().won;
        assert_int_equal(tier_of(u.site), tier_without_code(kind));
        hold_trial(&u);
        assert_int_equal(tier_of(u.site), TIDE_TIER_COMPILED);
        assert_string_equal(reason_of(u.site), "compiled code won its trial");
        assert_int_equal(learned().won, won + 1);
        expect_executed(&u, 100);
    }
}

static void what_is_no_faster_is_given_up_and_tried_again_later(void **state)
{
    (void)state;
    candidate_ns = 1000;
    EACH_KIND(kind)
    {
        use u = tried("loses", kind);
        open_trial(&u);
        uint64_t lost = learned().lost;
        hold_trial(&u);
        assert_int_equal(tier_of(u.site), tier_without_code(kind));
        assert_non_null(strstr(reason_of(u.site), "no faster"));
        assert_int_equal(learned().lost, lost + 1);
        uint64_t compiles = info_of(u.site).compiles;
        for (unsigned i = 0; i < 6; i++) {
            use_times(&u, 10);
            expect_ok(tide_step());
        }
        assert_int_equal(info_of(u.site).compiles, compiles); /* left alone */
        for (unsigned i = 0; i < 300; i++) {
            use_times(&u, 10);
            expect_ok(tide_step());
            settle();
        }
        assert_in_range(info_of(u.site).compiles, compiles + 1, compiles + 6);
        assert_int_equal(tier_of(u.site), tier_without_code(kind));
        candidate_ns = 100;
        for (unsigned i = 0; i < 700 && tier_of(u.site) != TIDE_TIER_COMPILED; i++) {
            use_times(&u, 10);
            expect_ok(tide_step());
            settle();
        }
        expect_executed(&u, 10);
        candidate_ns = 1000;
    }
}

static void the_margin_decides_close_trials(void **state)
{
    (void)state;
    use narrow = tried("by 1 %", TIDE_KIND_SCOPE), enough = tried("by 3 %", TIDE_KIND_SCOPE),
        tie = tried("tie", TIDE_KIND_SCOPE);
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
    assert_int_equal(tier_of(tie.site), TIDE_TIER_COMPILED);
}

/* ---- what cannot be tried ---------------------------------------------------------------- */

static void in_a_pool_that_checks_a_trial_is_void_and_held_again(void **state)
{
    (void)state;
    tide_pool *careful = pool_of(TIDE_CHECK_POISON);
    for (tide_kind kind = 0; kind < TIDE_KIND_DISPATCH; kind++) {
        use u = tried("void", kind), checked = u;
        checked.pool = careful;
        open_trial(&u);
        hold_trial(&checked);
        assert_string_equal(reason_of(u.site), "no use of it was fit for a trial; later");
        assert_int_equal(tier_of(u.site), tier_without_code(kind));
        uint64_t compiles = info_of(u.site).compiles;
        for (unsigned i = 0; i < 60 && tier_of(u.site) != TIDE_TIER_COMPILED; i++)
            hold_trial(&u);
        assert_int_equal(info_of(u.site).compiles, compiles);
        expect_executed(&u, 10);
    }
    expect_ok(tide_pool_destroy(careful));
}

/* Uses that no guard foresees count as uses, and are no misses of a plan that is not in force. */
static void unforeseen_uses_during_a_trial_are_no_misses(void **state)
{
    (void)state;
    EACH_KIND(kind)
    {
        use u = tried("unforeseen", kind), other = u;
        other.types[0] = TIDE_C64;
        other.shape[0] = 9;
        open_trial(&u);
        uint64_t misses = misses_of(u.site);
        use_times(&other, 3);
        use_times(&u, 5);
        assert_in_range(misses_of(u.site) - misses, 0, 3);
        expect_ok(tide_step());
        assert_int_equal(tier_of(u.site), TIDE_TIER_COMPILED);
        expect_executed(&u, 10);
    }
}

/* A site that is not used on has a trial that does not end, and nobody waits for it. */
static void nobody_waits_for_a_trial_without_uses(void **state)
{
    (void)state;
    use u = tried("unused", TIDE_KIND_SCOPE);
    open_trial(&u);
    settle();
    for (unsigned i = 0; i < 20; i++)
        expect_ok(tide_step());
    assert_string_equal(reason_of(u.site), on_trial);
    hold_trial(&u);
    assert_int_equal(tier_of(u.site), TIDE_TIER_COMPILED);
}

static void a_site_on_trial_may_be_pinned_reset_and_observed(void **state)
{
    (void)state;
    EACH_KIND(kind)
    {
        use u = tried("disturbed", kind);
        open_trial(&u);
        use_times(&u, 3);
        expect_ok(tide_site_reset(u.site));
        assert_int_equal(tier_of(u.site), TIDE_TIER_FULL);
        use_times(&u, 20);
        open_trial(&u);
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
}

/* ---- without a trace --------------------------------------------------------------------- */

/* Around uses that rehearse the pool is as around uses that do not, inside other scopes and with
 * live arrays, to every word. */
static void a_rehearsal_leaves_the_pool_as_it_was(void **state)
{
    (void)state;
    EACH_KIND(kind)
    {
        use u = tried("traceless", kind);
        tide_scope outer;
        open_trial(&u);
        expect_ok(tide_scope_enter(learning_pool, NULL, &outer));
        uint8_t *kept = take(learning_pool, TIDE_F64, 50, 1),
                *other = take(learning_pool, TIDE_C128, 50, 2);
        uint64_t won = learned().won;
        use plain = u;
        char name[64];
        snprintf(name, sizeof name, "trials: plain %s", tide_kind_name(kind));
        plain.site = tide_site_register_kind(name, kind);
        expect_ok(tide_site_pin(plain.site, TIDE_TIER_FULL));
        use_times(&plain, 3);
        for (unsigned i = 0; i < 8; i++) {
            snapshot before = snapshot_take(learning_pool);
            use_times(&u, 1);
            if (kind != TIDE_KIND_ARRAY && kind < TIDE_KIND_ACQUIRE)
                snapshot_same(&before, learning_pool);
            assert_int_equal(before.tag, learning_pool->tag);
            assert_ptr_equal(before.log_top, learning_pool->log_top);
            assert_memory_equal(before.shelves, learning_pool->shelves,
                                before.shelf_count * sizeof *before.shelves);
            snapshot_drop(&before);
            CHECK_POOL(learning_pool);
        }
        expect_bytes(kept, 50 * sizeof(double), 1);
        expect_bytes(other, 50 * 16, 2);
        expect_ok(tide_scope_leave(&outer));
        expect_ok(tide_step());
        assert_int_equal(learned().won, won + 1);
    }
}

/* Each array site's use is a hit of its header once, rehearsed or not. */
static void a_rehearsal_is_no_use_of_an_array(void **state)
{
    (void)state;
    use u = tried("hits", TIDE_KIND_ARRAY);
    open_trial(&u);
    tide_array_statistics before, after;
    expect_ok(tide_array_stats(learning_pool, &before));
    use_times(&u, 8);
    expect_ok(tide_array_stats(learning_pool, &after));
    assert_int_equal(after.recent + after.cached + after.computed,
                     before.recent + before.cached + before.computed + 8);
}

/* ---- threads ----------------------------------------------------------------------------- */

enum { THREADS = 4, SITES = 5 };

static struct {
    use uses[SITES];
    bool stop, failed; /* atomic */
} crew;

static void *work(void *unused)
{
    tide_pool *own = tide_pool_create(NULL);
    while (!__atomic_load_n(&crew.stop, __ATOMIC_RELAXED))
        for (unsigned s = 0; s < SITES; s++) {
            use u = crew.uses[s];
            u.pool = own;
            if (!use_once(&u))
                __atomic_store_n(&crew.failed, true, __ATOMIC_RELAXED);
        }
    tide_pool_destroy(own);
    return unused;
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
        crew.uses[s] = tried("threads", s % TIDE_KIND_COUNT);
    crew.stop = crew.failed = false;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
    uint64_t won = learned().won, lost = learned().lost;
    size_t wanted = scaled(20, 2);
    size_t rounds = scaled(3000, 100);
    for (unsigned i = 0; i < rounds || learned().won + learned().lost == won + lost; i++) {
        if (learned().lost >= lost + wanted)
            break;
        __atomic_store_n(&candidate_ns, i % 3 == 0 ? 100 : 5000, __ATOMIC_RELAXED);
        if (i % 50 == 49)
            expect_ok(tide_site_reset(crew.uses[i / 50 % SITES].site));
        expect_ok(tide_step());
        settle();
    }
    __atomic_store_n(&crew.stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_false(crew.failed);
    assert_true(learned().won + learned().lost > won + lost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRIAL_TEST(what_is_faster_is_adopted),
        TRIAL_TEST(what_is_no_faster_is_given_up_and_tried_again_later),
        TRIAL_TEST(the_margin_decides_close_trials),
        TRIAL_TEST(in_a_pool_that_checks_a_trial_is_void_and_held_again),
        TRIAL_TEST(unforeseen_uses_during_a_trial_are_no_misses),
        TRIAL_TEST(nobody_waits_for_a_trial_without_uses),
        TRIAL_TEST(a_site_on_trial_may_be_pinned_reset_and_observed),
        TRIAL_TEST(a_rehearsal_leaves_the_pool_as_it_was),
        TRIAL_TEST(a_rehearsal_is_no_use_of_an_array),
        TRIAL_TEST(trials_are_held_under_threads),
    };
    return cmocka_run_group_tests_name("learning: trials", tests, learning_make_pool,
                                       learning_drop_pool);
}
