/* SPDX-License-Identifier: MIT */
/* Who is in a driver, and what keeps others out. */
#define _GNU_SOURCE
#include "runtime/device/gate.h"

#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"

enum { DRIVERS = 3, EXITING = 1, FORKED = 2 }; /* FORKED << driver */

/* Atomic and sequentially consistent: either a thread that enters sees that exit has begun, or the
 * exiting thread sees it inside. */
static uint32_t driver_closed, driver_inside;
static uint32_t driver_used; /* FORKED << driver of those that a child does without; atomic */

/* Of the calls inside, those of this thread: as small as can be, for copies have little such memory. */
static _Thread_local uint8_t driver_own;

static void (*driver_in_child)(void);

static bool driver_is_closed(uint32_t bits)
{
    return (__atomic_load_n(&driver_closed, __ATOMIC_SEQ_CST) & bits) != 0;
}

void tide_driver_enter(void)
{
    tide_assert(driver_own < UINT8_MAX);
    driver_own++;
    __atomic_fetch_add(&driver_inside, 1, __ATOMIC_SEQ_CST);
}

void tide_driver_leave(void)
{
    uint32_t before = __atomic_fetch_sub(&driver_inside, 1, __ATOMIC_SEQ_CST);
    tide_assert(driver_own > 0 && before >= driver_own);
    (void)before;
    driver_own--;
}

bool tide_driver_alive(tide_driver driver)
{
    return TIDE_LIKELY(!driver_is_closed(EXITING | (uint32_t)FORKED << driver));
}

bool tide_driver_forked(tide_driver driver)
{
    return driver_is_closed((uint32_t)FORKED << driver);
}

bool tide_driver_exiting(tide_driver driver)
{
    return driver_is_closed(EXITING) && !tide_driver_forked(driver);
}

tide_status tide_driver_refuse(tide_driver driver, const char *whose)
{
    tide_assert(!tide_driver_alive(driver));
    return tide_fail(TIDE_ERROR_DEVICE, whose, "%s",
                     tide_driver_forked(driver) ? tide_driver_words_forked(driver)
                                                : "the process is exiting");
}

/* ---- exit --------------------------------------------------------------------------------- */

/* Other threads that are in a call get time to come out; not for ever, because they may wait for work
 * that does not end. The exiting thread may itself be in one, in a function that the driver calls. */
static void driver_begin_exit(void)
{
    enum { TRIES = 2000, MICROSECONDS = 1000 };
    __atomic_fetch_or(&driver_closed, EXITING, __ATOMIC_SEQ_CST);
    for (int i = 0; i < TRIES; i++) {
        if (__atomic_load_n(&driver_inside, __ATOMIC_SEQ_CST) == driver_own)
            return;
        usleep(MICROSECONDS);
    }
}

tide_status tide_driver_watch_exit(tide_driver driver, const char *call)
{
    static bool watched[DRIVERS];
    watched[driver] = watched[driver] || atexit(driver_begin_exit) == 0;
    return watched[driver]
               ? TIDE_OK
               : tide_fail(TIDE_ERROR_MEMORY, call, "no memory to notice the end of the process");
}

/* ---- fork --------------------------------------------------------------------------------- */

tide_status tide_driver_use(tide_driver driver, const char *whose)
{
    if (!tide_driver_alive(driver))
        return tide_driver_refuse(driver, whose);
    __atomic_fetch_or(&driver_used, (uint32_t)FORKED << driver, __ATOMIC_SEQ_CST);
    return TIDE_OK;
}

void tide_driver_absent(tide_driver driver)
{
    __atomic_fetch_and(&driver_used, ~((uint32_t)FORKED << driver), __ATOMIC_SEQ_CST);
}

/* Fork itself waits for no driver. Of those who were inside only the thread that forks is there in
 * the child, if it was one, in a constructor of what the driver loads; and exit has not begun there. */
static void driver_begin_child(void)
{
    uint32_t used = __atomic_load_n(&driver_used, __ATOMIC_SEQ_CST);
    uint32_t forked = __atomic_load_n(&driver_closed, __ATOMIC_SEQ_CST) & ~(uint32_t)EXITING;
    __atomic_store_n(&driver_inside, driver_own, __ATOMIC_SEQ_CST);
    __atomic_store_n(&driver_closed, forked | used, __ATOMIC_SEQ_CST);
    driver_in_child();
}

const char *tide_driver_words_forked(tide_driver driver)
{
    tide_assert(driver != TIDE_DRIVER_NONE);
    return driver == TIDE_DRIVER_CUDA
               ? "CUDA was used before this process was forked, and does not work in the child"
               : "OpenCL was used before this process was forked, and does not work in the child";
}

void tide_driver_prepare(void (*child)(void))
{
    static const tide_fork_handlers handlers = {.child = driver_begin_child};
    tide_assert(child != NULL);
    driver_in_child = child;
    tide_fork_register(TIDE_FORK_DRIVERS, &handlers);
}
