/* SPDX-License-Identifier: MIT */
/* Buffers found by their address, many at once, zeroed. */
#define _GNU_SOURCE
#include "bed.h"

#include <pthread.h>

#include <tidepool/buffers.h>

#include "tests/hooks.h"

/* ---- by address ------------------------------------------------------------------------------ */

static void expect_none(tide_buffer b)
{
    assert_int_equal(b.slot, 0);
    assert_int_equal(b.generation, 0);
}

static void the_address_finds_the_handle(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL), *others = made(NULL);
    int not_a_buffer = 0;
    expect_none(tide_buffer_of(buffers, &not_a_buffer));
    tide_buffer b = acquired(buffers, 1000);
    char *memory = tide_buffer_pointer(buffers, b);
    tide_buffer found = tide_buffer_of(buffers, memory);
    assert_memory_equal(&found, &b, sizeof b);
    expect_none(tide_buffer_of(buffers, memory + 64)); /* only its start */
    expect_none(tide_buffer_of(others, memory));
    expect_none(tide_buffer_of(buffers, NULL));
    expect_none(tide_buffer_of(NULL, memory));
    expect_ok(tide_buffer_release(buffers, found));
    expect_none(tide_buffer_of(buffers, memory)); /* cached */
    expect_refused(tide_buffer_release(buffers, tide_buffer_of(buffers, memory)), TIDE_ERROR_STALE,
                   "");
    assert_int_equal(tide_buffers_trim(buffers, 0).slots, 1);
    expect_none(tide_buffer_of(buffers, memory)); /* gone */
    expect_ok(tide_buffers_destroy(others));
    expect_ok(tide_buffers_destroy(buffers));
}

/* So many that the table grows, and again without half of them. */
static void every_address_of_many_is_found(void **state)
{
    (void)state;
    size_t count = scaled(50000, 5000);
    tide_buffers *buffers = made(NULL);
    tide_buffer *held = calloc(count, sizeof *held);
    void **memory = calloc(count, sizeof *memory);
    assert_true(held != NULL && memory != NULL);
    for (unsigned round = 0; round < 6; round++) {
        for (size_t i = 0; i < count; i++)
            if (held[i].generation == 0) {
                held[i] = acquired(buffers, 64 + i % 7 * 64);
                memory[i] = tide_buffer_pointer(buffers, held[i]);
            }
        for (size_t i = 0; i < count; i++) {
            tide_buffer found = tide_buffer_of(buffers, memory[i]);
            assert_true(found.slot == held[i].slot && found.generation == held[i].generation);
        }
        for (size_t i = round % 2; i < count; i += 2) {
            expect_ok(tide_buffer_release(buffers, tide_buffer_of(buffers, memory[i])));
            expect_none(tide_buffer_of(buffers, memory[i]));
            held[i].generation = 0;
        }
        tide_buffers_trim(buffers, 0); /* their places in the table are gone */
    }
    for (size_t i = 0; i < count; i++)
        if (held[i].generation != 0)
            expect_ok(tide_buffer_release(buffers, held[i]));
    free(memory);
    free(held);
    assert_int_equal(stats_of(buffers).refused, 0);
    expect_ok(tide_buffers_destroy(buffers));
}

typedef struct finder {
    tide_buffers *buffers;
    size_t rounds;
} finder;

/* Each thread finds its own, while the table changes under it. */
static void *find_own(void *argument)
{
    enum { HELD = 300 };
    finder *f = argument;
    void *memory[HELD];
    for (size_t round = 0; round < f->rounds; round++) {
        for (size_t i = 0; i < HELD; i++)
            memory[i] =
                tide_buffer_pointer(f->buffers, acquired(f->buffers, 100 + round % 9 * 300));
        for (size_t i = 0; i < HELD; i++)
            expect_ok(tide_buffer_release(f->buffers, tide_buffer_of(f->buffers, memory[i])));
        if (round % 3 == 0)
            tide_buffers_trim(f->buffers, 0);
    }
    return NULL;
}

static void addresses_are_found_while_others_come_and_go(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    finder f = {made(NULL), scaled(200, 20)};
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, find_own, &f), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    tide_buffers_statistics s = stats_of(f.buffers);
    assert_int_equal(s.live, 0);
    assert_int_equal(s.refused, 0);
    expect_ok(tide_buffers_destroy(f.buffers));
}

/* ---- many at once ---------------------------------------------------------------------------- */

static void many_are_acquired_and_released_at_once(void **state)
{
    (void)state;
    enum { COUNT = 100 };
    tide_buffers *buffers = made(NULL);
    tide_buffer held[COUNT];
    for (unsigned round = 0; round < 3; round++) {
        expect_ok(tide_buffer_acquire_many(buffers, 1000, COUNT, held));
        for (size_t i = 0; i < COUNT; i++) {
            memset(tide_buffer_pointer(buffers, held[i]), (int)i, 1000);
            for (size_t k = 0; k < i; k++)
                assert_int_not_equal(held[i].slot, held[k].slot);
        }
        assert_int_equal(stats_of(buffers).live, COUNT);
        assert_int_equal(stats_of(buffers).bytes_asked, (round + 1) * COUNT * 1000);
        expect_ok(tide_buffer_release_many(buffers, held, COUNT));
    }
    assert_int_equal(stats_of(buffers).misses, COUNT);
    expect_ok(tide_buffer_acquire_many(buffers, 1000, 0, NULL));
    expect_ok(tide_buffer_release_many(buffers, NULL, 0));
    tide_buffer none[3];
    memset(none, 0xff, sizeof none);
    assert_int_not_equal(tide_buffer_acquire_many(buffers, SIZE_MAX / 2, 3, none), TIDE_OK);
    for (size_t i = 0; i < 3; i++) /* none, and handles that say so */
        assert_true(none[i].slot == 0 && none[i].generation == 0);
    expect_refused(tide_buffer_acquire_many(buffers, 1, 1, NULL), TIDE_ERROR_ARGUMENT, "NULL");
    expect_refused(tide_buffer_acquire_many(NULL, 1, 1, held), TIDE_ERROR_ARGUMENT, "NULL");
    expect_refused(tide_buffer_release_many(NULL, held, 1), TIDE_ERROR_ARGUMENT, "NULL");
    expect_ok(tide_buffers_destroy(buffers));
}

static void of_many_those_that_are_stale_are_refused(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    tide_buffer held[5];
    expect_ok(tide_buffer_acquire_many(buffers, 1000, 5, held));
    expect_ok(tide_buffer_release(buffers, held[1]));
    tide_buffer twice[] = {held[0], held[1], held[2], held[0], held[3], held[4]};
    expect_refused(tide_buffer_release_many(buffers, twice, 6), TIDE_ERROR_STALE, "released");
    tide_buffers_statistics s = stats_of(buffers);
    assert_int_equal(s.live, 0);
    assert_int_equal(s.refused, 2);
    assert_int_equal(s.releases, 5);
    expect_ok(tide_buffers_destroy(buffers));
}

static size_t many_left; /* requests until the system refuses all */

static bool many_refuse(size_t bytes)
{
    (void)bytes;
    return many_left == 0 || many_left-- == 0;
}

static void of_many_all_come_or_none(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    tide_buffer held[64];
    expect_ok(tide_buffer_release(buffers, acquired(buffers, 1000)));
    many_left = 20;
    set_memory_fault(many_refuse);
    tide_status status = tide_buffer_acquire_many(buffers, 1000, 64, held);
    set_memory_fault(NULL);
    assert_int_equal(status, TIDE_ERROR_MEMORY);
    for (size_t i = 0; i < 64; i++)
        expect_none(held[i]);
    assert_int_equal(stats_of(buffers).live, 0);
    expect_ok(tide_buffers_destroy(buffers));
}

/* A call of the program's own, in which it fails. */
static void many_fail_elsewhere(const tide_buffer_event *event, void *user)
{
    unsigned *released = user;
    if (event->happening != TIDE_BUFFER_RELEASED)
        return;
    ++*released;
    assert_int_not_equal(tide_buffer_release(NULL, (tide_buffer){0}), TIDE_OK);
}

static void who_got_nothing_is_told_why_and_by_which_call(void **state)
{
    (void)state;
    unsigned released = 0;
    tide_buffers *buffers =
        made(&(tide_buffers_options){.hook = many_fail_elsewhere, .user = &released});
    tide_buffer held[8], stale = acquired(buffers, MIB);
    expect_ok(tide_buffer_release(buffers, stale));
    many_left = 4;
    set_memory_fault(many_refuse);
    tide_status status = tide_buffer_acquire_many(buffers, MIB, 8, held);
    set_memory_fault(NULL);
    expect_refused(status, TIDE_ERROR_MEMORY, "tide_buffer_acquire_many");
    assert_true(released > 1);
    expect_ok(tide_buffers_destroy(buffers));
    buffers = made(NULL);
    expect_refused(tide_buffer_release(buffers, stale), TIDE_ERROR_STALE, "tide_buffer_release:");
    expect_refused(tide_buffer_release_on(buffers, stale, NULL), TIDE_ERROR_STALE,
                   "tide_buffer_release_on:");
    expect_refused(tide_buffer_release_many(buffers, &stale, 1), TIDE_ERROR_STALE,
                   "tide_buffer_release_many:");
    expect_ok(tide_buffers_destroy(buffers));
}

/* ---- zeroed ---------------------------------------------------------------------------------- */

static void zeroed_buffers_are_zero(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 1000, 100 * KIB, 2 * MIB, 3 * MIB + 5, 9 * MIB + 1};
    tide_buffers *buffers = made(NULL);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        for (unsigned round = 0; round < 3; round++) {
            tide_buffer b = tide_buffer_acquire_zeroed(buffers, sizes[k]);
            unsigned char *memory = tide_buffer_pointer(buffers, b);
            assert_non_null(memory);
            size_t marked = 0;
            for (size_t i = 0; i < sizes[k]; i++)
                marked += memory[i] != 0;
            assert_int_equal(marked, 0);
            memset(memory, 0xA5, tide_buffer_bytes(buffers, b));
            expect_ok(tide_buffer_release(buffers, b));
        }
    }
    assert_int_equal(tide_buffer_acquire_zeroed(buffers, SIZE_MAX).generation, 0);
    assert_int_equal(tide_buffer_acquire_zeroed(NULL, 1).generation, 0);
    expect_ok(tide_buffers_destroy(buffers));
}

/* ---- the latest first ------------------------------------------------------------------------ */

/* Past the thread's own cell, too. */
static void what_was_released_last_is_handed_out_first(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    tide_buffers *buffers = made(NULL);
    tide_buffer held[COUNT];
    expect_ok(tide_buffer_acquire_many(buffers, 100, COUNT, held));
    expect_ok(tide_buffer_release_many(buffers, held, COUNT));
    size_t late = 0; /* of the first half to come, those that were released in the last half */
    for (size_t i = 0; i < COUNT; i++) {
        tide_buffer b = acquired(buffers, 100);
        for (size_t k = COUNT / 2; i < COUNT / 2 && k < COUNT; k++)
            late += held[k].slot == b.slot;
    }
    assert_true(late >= COUNT / 2 - 24);
    assert_int_equal(stats_of(buffers).misses, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        expect_ok(
            tide_buffer_release(buffers, (tide_buffer){held[i].slot, held[i].generation + 2}));
    expect_ok(tide_buffers_destroy(buffers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_address_finds_the_handle),
        cmocka_unit_test(every_address_of_many_is_found),
        cmocka_unit_test(addresses_are_found_while_others_come_and_go),
        cmocka_unit_test(many_are_acquired_and_released_at_once),
        cmocka_unit_test(of_many_those_that_are_stale_are_refused),
        cmocka_unit_test(of_many_all_come_or_none),
        cmocka_unit_test(who_got_nothing_is_told_why_and_by_which_call),
        cmocka_unit_test(zeroed_buffers_are_zero),
        cmocka_unit_test(what_was_released_last_is_handed_out_first),
    };
    return cmocka_run_group_tests_name("many buffers", tests, NULL, NULL);
}
