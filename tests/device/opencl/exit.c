/* SPDX-License-Identifier: MIT */
/* The process ends after OpenCL drivers have registered their own handlers of exit. Each test is a child that calls exit: its status is 0 when all was in order. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <tidepool/device.h>
#include <tidepool/tidepool.h>

#include "made_up.h"
#include "runtime/base/hooks.h"
#include "tests/support.h"

enum { BYTES = 4096 };

/* Statuses of a child. */
enum { ALIVE_AT_END = 3, NO_END = 6 };

static tide_device *devices[MADE_UP_PLATFORMS];
static void *array;

/* ---- at exit --------------------------------------------------------------------------------- */

static bool any_device_alive(void)
{
    for (int i = 0; i < MADE_UP_PLATFORMS; i++)
        if (devices[i] != NULL && tide_opencl_alive(tide_opencl_of(devices[i])))
            return true;
    return false;
}

void made_up_at_end(void)
{
    if (any_device_alive())
        _exit(ALIVE_AT_END);
}

/* ---- a child ---------------------------------------------------------------------------------*/

static unsigned wanted_ends;

/* The oldest handler, so it runs last. What is given back now must not reach a driver. */
static void end_at_last(void)
{
    for (int i = 0; i < MADE_UP_PLATFORMS; i++) {
        if (devices[i] == NULL)
            continue;
        if (array != NULL)
            devices[i]->methods->release(devices[i], NULL, TIDE_MEMORY_DEVICE, array, BYTES);
        if (tide_device_close(devices[i]) != TIDE_OK)
            _exit(1);
    }
    if (made_up_ends != wanted_ends)
        _exit(NO_END);
}

static void begin_child(void)
{
    CHILD_MUST(atexit(end_at_last) == 0);
    CHILD_MUST(made_up_load() == TIDE_OK);
}

static void open_device(unsigned ordinal)
{
    devices[ordinal] = tide_device_open(ordinal == 0 ? "opencl:0" : "opencl:1");
    CHILD_MUST(devices[ordinal] != NULL);
    wanted_ends++;
}

static void expect_end(void (*child)(void))
{
    pid_t pid = fork_child(60);
    if (pid == 0) {
        begin_child();
        child();
        exit(EXIT_SUCCESS);
    }
    assert_int_equal(wait_for_child(pid), EXIT_SUCCESS);
}

static void make_array(void)
{
    tide_device *device = devices[0];
    CHILD_MUST(device->methods->allocate(device, NULL, TIDE_MEMORY_DEVICE, BYTES, 64, &array) ==
               TIDE_OK);
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

static void use_one_again(void)
{
    open_device(0);
    CHILD_MUST(tide_device_close(devices[0]) == TIDE_OK);
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
        cmocka_unit_test(no_driver_is_called_once_its_handlers_run),
        cmocka_unit_test(a_device_whose_end_cannot_be_noticed_is_refused),
    };
    return cmocka_run_group_tests_name("opencl: exit", tests, NULL, NULL);
}
