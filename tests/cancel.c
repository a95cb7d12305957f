/* SPDX-License-Identifier: MIT */
/* Threads that are cancelled inside the library. Each operation is called by a thread with a
 * request to cancel it pending, so it ends at the first point of cancellation, if there is one.
 * None may be: what the operation holds, or has half done, would stay so. */
#define _GNU_SOURCE
#include "forms.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/facts.h>
#include <tidepool/learn.h>
#include <tidepool/profile.h>
#include <tidepool/upkeep.h>

#include "cancelled.h"
#include "runtime/base/os.h"
#include "watchdog.h"

/* Of the thread that is cancelled. */
static tide_pool *pool;
static tide_buffers *buffers;
static double *array;
static FILE *nowhere; /* without a buffer, so each part of a page is written by the system */

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

static void do_print(void)
{
    (void)tide_pool_print(pool, nowhere);
    (void)tide_buffers_print(buffers, nowhere);
}

static void do_print_profile(void)
{
    (void)tide_profile_print(nowhere);
    (void)tide_profile_write(nowhere);
}

static void do_write_facts(void)
{
    (void)tide_facts_write(nowhere);
}

static void do_write_event(void)
{
    (void)tide_event_write(nowhere, &(tide_event){.name = "a site", .detail = "", .reason = ""});
}

static const cancelled_operation operations[] = {
    {"tide_pool_trim", do_trim},
    {"tide_pool_compact", do_compact},
    {"tide_step", do_step},
    {"tide_settle", do_settle},
    {"tide_buffer_acquire", do_acquire},
    {"tide_buffers_trim", do_trim_buffers},
    {"tide_buffers_destroy", do_make_buffers},
    {"tide_pool_destroy", do_make_pool},
    {"copies", do_copy},
    {"tide_device_open", do_open_device},
    {"tide_profile_save", do_save},
    {"a report", do_report},
    {"tide_pool_print", do_print},
    {"tide_profile_print", do_print_profile},
    {"tide_facts_write", do_write_facts},
    {"tide_event_write", do_write_event},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

/* A slot to trim, an array to copy, a cached buffer. */
static void prepare(void)
{
    pool = pool_of(TIDE_CHECK_NONE);
    array = tide_acquire(pool, double, 1000);
    tide_mark mark = tide_checkpoint(pool);
    (void)tide_acquire(pool, float, 1 << 20);
    expect_ok(tide_rewind(pool, mark));
    expect_ok(tide_buffer_release(buffers, tide_buffer_acquire(buffers, 1000)));
}

static void finish(void)
{
    CHECK_POOL(pool);
    expect_ok(tide_pool_destroy(pool));
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
    buffers = tide_buffers_create(NULL, NULL);
    nowhere = fopen("/dev/null", "w");
    assert_non_null(buffers);
    assert_non_null(nowhere);
    setvbuf(nowhere, NULL, _IONBF, 0);
    for (unsigned i = 0; i < OPERATIONS; i++) {
        play(operations[i].name); /* a lock that is left behind hangs what comes after it */
        expect_not_cancelled_in(&operations[i], prepare, finish);
        do_all();
    }
    play(NULL);
    fclose(nowhere);
    expect_ok(tide_buffers_destroy(buffers));
}

/* ---- the beginning and the end -------------------------------------------------------------- */

/* What this process writes to standard error goes there. */
static FILE *catch_errors(void)
{
    FILE *caught = tmpfile();
    CHILD_MUST(caught != NULL && dup2(fileno(caught), STDERR_FILENO) == STDERR_FILENO);
    return caught;
}

static bool has_caught(FILE *caught, const char *words)
{
    static char text[1 << 16];
    rewind(caught);
    text[fread(text, 1, sizeof text - 1, caught)] = '\0';
    return strstr(text, words) != NULL;
}

static bool came_through;

__attribute__((no_sanitize_address)) static void *make_first_pool(void *unused)
{
    (void)unused;
    pthread_cancel(pthread_self());
    tide_pool *first = tide_pool_create(NULL);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    came_through = tide_pool_destroy(first) == TIDE_OK;
    return NULL;
}

/* It reads what the environment says, and complains of it. */
static void the_first_call_is_no_point_of_cancellation(void **state)
{
    (void)state;
    pid_t child = fork_child(60);
    if (child == 0) {
        pthread_t thread;
        CHILD_MUST(setenv("TIDEPOOL_STAGER", "not/absolute", 1) == 0);
        CHILD_MUST(setenv("TIDEPOOL_TRIM_AFTER", "many", 1) == 0);
        FILE *caught = catch_errors();
        CHILD_MUST(pthread_create(&thread, NULL, make_first_pool, NULL) == 0);
        CHILD_MUST(pthread_join(thread, NULL) == 0);
        CHILD_MUST(has_caught(caught, "TIDEPOOL_STAGER=not/absolute ignored"));
        CHILD_MUST(has_caught(caught, "TIDEPOOL_TRIM_AFTER=many ignored"));
        CHILD_MUST(came_through);
        _exit(0);
    }
    expect_child_ends_well(child);
}

static FILE *of_ending;

static void end_at_last(void)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    _exit(has_caught(of_ending, "learning: ") ? 0 : 1); /* the page's last line */
}

/* The page that was asked for is written whole, and the process ends. */
static void a_thread_that_ends_the_process_is_not_cancelled_there(void **state)
{
    (void)state;
    pid_t child = fork_child(60);
    if (child == 0) {
        of_ending = catch_errors();
        CHILD_MUST(atexit(end_at_last) == 0); /* before the library has its own */
        CHILD_MUST(setenv("TIDEPOOL_STATS", "1", 1) == 0);
        tide_pool *left = tide_pool_create(NULL);
        CHILD_MUST(left != NULL);
        pthread_cancel(pthread_self());
        exit(2);
    }
    expect_child_ends_well(child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* In children of a process that has not called the library yet. */
        cmocka_unit_test(the_first_call_is_no_point_of_cancellation),
        cmocka_unit_test(a_thread_that_ends_the_process_is_not_cancelled_there),
        cmocka_unit_test(no_operation_is_a_point_of_cancellation),
    };
    return cmocka_run_group_tests_name("cancel", tests, NULL, NULL);
}
