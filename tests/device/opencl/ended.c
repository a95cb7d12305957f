/* SPDX-License-Identifier: MIT */
/* Exit has begun: no OpenCL driver is called any more, callers are told why, and a child of a fork
 * is neither waited for nor told that it exits. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tidepool/device.h>

#include <cmocka.h>

#include "ending.h"
#include "runtime/base/hooks.h"

/* ---- fork ------------------------------------------------------------------------------------*/

static void expect_grandchild(pid_t pid)
{
    CHILD_MUST(wait_for_child(pid) == EXIT_SUCCESS);
}

static void fork_beside(void)
{
    open_device(0);
    make_array();
    start_inside(give_back_array);
    pid_t pid = fork_child(60);
    may_be_inside = pid == 0; /* as the parent was; the thread is not there */
    if (pid == 0)
        return;
    expect_grandchild(pid);
    made_up_let_go();
    pthread_join(comes_out, NULL);
}

static pid_t forked = -1;

static void fork_now(void)
{
    forked = fork_child(60);
}

static void fork_inside(void)
{
    open_device(0);
    make_array();
    made_up_callback = fork_now;
    (void)give_back_array(NULL);
    made_up_callback = NULL;
    if (forked != 0)
        expect_grandchild(forked);
}

static bool says_forked(void)
{
    return tide_error_status() == TIDE_ERROR_DEVICE &&
           strstr(tide_error_message(), "forked") != NULL;
}

/* The parent's exit has begun, not the child's. */
static void fork_at_last(void)
{
    pid_t pid = fork_child(60);
    if (pid == 0) {
        CHILD_MUST(tide_device_open("opencl:1") == NULL && says_forked());
        CHILD_MUST(devices[0]->methods->wait(devices[0], NULL) != TIDE_OK && says_forked());
        CHILD_MUST(tide_device_close(devices[0]) == TIDE_OK && devices[0]->own == NULL);
        _exit(EXIT_SUCCESS);
    }
    expect_grandchild(pid);
}

static void fork_at_exit(void)
{
    CHILD_MUST(atexit(fork_at_last) == 0);
    open_device(0);
}

static void a_child_is_told_of_the_fork_and_not_of_its_parents_exit(void **unused)
{
    (void)unused;
    expect_end(fork_at_exit);
}

/* Neither for a thread that stayed with the parent nor for the one that forked, which came out. */
static void a_forked_child_waits_for_nobody(void **unused)
{
    (void)unused;
    expect_end(fork_beside);
    expect_end(fork_inside);
}

/* ---- handlers of drivers ---------------------------------------------------------------------*/

static void use_one(void)
{
    open_device(0);
    make_array();
}

static void use_two(void)
{
    open_device(0);
    open_device(1);
}

static void call_late(void)
{
    const char *wrong = late_call_all();
    if (wrong != NULL)
        dprintf(STDERR_FILENO, "%s: %d: %s\n", wrong, (int)tide_error_status(),
                tide_error_message());
    CHILD_MUST(wrong == NULL);
    devices[0] = NULL; /* it stays */
}

static void use_late(void)
{
    static char other;
    CHILD_MUST(atexit(call_late) == 0);
    open_device(0);
    CHILD_MUST(late_prepare(devices[0], &other));
}

static void use_one_again(void)
{
    open_device(0);
    (void)close_device(NULL);
    wanted_ends = 0;
    open_device(0);
    open_device(1);
}

static void no_driver_is_called_once_its_handlers_run(void **unused)
{
    (void)unused;
    expect_end(use_one);
    expect_end(use_two);
    expect_end(use_one_again);
}

static void every_call_is_refused_once_exit_has_begun(void **unused)
{
    (void)unused;
    expect_end(use_late);
}

static void expect_refused(const char *name)
{
    const unsigned before = made_up_objects;
    made_up_no_room = true;
    CHILD_MUST(tide_device_open(name) == NULL && tide_error_status() == TIDE_ERROR_MEMORY);
    CHILD_MUST(strstr(tide_error_message(), "the end of the process") != NULL);
    CHILD_MUST(made_up_objects == before);
    made_up_no_room = false;
}

static void find_no_room(void)
{
    tide_attach(); /* which has handlers of its own */
    expect_refused("opencl:0");
    open_device(0);
    expect_refused("opencl:1");
    open_device(1);
}

/* Before the driver's the end would not be noticed. Later, with room, the device is opened. */
static void a_device_whose_end_cannot_be_noticed_is_refused(void **unused)
{
    (void)unused;
    expect_end(find_no_room);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forked_child_waits_for_nobody),
        cmocka_unit_test(a_child_is_told_of_the_fork_and_not_of_its_parents_exit),
        cmocka_unit_test(no_driver_is_called_once_its_handlers_run),
        cmocka_unit_test(every_call_is_refused_once_exit_has_begun),
        cmocka_unit_test(a_device_whose_end_cannot_be_noticed_is_refused),
    };
    return cmocka_run_group_tests_name("opencl: ended", tests, NULL, NULL);
}
