/* SPDX-License-Identifier: MIT */
/* What is cached and idle goes by age, though nobody steps and no site is used: the background thread
 * is there as long as something is cached, and no longer. */
#define _GNU_SOURCE
#include "bed.h"

#include <sys/wait.h>
#include <unistd.h>

#include <tidepool/learn.h>
#include <tidepool/tune.h>

#include "tests/hooks.h"

enum { AGE = 16, COUNT = 40 };

static tide_buffers *made_idle(void)
{
    set_constant("background_period", 1);
    set_constant("background_idle", 20);
    tide_buffers *buffers = made(&(tide_buffers_options){.age_max = AGE});
    allow_background();
    return buffers;
}

/* The harness ends a test that waits for ever. */
static void until_nothing_is_cached(tide_buffers *buffers)
{
    while (stats_of(buffers).cached != 0)
        usleep(1000);
}

static void until_no_thread_is_there(void)
{
    while (tide_background_running())
        usleep(1000);
}

/* Some for all, some in the thread's cells. */
static void acquire_all(tide_buffers *buffers, tide_buffer handles[COUNT])
{
    for (size_t i = 0; i < COUNT; i++)
        handles[i] = acquired(buffers, i % 2 == 0 ? 1000 : 700 * KIB);
}

static void what_is_idle_goes_and_then_the_thread(void **state)
{
    (void)state;
    tide_buffer handles[COUNT];
    tide_buffers *buffers = made_idle();
    for (int round = 0; round < 3; round++) {
        acquire_all(buffers, handles);
        expect_ok(tide_buffer_release_many(buffers, handles, COUNT));
        assert_true(tide_background_running());
        until_nothing_is_cached(buffers);
        until_no_thread_is_there();
    }
    assert_int_equal(stats_of(buffers).trimmed, 3 * COUNT);
    expect_ok(tide_buffers_destroy(buffers));
}

/* Also what was live while the thread came and went, and whose cells had room before. */
static void what_is_released_later_is_noticed(void **state)
{
    (void)state;
    tide_buffer handles[COUNT], one;
    tide_buffers *buffers = made_idle();
    acquire_all(buffers, handles);
    assert_false(tide_background_running());
    one = acquired(buffers, 1000);
    expect_ok(tide_buffer_release(buffers, one));
    until_nothing_is_cached(buffers);
    until_no_thread_is_there();
    expect_ok(tide_buffer_release_many(buffers, handles, COUNT));
    assert_true(tide_background_running());
    until_nothing_is_cached(buffers);
    expect_ok(tide_buffers_destroy(buffers));
    until_no_thread_is_there();
}

/* Who forks does so without the thread; it comes back for what is cached. */
static void the_parent_of_a_fork_ages_on(void **state)
{
    (void)state;
    tide_buffer handles[COUNT];
    tide_buffers *buffers = made_idle();
    acquire_all(buffers, handles);
    expect_ok(tide_buffer_release_many(buffers, handles, COUNT));
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    until_nothing_is_cached(buffers);
    expect_ok(tide_buffers_destroy(buffers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_idle_goes_and_then_the_thread),
        cmocka_unit_test(what_is_released_later_is_noticed),
        cmocka_unit_test(the_parent_of_a_fork_ages_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
