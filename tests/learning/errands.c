/* SPDX-License-Identifier: MIT */
/* What is done after a round, and what the program may do meanwhile: the keeper is in a hook of
 * buffers, or it or another thread is in a driver that builds kernels, and somebody exits, forks, or
 * stops the keeper; or the hook does. */
#define _GNU_SOURCE
#include "learning.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tidepool/buffers.h>

#include "jit/kernels/modules.h"
#include "jit/learn/round.h"
#include "runtime/base/hooks.h"
#include "runtime/device/device.h"
#include "runtime/device/first_thread.h"
#include "tests/gate.h"
#include "tests/in_linker.h"
#include "tests/watchdog.h"

static const char *self; /* this program, as it was called: Valgrind is not what starts again */

static pthread_mutex_t lock_of_program = PTHREAD_MUTEX_INITIALIZER;

enum { BEFORE_DLOPEN, BEFORE_UNLOAD };

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

/* ---- in a driver --------------------------------------------------------------------------- */

static bool build_ends;             /* atomic: the driver may go on */
static bool in_driver, build_ended; /* atomic */
static bool driver_makes_objects;   /* which are destroyed at exit */
static unsigned driver_ms = 20;     /* that it takes then */

/* As a compiler that the driver loads when it needs it. */
static void *load_in_linker(tide_device *device, const void *code, size_t bytes,
                            const char *options)
{
    (void)device, (void)code, (void)bytes, (void)options;
    (void)dlopen(NULL, RTLD_NOW);
    return NULL;
}

/* A driver's own handler is younger than the library's, so it runs before. */
static void destroy_objects_of_driver(void)
{
    if (!__atomic_load_n(&build_ended, __ATOMIC_ACQUIRE))
        _exit(5);
}

static void *load_until_exit(tide_device *device, const void *code, size_t bytes,
                             const char *options)
{
    (void)device, (void)code, (void)bytes, (void)options;
    if (driver_makes_objects)
        atexit(destroy_objects_of_driver);
    __atomic_store_n(&in_driver, true, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&build_ends, __ATOMIC_ACQUIRE))
        usleep(200);
    usleep(1000 * driver_ms); /* the exit waits by now; if not, it will */
    __atomic_store_n(&build_ended, true, __ATOMIC_RELEASE);
    return NULL;
}

typedef void *load_method(tide_device *device, const void *code, size_t bytes, const char *options);

static void want_kernels_of(tide_device *device)
{
    CHILD_MUST(tide_hooks_policy.help(&(tide_frame_work){
                   .kind = TIDE_FRAME_PACK, .device = device, .count = 1}) == TIDE_FRAME_ABSENT);
}

/* A frame on a device that is made up wants its kernels. */
static void want_kernels_on(unsigned which, load_method *load)
{
    static tide_device_methods methods[2];
    static tide_device devices[2];
    methods[which].load = load;
    devices[which] = (tide_device){
        .methods = &methods[which], .dl = {TIDE_DL_OPENCL, (int32_t)which}, .name = "made up"};
    want_kernels_of(&devices[which]);
}

static void want_kernels(load_method *load)
{
    want_kernels_on(0, load);
}

static void build_on_keeper(load_method *load)
{
    want_kernels(load);
    set("keeper_period", 1);
    CHILD_MUST(tide_background_start() == TIDE_OK);
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
    expect_ok(tide_background_stop());
    pid_t child = fork_child(100);
    if (child == 0) {
        play("a constructor exits beside a driver");
        tide_modules_patience_ms = 100;
        gate_close(BEFORE_DLOPEN);
        build_on_keeper(load_in_linker);
        while (!gate_is_reached())
            usleep(200);
        visit_linker(exit_here, NULL);
    }
    assert_int_equal(wait_for_child(child), 3);
}

static unsigned unloads;

static void *load_with_no_kernel(tide_device *device, const void *code, size_t bytes,
                                 const char *options)
{
    (void)device, (void)code, (void)bytes, (void)options;
    return &unloads;
}

static void *find_no_kernel(tide_device *device, void *module, const char *name)
{
    (void)device, (void)module, (void)name;
    return NULL;
}

static void unload_at_gate(tide_device *device, void *module)
{
    (void)device, (void)module;
    unloads++;
    gate_pass(BEFORE_UNLOAD);
}

/* It is the keeper's, which is unloading it, and not in the child. */
static void a_child_unloads_no_module_a_second_time(void **state)
{
    (void)state;
    static tide_device_methods methods = {
        .load = load_with_no_kernel, .kernel = find_no_kernel, .unload = unload_at_gate};
    static tide_device device = {.methods = &methods, .dl = {TIDE_DL_OPENCL, 7}, .name = "made up"};
    play("a fork beside an unload");
    gate_close(BEFORE_UNLOAD);
    want_kernels_of(&device);
    set("keeper_period", 1);
    expect_ok(tide_background_start());
    gate_wait_reached();
    pid_t child = fork_child(60);
    if (child == 0) {
        CHILD_MUST(unloads == 1 && tide_hooks_policy.close(&device));
        _exit(unloads == 1 ? 0 : 1);
    }
    gate_let_pass();
    expect_child_ends_well(child);
    expect_ok(tide_background_stop());
    assert_int_equal(unloads, 1);
    play(NULL);
}

static void let_build_end(void)
{
    __atomic_store_n(&build_ends, true, __ATOMIC_RELEASE);
}

static unsigned builds;

static void *count_build(tide_device *device, const void *code, size_t bytes, const char *options)
{
    (void)device, (void)code, (void)bytes, (void)options;
    builds++;
    return NULL;
}

/* And who was in the driver has come back, the keeper has ended, and nothing else was built. */
static void expect_build_ended(void)
{
    if (!__atomic_load_n(&build_ended, __ATOMIC_ACQUIRE) || tide_background_running() ||
        builds != 0)
        _exit(4);
}

static void wait_for_driver(void)
{
    while (!__atomic_load_n(&in_driver, __ATOMIC_ACQUIRE))
        usleep(200);
}

static void *exit_there(void *unused)
{
    atexit(let_build_end);
    exit(3);
    return unused;
}

/* ---- who builds, while the program exits */

static void *step_there(void *unused)
{
    (void)tide_step();
    return unused;
}

static pthread_t stepping;

static void build_in_step(load_method *load)
{
    want_kernels(load);
    CHILD_MUST(pthread_create(&stepping, NULL, step_there, NULL) == 0);
    CHILD_MUST(pthread_detach(stepping) == 0);
}

/* A driver that is left in the middle would be waited for. */
static void build_in_cancelled_step(load_method *load)
{
    build_in_step(load);
    wait_for_driver();
    CHILD_MUST(pthread_cancel(stepping) == 0);
}

static void build_in_hook(const tide_buffer_event *event, void *user)
{
    (void)user;
    if (event->happening != TIDE_BUFFER_FREED || __atomic_load_n(&in_driver, __ATOMIC_RELAXED))
        return;
    want_kernels(load_until_exit);
    (void)tide_step();
}

/* Comes back when the process is known to end: then nothing is pending. */
static void *load_until_end(tide_device *device, const void *code, size_t bytes,
                            const char *options)
{
    void *module = load_until_exit(device, code, bytes, options);
    while (tide_modules_pending())
        usleep(200);
    return module;
}

/* What was wanted last is built first. */
static void build_for_two(load_method *load)
{
    (void)load;
    want_kernels_on(1, count_build);
    build_in_step(load_until_end);
}

/* The driver's patience counts, not the hook's. */
static void build_in_a_hook(load_method *load)
{
    (void)load;
    driver_ms = 2500;
    let_build_end();
    tide_buffers *buffers =
        tide_buffers_create(NULL, &(tide_buffers_options){.age_max = 1, .hook = build_in_hook});
    CHILD_MUST(buffers != NULL);
    CHILD_MUST(tide_buffer_release(buffers, tide_buffer_acquire(buffers, 4096)) == TIDE_OK);
    set("keeper_period", 1);
    CHILD_MUST(tide_background_start() == TIDE_OK);
}

static void step_in_listener(const tide_event *event, void *user)
{
    (void)event, (void)user;
    if (!tide_round_is_keeper() || __atomic_load_n(&in_driver, __ATOMIC_RELAXED))
        return;
    want_kernels(load_until_exit);
    CHILD_MUST(tide_step() == TIDE_OK);
}

/* So that the keeper has something to tell. */
static void learn_once_more(use *u)
{
    static unsigned times;
    u->types[0] = times++ % 2 == 0 ? TIDE_F64 : TIDE_I32;
    for (unsigned i = 0; i < 210; i++)
        (void)use_once(u);
    CHILD_MUST(tide_site_reset(u->site) == TIDE_OK);
}

static void build_in_a_listener(load_method *load)
{
    (void)load;
    tide_event_set_handler(step_in_listener, NULL);
    use u = {
        .site = tide_site_register("errands: told"), .pool = tide_pool_create(NULL), .count = 1};
    CHILD_MUST(u.site != NULL && u.pool != NULL);
    set("keeper_period", 1);
    CHILD_MUST(tide_background_start() == TIDE_OK);
    while (!__atomic_load_n(&in_driver, __ATOMIC_ACQUIRE)) {
        learn_once_more(&u);
        usleep(1000);
    }
}

/* ---- and who exits */

/* Handlers run the last one first, the library's between these two. */
static int exit_on_another_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, exit_there, NULL) != 0)
        return 1;
    for (;;)
        pause();
}

/* glibc's: what ends with a thread, the last one first. */
extern int __cxa_thread_atexit_impl(void (*end)(void *), void *user, void *symbol);

static void let_build_end_now(void *unused)
{
    (void)unused;
    let_build_end();
}

/* The library was told that this is the first thread, as it is when that opens a device. */
static int exit_on_the_first_thread(void)
{
    return __cxa_thread_atexit_impl(let_build_end_now, NULL, &build_ends) == 0 ? 3 : 1;
}

static const struct {
    const char *name;
    void (*build)(load_method *load);
    int (*exit)(void);
} exits[] = {{"keeper, first thread", build_on_keeper, exit_on_the_first_thread},
             {"keeper, another thread", build_on_keeper, exit_on_another_thread},
             {"step, first thread", build_in_step, exit_on_the_first_thread},
             {"step, another thread", build_in_step, exit_on_another_thread},
             {"cancelled, first thread", build_in_cancelled_step, exit_on_the_first_thread},
             {"two, first thread", build_for_two, exit_on_the_first_thread},
             {"two, another thread", build_for_two, exit_on_another_thread},
             {"hook, first thread", build_in_a_hook, exit_on_the_first_thread},
             {"listener, first thread", build_in_a_listener, exit_on_the_first_thread},
             {"listener, another thread", build_in_a_listener, exit_on_another_thread}};
enum { EXITS = sizeof exits / sizeof *exits };

/* The first handler, so the last to run. */
static int exit_while_kernels_are_built(unsigned which)
{
    atexit(expect_build_ended);
    settings_of_tests();
    if (exits[which].exit == exit_on_the_first_thread) {
        driver_makes_objects = true;
        tide_first_thread_watch();
    }
    exits[which].build(load_until_exit);
    wait_for_driver();
    return exits[which].exit();
}

/* This program again, for it has to be the first thread that plays the scene. */
static void play_alone(const char *name)
{
    pid_t child = fork_child(100);
    if (child == 0) {
        execl(self, self, "exits", name, (char *)NULL);
        _exit(126);
    }
    assert_int_equal(wait_for_child(child), 3);
}

/* The driver is about to be torn down: who is inside gets time to come out. */
static void a_program_that_exits_waits_for_a_build_that_ends(void **state)
{
    (void)state;
    for (unsigned i = 0; i < EXITS; i++)
        play_alone(exits[i].name);
}

/* The system keeps it as long as others are there. */
static bool first_thread_is_gone(void)
{
    return system_state(getpid()) == 'Z';
}

static void *build_without_the_first_thread(void *unused)
{
    while (!first_thread_is_gone())
        usleep(200);
    want_kernels(count_build);
    (void)tide_step();
    _exit(builds == 1 ? 3 : 1); /* what glibc noted for the first thread seems leaked */
    return unused;
}

static const char gone[] = "first thread is gone";

/* It has ended, and the process has not. */
static int end_the_first_thread(void)
{
    pthread_t thread;
    settings_of_tests();
    tide_first_thread_watch();
    CHILD_MUST(!first_thread_is_gone());
    CHILD_MUST(pthread_create(&thread, NULL, build_without_the_first_thread, NULL) == 0);
    pthread_exit(NULL);
}

static void kernels_are_built_when_only_the_first_thread_has_ended(void **state)
{
    (void)state;
    if (under_thread_sanitizer()) /* dies where a process ends with a thread that is not its first */
        skip();
    play_alone(gone);
}

/* What ends with the first thread after the library's watch of it. Nothing is pending, either. */
static void want_kernels_at_the_end(void *unused)
{
    (void)unused;
    want_kernels(count_build);
    if (tide_settle(PATIENCE_MS) != TIDE_OK || builds != 0)
        _exit(4);
}

static const char over[] = "first thread ends";

static int build_at_the_end(void)
{
    settings_of_tests();
    if (__cxa_thread_atexit_impl(want_kernels_at_the_end, NULL, &builds) != 0)
        return 1;
    tide_first_thread_watch();
    return 3;
}

static void no_kernels_are_built_once_the_first_thread_has_ended(void **state)
{
    (void)state;
    play_alone(over);
}

static int play_scene(const char *name)
{
    if (strcmp(name, over) == 0)
        return build_at_the_end();
    for (unsigned i = 0; i < EXITS; i++)
        if (strcmp(name, exits[i].name) == 0)
            return exit_while_kernels_are_built(i);
    return strcmp(name, gone) == 0 ? end_the_first_thread() : 1;
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(a_hook_that_waits_for_a_lock_does_not_keep_the_process),
        LEARNING_TEST(a_hook_on_the_keeper_may_exit_while_another_thread_stops_it),
        LEARNING_TEST(a_keeper_that_does_not_end_does_not_keep_the_process),
        LEARNING_TEST(a_hook_on_the_keeper_may_fork),
        LEARNING_TEST(a_child_unloads_no_module_a_second_time),
        LEARNING_TEST(a_hook_on_the_keeper_may_return_in_a_child),
        LEARNING_TEST(a_hook_on_the_keeper_does_not_stop_it),
        LEARNING_TEST(a_constructor_may_exit_while_the_keeper_builds_kernels),
        LEARNING_TEST(a_program_that_exits_waits_for_a_build_that_ends),
        LEARNING_TEST(no_kernels_are_built_once_the_first_thread_has_ended),
        LEARNING_TEST(kernels_are_built_when_only_the_first_thread_has_ended),
    };
    if (count < 2)
        return 2;
    if (count > 2)
        return play_scene(arguments[2]);
    self = arguments[0];
    in_linker_module = arguments[1];
    return cmocka_run_group_tests_name("learning: errands", tests, learning_make_pool,
                                       learning_drop_pool);
}
