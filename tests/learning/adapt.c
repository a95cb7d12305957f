/* SPDX-License-Identifier: MIT */
/* What the using thread decides itself: no thread, no round and no compiler is there. */
#include "learning.h"

#include <pthread.h>
#include <stdio.h>

#include <tidepool/learn.h>
#include <tidepool/site.h>

#include "../random.h"

enum { PAIR = 2, PAIRS = 4 };

static const tide_type pairs[PAIRS][PAIR] = {
    {TIDE_F64, TIDE_I32}, {TIDE_F32, TIDE_I64}, {TIDE_U8, TIDE_I16}, {TIDE_C64, TIDE_U32}};

static int adapt_setup(void **state)
{
    learning_setup(state);
    set("adapt", 1);
    set("window_first", 16);
    set("sample_min", 12);
    set("misses", 4);
    return 0;
}

static void use_pair(use *u, const tide_type *pair)
{
    u->count = PAIR;
    u->types[0] = pair[0];
    u->types[1] = pair[1];
    assert_true(use_once(u));
}

/* Does the plan in force save exactly this pair? Reads what a use reads. */
static bool fits(const tide_site *site, const tide_type *pair)
{
    const tide_plan *plan = __atomic_load_n(&site->plan, __ATOMIC_ACQUIRE);
    bool either[PAIR] = {false, false};
    for (uint32_t i = 0; i < plan->type_count; i++)
        for (int j = 0; j < PAIR; j++)
            either[j] = either[j] || plan->types[i] == pair[j];
    return plan->tier == TIDE_TIER_TABLE && plan->type_count == PAIR && either[0] && either[1];
}

static void a_scope_has_its_types_after_a_few_uses(void **state)
{
    (void)state;
    use u = use_of("adapt: first", TIDE_KIND_SCOPE, learning_pool, 0);
    uint64_t rounds = learned().rounds;
    for (int i = 0; i < 16; i++) {
        assert_int_equal(tier_of(u.site), TIDE_TIER_FULL);
        use_pair(&u, pairs[0]);
    }
    expect_types(u.site, 2, TIDE_F64, TIDE_I32);
    assert_int_equal(tier_of(u.site), TIDE_TIER_TABLE);
    assert_int_equal(learned().rounds, rounds);
}

/* With the constant `adapt` at 0 a scope gets its types in rounds only, as a dispatch always does. */
static void without_it_a_round_decides(void **state)
{
    (void)state;
    set("adapt", 0);
    use u = use_of("adapt: off", TIDE_KIND_SCOPE, learning_pool, 0);
    for (int i = 0; i < 1000; i++)
        use_pair(&u, pairs[0]);
    assert_int_equal(tier_of(u.site), TIDE_TIER_FULL);
    settle();
    expect_types(u.site, 2, TIDE_F64, TIDE_I32);
}

/* Uses until the change is followed; `length`: it was not. */
static unsigned play_phase(use *u, const tide_type *pair, unsigned length)
{
    unsigned followed = length;
    for (unsigned i = 0; i < length; i++) {
        use_pair(u, pair);
        if (followed == length && fits(u->site, pair))
            followed = i + 1;
    }
    return followed;
}

static void new_types_are_followed_within_a_window(void **state)
{
    (void)state;
    use u = use_of("adapt: new types", TIDE_KIND_SCOPE, learning_pool, 0);
    for (unsigned i = 0; i < PAIRS; i++)
        assert_in_range(play_phase(&u, pairs[i], 1024), 1, 32);
}

/* Sets that were seen before, in any order, at several periods. */
static void known_types_are_followed_within_32_uses(void **state)
{
    (void)state;
    static const unsigned lengths[] = {1024, 4096, 32768};
    for (unsigned l = 0; l < 3; l++) {
        char name[32];
        snprintf(name, sizeof name, "adapt: phases %u", l);
        use u = use_of(name, TIDE_KIND_SCOPE, learning_pool, 0);
        for (unsigned i = 0; i < PAIRS; i++)
            play_phase(&u, pairs[i], lengths[l]);
        unsigned changes = (unsigned)scaled(40, 20);
        unsigned in_time = 0, at = PAIRS - 1;
        rng random = {7 + l};
        for (unsigned i = 0; i < changes; i++) {
            at = (at + 1 + (unsigned)rng_below(&random, PAIRS - 1)) % PAIRS;
            in_time += play_phase(&u, pairs[at], lengths[l]) <= 32;
        }
        assert_in_range(in_time, changes * 95 / 100, changes);
    }
}

/* Known sets that alternate at random: changing to and fro is given up for the plan of them all. */
static void types_that_alternate_are_saved_together(void **state)
{
    (void)state;
    use u = use_of("adapt: alternating", TIDE_KIND_SCOPE, learning_pool, 0);
    play_phase(&u, pairs[0], 1024);
    play_phase(&u, pairs[1], 1024);
    rng random = {3};
    for (unsigned i = 0; i < 2000; i++)
        use_pair(&u, pairs[rng_below(&random, 2)]);
    expect_types(u.site, 4, TIDE_F64, TIDE_I32, TIDE_F32, TIDE_I64);
    uint64_t generation = info_of(u.site).generation, misses = misses_of(u.site);
    for (unsigned i = 0; i < 2000; i++)
        use_pair(&u, pairs[rng_below(&random, 2)]);
    assert_int_equal(info_of(u.site).generation, generation);
    assert_int_equal(misses_of(u.site), misses);
}

/* A rare type costs a miss each time, and looking at it ever less. */
static void rare_types_do_not_keep_a_site_busy(void **state)
{
    (void)state;
    use u = use_of("adapt: rare", TIDE_KIND_SCOPE, learning_pool, 0);
    uint64_t windows = learned().windows;
    for (unsigned i = 0; i < 20000; i++) {
        use_pair(&u, pairs[0]);
        if (i % 10 == 9) {
            u.types[u.count++] = TIDE_C64;
            assert_true(use_once(&u));
        }
    }
    expect_types(u.site, 2, TIDE_F64, TIDE_I32);
    assert_in_range(learned().windows - windows, 1, 16);
}

/* Two known sets, of which one comes nine times as often: to go to the other one with the fourth
 * miss and back would cost more than the misses. */
static void the_rarer_of_two_known_sets_is_left_alone(void **state)
{
    (void)state;
    use u = use_of("adapt: uneven", TIDE_KIND_SCOPE, learning_pool, 0);
    play_phase(&u, pairs[1], 2000);
    play_phase(&u, pairs[0], 2000);
    uint64_t before = info_of(u.site).generation;
    for (unsigned i = 0; i < 100000; i++)
        use_pair(&u, pairs[i % 10 == 9]);
    assert_in_range(info_of(u.site).generation - before, 0, 100);
}

static void what_the_program_has_said_stays(void **state)
{
    (void)state;
    use u = use_of("adapt: pinned", TIDE_KIND_SCOPE, learning_pool, 0);
    play_phase(&u, pairs[0], 100);
    expect_ok(tide_site_pin(u.site, TIDE_TIER_TABLE));
    play_phase(&u, pairs[1], 100);
    expect_types(u.site, 2, TIDE_F64, TIDE_I32);
    expect_ok(tide_site_unpin(u.site));
    expect_ok(tide_step()); /* finds the misses, and opens a window of 200 uses */
    assert_in_range(play_phase(&u, pairs[1], 400), 200, 300);
    assert_in_range(play_phase(&u, pairs[0], 400), 1, 32);
    use d = use_of("adapt: declared", TIDE_KIND_SCOPE, learning_pool, 0);
    expect_ok(tide_site_declare(d.site, pairs[2], PAIR));
    settle();
    play_phase(&d, pairs[1], 100);
    expect_types(d.site, 2, TIDE_U8, TIDE_I16);
}

/* ---- threads ------------------------------------------------------------------------------ */

static tide_site *shared_site;

static void *alternate(void *user)
{
    size_t phases = scaled(200, 20);
    use u = {.site = shared_site, .pool = tide_pool_local()};
    for (size_t i = 0; i < phases; i++)
        for (unsigned j = 0; j < 200; j++) {
            const tide_type *pair = pairs[(i + (size_t)(uintptr_t)user) % PAIRS];
            u.count = PAIR;
            u.types[0] = pair[0];
            u.types[1] = pair[1];
            if (!use_once(&u))
                return user;
        }
    CHECK_POOL(u.pool);
    return NULL;
}

/* Each with phases of its own; a thread steps beside them. */
static void threads_adapt_one_site_at_once(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    shared_site = tide_site_register("adapt: shared");
    uint64_t windows = learned().windows, reused = learned().reused;
    assert_null(alternate((void *)(uintptr_t)0)); /* all four are known */
    assert_true(learned().windows > windows && learned().reused > reused);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, alternate, (void *)(i + 1)), 0);
    for (int i = 0; i < 50; i++)
        expect_ok(tide_step());
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    assert_true(info_of(shared_site).generation > 0);
}

#define ADAPT_TEST(function) \
    cmocka_unit_test_setup_teardown(function, adapt_setup, learning_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ADAPT_TEST(a_scope_has_its_types_after_a_few_uses),
        ADAPT_TEST(without_it_a_round_decides),
        ADAPT_TEST(new_types_are_followed_within_a_window),
        ADAPT_TEST(known_types_are_followed_within_32_uses),
        ADAPT_TEST(types_that_alternate_are_saved_together),
        ADAPT_TEST(rare_types_do_not_keep_a_site_busy),
        ADAPT_TEST(the_rarer_of_two_known_sets_is_left_alone),
        ADAPT_TEST(what_the_program_has_said_stays),
        ADAPT_TEST(threads_adapt_one_site_at_once),
    };
    return cmocka_run_group_tests_name("learning: adapt", tests, learning_make_pool,
                                       learning_drop_pool);
}
