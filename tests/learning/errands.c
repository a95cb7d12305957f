/* SPDX-License-Identifier: MIT */
/* What is done after a round, and what the program may do meanwhile: the keeper is in a hook of
 * buffers, and somebody exits, forks, or stops the keeper; or the hook does. */
#define _GNU_SOURCE
#include "learning.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tidepool/buffers.h>
#include <tidepool/dlpack.h>
#include <tidepool/learn.h>
#include <tidepool/site.h>

#include "jit/learn/round.h"
#include "tests/watchdog.h"

static pthread_mutex_t lock_of_program = PTHREAD_MUTEX_INITIALIZER;

/* ---- in a hook of buffers ------------------------------------------------------------------ */

static bool in_hook; /* atomic: on the keeper's thread */

/* The keeper's, since nobody else gives back what is old. */
static void free_under_lock(const tide_buffer_event *event, void *user)
{
    (void)user;
    if (event->happening != TIDE_BUFFER_FREED)
        return;
    __atomic_store_n(&in_hook, true, __ATOMIC_RELEASE);
    pthread_mutex_lock(&lock_of_program);
    pthread_mutex_unlock(&lock_of_program);
}

/* One buffer is cached, and too old after the next round. */
static tide_buffers *age_buffers(tide_buffer_hook hook)
{
    tide_buffers *buffers =
        tide_buffers_create(NULL, &(tide_buffers_options){.age_max = 1, .hook = hook});
    CHILD_MUST(buffers != NULL);
    tide_buffer buffer = tide_buffer_acquire(buffers, 4096);
    CHILD_MUST(tide_buffer_release(buffers, buffer) == TIDE_OK);
    __atomic_store_n(&in_hook, false, __ATOMIC_RELAXED);
    set("keeper_period", 1);
    CHILD_MUST(tide_background_start() == TIDE_OK);
    while (!__atomic_load_n(&in_hook, __ATOMIC_ACQUIRE))
        usleep(200);
    return buffers;
}

static void *stop_keeper(void *user)
{
    (void)tide_background_stop();
    return user;
}

static void exit_beside_a_hook(bool while_another_stops)
{
    pthread_t thread;
    play("a program exits beside a hook");
    pthread_mutex_lock(&lock_of_program);
    (void)age_buffers(free_under_lock);
    if (while_another_stops) {
        CHILD_MUST(pthread_create(&thread, NULL, stop_keeper, NULL) == 0);
        usleep(20000); /* it waits for the keeper by now; if not, it will */
    }
    exit(6);
}

static void a_hook_that_waits_for_a_lock_does_not_keep_the_process(void **state)
{
    (void)state;
    expect_ok(tide_background_stop());
    for (unsigned stops = 0; stops < 2; stops++) {
        pid_t child = fork_child(60);
        if (child == 0)
            exit_beside_a_hook(stops != 0);
        assert_int_equal(wait_for_child(child), 6);
    }
}

static void exit_in_hook(const tide_buffer_event *event, void *user)
{
    (void)user;
    if (event->happening != TIDE_BUFFER_FREED)
        return;
    __atomic_store_n(&in_hook, true, __ATOMIC_RELEASE);
    pthread_mutex_lock(&lock_of_program); /* until the other one is about to stop the keeper */
    pthread_mutex_unlock(&lock_of_program);
    usleep(20000); /* it waits for the keeper by now; if not, it will */
    exit(6);
}

/* The keeper's thread does not wait for itself, nor for who waits for it. */
static void a_hook_on_the_keeper_may_exit_while_another_thread_stops_it(void **state)
{
    (void)state;
    expect_ok(tide_background_stop());
    pid_t child = fork_child(60);
    if (child == 0) {
        play("a hook exits");
        pthread_mutex_lock(&lock_of_program);
        (void)age_buffers(exit_in_hook);
        pthread_mutex_unlock(&lock_of_program);
        (void)tide_background_stop();
        for (;;)
            pause();
    }
    assert_int_equal(wait_for_child(child), 6);
}

/* What a hook leaves on the keeper's thread ends with the thread, here by the same lock. */
static pthread_key_t key_of_program;

static void end_under_lock(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock_of_program);
    pthread_mutex_unlock(&lock_of_program);
}

static void leave_something(const tide_buffer_event *event, void *user)
{
    (void)user;
    if (event->happening != TIDE_BUFFER_FREED)
        return;
    CHILD_MUST(pthread_setspecific(key_of_program, &key_of_program) == 0);
    __atomic_store_n(&in_hook, true, __ATOMIC_RELEASE);
}

static void exit_beside_an_end(bool while_another_stops)
{
    pthread_t thread;
    play("a program exits while the keeper ends");
    CHILD_MUST(pthread_key_create(&key_of_program, end_under_lock) == 0);
    (void)age_buffers(leave_something);
    pthread_mutex_lock(&lock_of_program);
    if (while_another_stops) {
        CHILD_MUST(pthread_create(&thread, NULL, stop_keeper, NULL) == 0);
        usleep(20000); /* it waits for the keeper by now; if not, it will */
    }
    exit(6);
}

static void a_keeper_that_does_not_end_does_not_keep_the_process(void **state)
{
    (void)state;
    expect_ok(tide_background_stop());
    for (unsigned stops = 0; stops < 2; stops++) {
        pid_t child = fork_child(60);
        if (child == 0)
            exit_beside_an_end(stops != 0);
        assert_int_equal(wait_for_child(child), 6);
    }
}

static int forked_in_hook;
static bool child_of_hook;

static void end_child_of_hook(void)
{
    if (child_of_hook)
        _exit(8);
}

/* Before the library registers its handlers of exit, so it runs after them. But before a sanitizer
 * looks for leaks: it would not find what only the stacks of the parent's other threads refer to.
 */
__attribute__((constructor(101))) static void watch_child_of_hook(void)
{
    atexit(end_child_of_hook);
}

static void fork_in_hook(const tide_buffer_event *event, void *user)
{
    (void)user;
    if (event->happening != TIDE_BUFFER_FREED)
        return;
    pid_t child = fork();
    if (child == 0) {
        play("the child of a hook on the keeper");
        set("background", 0);
        CHILD_MUST(!tide_background_running() && tide_background_stop() == TIDE_OK);
        CHILD_MUST(tide_step() == TIDE_OK);
        child_of_hook = true;
        exit(1);
    }
    forked_in_hook = wait_for_child(child);
    __atomic_store_n(&in_hook, true, __ATOMIC_RELEASE);
}

static bool has_forked; /* atomic */
static int ended_after_hook;

static void fork_and_return(const tide_buffer_event *event, void *user)
{
    (void)user;
    if (event->happening != TIDE_BUFFER_FREED || __atomic_load_n(&has_forked, __ATOMIC_RELAXED))
        return;
    __atomic_store_n(&has_forked, true, __ATOMIC_RELAXED);
    pid_t child = fork();
    if (child == 0) {
        play("the child of a hook on the keeper, which returns");
        child_of_hook = true;
        return;
    }
    ended_after_hook = wait_for_child(child);
    __atomic_store_n(&in_hook, true, __ATOMIC_RELEASE);
}

/* Where the child comes back into the library there is no keeper to go on: its only thread ends, and
 * with it the process. */
static void a_hook_on_the_keeper_may_return_in_a_child(void **state)
{
    (void)state;
    if (under_thread_sanitizer()) /* dies where a process ends with a thread that is not its first */
        skip();
    play("a hook forks and returns");
    expect_ok(tide_background_stop());
    tide_buffers *buffers = age_buffers(fork_and_return);
    assert_int_equal(ended_after_hook, 8);
    expect_ok(tide_background_stop());
    expect_ok(tide_buffers_destroy(buffers));
    play(NULL);
}

/* Its child has no keeper, not even that thread. */
static void a_hook_on_the_keeper_may_fork(void **state)
{
    (void)state;
    play("a hook forks");
    expect_ok(tide_background_stop());
    tide_buffers *buffers = age_buffers(fork_in_hook);
    assert_int_equal(forked_in_hook, 8);
    expect_ok(tide_background_stop());
    expect_ok(tide_buffers_destroy(buffers));
    play(NULL);
}

static tide_status in_hook_stop, in_hook_step, in_hook_settle, in_hook_start;
static bool hook_is_over; /* atomic */

static void ask_keeper_in_hook(const tide_buffer_event *event, void *user)
{
    (void)user;
    if (event->happening != TIDE_BUFFER_FREED || __atomic_load_n(&in_hook, __ATOMIC_RELAXED))
        return;
    __atomic_store_n(&in_hook, true, __ATOMIC_RELEASE);
    in_hook_start = tide_background_start();
    in_hook_step = tide_step();
    in_hook_settle = tide_settle(PATIENCE_MS);
    in_hook_stop = tide_background_stop();
    CHILD_MUST(in_hook_stop == TIDE_OK || strstr(tide_error_message(), "keeper's thread") != NULL);
    __atomic_store_n(&hook_is_over, true, __ATOMIC_RELEASE);
}

/* It would wait for its own end. */
static void a_hook_on_the_keeper_does_not_stop_it(void **state)
{
    (void)state;
    play("a hook stops the keeper");
    expect_ok(tide_background_stop());
    tide_buffers *buffers = age_buffers(ask_keeper_in_hook);
    while (!__atomic_load_n(&hook_is_over, __ATOMIC_ACQUIRE))
        usleep(200);
    assert_int_equal(in_hook_stop, TIDE_ERROR_STATE);
    assert_int_equal(in_hook_start, TIDE_OK);
    assert_int_equal(in_hook_step, TIDE_OK);
    assert_int_equal(in_hook_settle, TIDE_OK);
    assert_true(tide_background_running());
    expect_ok(tide_background_stop());
    assert_false(tide_background_running());
    expect_ok(tide_buffers_destroy(buffers));
    play(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(a_hook_that_waits_for_a_lock_does_not_keep_the_process),
        LEARNING_TEST(a_hook_on_the_keeper_may_exit_while_another_thread_stops_it),
        LEARNING_TEST(a_keeper_that_does_not_end_does_not_keep_the_process),
        LEARNING_TEST(a_hook_on_the_keeper_may_fork),
        LEARNING_TEST(a_hook_on_the_keeper_may_return_in_a_child),
        LEARNING_TEST(a_hook_on_the_keeper_does_not_stop_it),
    };
    return cmocka_run_group_tests_name("learning: errands", tests, learning_make_pool,
                                       learning_drop_pool);
}
