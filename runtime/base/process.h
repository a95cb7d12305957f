/* SPDX-License-Identifier: MIT */
/* This copy of the library among those of the process.
 *
 * A process shall have one copy, the shared library. It may have more: one in each program or plugin
 * that the static library was linked into. They share nothing. Each numbers its own types and has
 * pools, buffers and devices of its own, which calls of another copy refuse. */
#ifndef TIDEPOOL_RUNTIME_BASE_PROCESS_H
#define TIDEPOOL_RUNTIME_BASE_PROCESS_H

#include <stdbool.h>

/* Its address is the copy's identity; the odd address after it is not another's. */
extern _Alignas(2) char tide_copy_own;

/* Makes the module of this copy stay loaded, from the first call on: a plugin may be unloaded while
 * a thread, a signal or a foreign library may still call into the copy that it holds. Called when the
 * library is attached and before a thread key is made. */
void tide_copy_stay(void);

/* Has the process begun to end?
 *
 * The linker runs the destructors of a module when it is unloaded and when the process ends. When
 * it is unloaded nobody is inside it. When the process ends other threads go on until the very
 * last: so what they can reach is not freed. */

/* Has it noticed from now on. Once, before anything is made that must outlast the threads. */
void tide_exit_watch(void);

/* Has `exit` been called, or has main returned? Handlers that were registered after tide_exit_watch
 * still find false; destructors of modules find true. Any thread. */
bool tide_exit_begun(void);

#endif
