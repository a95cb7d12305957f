/* SPDX-License-Identifier: MIT */
/* Threads that are cancelled inside the library. Each operation is called by a thread with a
 * request to cancel it pending, so it ends at the first point of cancellation, if there is one.
 * None may be: what the operation holds, or has half done, would stay so. */
#include "forms.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/os.h"

/* Of the thread that is cancelled. */
static tide_pool *pool;
static tide_buffers *buffers;
static double *array;

static void do_trim(void)
{
    (void)tide_pool_trim(pool, 0);
}

static void do_compact(void)
{
    (void)tide_pool_compact(pool, 0);
}

static void do_step(void)
{
    (void)tide_step();
}

static void do_settle(void)
{
    (void)tide_settle(1000);
}

static void do_start_and_stop(void)
{
    (void)tide_keeper_start();
    (void)tide_keeper_stop();
}

static void do_acquire(void)
{
    tide_buffer buffer = tide_buffer_acquire(buffers, 1 << 20);
    (void)tide_buffer_release(buffers, buffer);
}

static void do_trim_buffers(void)
{
    (void)tide_buffers_trim(buffers, 0);
}

static void do_make_buffers(void)
{
    tide_buffers *made = tide_buffers_create(NULL, NULL);
    tide_buffer buffer = tide_buffer_acquire(made, 100);
    (void)tide_buffer_release(made, buffer);
    (void)tide_buffers_destroy(made);
}

static void do_make_pool(void)
{
    tide_pool *made = tide_pool_create(NULL);
    (void)tide_acquire(made, double, 100000);
    (void)tide_pool_destroy(made);
}

static void do_copy(void)
{
    double values[100] = {1};
    (void)tide_upload(pool, array, values, sizeof values);
    (void)tide_copy(pool, array + 100, array, sizeof values);
    (void)tide_download(pool, values, array, sizeof values);
    (void)tide_pool_wait(pool);
}

static void do_open_device(void)
{
    (void)tide_device_close(tide_device_open("cuda:77"));
    (void)tide_device_close(tide_device_open("opencl:77"));
}

static void do_save(void)
{
    (void)tide_profile_save("/dev/null/not/there");
    (void)tide_profile_load("/dev/null/not/there");
}

static void do_report(void)
{
    tide_os_write_error("tidepool: a report\n", 19);
}

static const struct {
    const char *name;
    void (*function)(void);
} operations[] = {
    {"tide_pool_trim", do_trim},
    {"tide_pool_compact", do_compact},
    {"tide_step", do_step},
    {"tide_settle", do_settle},
    {"tide_keeper_stop", do_start_and_stop},
    {"tide_buffer_acquire", do_acquire},
    {"tide_buffers_trim", do_trim_buffers},
    {"tide_buffers_destroy", do_make_buffers},
    {"tide_pool_destroy", do_make_pool},
    {"copies", do_copy},
    {"tide_device_open", do_open_device},
    {"tide_profile_save", do_save},
    {"a report", do_report},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static const char *playing;

static void bark(int signal)
{
    (void)signal;
    static const char text[] = "a lock was left behind by ";
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    (void)!write(STDERR_FILENO, playing, strlen(playing));
    (void)!write(STDERR_FILENO, "\n", 1);
    _exit(99);
}

static bool came_through;

/* A slot to trim, an array to copy, a cached buffer. */
__attribute__((noinline)) static void prepare(void)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pool = pool_of(TIDE_CHECK_NONE);
    array = tide_acquire(pool, double, 1000);
    tide_mark mark = tide_checkpoint(pool);
    (void)tide_acquire(pool, float, 1 << 20);
    expect_ok(tide_rewind(pool, mark));
    expect_ok(tide_buffer_release(buffers, tide_buffer_acquire(buffers, 1000)));
}

__attribute__((noinline)) static void finish(void)
{
    CHECK_POOL(pool);
    expect_ok(tide_pool_destroy(pool));
}

/* AddressSanitizer does not hear of it when a cancelled thread leaves a frame: this one shall have
 * nothing that it watches. */
__attribute__((no_sanitize_address)) static void *do_cancelled(void *operation)
{
    prepare();
    pthread_cancel(pthread_self());
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    (*(void (*const *)(void))operation)();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    came_through = true;
    finish();
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pthread_testcancel();
    return NULL;
}

/* All of it by this thread: nothing is locked. */
static void do_all(void)
{
    pool = pool_of(TIDE_CHECK_NONE);
    array = tide_acquire(pool, double, 1000);
    for (unsigned i = 0; i < OPERATIONS; i++)
        operations[i].function();
    CHECK_POOL(pool);
    expect_ok(tide_pool_destroy(pool));
}

static void no_operation_is_a_point_of_cancellation(void **state)
{
    (void)state;
    enum { SECONDS = 60 };
    signal(SIGALRM, bark);
    buffers = tide_buffers_create(NULL, NULL);
    assert_non_null(buffers);
    for (unsigned i = 0; i < OPERATIONS; i++) {
        pthread_t thread;
        void *result = NULL;
        playing = operations[i].name;
        alarm(SECONDS);
        came_through = false;
        assert_int_equal(
            pthread_create(&thread, NULL, do_cancelled, (void *)(uintptr_t)&operations[i].function),
            0);
        assert_int_equal(pthread_join(thread, &result), 0);
        assert_ptr_equal(result, PTHREAD_CANCELED); /* by then, since it was asked for before */
        if (!came_through)
            fail_msg("%s is a point of cancellation", playing);
        do_all();
    }
    alarm(0);
    expect_ok(tide_buffers_destroy(buffers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_operation_is_a_point_of_cancellation),
    };
    return cmocka_run_group_tests_name("cancel", tests, NULL, NULL);
}
