/* SPDX-License-Identifier: MIT */
/* After fork the child has the pool and the buffers of its own thread, without learning; a process may
 * exit while threads use their pools; a thread may end in any way between calls. Argument: what a
 * process that this one starts does. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/dynamic.h>
#include <tidepool/facts.h>
#include <tidepool/learn.h>
#include <tidepool/listen.h>
#include <tidepool/scope.h>
#include <tidepool/tidepool.h>

#include "tests/support.h"

#define expect_ok(call) assert_int_equal((call), TIDE_OK)

static const char *program;

/* ---- fork ------------------------------------------------------------------------------------- */

/* A site that a program has named, declared for two types: its plan is a table. */
static tide_site *declared_site(void)
{
    static const tide_type types[] = {TIDE_F64, TIDE_I32};
    tide_site *site = tide_site_register("contract: process");
    assert_non_null(site);
    expect_ok(tide_site_declare(site, types, 2));
    return site;
}

static bool use_site(tide_pool *pool, tide_site *site)
{
    tide_scope scope;
    return tide_scope_enter(pool, site, &scope) == TIDE_OK && tide_acquire(pool, double, 100) &&
           tide_acquire(pool, int32_t, 100) && tide_scope_leave(&scope) == TIDE_OK;
}

static tide_tier tier_of(const tide_site *site)
{
    tide_site_information info;
    return tide_site_info(site, &info) == TIDE_OK ? info.tier : TIDE_TIER_FULL;
}

static void a_child_goes_on_with_the_pool_of_its_thread(void **state)
{
    (void)state;
    tide_pool *pool = tide_pool_local();
    TIDE_FRAME(pool, (double, before, 10));
    before[9] = 7;
    pid_t child = fork_child(60);
    if (child == 0) {
        CHILD_MUST(tide_pool_local() == pool && before[9] == 7);
        CHILD_MUST(tide_acquire(pool, float, 1000) != NULL);
        tide_pool *made = tide_pool_create(NULL);
        CHILD_MUST(made != NULL && tide_acquire(made, double, 10) != NULL);
        CHILD_MUST(tide_pool_destroy(made) == TIDE_OK);
        CHILD_MUST(tide_type_register("of a child", 24, 8) != TIDE_NO_TYPE);
        CHILD_MUST(tide_pool_reset(pool) == TIDE_OK);
        _exit(0);
    }
    expect_child_ends_well(child);
    assert_true(before[9] == 7);
}

static void a_child_goes_on_with_the_buffers_of_its_thread(void **state)
{
    (void)state;
    tide_buffers *buffers = tide_buffers_create(NULL, NULL);
    tide_buffer held = tide_buffer_acquire(buffers, 5000);
    assert_int_not_equal(held.generation, 0);
    memset(tide_buffer_pointer(buffers, held), 1, 5000);
    pid_t child = fork_child(60);
    if (child == 0) {
        const char *data = tide_buffer_pointer(buffers, held);
        CHILD_MUST(data != NULL && data[4999] == 1);
        CHILD_MUST(tide_buffer_release(buffers, held) == TIDE_OK);
        tide_buffer other = tide_buffer_acquire(buffers, 100000);
        CHILD_MUST(other.generation != 0 && tide_buffer_release(buffers, other) == TIDE_OK);
        CHILD_MUST(tide_buffers_destroy(buffers) == TIDE_OK);
        _exit(0);
    }
    expect_child_ends_well(child);
    expect_ok(tide_buffer_release(buffers, held));
    expect_ok(tide_buffers_destroy(buffers));
}

static void in_a_child_sites_keep_their_plans(void **state)
{
    (void)state;
    tide_pool *pool = tide_pool_local();
    tide_site *site = declared_site();
    assert_true(use_site(pool, site));
    tide_tier tier = tier_of(site);
    assert_int_not_equal(tier, TIDE_TIER_FULL);
    pid_t child = fork_child(60);
    if (child == 0) {
        CHILD_MUST(tier_of(site) == tier);
        CHILD_MUST(use_site(pool, site) && tier_of(site) == tier);
        _exit(0);
    }
    expect_child_ends_well(child);
}

static void in_a_child_nothing_is_learned(void **state)
{
    (void)state;
    pid_t child = fork_child(60);
    if (child == 0) {
        CHILD_MUST(tide_background_start() == TIDE_ERROR_STATE);
        CHILD_MUST(tide_listen(NULL) == TIDE_ERROR_STATE);
        _exit(0);
    }
    expect_child_ends_well(child);
}

typedef struct other_thread {
    pthread_barrier_t ready, done;
    tide_pool *local, *made;
} other_thread;

static void *have_pools(void *state)
{
    other_thread *other = state;
    other->local = tide_pool_local();
    other->made = tide_pool_create(NULL);
    CHILD_MUST(tide_acquire(other->local, double, 10) && tide_acquire(other->made, double, 10));
    pthread_barrier_wait(&other->ready);
    pthread_barrier_wait(&other->done);
    CHILD_MUST(tide_pool_destroy(other->made) == TIDE_OK);
    return NULL;
}

static bool is_refused(tide_status status)
{
    return status == TIDE_ERROR_STATE && strstr(tide_error_message(), "parent process") != NULL;
}

static void refuse_in_child(tide_pool *pool)
{
    CHILD_MUST(tide_acquire(pool, double, 1) == NULL && is_refused(tide_error_status()));
    CHILD_MUST(tide_checkpoint(pool).pool == NULL && is_refused(tide_error_status()));
    CHILD_MUST(is_refused(tide_pool_reset(pool)));
    CHILD_MUST(is_refused(tide_pool_adopt(pool)));
    CHILD_MUST(is_refused(tide_pool_destroy(pool)));
}

static bool count_pool(const tide_pool_information *pool, void *count)
{
    (void)pool;
    ++*(size_t *)count;
    return true;
}

static size_t count_pools(void)
{
    size_t count = 0;
    expect_ok(tide_pool_each(count_pool, &count));
    return count;
}

static void a_child_refuses_the_pools_of_other_threads(void **state)
{
    (void)state;
    other_thread other;
    pthread_t thread;
    size_t own = count_pools();
    pthread_barrier_init(&other.ready, NULL, 2);
    pthread_barrier_init(&other.done, NULL, 2);
    expect_ok(pthread_create(&thread, NULL, have_pools, &other));
    pthread_barrier_wait(&other.ready);
    assert_int_equal(count_pools(), own + 2);
    pid_t child = fork_child(60);
    if (child == 0) {
        refuse_in_child(other.local);
        refuse_in_child(other.made);
        CHILD_MUST(count_pools() == own);
        _exit(0);
    }
    expect_child_ends_well(child);
    pthread_barrier_wait(&other.done);
    expect_ok(pthread_join(thread, NULL));
    assert_int_equal(count_pools(), own);
}

static void a_child_may_execute_another_program(void **state)
{
    (void)state;
    pid_t child = fork_child(60);
    if (child == 0) {
        execl(program, program, "work", (char *)NULL);
        _exit(1);
    }
    expect_child_ends_well(child);
}

/* ---- threads that end --------------------------------------------------------------------------- */

static void *end_in_the_middle(void *how)
{
    tide_pool *pool = tide_pool_local();
    tide_mark mark = tide_checkpoint(pool);
    CHILD_MUST(mark.pool != NULL && tide_acquire(pool, double, 1000) != NULL);
    if (how != NULL)
        pthread_exit(NULL);
    return NULL;
}

static void a_thread_may_end_in_any_way_between_calls(void **state)
{
    (void)state;
    size_t own = count_pools();
    for (uintptr_t how = 0; how < 2; how++) {
        pthread_t thread;
        expect_ok(pthread_create(&thread, NULL, end_in_the_middle, (void *)how));
        expect_ok(pthread_join(thread, NULL));
        assert_int_equal(count_pools(), own);
    }
}

/* ---- exit ---------------------------------------------------------------------------------------- */

static void *work_for_ever(void *site)
{
    tide_pool *pool = tide_pool_local();
    for (;;)
        CHILD_MUST(use_site(pool, site));
}

/* The process exits in the middle of that. */
static void work_and_exit(void)
{
    enum { THREADS = 3, USES = 1000 };
    tide_site *site = declared_site();
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_t thread;
        expect_ok(pthread_create(&thread, NULL, work_for_ever, site));
    }
    CHILD_MUST(tide_background_start() == TIDE_OK);
    tide_pool *pool = tide_pool_create(NULL);
    CHILD_MUST(tide_acquire(pool, double, 1000) != NULL);
    for (unsigned i = 0; i < USES; i++)
        CHILD_MUST(use_site(pool, site));
    exit(0);
}

static void exit_with_live_pools_and_busy_threads(void **state)
{
    (void)state;
    for (size_t i = 0, most = scaled(20, 5); i < most; i++) {
        pid_t child = fork_child(60);
        if (child == 0) {
            execl(program, program, "exit", (char *)NULL);
            _exit(1);
        }
        expect_child_ends_well(child);
    }
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_goes_on_with_the_pool_of_its_thread),
        cmocka_unit_test(a_child_goes_on_with_the_buffers_of_its_thread),
        cmocka_unit_test(in_a_child_sites_keep_their_plans),
        cmocka_unit_test(in_a_child_nothing_is_learned),
        cmocka_unit_test(a_child_refuses_the_pools_of_other_threads),
        cmocka_unit_test(a_child_may_execute_another_program),
        cmocka_unit_test(a_thread_may_end_in_any_way_between_calls),
        cmocka_unit_test(exit_with_live_pools_and_busy_threads),
    };
    program = arguments[0];
    if (count > 1 && strcmp(arguments[1], "exit") == 0)
        work_and_exit();
    if (count > 1)
        return use_site(tide_pool_local(), declared_site()) ? EXIT_SUCCESS : EXIT_FAILURE;
    return cmocka_run_group_tests_name("contract: process", tests, NULL, NULL);
}
