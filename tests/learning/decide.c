/* SPDX-License-Identifier: MIT */
/* Deciding, as a function: profiles in, choices out. One line for each case. */
#include "learning.h"

#include <stdio.h>

#include <tidepool/profile.h>

#include "jit/learn/decide.h"

/* ---- profiles in few words --------------------------------------------------------------- */

/* Uses, and how many of them touched each type; the types are 1, 2, 3 … All dispatches are of one
 * generic function, which nobody calls. */
enum { TYPES = 16 };
static struct tide_generic *const generic = (struct tide_generic *)64;

static tide_site_profile profile(uint64_t uses, uint64_t other, const uint64_t often[TYPES])
{
    tide_site_profile p = {.scopes = uses, .other = other, .generic = generic};
    for (tide_type type = 1; type <= TYPES; type++) {
        if (often[type - 1] == 0)
            continue;
        uint32_t at = p.type_count++;
        for (; at > 0 && p.types[at - 1].scopes < often[type - 1]; at--)
            p.types[at] = p.types[at - 1];
        p.types[at] = (tide_profile_type){
            .type = type, .slots_max = 1, .scopes = often[type - 1], .slots = often[type - 1]};
    }
    return p;
}

static tide_items items(uint32_t count, ...)
{
    va_list types;
    tide_items made = {.count = count};
    va_start(types, count);
    for (uint32_t i = 0; i < count; i++)
        made.types[i] = va_arg(types, tide_type);
    va_end(types);
    return made;
}

static tide_choice decide(tide_kind kind, const tide_site_profile *seen)
{
    tide_choice choice;
    tide_decide(kind, seen, NULL, 0, TIDE_NO_PLAN, &choice);
    return choice;
}

/* ---- the ideal plan ---------------------------------------------------------------------- */

/* What is seen: a kind, uses, how many of them touched others, and each type; what is decided: the
 * reason, whether it is worth code, and the types. */
#define SEEN(kind, uses, other, ...) \
    TIDE_KIND_##kind, uses, other,   \
    {                                \
        __VA_ARGS__                  \
    }
#define DECIDED(what, reason, compile, ...)            \
    TIDE_CHOICE_##what, TIDE_REASON_##reason, compile, \
    {                                                  \
        __VA_ARGS__                                    \
    }

static const struct line {
    const char *says;
    tide_kind kind;
    uint64_t uses, other, often[TYPES];
    int what;
    tide_reason reason;
    bool compile;
    tide_type types[TYPES];
} lines[] = {
    {"nothing was seen", SEEN(SCOPE, 0, 0, 0), DECIDED(STAY, few_samples, false, 0)},
    {"one use short", SEEN(SCOPE, 49, 0, 49), DECIDED(STAY, few_samples, false, 0)},
    {"just enough", SEEN(SCOPE, 50, 0, 50), DECIDED(NEW, decided, true, 1)},
    {"empty scopes", SEEN(SCOPE, 200, 0, 0), DECIDED(NEW, nothing_seen, false, 0)},
    {"a quarter does not pay", SEEN(SCOPE, 200, 0, 200, 50), DECIDED(NEW, decided, true, 1)},
    {"a little more does", SEEN(SCOPE, 200, 0, 200, 51), DECIDED(NEW, decided, true, 1, 2)},
    {"in order of types", SEEN(SCOPE, 200, 0, 100, 150, 200), DECIDED(NEW, decided, true, 1, 2, 3)},
    {"only rare types", SEEN(SCOPE, 200, 0, 10, 10), DECIDED(NEW, none_recurs, false, 0)},
    {"one guard", SEEN(DISPATCH, 200, 0, 200), DECIDED(NEW, decided, false, 1)},
    {"the most frequent first", SEEN(DISPATCH, 200, 0, 60, 140),
     DECIDED(NEW, decided, false, 2, 1)},
    {"a rare type gets no guard", SEEN(DISPATCH, 1000, 0, 999, 0, 1),
     DECIDED(NEW, decided, false, 1, 3)},
    {"six alike: 3.5 guards on average, where the general path costs 4",
     SEEN(DISPATCH, 240, 0, 40, 40, 40, 40, 40, 40),
     DECIDED(NEW, decided, false, 1, 2, 3, 4, 5, 6)},
    {"sixteen, each half as frequent as the one before",
     SEEN(DISPATCH, 65535, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384,
          32768),
     DECIDED(NEW, decided, false, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)},
    {"one frequent, twelve that come once: their guards cost more than they save",
     SEEN(DISPATCH, 1012, 0, 1000, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
     DECIDED(NEW, decided, false, 1)},
    {"seven alike", SEEN(DISPATCH, 280, 0, 40, 40, 40, 40, 40, 40, 40),
     DECIDED(STAY, megamorphic, false, 0)},
    {"a fifth that is rare", SEEN(DISPATCH, 200, 0, 140, 30, 20, 6, 4),
     DECIDED(NEW, decided, false, 1, 2, 3, 4, 5)},
    {"too many others", SEEN(DISPATCH, 200, 20, 180), DECIDED(STAY, others, false, 0)},
    {"a few others", SEEN(DISPATCH, 200, 10, 190), DECIDED(NEW, decided, false, 1)},
};

static void each_line_decides_as_it_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const struct line *l = &lines[i];
        tide_site_profile seen = profile(l->uses, l->other, l->often);
        tide_choice choice = decide(l->kind, &seen);
        bool well = (int)choice.what == l->what && choice.reason == l->reason;
        if (l->what == TIDE_CHOICE_NEW) {
            well = well && tide_items_fit(&choice.items) == l->compile;
            for (uint32_t t = 0; well && t < TYPES; t++)
                well = l->types[t] == (t < choice.items.count ? choice.items.types[t] : 0);
        }
        if (!well)
            fail_msg("%s: choice %d, %u items, first %u: %s", l->says, (int)choice.what,
                     choice.items.count, choice.items.types[0], tide_reason_words(choice.reason));
    }
}

/* ---- costs ------------------------------------------------------------------------------- */

static void expect_cost(tide_kind kind, const tide_site_profile *seen, tide_items plan,
                        double expected)
{
    plan.generic = kind == TIDE_KIND_DISPATCH ? generic : NULL;
    double cost = tide_cost(seen, &plan);
    if (cost < expected - 1e-9 || cost > expected + 1e-9)
        fail_msg("costs %g, not %g", cost, expected);
}

/* save 1, touch 4, skip 1, hit 1, dynamic 4: the initial settings. */
static void costs_are_as_the_header_says(void **state)
{
    (void)state;
    tide_site_profile seen = profile(100, 0, (const uint64_t[TYPES]){100, 50, 25});
    expect_cost(TIDE_KIND_SCOPE, &seen, items(0), 4 + 2 + 1);
    expect_cost(TIDE_KIND_SCOPE, &seen, items(1, 1), 1 + 2 + 1);
    expect_cost(TIDE_KIND_SCOPE, &seen, items(3, 1, 2, 3), 3);
    expect_cost(TIDE_KIND_SCOPE, &seen, items(1, 6), 1 + 4 + 2 + 1);
    seen = profile(100, 0, (const uint64_t[TYPES]){60, 40});
    expect_cost(TIDE_KIND_DISPATCH, &seen, items(0), 4);
    expect_cost(TIDE_KIND_DISPATCH, &seen, items(1, 1), 0.6 * 1 + 0.4 * (1 + 4));
    expect_cost(TIDE_KIND_DISPATCH, &seen, items(2, 1, 2), 0.6 * 1 + 0.4 * 2);
    expect_cost(TIDE_KIND_DISPATCH, &seen, items(2, 2, 1), 0.4 * 1 + 0.6 * 2);
    expect_cost(TIDE_KIND_DISPATCH, &seen, items(1, 5), 1 + 4);
}

/* ---- earlier plans ----------------------------------------------------------------------- */

static tide_choice decide_between(const tide_site_profile *seen, tide_kind kind, uint32_t in_force,
                                  uint32_t count, const tide_items *plans)
{
    const tide_items *earlier[8];
    tide_choice choice;
    for (uint32_t i = 0; i < count; i++)
        earlier[i] = &plans[i];
    tide_decide(kind, seen, earlier, count, in_force, &choice);
    return choice;
}

static void an_earlier_plan_is_preferred_unless_it_is_clearly_worse(void **state)
{
    (void)state;
    tide_items plans[] = {items(2, 1, 2), items(1, 3), items(2, 1, 3)};
    tide_site_profile same = profile(200, 0, (const uint64_t[TYPES]){200, 200});
    tide_choice choice = decide_between(&same, TIDE_KIND_SCOPE, 1, 3, plans);
    assert_int_equal(choice.what, TIDE_CHOICE_OLD);
    assert_int_equal(choice.old, 0);
    assert_int_equal(choice.reason, TIDE_REASON_reused);
    choice = decide_between(&same, TIDE_KIND_SCOPE, 0, 3, plans);
    assert_int_equal(choice.what, TIDE_CHOICE_STAY);
    assert_int_equal(choice.reason, TIDE_REASON_kept);

    /* worse by 1 of 100: 200 · 0.26 · 4 = 1.04 against 1 for the type that it does not save */
    tide_site_profile close = profile(200, 0, (const uint64_t[TYPES]){200, 200, 52});
    choice = decide_between(&close, TIDE_KIND_SCOPE, 0, 1, plans);
    assert_int_equal(choice.what, TIDE_CHOICE_STAY);
    tide_site_profile far = profile(200, 0, (const uint64_t[TYPES]){200, 200, 100});
    choice = decide_between(&far, TIDE_KIND_SCOPE, 0, 1, plans);
    assert_int_equal(choice.what, TIDE_CHOICE_NEW);
    assert_int_equal(choice.items.count, 3);
}

/* A chain whose guards no longer hold costs more than none. */
static void a_chain_that_became_useless_is_dropped(void **state)
{
    (void)state;
    tide_items plan = items(1, 9);
    plan.generic = generic;
    tide_site_profile seen = profile(280, 0, (const uint64_t[TYPES]){40, 40, 40, 40, 40, 40, 40});
    tide_choice choice = decide_between(&seen, TIDE_KIND_DISPATCH, 0, 1, &plan);
    assert_int_equal(choice.what, TIDE_CHOICE_GENERAL);
    assert_int_equal(choice.reason, TIDE_REASON_megamorphic);
}

/* ---- many types -------------------------------------------------------------------------- */

static void a_scope_of_many_types_gets_a_table_only(void **state)
{
    (void)state;
    tide_site_profile seen = {.scopes = 200, .type_count = 20};
    for (uint32_t i = 0; i < 20; i++)
        seen.types[i] = (tide_profile_type){.type = 20 - i, .scopes = 200, .slots = 200};
    tide_choice choice = decide(TIDE_KIND_SCOPE, &seen);
    assert_int_equal(choice.what, TIDE_CHOICE_NEW);
    assert_false(tide_items_fit(&choice.items));
    assert_int_equal(choice.items.count, 20);
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(choice.items.types[i], i + 1);
    assert_int_equal(choice.reason, TIDE_REASON_many_types);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(each_line_decides_as_it_says),
        LEARNING_TEST(costs_are_as_the_header_says),
        LEARNING_TEST(an_earlier_plan_is_preferred_unless_it_is_clearly_worse),
        LEARNING_TEST(a_chain_that_became_useless_is_dropped),
        LEARNING_TEST(a_scope_of_many_types_gets_a_table_only),
    };
    return cmocka_run_group_tests_name("learning: decide", tests, NULL, NULL);
}
