/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "runtime/device/first_thread.h"

#include <stddef.h>
#include <unistd.h>

#include "runtime/base/assert.h"
#include "runtime/base/copy.h"
#include "runtime/base/hooks.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"

/* glibc: `end` when the thread ends. The module that `symbol` lies in stays loaded until then. */
extern int __cxa_thread_atexit_impl(void (*end)(void *), void *user, void *symbol)
    __attribute__((weak));

static _Thread_local bool first_thread_is_watched;

static void first_thread_end(void *unused)
{
    (void)unused;
    tide_assert(first_thread_is_watched);
    first_thread_is_watched = false;
    if (tide_hooks_policy.leave_drivers != NULL)
        tide_hooks_policy.leave_drivers();
}

void tide_first_thread_watch(void)
{
    if (first_thread_is_watched || __cxa_thread_atexit_impl == NULL ||
        tide_os_thread_number() != getpid() || !tide_copy_stay())
        return;
    tide_outside outside = tide_outside_enter(); /* it asks the linker whose the symbol is */
    first_thread_is_watched = __cxa_thread_atexit_impl(first_thread_end, NULL, &tide_copy_own) == 0;
    tide_outside_leave(outside);
}
