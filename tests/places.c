/* SPDX-License-Identifier: MIT */
/* Runs every place of tests/places.h, as C and as C++, at each tier and kind of pool. */
#include "places.h"

#include <stdio.h>

#include <tidepool/site.h>
#include <tidepool/upkeep.h>

/* ---- only in C ---- */

static void beside_a_variable_length_array(tide_pool *pool)
{
    for (size_t n = 1; n < 40; n += 7) {
        double before[n];
        TIDE_SCOPE(pool);
        int after[n * 2];
        before[n - 1] = 1;
        after[n * 2 - 1] = 2;
        TIDE_FRAME(pool, (double, d, n));
        float between[n];
        between[n - 1] = 3;
        d[n - 1] = before[n - 1] + after[n * 2 - 1] + between[n - 1];
        assert_true(d[n - 1] == 6);
        use_here(pool);
        if (n == 15)
            continue;
        if (n == 29)
            break;
    }
    assert_int_equal(tide_pool_depth(pool), 0);
}

static void again_by_a_jump_back(tide_pool *pool)
{
    int times = 0;
again:;
    TIDE_SCOPE(pool);
    assert_int_equal(use_here(pool), 1);
    TIDE_FRAME(pool, (double, d, 5));
    d[4] = 1;
    if (++times < 5)
        goto again;
    assert_int_equal(use_here(pool), 2);
}

static const place places_c[] = {
    PLACES_OF_BOTH,
    PLACE(beside_a_variable_length_array),
    PLACE(again_by_a_jump_back),
    {NULL, NULL},
};

/* ---- running them ---- */

/* Every site that stands in a file of these tests. */
static bool pin_if_ours(tide_site *site, void *user)
{
    static const tide_type types[] = {TIDE_F64, TIDE_I32};
    const tide_tier *tier = user;
    if (site->place.file != NULL && strstr(site->place.file, "places") != NULL) {
        expect_ok(tide_site_declare(site, types, 2));
        expect_ok(tide_site_pin(site, *tier));
    }
    return true;
}

static void run_all(const place *places, tide_pool *pool)
{
    for (const place *p = places; p->name != NULL; p++) {
        for (int round = 0; round < 3; round++) {
            note("%s, round %d", p->name, round);
            p->run(pool);
            counts_same((counts){0, 0, 0, 0}, pool);
        }
    }
}

static void run_at_each_tier(const place *places)
{
    static const tide_tier tiers[] = {TIDE_TIER_FULL, TIDE_TIER_TABLE};
    for (size_t t = 0; t < 2; t++) {
        tide_site_each(pin_if_ours, (void *)(uintptr_t)&tiers[t]);
        for (int kind = 0; kind < 3; kind++) {
            const tide_pool_options options = {
                .check = kind == 1 ? TIDE_CHECK_POISON : TIDE_CHECK_NONE, .disabled = kind == 2};
            tide_pool *pool = tide_pool_create(&options);
            assert_non_null(pool);
            run_all(places, pool);
            expect_ok(tide_pool_destroy(pool));
        }
    }
}

static void every_place_in_c(void **state)
{
    (void)state;
    run_at_each_tier(places_c);
}

static void every_place_in_cpp(void **state)
{
    (void)state;
    run_at_each_tier(places_cpp);
    run_at_each_tier(places_cpp); /* its sites are listed, and so pinned, now */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_place_in_c),
        cmocka_unit_test(every_place_in_cpp),
    };
    return cmocka_run_group_tests_name("places", tests, NULL, NULL);
}
