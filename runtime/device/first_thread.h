/* SPDX-License-Identifier: MIT */
/* The exit of the process by its first thread, seen before all handlers of exit.
 *
 * A driver that builds code makes objects of its own, and with them handlers that destroy them as
 * the process ends. Handlers run the last one first, so these run before the library's, which were
 * registered when it was attached: too late to wait for another thread that is in the driver. But
 * `exit` ends first of all what ends with its thread (glibc: thread_local objects of C++). Most
 * programs call it on the first thread. Where that ends by pthread_exit, and the process goes on,
 * glibc does nothing of the kind. */
#ifndef TIDEPOOL_RUNTIME_DEVICE_FIRST_THREAD_H
#define TIDEPOOL_RUNTIME_DEVICE_FIRST_THREAD_H

/* If the calling thread is the first, policy is told when it exits (tide_hooks.leave_drivers).
 * Without glibc nothing is done. */
void tide_first_thread_watch(void);

#endif
