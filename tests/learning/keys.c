/* SPDX-License-Identifier: MIT */
/* Dispatches by keys: integers that are no types are learned, missed and told as types are. */
#define _GNU_SOURCE
#include "learning.h"

#include <stdio.h>
#include <stdlib.h>

#include <tidepool/generic.h>
#include <tidepool/profile.h>
#include <tidepool/site.h>

enum { KEYS = 40000 }; /* more than there are types here */

static void count_call(void *args)
{
    ++*(unsigned *)args;
}

static tide_generic *make_keyed(const char *name, const tide_type *keys, uint32_t count)
{
    tide_generic *made = tide_generic_create_keys(name, KEYS);
    assert_non_null(made);
    for (uint32_t i = 0; i < count; i++)
        expect_ok(tide_generic_add(made, keys[i], count_call));
    return made;
}

static use use_keys(const char *name, const tide_type *keys, uint32_t count)
{
    return (use){.site = tide_site_register_kind(name, TIDE_KIND_DISPATCH),
                 .count = 1,
                 .types = {keys[0]},
                 .generic = make_keyed(name, keys, count)};
}

/* So many uses with each key in turn, then what rounds make of them. */
static void use_in_turn(use *u, const tide_type *keys, const unsigned *times, uint32_t count)
{
    for (unsigned round = 0; round < 100; round++)
        for (uint32_t i = 0; i < count; i++) {
            u->types[0] = keys[i];
            use_times(u, times[i]);
        }
    settle();
}

static void expect_key_guards(const tide_site *site, const tide_type *keys, uint32_t count)
{
    tide_site_information info = info_of(site);
    assert_int_equal(info.tier, TIDE_TIER_TABLE);
    assert_int_equal(info.type_count, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(info.types[i], TIDE_KEY_FIRST + keys[i]);
}

static void keys_are_learned_the_most_frequent_first(void **state)
{
    (void)state;
    static const tide_type keys[] = {17, 0, KEYS - 1}, order[] = {0, KEYS - 1, 17};
    static const unsigned times[] = {1, 4, 2};
    use u = use_keys("keys: learned", keys, 3);
    set("window_calls", 350);
    for (unsigned i = 0; i < 500 && tier_of(u.site) != TIDE_TIER_TABLE; i++)
        use_in_turn(&u, keys, times, 3);
    expect_key_guards(u.site, order, 3);
    for (unsigned i = 0; i < 3; i++) {
        u.types[0] = keys[i];
        expect_executed(&u, 10);
    }
    expect_ok(tide_generic_add(u.generic, 18, count_call));
    uint64_t misses = misses_of(u.site);
    u.types[0] = 18;
    use_times(&u, 5);
    assert_int_equal(misses_of(u.site), misses + 5);
}

static void what_is_no_key_is_served_by_the_fallback_and_not_observed(void **state)
{
    (void)state;
    static const tide_type key = 3;
    use u = use_keys("keys: no key", &key, 1);
    expect_ok(tide_generic_add(u.generic, TIDE_ALL_TYPES, count_call));
    u.types[0] = KEYS;
    learn_windows(&u, 3);
    assert_int_equal(tier_of(u.site), TIDE_TIER_FULL);
    tide_site_profile profile;
    expect_ok(tide_profile_site(u.site, &profile));
    assert_int_equal(profile.scopes, 0);
    assert_int_equal(tide_generic_unmet(u.generic), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(keys_are_learned_the_most_frequent_first),
        LEARNING_TEST(what_is_no_key_is_served_by_the_fallback_and_not_observed),
    };
    return cmocka_run_group_tests_name("learning: keys", tests, learning_make_pool,
                                       learning_drop_pool);
}
