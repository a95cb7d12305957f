/* SPDX-License-Identifier: MIT */
/* How often a thread needs the depot: what its cell takes from there, and gives it, at once. */
#include <tidepool/buffers.h>

#include "bed.h"

#include "runtime/buffers/buffers.h"
#include "runtime/buffers/store/depot.h"

enum { BYTES = 1024, MANY = 20 * TIDE_CELL_SLOTS };

static tide_buffer held[MANY];
static size_t live; /* of these, the first */

/* None, where nothing was ever acquired. */
static uint32_t in_depot(const tide_buffers *buffers)
{
    const tide_depot_bucket *depot =
        tide_depot_at(buffers, buffers->key, tide_bucket_of(buffers->policy, BYTES));
    return depot != NULL ? depot->cached : 0;
}

/* Times that the depot was needed for, and how many the first of them moved. */
typedef struct trips {
    size_t count;
    uint32_t before, moved[3];
} trips;

/* After each use. */
static void note_trip(trips *t, const tide_buffers *buffers)
{
    uint32_t now = in_depot(buffers);
    if (now == t->before)
        return;
    if (t->count < 3)
        t->moved[t->count] = now > t->before ? now - t->before : t->before - now;
    t->count++;
    t->before = now;
}

static trips acquire(tide_buffers *buffers, size_t count)
{
    trips t = {.before = in_depot(buffers)};
    for (; count > 0; count--) {
        held[live++] = acquired(buffers, BYTES);
        note_trip(&t, buffers);
    }
    return t;
}

/* The latest first. */
static trips release(tide_buffers *buffers, size_t count)
{
    trips t = {.before = in_depot(buffers)};
    for (; count > 0; count--) {
        expect_ok(tide_buffer_release(buffers, held[--live]));
        note_trip(&t, buffers);
    }
    return t;
}

/* With a cell that has grown, all of it cached. */
static tide_buffers *made_and_used(void)
{
    tide_buffers *buffers = made(NULL);
    for (int round = 0; round < 4; round++) {
        (void)acquire(buffers, MANY);
        (void)release(buffers, MANY);
    }
    return buffers;
}

/* Who only acquires fills the cell each time, who only releases empties most of it. Who turned
 * round moves half a cell the first time. (An acquire takes one more, which it hands out.) */
static void who_goes_one_way_needs_the_depot_less(void **state)
{
    (void)state;
    tide_buffers *buffers = made_and_used();
    trips in = acquire(buffers, MANY), out = release(buffers, MANY);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(in.moved[i], 1 + (i == 0 ? TIDE_CELL_SLOTS / 2 : TIDE_CELL_SLOTS));
        assert_int_equal(out.moved[i], i == 0 ? TIDE_CELL_SLOTS / 2 : TIDE_CELL_SLOTS / 4 * 3);
    }
    assert_in_range(in.count, MANY / TIDE_CELL_SLOTS - 1, MANY / TIDE_CELL_SLOTS + 1);
    assert_in_range(out.count, MANY / TIDE_CELL_SLOTS, MANY / (TIDE_CELL_SLOTS / 4 * 3) + 1);
    expect_ok(tide_buffers_destroy(buffers));
}

/* However long the ways are: of a quarter of a cell's uses at most one needs the depot. */
static void who_turns_round_does_not_need_the_depot_each_time(void **state)
{
    (void)state;
    enum { TURNS = 200 };
    for (size_t way = 1; way <= TIDE_CELL_SLOTS; way++) {
        tide_buffers *buffers = made_and_used();
        (void)acquire(buffers, MANY);
        size_t needed = 0, uses = TURNS * way;
        for (size_t turn = 0; turn < TURNS; turn++)
            needed += (turn % 2 == 0 ? release(buffers, way) : acquire(buffers, way)).count;
        if (needed * (TIDE_CELL_SLOTS / 4) > uses + 2 * TIDE_CELL_SLOTS)
            fail_msg("ways of %zu: %zu of %zu uses need the depot", way, needed, uses);
        (void)release(buffers, MANY);
        expect_ok(tide_buffers_destroy(buffers));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_goes_one_way_needs_the_depot_less),
        cmocka_unit_test(who_turns_round_does_not_need_the_depot_each_time),
    };
    return cmocka_run_group_tests_name("ways to the depot", tests, NULL, NULL);
}
