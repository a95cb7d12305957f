/* SPDX-License-Identifier: MIT */
/* What the keeper does after its rounds, and what the program may do meanwhile: the keeper is in a
 * hook of buffers, or in a driver that builds kernels, and another thread exits, forks, or stops it;
 * or the hook does. */
#define _GNU_SOURCE
#include "learning.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tidepool/buffers.h>

#include "jit/kernels/modules.h"
#include "runtime/base/hooks.h"
#include "runtime/device/device.h"
#include "tests/gate.h"
#include "tests/in_linker.h"
#include "tests/watchdog.h"

static const char *self; /* this program, as it was called: Valgrind is not what starts again */

static pthread_mutex_t lock_of_program = PTHREAD_MUTEX_INITIALIZER;

enum { BEFORE_DLOPEN };

UNOBSERVED void *__wrap_dlopen(const char *path, int flags)
{
    if (gate_is_at(BEFORE_DLOPEN))
        gate_pass(BEFORE_DLOPEN);
    return __real_dlopen(path, flags);
}

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
    CHILD_MUST(tide_keeper_start() == TIDE_OK);
    while (!__atomic_load_n(&in_hook, __ATOMIC_ACQUIRE))
        usleep(200);
    return buffers;
}

static void *stop_keeper(void *user)
{
    (void)tide_keeper_stop();
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
    expect_ok(tide_keeper_stop());
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
    expect_ok(tide_keeper_stop());
    pid_t child = fork_child(60);
    if (child == 0) {
        play("a hook exits");
        pthread_mutex_lock(&lock_of_program);
        (void)age_buffers(exit_in_hook);
        pthread_mutex_unlock(&lock_of_program);
        (void)tide_keeper_stop();
        for (;;)
            pause();
    }
    assert_int_equal(wait_for_child(child), 6);
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
        set("keeper", 0);
        CHILD_MUST(!tide_keeper_running() && tide_keeper_stop() == TIDE_OK);
        CHILD_MUST(tide_step() == TIDE_OK);
        child_of_hook = true;
        exit(1);
    }
    forked_in_hook = wait_for_child(child);
    __atomic_store_n(&in_hook, true, __ATOMIC_RELEASE);
}

/* Its child has no keeper, not even that thread. */
static void a_hook_on_the_keeper_may_fork(void **state)
{
    (void)state;
    play("a hook forks");
    expect_ok(tide_keeper_stop());
    tide_buffers *buffers = age_buffers(fork_in_hook);
    assert_int_equal(forked_in_hook, 8);
    expect_ok(tide_keeper_stop());
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
    in_hook_start = tide_keeper_start();
    in_hook_step = tide_step();
    in_hook_settle = tide_settle(PATIENCE_MS);
    in_hook_stop = tide_keeper_stop();
    CHILD_MUST(in_hook_stop == TIDE_OK || strstr(tide_error_message(), "keeper's thread") != NULL);
    __atomic_store_n(&hook_is_over, true, __ATOMIC_RELEASE);
}

/* It would wait for its own end. */
static void a_hook_on_the_keeper_does_not_stop_it(void **state)
{
    (void)state;
    play("a hook stops the keeper");
    expect_ok(tide_keeper_stop());
    tide_buffers *buffers = age_buffers(ask_keeper_in_hook);
    while (!__atomic_load_n(&hook_is_over, __ATOMIC_ACQUIRE))
        usleep(200);
    assert_int_equal(in_hook_stop, TIDE_ERROR_STATE);
    assert_int_equal(in_hook_start, TIDE_OK);
    assert_int_equal(in_hook_step, TIDE_OK);
    assert_int_equal(in_hook_settle, TIDE_OK);
    assert_true(tide_keeper_running());
    expect_ok(tide_keeper_stop());
    assert_false(tide_keeper_running());
    expect_ok(tide_buffers_destroy(buffers));
    play(NULL);
}

/* ---- in a driver --------------------------------------------------------------------------- */

static bool build_ends;             /* atomic: the driver may go on */
static bool in_driver, build_ended; /* atomic */

/* As a compiler that the driver loads when it needs it. */
static void *load_in_linker(tide_device *device, const void *code, size_t bytes,
                            const char *options)
{
    (void)device, (void)code, (void)bytes, (void)options;
    (void)dlopen(NULL, RTLD_NOW);
    return NULL;
}

static void *load_until_exit(tide_device *device, const void *code, size_t bytes,
                             const char *options)
{
    (void)device, (void)code, (void)bytes, (void)options;
    __atomic_store_n(&in_driver, true, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&build_ends, __ATOMIC_ACQUIRE))
        usleep(200);
    usleep(20000); /* the exit waits by now; if not, it will */
    __atomic_store_n(&build_ended, true, __ATOMIC_RELEASE);
    return NULL;
}

/* A frame on a device that is made up wants its kernels, and the keeper has them built. */
static void have_kernels_built(void *(*load)(tide_device *device, const void *code, size_t bytes,
                                             const char *options))
{
    static tide_device_methods methods;
    static tide_device device = {.methods = &methods, .dl = {TIDE_DL_OPENCL, 0}, .name = "made up"};
    methods.load = load;
    CHILD_MUST(tide_hooks_policy.help(&(tide_frame_work){
                   .kind = TIDE_FRAME_PACK, .device = &device, .count = 1}) == TIDE_FRAME_ABSENT);
    set("keeper_period", 1);
    CHILD_MUST(tide_keeper_start() == TIDE_OK);
}

static void exit_here(void)
{
    in_destructor = NULL;
    gate_let_pass();
    exit(3);
}

static void a_constructor_may_exit_while_the_keeper_builds_kernels(void **state)
{
    (void)state;
    if (under_thread_sanitizer()) /* takes an exit from a constructor for an error of the program */
        skip();
    expect_ok(tide_keeper_stop());
    pid_t child = fork_child(100);
    if (child == 0) {
        play("a constructor exits beside a driver");
        tide_modules_patience_ms = 100;
        gate_close(BEFORE_DLOPEN);
        have_kernels_built(load_in_linker);
        while (!gate_is_reached())
            usleep(200);
        visit_linker(exit_here, NULL);
    }
    assert_int_equal(wait_for_child(child), 3);
}

static void let_build_end(void)
{
    __atomic_store_n(&build_ends, true, __ATOMIC_RELEASE);
}

static void expect_build_ended(void)
{
    if (!__atomic_load_n(&build_ended, __ATOMIC_ACQUIRE))
        _exit(4);
}

/* Handlers run the last one first, the library's between these two. */
static int exit_while_kernels_are_built(void)
{
    atexit(expect_build_ended);
    settings_of_tests();
    have_kernels_built(load_until_exit);
    while (!__atomic_load_n(&in_driver, __ATOMIC_ACQUIRE))
        usleep(200);
    atexit(let_build_end);
    return 3;
}

/* The driver is about to be torn down: who is inside gets time to come out. */
static void a_program_that_exits_waits_for_a_build_that_ends(void **state)
{
    (void)state;
    pid_t child = fork_child(100);
    if (child == 0) {
        execl(self, self, "build", (char *)NULL);
        _exit(126);
    }
    assert_int_equal(wait_for_child(child), 3);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(a_hook_that_waits_for_a_lock_does_not_keep_the_process),
        LEARNING_TEST(a_hook_on_the_keeper_may_exit_while_another_thread_stops_it),
        LEARNING_TEST(a_hook_on_the_keeper_may_fork),
        LEARNING_TEST(a_hook_on_the_keeper_does_not_stop_it),
        LEARNING_TEST(a_constructor_may_exit_while_the_keeper_builds_kernels),
        LEARNING_TEST(a_program_that_exits_waits_for_a_build_that_ends),
    };
    if (count < 2)
        return 2;
    if (strcmp(arguments[1], "build") == 0)
        return exit_while_kernels_are_built();
    self = arguments[0];
    in_linker_module = arguments[1];
    return cmocka_run_group_tests_name("learning: errands", tests, learning_make_pool,
                                       learning_drop_pool);
}
