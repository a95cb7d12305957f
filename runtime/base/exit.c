/* SPDX-License-Identifier: MIT */
/* Notices that the process ends: handlers of exit run before the destructors of all modules. */
#include "runtime/base/exit.h"

#include <stdlib.h>

static bool exit_begun; /* atomic */

static void exit_begin(void)
{
    __atomic_store_n(&exit_begun, true, __ATOMIC_RELEASE);
}

/* Without memory for the handler the end is not noticed, and looks as if it had begun: then nothing
 * is freed when a module goes. */
void tide_exit_watch(void)
{
    if (atexit(exit_begin) != 0)
        exit_begin();
}

bool tide_exit_begun(void)
{
    return __atomic_load_n(&exit_begun, __ATOMIC_ACQUIRE);
}
