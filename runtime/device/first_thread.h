/* SPDX-License-Identifier: MIT */
/* The end of the process's first thread, which comes before all handlers of exit.
 *
 * A driver that builds code makes objects of its own, and with them handlers that destroy them as
 * the process ends. Handlers run the last one first, so these run before the library's, which were
 * registered when it was attached: too late to wait for another thread that is in the driver. But
 * `exit` ends first of all what ends with its thread (glibc: thread_local objects of C++). Most
 * programs call it on the first thread. */
#ifndef TIDEPOOL_RUNTIME_DEVICE_FIRST_THREAD_H
#define TIDEPOOL_RUNTIME_DEVICE_FIRST_THREAD_H

#include <stdbool.h>

/* If the calling thread is the first, policy is told when it ends (tide_hooks.leave_drivers).
 * Without glibc nothing is done. */
void tide_first_thread_watch(void);

/* Has it ended, and the process has not? False too where the system does not tell. Any thread. */
bool tide_first_thread_is_gone(void);

#endif
