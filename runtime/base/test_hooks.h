/* SPDX-License-Identifier: MIT */
/* What only tests set: the library itself reads it and never writes it. */
#ifndef TIDEPOOL_RUNTIME_BASE_TEST_HOOKS_H
#define TIDEPOOL_RUNTIME_BASE_TEST_HOOKS_H

#include <tidepool/inline/config.h>

/* When not NULL, asked before every allocation and mapping, by any thread; true makes it fail.
 * A test may set it while other threads run, as the background thread's does when it likes: so what a hook
 * counts is its own thread's (_Thread_local), or atomic. A test in C++ has no name for its type. */
#ifndef __cplusplus
extern bool (*_Atomic tide_os_fault)(size_t bytes);
#endif

/* When true, the system counts whatever may be written (runtime/base/os.h), whatever it says. */
extern bool tide_os_strict_always;

#endif
