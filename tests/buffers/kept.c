/* SPDX-License-Identifier: MIT */
/* What buffers keep: all that a working set comes back to, at any count. No test here makes a
 * tick. */
#define _GNU_SOURCE
#include "bed.h"
#include "tests/random.h"

#include <pthread.h>
#include <tidepool/limit.h>

#include <tidepool/buffers.h>

/* Acquires so many, then releases them all. */
static void cycle_many(tide_buffers *buffers, tide_buffer *held, size_t count, size_t bytes)
{
    for (size_t i = 0; i < count; i++)
        held[i] = acquired(buffers, bytes);
    for (size_t i = 0; i < count; i++)
        expect_ok(tide_buffer_release(buffers, held[i]));
}

/* ---- at any count ---------------------------------------------------------------------------- */

static void no_count_of_a_size_is_dropped(void **state)
{
    (void)state;
    enum { MOST = 100000 };
    tide_buffer *held = calloc(MOST, sizeof *held);
    assert_non_null(held);
    for (size_t count = 1; count <= MOST; count *= 10) {
        tide_buffers *buffers = made(NULL);
        for (unsigned round = 0; round < 3; round++)
            cycle_many(buffers, held, count, 100);
        tide_buffers_statistics s = stats_of(buffers);
        assert_int_equal(s.misses, count);
        assert_int_equal(s.hits, 2 * count);
        assert_int_equal(s.cached, count);
        assert_int_equal(s.dropped + s.trimmed, 0);
        expect_ok(tide_buffers_destroy(buffers));
    }
    free(held);
}

/* Large ones: more of them than fit into the cell of a thread. */
static void no_count_of_large_ones_is_dropped(void **state)
{
    (void)state;
    static const size_t sizes[] = {16 * KIB, 64 * KIB, 300 * KIB, 3 * MIB};
    tide_buffer held[24];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tide_buffers *buffers = made(NULL);
        for (unsigned round = 0; round < 10; round++)
            cycle_many(buffers, held, 24, sizes[i]);
        assert_int_equal(stats_of(buffers).misses, 24);
        expect_ok(tide_buffers_destroy(buffers));
    }
}

/* What is live at a time is a fifth of what the phases need together; all of it is kept. */
static void what_a_working_set_comes_back_to_stays(void **state)
{
    (void)state;
    enum { COUNT = 64, PHASES = 5, SETTLED = 3 };
    tide_buffers *buffers = made(NULL);
    tide_buffer held[COUNT];
    uint64_t misses = 0;
    for (unsigned round = 0; round < 20; round++) {
        if (round == SETTLED)
            misses = stats_of(buffers).misses;
        for (size_t phase = 0; phase < PHASES; phase++)
            cycle_many(buffers, held, COUNT, (size_t)(64 * KIB) << phase);
    }
    assert_int_equal(stats_of(buffers).misses, misses);
    expect_ok(tide_buffers_destroy(buffers));
}

/* ---- by a larger size ------------------------------------------------------------------------ */

/* 64 of random sizes, replaced at random: each size needs its most at another time. */
static void sizes_that_peak_in_turn_share(void **state)
{
    (void)state;
    enum { HELD = 64 };
    tide_buffers *buffers = made(NULL);
    tide_buffer held[HELD] = {{0}};
    rng random = {7};
    size_t live = 0, most = 0;
    for (size_t i = 0; i < 20000; i++) {
        tide_buffer *b = &held[rng_next(&random) % HELD];
        if (b->generation != 0) {
            live -= tide_buffer_bytes(buffers, *b);
            expect_ok(tide_buffer_release(buffers, *b));
        }
        size_t octave = (size_t)(128 * KIB) << rng_next(&random) % 6;
        *b = acquired(buffers, octave + rng_next(&random) % octave);
        live += tide_buffer_bytes(buffers, *b);
        most = live > most ? live : most;
    }
    assert_true(stats_of(buffers).bytes_high <= most / 10 * 18); /* each for itself: 2.2 times */
    for (size_t i = 0; i < HELD; i++)
        if (held[i].generation != 0)
            expect_ok(tide_buffer_release(buffers, held[i]));
    expect_ok(tide_buffers_destroy(buffers));
}

/* Its own size first; then a larger one, which is cut. What is small has its own. */
static void a_larger_one_is_cut_where_there_is_none_of_the_size(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    tide_buffer two = acquired(buffers, 2 * MIB), one = acquired(buffers, MIB);
    tide_buffer half = acquired(buffers, 64 * KIB);
    expect_ok(tide_buffer_release(buffers, one));
    expect_ok(tide_buffer_release(buffers, two));
    expect_ok(tide_buffer_release(buffers, half));
    tide_buffer first = acquired(buffers, MIB), second = acquired(buffers, MIB);
    assert_int_equal(first.slot, one.slot);
    assert_int_equal((uint32_t)second.slot, (uint32_t)two.slot);
    assert_int_equal(tide_buffer_bytes(buffers, second), MIB);
    memset(tide_buffer_pointer(buffers, second), 1, MIB);
    tide_buffer third = acquired(buffers, 48 * KIB);
    assert_int_not_equal(third.slot, half.slot);
    expect_ok(tide_buffer_release(buffers, first));
    expect_ok(tide_buffer_release(buffers, second));
    expect_ok(tide_buffer_release(buffers, third));
    expect_ok(tide_buffers_destroy(buffers));
}

/* A size that was cut and is wanted again is not cut any more: it is lent whole, for half of it at
 * least. The numbers count it where it belongs. */
static void what_was_cut_and_is_wanted_again_is_lent(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    expect_ok(tide_buffer_release(buffers, acquired(buffers, 2 * MIB)));
    tide_buffer one = acquired(buffers, MIB), two = acquired(buffers, 2 * MIB);
    expect_ok(tide_buffer_release(buffers, two));
    for (int i = 0; i < 3; i++) {
        tide_buffer lent = acquired(buffers, 1000 * KIB);
        assert_int_equal(lent.slot, two.slot);
        assert_int_equal(tide_buffer_bytes(buffers, lent), 2 * MIB);
        expect_ok(tide_buffer_release(buffers, lent));
    }
    tide_buffer less = acquired(buffers, 875 * KIB); /* than half */
    assert_int_not_equal((uint32_t)less.slot, (uint32_t)two.slot);
    tide_bucket_statistics b[8];
    tide_buffers_statistics s;
    expect_ok(tide_buffers_stats(buffers, &s, b, 8));
    for (size_t i = 0; i < s.buckets; i++)
        if (b[i].bytes == 2 * MIB) {
            assert_int_equal(b[i].hits, 3);
            assert_int_equal(b[i].cached, 1);
        }
    assert_int_equal(s.live, 2);
    expect_ok(tide_buffer_release(buffers, one));
    expect_ok(tide_buffer_release(buffers, less));
    expect_ok(tide_buffers_destroy(buffers));
}

/* Three of a size, then three of a smaller one, and so on: no more is held than is live. Where the
 * sizes come again, each is made once more at most. */
static void arrays_that_get_smaller_hold_what_they_need(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    tide_buffer held[3];
    for (size_t kib = 16 * KIB; kib > 512; kib = kib * 3 / 4) {
        cycle_many(buffers, held, 3, kib * KIB);
        assert_int_equal(stats_of(buffers).bytes_cached,
                         3 * tide_buffers_round_up(buffers, kib * KIB));
    }
    assert_int_equal(stats_of(buffers).misses, 3);
    uint64_t misses = 0;
    for (int round = 0; round < 10; round++) {
        misses = round == 4 ? stats_of(buffers).misses : misses;
        for (size_t kib = 16 * KIB; kib > 512; kib = kib * 3 / 4)
            cycle_many(buffers, held, 3, kib * KIB);
    }
    assert_int_equal(stats_of(buffers).misses, misses);
    expect_ok(tide_buffers_destroy(buffers));
}

/* Under a limit a larger one is cut to the size, so nothing is refused for what nobody asked for. */
static void under_a_limit_a_larger_one_is_cut(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    tide_buffer b[3];
    expect_ok(tide_limit_set(&(tide_limit_options){.hard_bytes = 30 * MIB}));
    for (int i = 0; i < 3; i++)
        b[i] = acquired(buffers, 9 * MIB + 512 * KIB);
    expect_ok(tide_buffer_release_many(buffers, b, 3));
    for (int i = 0; i < 3; i++) {
        b[i] = acquired(buffers, 5 * MIB);
        assert_int_equal(tide_buffer_bytes(buffers, b[i]), 5 * MIB);
        memset(tide_buffer_pointer(buffers, b[i]), i, 5 * MIB);
    }
    tide_buffer large = acquired(buffers, 14 * MIB);
    tide_limit_statistics limit;
    expect_ok(tide_limit_stats(&limit));
    assert_int_equal(limit.bytes_held, 29 * MIB);
    assert_int_equal(limit.refused, 0);
    for (int i = 0; i < 3; i++)
        expect_ok(tide_buffer_release(buffers, b[i]));
    expect_ok(tide_buffer_release(buffers, large));
    tide_buffers_statistics s = stats_of(buffers);
    assert_int_equal(s.hits, 3);
    assert_int_equal(s.bytes_cached, 29 * MIB);
    expect_ok(tide_limit_set(NULL));
    expect_ok(tide_buffers_destroy(buffers));
}

/* Of a huge mapping becomes one that is none: what lay in front of it goes, too. */
static void a_huge_one_is_cut_to_one_that_is_none(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    expect_ok(tide_limit_set(&(tide_limit_options){.hard_bytes = 4 * MIB}));
    for (int i = 0; i < 20; i++) { /* each begins elsewhere in its mapping */
        tide_buffer b = acquired(buffers, 2 * MIB);
        expect_ok(tide_buffer_release(buffers, b));
        b = acquired(buffers, 1100 * KIB);
        assert_int_equal(tide_buffer_bytes(buffers, b), 1280 * KIB);
        memset(tide_buffer_pointer(buffers, b), i, 1280 * KIB);
        expect_ok(tide_buffer_release(buffers, b));
        assert_int_equal(tide_buffers_trim(buffers, 0).bytes, 1280 * KIB);
    }
    expect_ok(tide_limit_set(NULL));
    expect_ok(tide_buffers_destroy(buffers));
}

/* Of a limit that is far away nothing is refused for what sizes that take turns are lent. */
static void below_a_limit_far_away_sizes_take_turns(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    expect_ok(tide_limit_set(&(tide_limit_options){.hard_bytes = 400 * MIB}));
    for (int i = 0; i < 3; i++) {
        tide_buffer b = acquired(buffers, 2 * MIB);
        expect_ok(tide_buffer_release(buffers, b));
        b = acquired(buffers, 1100 * KIB);
        assert_int_equal(tide_buffer_bytes(buffers, b), i == 0 ? 1280 * KIB : 2 * MIB);
        expect_ok(tide_buffer_release(buffers, b));
        if (i == 0)
            (void)tide_buffers_trim(buffers, 0);
    }
    expect_ok(tide_limit_set(NULL));
    expect_ok(tide_buffers_destroy(buffers));
}

/* ---- from thread to thread ------------------------------------------------------------------- */

enum { PIPE = 64 };

typedef struct kept_pipe {
    tide_buffers *buffers;
    size_t count, bytes;
    tide_buffer slots[PIPE];
    uint64_t sent, received; /* atomic */
} kept_pipe;

static void *kept_drain(void *argument)
{
    kept_pipe *p = argument;
    for (uint64_t i = 0; i < p->count; i++) {
        while (__atomic_load_n(&p->sent, __ATOMIC_ACQUIRE) == i)
            sched_yield();
        expect_ok(tide_buffer_release(p->buffers, p->slots[i % PIPE]));
        __atomic_store_n(&p->received, i + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* One thread acquires, another releases. What lies in the other's cell makes a few more at first,
 * and no more later. */
static void a_pipe_settles(void **state)
{
    (void)state;
    static const size_t sizes[] = {64, 4 * KIB, 64 * KIB, 512 * KIB};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        kept_pipe p = {.buffers = made(NULL), .count = scaled(20000, 1000), .bytes = sizes[k]};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, kept_drain, &p), 0);
        for (uint64_t i = 0; i < p.count; i++) {
            tide_buffer b = acquired(p.buffers, p.bytes);
            while (i - __atomic_load_n(&p.received, __ATOMIC_ACQUIRE) == PIPE)
                sched_yield();
            p.slots[i % PIPE] = b;
            __atomic_store_n(&p.sent, i + 1, __ATOMIC_RELEASE);
        }
        assert_int_equal(pthread_join(thread, NULL), 0);
        tide_buffers_statistics s = stats_of(p.buffers);
        assert_true(s.misses <= 2 * PIPE);
        assert_int_equal(s.dropped + s.trimmed, 0);
        expect_ok(tide_buffers_destroy(p.buffers));
    }
}

/* Where the bound is small, no thread keeps anything for itself. */
static void a_pipe_at_a_bound_hits(void **state)
{
    (void)state;
    kept_pipe p = {.buffers = made(&(tide_buffers_options){.count_max = 8}),
                   .count = scaled(3000, 500),
                   .bytes = 64};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, kept_drain, &p), 0);
    for (uint64_t i = 0; i < p.count; i++) {
        p.slots[i % PIPE] = acquired(p.buffers, p.bytes);
        __atomic_store_n(&p.sent, i + 1, __ATOMIC_RELEASE);
        while (__atomic_load_n(&p.received, __ATOMIC_ACQUIRE) != i + 1)
            sched_yield();
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(stats_of(p.buffers).misses <= 16); /* it was nearly each, in the long run */
    expect_ok(tide_buffers_destroy(p.buffers));
}

/* ---- records --------------------------------------------------------------------------------- */

/* A million that are only cached do not keep others from being made. */
static void what_is_cached_gives_its_records_back(void **state)
{
    (void)state;
    enum { RECORDS = 1 << 20, OTHERS = 60000 };
    tide_buffers *buffers = made(NULL);
    tide_buffer *held = calloc(RECORDS, sizeof *held);
    assert_non_null(held);
    cycle_many(buffers, held, RECORDS, 64);
    for (size_t i = 0; i < OTHERS; i++)
        held[i] = acquired(buffers, 128); /* asserts that there is one */
    for (size_t i = 0; i < OTHERS; i++)
        expect_ok(tide_buffer_release(buffers, held[i]));
    assert_int_equal(stats_of(buffers).failed, 0);
    expect_ok(tide_buffers_destroy(buffers));
    free(held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_count_of_a_size_is_dropped),
        cmocka_unit_test(no_count_of_large_ones_is_dropped),
        cmocka_unit_test(what_a_working_set_comes_back_to_stays),
        cmocka_unit_test(sizes_that_peak_in_turn_share),
        cmocka_unit_test(a_larger_one_is_cut_where_there_is_none_of_the_size),
        cmocka_unit_test(what_was_cut_and_is_wanted_again_is_lent),
        cmocka_unit_test(arrays_that_get_smaller_hold_what_they_need),
        cmocka_unit_test(under_a_limit_a_larger_one_is_cut),
        cmocka_unit_test(a_huge_one_is_cut_to_one_that_is_none),
        cmocka_unit_test(below_a_limit_far_away_sizes_take_turns),
        cmocka_unit_test(a_pipe_settles),
        cmocka_unit_test(a_pipe_at_a_bound_hits),
        cmocka_unit_test(what_is_cached_gives_its_records_back),
    };
    return cmocka_run_group_tests_name("what buffers keep", tests, NULL, NULL);
}
