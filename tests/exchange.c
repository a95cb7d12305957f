/* SPDX-License-Identifier: MIT */
/* Sizes that come at another position each time: slots are exchanged and shrunk, so a pool holds about
 * what is live at once, and comes to rest. */
#include "arrays_support.h"

#include <tidepool/upkeep.h>

/* So many floats are half a MiB, of which slots are exchanged. */
enum { MIB = 1 << 20, LARGE = MIB / 8 };

/* What is written into them nobody reads; under a sanitizer to fill them takes minutes. */
static void touch(tide_pool *pool, tide_type type, size_t n)
{
    uint8_t *data = tide_acquire_type(pool, type, n);
    if (data == NULL)
        fail_msg("acquire of %zu: %s", n, tide_error_message());
    data[0] = data[n * tide_type_size(type) - 1] = 1;
}

static void take_eight(tide_pool *pool, void *state)
{
    unsigned *large_at = state;
    for (unsigned i = 0; i < 8; i++)
        touch(pool, TIDE_F32, i == *large_at ? LARGE : 1024);
    CHECK_POOL(pool);
}

static void a_large_array_that_moves_is_held_once(const scene *s)
{
    uint64_t random = 1;
    expect_ok(tide_pool_empty(s->pool));
    for (unsigned i = 0; i < 300; i++) {
        random = random * UINT64_C(6364136223846793005) + 1;
        unsigned large_at = (unsigned)(random >> 61);
        form_run(s->form, s->pool, take_eight, &large_at);
    }
    assert_true(stats_of(s->pool).bytes_held < 6 * LARGE); /* 4 and a little are live at once */
}

static void take_sizes(tide_pool *pool, void *state)
{
    const size_t *sizes = state;
    for (unsigned i = 0; i < 4; i++)
        touch(pool, TIDE_F32, sizes[i]);
}

/* Several large arrays are no large array that moves. */
static void steady_sizes_are_left_alone(const scene *s)
{
    size_t sizes[4] = {LARGE, 16, LARGE, LARGE / 2};
    form_repeat(s->form, s->pool, 20, take_sizes, sizes);
    tide_pool_statistics before = stats_of(s->pool);
    form_repeat(s->form, s->pool, 20, take_sizes, sizes);
    tide_pool_statistics after = stats_of(s->pool);
    assert_int_equal(after.exchanges, before.exchanges);
    assert_int_equal(after.allocations, before.allocations);
}

static void take_two(tide_pool *pool, void *state)
{
    const size_t *sizes = state;
    touch(pool, TIDE_F32, sizes[0]);
    touch(pool, TIDE_F32, sizes[1]);
}

/* Else the larger of two slots would be exchanged for the other in each of these rounds. */
static void sizes_that_differ_little_are_not_exchanged(const scene *s)
{
    size_t sizes[2] = {LARGE, LARGE}, larger[2] = {LARGE + LARGE / 8, LARGE};
    form_repeat(s->form, s->pool, 2, take_two, sizes);
    sizes[1] = LARGE + LARGE / 4;
    form_repeat(s->form, s->pool, 2, take_two, sizes);
    form_repeat(s->form, s->pool, 2, take_two, larger);
    tide_pool_statistics before = stats_of(s->pool);
    form_repeat(s->form, s->pool, 20, take_two, larger);
    tide_pool_statistics after = stats_of(s->pool);
    assert_int_equal(after.exchanges, before.exchanges);
    assert_int_equal(after.allocations, before.allocations);
}

/* The end of the scope undoes the exchange, else both slots would come to be large. */
static void two_sizes_that_alternate_hold_one_large_slot(const scene *s)
{
    size_t sizes[2] = {1024, LARGE}, others[2] = {LARGE, 1024};
    form_run(s->form, s->pool, take_two, sizes);
    uint64_t before = stats_of(s->pool).allocations;
    for (int round = 0; round < 20; round++) {
        form_run(s->form, s->pool, take_two, others);
        form_run(s->form, s->pool, take_two, sizes);
    }
    assert_int_equal(stats_of(s->pool).allocations, before);
}

/* Else the small array of the first scope would live in it, and the large one would find no room. */
static void a_slot_that_is_far_larger_is_not_exchanged_for_good(void **state)
{
    (void)state;
    enum { SMALL = 96 << 10, MIDDLE = 160 << 10, FAR = 8 * MIB };
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.limit_bytes = 12 * MIB});
    uint64_t after_one = 0;
    for (int round = 0; round < 8; round++) {
        {
            TIDE_SCOPE(pool);
            touch(pool, TIDE_U8, SMALL);
            touch(pool, TIDE_U8, FAR);
        }
        {
            TIDE_SCOPE(pool);
            touch(pool, TIDE_U8, MIDDLE);
        }
        after_one = round == 0 ? stats_of(pool).allocations : after_one;
    }
    assert_int_equal(stats_of(pool).allocations, after_one);
    expect_ok(tide_pool_destroy(pool));
}

static void take_three(tide_pool *pool, void *state)
{
    const size_t *sizes = state;
    for (int i = 0; i < 3; i++)
        touch(pool, TIDE_F32, sizes[i]);
}

/* Mixes in which a slot was shrunk and grown, or a slot that is far larger exchanged for good, in each
 * round. */
static void mixes_of_sizes_come_to_rest(const scene *s)
{
    enum { UNIT = LARGE / 4, SCOPES = 3, ROUNDS = 60 };
    static const size_t mixes[][SCOPES][3] = {{{2, 15, 1}, {1, 7, 1}, {4, 8, 1}},
                                              {{7, 6, 1}, {7, 16, 1}, {8, 15, 1}},
                                              {{2, 10, 13}, {5, 4, 16}, {2, 5, 15}},
                                              {{7, 1, 9}, {13, 3, 14}, {9, 1, 2}},
                                              {{12, 1, 9}, {7, 1, 15}, {6, 5, 15}}};
    for (size_t m = 0; m < sizeof mixes / sizeof *mixes; m++) {
        tide_pool_statistics before = {0};
        expect_ok(tide_pool_empty(s->pool));
        for (int round = 0; round < ROUNDS; round++) {
            if (round == ROUNDS - 10)
                before = stats_of(s->pool);
            for (int scope = 0; scope < SCOPES; scope++) {
                size_t sizes[3];
                for (int i = 0; i < 3; i++)
                    sizes[i] = mixes[m][scope][i] * UNIT;
                form_repeat(s->form, s->pool, 1, take_three, sizes);
            }
        }
        assert_int_equal(stats_of(s->pool).allocations, before.allocations);
    }
}

/* What a function takes that calls itself with a quarter of the size: each of its slots is large in the
 * outer call and small in the inner ones, in every round. */
static void take_nested(tide_pool *pool, size_t n)
{
    TIDE_SCOPE(pool);
    touch(pool, TIDE_F32, n);
    for (int time = 0; time < 3; time++) {
        TIDE_SCOPE(pool);
        for (int i = 0; i < 4; i++)
            touch(pool, TIDE_F32, n);
    }
    if (n > 1024)
        take_nested(pool, n / 4);
}

static void take_two_and_nested(tide_pool *pool, void *state)
{
    (void)state;
    touch(pool, TIDE_F32, 2 * LARGE);
    touch(pool, TIDE_F32, 2 * LARGE);
    take_nested(pool, 2 * LARGE);
}

static void sizes_that_come_back_in_each_round_are_kept(const scene *s)
{
    form_repeat(s->form, s->pool, 10, take_two_and_nested, NULL);
    tide_pool_statistics before = stats_of(s->pool);
    form_repeat(s->form, s->pool, 30, take_two_and_nested, NULL);
    assert_int_equal(stats_of(s->pool).allocations, before.allocations);
    CHECK_POOL(s->pool);
}

/* In one scope, so many arrays of these sizes. Returns the exchanges that it took. */
static uint64_t exchanges_of(tide_pool *pool, unsigned count, const size_t *sizes)
{
    uint64_t before = stats_of(pool).exchanges;
    TIDE_SCOPE(pool);
    for (unsigned i = 0; i < count; i++)
        touch(pool, TIDE_F32, sizes[i]);
    return stats_of(pool).exchanges - before;
}

/* A slot that is watched is exchanged when little is asked of it; a small one lies further along. */
static void a_slot_that_is_used_whole_is_watched_no_more(void **state)
{
    (void)state;
    static const size_t large[3] = {LARGE, LARGE, 1024}, small = 1024;
    tide_pool *pool = tide_pool_create(NULL);
    for (int round = 0; round < 8; round++)
        (void)exchanges_of(pool, 3, large);
    assert_int_equal(exchanges_of(pool, 1, &small), 1);
    for (int round = 0; round < 9; round++)
        (void)exchanges_of(pool, 3, large);
    assert_int_equal(exchanges_of(pool, 1, &small), 0);
    expect_ok(tide_pool_destroy(pool));
}

/* There is a smaller slot, but not far smaller: an exchange for it would save little. */
static void a_watched_slot_is_not_exchanged_for_one_nearly_as_large(void **state)
{
    (void)state;
    static const size_t large[2] = {LARGE, LARGE - LARGE / 8}, small = 1024;
    tide_pool *pool = tide_pool_create(NULL);
    (void)exchanges_of(pool, 2, large);
    for (int round = 0; round < 4; round++)
        assert_int_equal(exchanges_of(pool, 1, &small), 0);
    expect_ok(tide_pool_destroy(pool));
}

/* Little is asked of them, but they were large at once: the memory stays, and is exchanged no more. */
static void slots_that_were_large_at_once_are_kept_and_watched_no_more(void **state)
{
    (void)state;
    static const size_t large[3] = {LARGE, LARGE, 1024}, small = 1024;
    tide_pool *pool = tide_pool_create(NULL);
    (void)exchanges_of(pool, 2, large);
    (void)exchanges_of(pool, 2, large);
    uint64_t allocations = stats_of(pool).allocations;
    for (int round = 0; round < 4; round++)
        (void)exchanges_of(pool, 1, &small);
    (void)exchanges_of(pool, 3, large);
    assert_int_equal(exchanges_of(pool, 1, &small), 0);
    assert_int_equal(stats_of(pool).allocations, allocations + 1); /* of the small one */
    expect_ok(tide_pool_destroy(pool));
}

static const form_case cases[] = {
    CASE_SLOTS(a_large_array_that_moves_is_held_once),
    CASE_SLOTS(steady_sizes_are_left_alone),
    CASE_SLOTS(sizes_that_differ_little_are_not_exchanged),
    CASE_SLOTS(two_sizes_that_alternate_hold_one_large_slot),
    CASE_SLOTS(mixes_of_sizes_come_to_rest),
    CASE_SLOTS(sizes_that_come_back_in_each_round_are_kept),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(a_slot_that_is_far_larger_is_not_exchanged_for_good),
    cmocka_unit_test(a_slot_that_is_used_whole_is_watched_no_more),
    cmocka_unit_test(a_watched_slot_is_not_exchanged_for_one_nearly_as_large),
    cmocka_unit_test(slots_that_were_large_at_once_are_kept_and_watched_no_more),
};

int main(void)
{
    return FORMS_MAIN("exchange", cases, others);
}
