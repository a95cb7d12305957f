/* SPDX-License-Identifier: MIT */
/* Has the process begun to end?
 *
 * The linker runs the destructors of a module when it is unloaded and when the process ends. When
 * it is unloaded nobody is inside it. When the process ends other threads go on until the very
 * last: so what they can reach is not freed. */
#ifndef TIDEPOOL_RUNTIME_BASE_EXIT_H
#define TIDEPOOL_RUNTIME_BASE_EXIT_H

#include <stdbool.h>

/* Has it noticed from now on. Once, before anything is made that must outlast the threads. */
void tide_exit_watch(void);

/* Has `exit` been called, or has main returned? Handlers that were registered after tide_exit_watch
 * still find false; destructors of modules find true. Any thread. */
bool tide_exit_begun(void);

#endif
