/* SPDX-License-Identifier: MIT */
/* Samples of who took memory, against what was really taken: within five standard errors, which the
 * head of profiler/samples/samples.h gives. */
#define _GNU_SOURCE
#include "arrays_support.h"
#include "hooks.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <tidepool/buffers.h>
#include <tidepool/facts.h>
#include <tidepool/upkeep.h>

#include "profiler/samples/samples.h"

enum { EVERY = 64 << 10, PLACES = 1024 };

typedef struct sums {
    double taken, taken_bytes, held, held_bytes;
} sums;

/* Of all places whose text has these words and whose type is that. */
static sums sums_of(const char *words, tide_type type)
{
    static tide_sampled places[PLACES];
    uint64_t lost;
    sums all = {0};
    size_t count = tide_samples_most(places, PLACES, &lost);
    assert_int_equal(lost, 0);
    for (const tide_sampled *p = places; p < places + count; p++) {
        if (p->type != type || strstr(p->place, words) == NULL)
            continue;
        all.taken += p->taken;
        all.taken_bytes += p->taken_bytes;
        all.held += p->held;
        all.held_bytes += p->held_bytes;
    }
    return all;
}

/* So many pieces of a size: the estimate of their bytes, and how far it may be off. A piece counts
 * 1/p times with the probability p. */
static void expect_about(double estimate, double pieces, double bytes)
{
    double p = 1 - exp(-bytes / EVERY);
    double error = bytes * sqrt(pieces * (1 - p) / p);
    if (fabs(estimate - pieces * bytes) > 5 * error + 1)
        fail_msg("%g bytes estimated, %g taken; the error is %g", estimate, pieces * bytes, error);
}

static int each_set_up(void **state)
{
    (void)state;
    set_constant("sample_bytes", EVERY);
    return 0;
}

static int each_tear_down(void **state)
{
    (void)state;
    reset_constants();
    return 0;
}

/* ---- slots ---- */

static __attribute__((noinline)) void take_here(tide_pool *pool, size_t bytes, int pieces)
{
    for (int i = 0; i < pieces; i++)
        assert_non_null(tide_acquire(pool, int8_t, bytes));
}

static __attribute__((noinline)) void take_there(tide_pool *pool, size_t bytes, int pieces)
{
    for (int i = 0; i < pieces; i++)
        assert_non_null(tide_acquire(pool, int16_t, bytes / 2));
}

static void slots_are_told_by_place_and_type(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    take_here(pool, 640, 5000);
    take_there(pool, 16384, 3000);
    sums here = sums_of("take_here", TIDE_I8), there = sums_of("take_there", TIDE_I16);
    expect_about(here.held_bytes, 5000, 640);
    expect_about(there.held_bytes, 3000, 16384);
    assert_true(fabs(here.held_bytes / here.held - 640) < 1e-6);
    assert_true(sums_of("take_here", TIDE_I16).taken == 0);
    expect_ok(tide_pool_reset(pool));
    take_here(pool, 640, 5000); /* out of what is held */
    assert_true(sums_of("take_here", TIDE_I8).taken == here.taken);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_empty(pool));
    here = sums_of("take_here", TIDE_I8), there = sums_of("take_there", TIDE_I16);
    assert_true(here.held == 0 && here.held_bytes == 0 && there.held_bytes == 0);
    expect_about(here.taken_bytes, 5000, 640);
    expect_ok(tide_pool_destroy(pool));
}

static void large_memory_is_never_missed(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    double before = sums_of("take_there", TIDE_I16).held_bytes;
    take_there(pool, 3 << 20, 2);
    assert_true(fabs(sums_of("take_there", TIDE_I16).held_bytes - before - (6 << 20)) < 1e-6);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

static void without_samples_nothing_is_kept(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    sums before = sums_of("", TIDE_I16);
    set_constant("sample_bytes", 0);
    take_there(pool, 1 << 20, 20);
    assert_true(sums_of("", TIDE_I16).taken == before.taken);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

/* ---- buffers ---- */

static void buffers_are_told_by_their_stack(void **state)
{
    enum { COUNT = 600, BYTES = 20480 };
    (void)state;
    static tide_buffer all[COUNT];
    tide_buffers *buffers = tide_buffers_create(NULL, NULL);
    sums before = sums_of("", 0);
    for (int i = 0; i < COUNT; i++)
        assert_true((all[i] = tide_buffer_acquire(buffers, BYTES)).generation != 0);
    expect_about(sums_of("", 0).held_bytes - before.held_bytes, COUNT, BYTES);
    for (int i = 0; i < COUNT; i++)
        expect_ok(tide_buffer_release(buffers, all[i]));
    assert_true(sums_of("", 0).held > before.held); /* cached */
    expect_ok(tide_buffers_destroy(buffers));
    assert_true(fabs(sums_of("", 0).held_bytes - before.held_bytes) < 1);
}

/* ---- threads ---- */

static void *take_and_empty(void *user)
{
    (void)user;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    for (int i = 0; i < 50; i++) {
        for (int k = 0; k < 20; k++)
            (void)tide_acquire(pool, uint32_t, 1000 + 500 * (size_t)k);
        if (tide_pool_reset(pool) != TIDE_OK || tide_pool_empty(pool) != TIDE_OK)
            abort();
    }
    tide_pool_destroy(pool);
    return NULL;
}

static void threads_lose_nothing(void **state)
{
    (void)state;
    pthread_t threads[4];
    double before = sums_of("take_and_empty", TIDE_U32).taken_bytes, bytes = 0;
    for (int k = 0; k < 20; k++)
        bytes += 4 * (1000 + 500.0 * k);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_empty, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    sums after = sums_of("take_and_empty", TIDE_U32);
    assert_true(after.held == 0);
    expect_about(after.taken_bytes - before, 4 * 50 * 20, bytes / 20);
}

/* ---- facts ---- */

static void facts_say_who(void **state)
{
    (void)state;
    char *text = NULL;
    size_t length = 0;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    take_there(pool, 8 << 20, 1);
    FILE *page = open_memstream(&text, &length);
    expect_ok(tide_facts_write(page));
    fclose(page);
    const char *samples =
        strstr(text, "\"samples\":{\"every_bytes\":65536,\"lost\":0,\"places\":[");
    assert_non_null(samples);
    const char *place = strstr(samples, "samples.c:");
    assert_non_null(place);
    assert_non_null(strstr(place, "take_there\""));
    assert_non_null(strstr(place, "\"held\":1,\"held_bytes\":8388608,\"stack\":[\""));
    free(text);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

/* Libraries of coroutines put an address that is none where their functions would return to, so nobody may
 * look at what is there. */
#if defined(__x86_64__)

enum { STACK = 256 << 10 };
static ucontext_t thread_itself, coroutine;
static tide_pool *coroutine_pool;

static void coroutine_run(void)
{
    take_there(coroutine_pool, 8 << 20, 1);
    swapcontext(&coroutine, &thread_itself);
}

static void coroutines_are_told_without_a_stack(void **state)
{
    static _Alignas(64) char stack[STACK];
    (void)state;
    if (under_sanitizer() || under_valgrind())
        skip(); /* which want to be told of other stacks */
    coroutine_pool = tide_pool_create(NULL);
    assert_non_null(coroutine_pool);
    double before = sums_of("take_there", TIDE_I16).taken_bytes;
    assert_int_equal(getcontext(&coroutine), 0);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = STACK;
    makecontext(&coroutine, coroutine_run, 0);
    *(uintptr_t *)coroutine.uc_mcontext.gregs[REG_RSP] = 0xdeaddeaddeaddeadu;
    assert_int_equal(swapcontext(&thread_itself, &coroutine), 0);
    assert_true(sums_of("take_there", TIDE_I16).taken_bytes >= before + (8 << 20));
    expect_ok(tide_pool_reset(coroutine_pool));
    expect_ok(tide_pool_destroy(coroutine_pool));
}

#else
static void coroutines_are_told_without_a_stack(void **state)
{
    (void)state;
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(slots_are_told_by_place_and_type, each_set_up,
                                        each_tear_down),
        cmocka_unit_test_setup_teardown(large_memory_is_never_missed, each_set_up, each_tear_down),
        cmocka_unit_test_setup_teardown(without_samples_nothing_is_kept, each_set_up,
                                        each_tear_down),
        cmocka_unit_test_setup_teardown(buffers_are_told_by_their_stack, each_set_up,
                                        each_tear_down),
        cmocka_unit_test_setup_teardown(threads_lose_nothing, each_set_up, each_tear_down),
        cmocka_unit_test_setup_teardown(coroutines_are_told_without_a_stack, each_set_up,
                                        each_tear_down),
        cmocka_unit_test_setup_teardown(facts_say_who, each_set_up, each_tear_down),
    };
    return cmocka_run_group_tests_name("samples", tests, NULL, NULL);
}
