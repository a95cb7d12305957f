/* SPDX-License-Identifier: MIT */
/* The depot's tray: buffers go from thread to thread by their numbers; and nobody who looks for
 * what is cached misses those that lie there. */
#include "bed.h"

#include <pthread.h>

#include <tidepool/buffers.h>
#include <tidepool/tune.h>

#include "runtime/base/test_hooks.h"
#include "runtime/buffers/buffers.h"
#include "runtime/buffers/store/depot.h"
#include "runtime/buffers/store/tray.h"

enum { BYTES = 1024, MANY = 3 * TIDE_TRAY_MAX, FEW = 10 * TIDE_CELL_SLOTS, MARK = 12345 };

static tide_buffer held[MANY];

static tide_depot_bucket *depot_of(const tide_buffers *buffers)
{
    return tide_depot_at(buffers, buffers->key, (unsigned)(held[0].slot >> TIDE_HANDLE_BUCKET));
}

static uint32_t on_tray(const tide_buffers *buffers)
{
    const tide_tray *tray = depot_of(buffers)->tray;
    return tray != NULL ? tray->count : 0;
}

/* How many the list has. */
static uint32_t in_list(const tide_buffers *buffers)
{
    uint32_t count = 0;
    for (uint32_t slot = depot_of(buffers)->first; slot != TIDE_NO_RECORD;
         slot = buffers->records[slot].next)
        count++;
    assert_int_equal(count + on_tray(buffers), depot_of(buffers)->cached);
    return count;
}

static void acquire(tide_buffers *buffers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        held[i] = acquired(buffers, BYTES);
}

static void release(tide_buffers *buffers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect_ok(tide_buffer_release(buffers, held[i]));
}

static bool refuse(size_t bytes)
{
    (void)bytes;
    return true;
}

/* ---- from thread to thread ------------------------------------------------------------------ */

static void *release_few(void *buffers)
{
    release(buffers, FEW);
    return NULL;
}

/* A link is written for each that stands in the list: those of the other thread's cell, at its
 * end. */
static void the_way_to_another_thread_leaves_records_alone(void **state)
{
    (void)state;
    pthread_t thread;
    uint32_t untouched = 0;
    tide_buffers *buffers = made(NULL);
    acquire(buffers, FEW);
    for (size_t i = 0; i < FEW; i++)
        buffers->records[(uint32_t)held[i].slot].next = MARK;
    assert_int_equal(pthread_create(&thread, NULL, release_few, buffers), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_in_range(in_list(buffers), 0, TIDE_CELL_SLOTS);
    for (size_t i = 0; i < FEW; i++)
        untouched += buffers->records[(uint32_t)held[i].slot].next == MARK;
    assert_int_equal(untouched, on_tray(buffers));
    assert_in_range(untouched, FEW - TIDE_CELL_SLOTS, FEW);
    acquire(buffers, FEW);
    assert_int_equal(on_tray(buffers) + in_list(buffers), 0);
    assert_int_equal(stats_of(buffers).misses, FEW);
    release(buffers, FEW);
    expect_ok(tide_buffers_destroy(buffers));
}

/* ---- more than it holds --------------------------------------------------------------------- */

/* The latest stay on it, so they are acquired first. */
static void what_has_no_room_goes_to_the_list(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    acquire(buffers, MANY);
    release(buffers, MANY);
    assert_in_range(on_tray(buffers), TIDE_TRAY_MAX / 2 - TIDE_CELL_SLOTS, TIDE_TRAY_MAX);
    assert_in_range(in_list(buffers), MANY - TIDE_TRAY_MAX - TIDE_CELL_SLOTS, MANY);
    tide_buffer last = held[MANY - TIDE_CELL_SLOTS - 1], early = held[0];
    bool first_comes = false, late = false;
    for (size_t i = 0; i < MANY; i++) {
        tide_buffer again = acquired(buffers, BYTES);
        late = late || (i < 2 * TIDE_CELL_SLOTS && again.slot == last.slot);
        first_comes = first_comes || (i < MANY / 2 && again.slot == early.slot);
        held[i] = again;
    }
    assert_true(late && !first_comes);
    assert_int_equal(stats_of(buffers).misses, MANY);
    release(buffers, MANY);
    expect_ok(tide_buffers_destroy(buffers));
}

static void without_memory_for_it_all_goes_to_the_list(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    acquire(buffers, FEW);
    tide_os_fault = refuse;
    release(buffers, FEW);
    tide_os_fault = NULL;
    assert_int_equal(on_tray(buffers), 0);
    assert_in_range(in_list(buffers), FEW - TIDE_CELL_SLOTS, FEW);
    acquire(buffers, FEW);
    release(buffers, FEW); /* now there is */
    assert_in_range(on_tray(buffers), FEW - TIDE_CELL_SLOTS - 1, FEW);
    acquire(buffers, FEW);
    tide_os_fault = refuse; /* it has its first room, and gets no more */
    release(buffers, FEW);
    tide_os_fault = NULL;
    assert_int_equal(stats_of(buffers).misses, FEW);
    expect_ok(tide_buffers_destroy(buffers));
}

/* ---- who looks for what is cached ----------------------------------------------------------- */

static void a_trim_by_age_takes_the_old_ones_of_the_tray(void **state)
{
    (void)state;
    tide_buffers *buffers = made(&(tide_buffers_options){.age_max = 1000});
    acquire(buffers, FEW);
    expect_ok(tide_buffer_release_many(buffers, held, FEW / 2));
    tide_buffers_tick(1);
    expect_ok(tide_buffer_release_many(buffers, held + FEW / 2, FEW / 2));
    uint32_t before = on_tray(buffers);
    assert_true(before > FEW / 2);
    assert_int_equal(tide_buffers_trim(buffers, 2).slots, 0);
    assert_int_equal(on_tray(buffers), before);
    assert_int_equal(tide_buffers_trim(buffers, 1).slots, FEW / 2);
    assert_int_equal(stats_of(buffers).cached, FEW / 2);
    assert_int_equal(on_tray(buffers), before - FEW / 2); /* the young ones stay */
    assert_int_equal(in_list(buffers), 0);
    assert_int_equal(tide_buffers_trim(buffers, 0).slots, FEW / 2);
    assert_int_equal(stats_of(buffers).cached, 0);
    expect_ok(tide_buffers_destroy(buffers));
}

/* Each of these misses ends a round of use. Only after two rounds in which nobody needed them do
 * those of the tray go; before, nobody moves them. */
static void a_round_of_use_takes_from_the_tray_only_what_nobody_needed(void **state)
{
    (void)state;
    enum { LARGE = 8 * MIB, ROUNDS = 3 };
    tide_buffer large[ROUNDS];
    tide_buffers *buffers = made(NULL);
    acquire(buffers, FEW);
    release(buffers, FEW);
    uint32_t before = on_tray(buffers);
    assert_true(before > FEW / 2);
    for (size_t i = 0; i < ROUNDS; i++) {
        assert_int_equal(on_tray(buffers), before);
        assert_int_equal(stats_of(buffers).trimmed, 0);
        large[i] = acquired(buffers, LARGE);
    }
    assert_int_equal(on_tray(buffers) + in_list(buffers), 0);
    assert_int_equal(stats_of(buffers).trimmed, before);
    expect_ok(tide_buffer_release_many(buffers, large, ROUNDS));
    expect_ok(tide_buffers_destroy(buffers));
}

/* Of 128 KiB, so that their pages are worth it. */
static void pages_of_the_tray_are_given_back(void **state)
{
    (void)state;
    enum { LARGE = 128 << 10, COUNT = 100 };
    tide_buffers *buffers = made(&(tide_buffers_options){.age_max = 100});
    for (size_t i = 0; i < COUNT; i++) {
        held[i] = acquired(buffers, LARGE);
        memset(tide_buffer_pointer(buffers, held[i]), 1, LARGE);
    }
    release(buffers, COUNT);
    assert_true(on_tray(buffers) > COUNT / 2);
    /* Over half of the age: given, not only offered. (A tick trims by age before, and by that alone
     * the tray would be empty.) */
    tide_depot_purge(buffers, tide_buffers_advance(70));
    size_t zeroed = 0;
    for (size_t i = 0; i < COUNT; i++)
        zeroed += ((volatile char *)buffers->records[(uint32_t)held[i].slot].data)[LARGE / 2] == 0;
    assert_int_equal(zeroed, COUNT);
    expect_ok(tide_buffers_destroy(buffers));
}

/* A request of a size that has none takes a larger one, which lies on a tray. */
static void a_larger_one_is_borrowed_from_the_tray(void **state)
{
    (void)state;
    enum { LARGER = 192 << 10, OWN = 160 << 10, COUNT = 60 };
    tide_buffers *buffers = made(NULL);
    for (size_t i = 0; i < COUNT; i++)
        held[i] = acquired(buffers, LARGER);
    release(buffers, COUNT);
    assert_true(on_tray(buffers) > COUNT / 2);
    for (size_t i = 0; i < COUNT; i++)
        held[i] = acquired(buffers, OWN);
    assert_int_equal(stats_of(buffers).misses, COUNT);
    release(buffers, COUNT);
    expect_ok(tide_buffers_destroy(buffers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_way_to_another_thread_leaves_records_alone),
        cmocka_unit_test(what_has_no_room_goes_to_the_list),
        cmocka_unit_test(without_memory_for_it_all_goes_to_the_list),
        cmocka_unit_test(a_trim_by_age_takes_the_old_ones_of_the_tray),
        cmocka_unit_test(a_round_of_use_takes_from_the_tray_only_what_nobody_needed),
        cmocka_unit_test(pages_of_the_tray_are_given_back),
        cmocka_unit_test(a_larger_one_is_borrowed_from_the_tray),
    };
    expect_ok(tide_tune_set("learn", 0));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
