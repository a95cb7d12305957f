/* SPDX-License-Identifier: MIT */
/* What keeps everybody out of a driver. */
#define _GNU_SOURCE
#include "runtime/device/gate.h"

#include <stdlib.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"

enum { DRIVERS = 3, EXITING = 1, FORKED = 2 }; /* FORKED << driver */

static uint32_t driver_closed; /* atomic */
static uint32_t driver_used;   /* FORKED << driver of those that a child does without; atomic */

static void (*driver_in_child)(void);

static bool driver_is_closed(uint32_t bits)
{
    return (__atomic_load_n(&driver_closed, __ATOMIC_RELAXED) & bits) != 0;
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

/* Nobody waits for threads that are in a call: what they work on is left as it is. */
static void driver_begin_exit(void)
{
    __atomic_fetch_or(&driver_closed, EXITING, __ATOMIC_RELAXED);
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

void tide_driver_use(tide_driver driver)
{
    __atomic_fetch_or(&driver_used, (uint32_t)FORKED << driver, __ATOMIC_RELAXED);
}

/* Fork itself waits for no driver; and exit has not begun in the child. */
static void driver_begin_child(void)
{
    uint32_t used = __atomic_load_n(&driver_used, __ATOMIC_RELAXED);
    uint32_t forked = __atomic_load_n(&driver_closed, __ATOMIC_RELAXED) & ~(uint32_t)EXITING;
    __atomic_store_n(&driver_closed, forked | used, __ATOMIC_RELAXED);
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
