/* SPDX-License-Identifier: MIT */
/* While each buffer is released by the thread that acquired it, nothing is exchanged: buffers that
 * go through the depot keep that, and the first release by another ends it. And what a cell takes
 * from the depot, and gives it, at once. */
#include "bed.h"

#include <pthread.h>

#include "runtime/buffers/buffers.h"
#include "runtime/buffers/store/depot.h"

enum { BYTES = 1024, MANY = 20 * TIDE_CELL_SLOTS, ROUNDS = 4 };

static tide_buffer held[MANY];

static void acquire_many(tide_buffers *buffers, tide_buffer *into)
{
    for (size_t i = 0; i < MANY; i++)
        into[i] = acquired(buffers, BYTES);
}

static void release_many(tide_buffers *buffers, const tide_buffer *from)
{
    for (size_t i = 0; i < MANY; i++)
        expect_ok(tide_buffer_release(buffers, from[i]));
}

/* More than the thread's cell holds, so that most come from the depot and go there. */
static void *work_alone(void *buffers)
{
    tide_buffer own[MANY];
    for (int round = 0; round < ROUNDS; round++) {
        acquire_many(buffers, own);
        release_many(buffers, own);
    }
    return NULL;
}

static void *release_held(void *buffers)
{
    expect_ok(tide_buffer_release(buffers, held[0]));
    return NULL;
}

static void run_thread(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* A buffer that the depot gives to another thread is then that one's. */
static void threads_that_keep_to_themselves_own_theirs(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    work_alone(buffers);
    run_thread(work_alone, buffers);
    work_alone(buffers);
    assert_int_equal(stats_of(buffers).misses, MANY);
    assert_true(tide_buffers_owned(buffers));
    held[0] = acquired(buffers, BYTES);
    run_thread(release_held, buffers);
    assert_false(tide_buffers_owned(buffers));
    work_alone(buffers);
    assert_int_equal(stats_of(buffers).live, 0);
    expect_refused(tide_buffer_release(buffers, held[0]), TIDE_ERROR_STALE, "has been released");
    expect_ok(tide_buffers_destroy(buffers));
}

/* Each other bucket leads to another cell, or to none. */
static void a_handle_with_another_bucket_is_refused(void **state)
{
    (void)state;
    for (int owned = 1; owned >= 0; owned--) {
        tide_buffers *buffers = made(NULL);
        tide_buffer good = acquired(buffers, BYTES);
        if (!owned) {
            held[0] = acquired(buffers, BYTES);
            run_thread(release_held, buffers);
        }
        for (unsigned bit = TIDE_HANDLE_BUCKET; bit < 64; bit++) {
            tide_buffer forged = {good.slot ^ (size_t)1 << bit, good.generation};
            assert_int_equal(tide_buffer_release(buffers, forged), TIDE_ERROR_STALE);
        }
        assert_int_equal(tide_buffers_owned(buffers), owned);
        assert_int_equal(stats_of(buffers).refused, 64 - TIDE_HANDLE_BUCKET);
        expect_ok(tide_buffer_release(buffers, good));
        assert_int_equal(tide_buffer_release(buffers, good), TIDE_ERROR_STALE);
        expect_ok(tide_buffers_destroy(buffers));
    }
}

/* Records of other flags have cells of their own, at which the fast path does not look. */
static void buffers_of_other_flags_are_owned_too(void **state)
{
    (void)state;
    uint32_t flags = TIDE_BUFFER_HOST | TIDE_BUFFER_TAG(3);
    tide_buffers *buffers = made(NULL);
    work_alone(buffers);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < MANY; i++)
            held[i] = tide_buffer_acquire_on(buffers, BYTES, flags, NULL);
        release_many(buffers, held);
    }
    assert_int_equal(stats_of(buffers).misses, 2 * MANY);
    assert_true(tide_buffers_owned(buffers));
    tide_buffers_statistics before = stats_of(buffers);
    expect_refused(tide_buffer_release(buffers, held[0]), TIDE_ERROR_STALE, "has been released");
    before.refused++;
    expect_unchanged(buffers, &before);
    expect_ok(tide_buffers_destroy(buffers));
}

/* ---- how much goes at once ------------------------------------------------------------------ */

static uint32_t in_depot(const tide_buffers *buffers)
{
    unsigned bucket = (unsigned)(held[0].slot >> TIDE_HANDLE_BUCKET);
    return tide_depot_at(buffers, buffers->key, bucket)->cached;
}

/* Times that the depot was needed for, and least uses between two of them. */
typedef struct trips {
    size_t count, apart, last;
    uint32_t before;
} trips;

static void note_trip(trips *t, const tide_buffers *buffers, size_t use)
{
    uint32_t now = in_depot(buffers);
    if (now == t->before)
        return;
    if (t->count > 0 && use - t->last < t->apart)
        t->apart = use - t->last;
    t->last = use;
    t->count++;
    t->before = now;
}

/* Who only acquires fills the cell each time, who only releases empties most of it. */
static void who_goes_one_way_needs_the_depot_less(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    work_alone(buffers); /* the cell has grown */
    trips in = {.apart = MANY, .before = in_depot(buffers)}, out;
    for (size_t i = 0; i < MANY; i++) {
        held[i] = acquired(buffers, BYTES);
        note_trip(&in, buffers, i);
    }
    out = (trips){.apart = MANY, .before = in_depot(buffers)};
    for (size_t i = 0; i < MANY; i++) {
        expect_ok(tide_buffer_release(buffers, held[i]));
        note_trip(&out, buffers, i);
    }
    assert_in_range(in.count, MANY / TIDE_CELL_SLOTS - 1, MANY / TIDE_CELL_SLOTS + 1);
    assert_in_range(out.count, MANY / TIDE_CELL_SLOTS, MANY / (TIDE_CELL_SLOTS / 4 * 3) + 1);
    expect_ok(tide_buffers_destroy(buffers));
}

/* Whatever the way, there and back: never does each use, or each second one, need the depot. */
static void who_turns_round_does_not_need_the_depot_each_time(void **state)
{
    (void)state;
    for (size_t swing = 1; swing <= TIDE_CELL_SLOTS; swing++) {
        tide_buffers *buffers = made(NULL);
        work_alone(buffers);
        acquire_many(buffers, held);
        size_t live = MANY, use = 0;
        trips all = {.apart = MANY, .before = in_depot(buffers)};
        for (size_t turn = 0; turn < 200; turn++)
            for (size_t i = 0; i < swing; i++, use++) {
                if (turn % 2 == 0)
                    expect_ok(tide_buffer_release(buffers, held[--live]));
                else
                    held[live++] = acquired(buffers, BYTES);
                note_trip(&all, buffers, use);
            }
        if (all.count * (TIDE_CELL_SLOTS / 4) > use + 2 * TIDE_CELL_SLOTS)
            fail_msg("swings of %zu: %zu of %zu uses need the depot", swing, all.count, use);
        release_many(buffers, held);
        expect_ok(tide_buffers_destroy(buffers));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_keep_to_themselves_own_theirs),
        cmocka_unit_test(a_handle_with_another_bucket_is_refused),
        cmocka_unit_test(buffers_of_other_flags_are_owned_too),
        cmocka_unit_test(who_goes_one_way_needs_the_depot_less),
        cmocka_unit_test(who_turns_round_does_not_need_the_depot_each_time),
    };
    return cmocka_run_group_tests_name("owned buffers", tests, NULL, NULL);
}
