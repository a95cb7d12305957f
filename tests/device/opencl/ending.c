/* SPDX-License-Identifier: MIT */
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

/* Statuses of a child. */
enum { ALIVE_AT_END = 3, INSIDE_AT_END = 4, SLEPT = 5, NO_END = 6, ASKED = 7 };

tide_device *devices[MADE_UP_PLATFORMS];
void *array, *mark;
unsigned wanted_sleeps, wanted_ends, calls_before;
bool may_be_inside, anybody_comes_out;
pthread_t comes_out;
void (*at_last_sleep)(void);

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
    if (!may_be_inside && __atomic_load_n(&made_up_inside, __ATOMIC_SEQ_CST))
        _exit(INSIDE_AT_END);
}

static unsigned sleeps; /* of who exits */

/* No real time goes by: the other thread has ended when this returns. */
void made_up_at_sleep(void)
{
    sleeps++;
    if (sleeps == SLEEPS_MAX && at_last_sleep != NULL)
        at_last_sleep();
    if (!anybody_comes_out)
        return;
    anybody_comes_out = false;
    made_up_let_go();
    pthread_join(comes_out, NULL);
}

/* ---- a child ---------------------------------------------------------------------------------*/

/* The oldest handler, so it runs last. Neither a question nor what is given back may reach a driver
 * now. */
static void end_at_last(void)
{
    for (int i = 0; i < MADE_UP_PLATFORMS; i++) {
        if (devices[i] == NULL)
            continue;
        if (mark != NULL && devices[i]->methods->mark_done(devices[i], mark))
            _exit(ASKED);
        if (array != NULL)
            devices[i]->methods->release(devices[i], NULL, TIDE_MEMORY_DEVICE, array, BYTES);
        if (tide_device_close(devices[i]) != TIDE_OK)
            _exit(1);
    }
    if (sleeps != wanted_sleeps)
        _exit(SLEPT);
    if (made_up_ends != wanted_ends)
        _exit(NO_END);
}

static void begin_child(void)
{
    CHILD_MUST(atexit(end_at_last) == 0);
    CHILD_MUST(made_up_load() == TIDE_OK);
}

void open_device(unsigned ordinal)
{
    devices[ordinal] = tide_device_open(ordinal == 0 ? "opencl:0" : "opencl:1");
    CHILD_MUST(devices[ordinal] != NULL);
    wanted_ends++;
}

void expect_end(void (*child)(void))
{
    pid_t pid = fork_child(60);
    if (pid == 0) {
        begin_child();
        child();
        exit(EXIT_SUCCESS);
    }
    assert_int_equal(wait_for_child(pid), EXIT_SUCCESS);
}

/* ---- what is done ----------------------------------------------------------------------------*/

void make_array(void)
{
    tide_device *device = devices[0];
    CHILD_MUST(device->methods->allocate(device, NULL, TIDE_MEMORY_DEVICE, BYTES, 64, &array) ==
               TIDE_OK);
}

void *open_first(void *unused)
{
    open_device(0);
    return unused;
}

void *give_back_array(void *unused)
{
    void *gone = array;
    array = NULL;
    devices[0]->methods->release(devices[0], NULL, TIDE_MEMORY_DEVICE, gone, BYTES);
    return unused;
}

void *close_device(void *unused)
{
    tide_device *gone = devices[0];
    devices[0] = NULL;
    CHILD_MUST(tide_device_close(gone) == TIDE_OK);
    return unused;
}

void start_inside(void *(*work)(void *))
{
    made_up_stop_after(calls_before);
    CHILD_MUST(pthread_create(&comes_out, NULL, work, NULL) == 0);
    made_up_wait_stopped();
}
