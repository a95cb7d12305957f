/* SPDX-License-Identifier: MIT */
/* What only tests set: the library itself reads it and never writes it. */
#ifndef TIDEPOOL_RUNTIME_BASE_TEST_HOOKS_H
#define TIDEPOOL_RUNTIME_BASE_TEST_HOOKS_H

#include <stdbool.h>

#include <tidepool/inline/config.h>

/* When not NULL, asked before every allocation and mapping, by any thread; true makes it fail.
 * A test may set it while other threads run, as the background thread's does when it likes: so what a hook
 * counts is its own thread's (_Thread_local), or atomic. A test in C++ has no name for its type. */
#ifndef __cplusplus
extern bool (*_Atomic tide_os_fault)(size_t bytes);
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Gives a constant (runtime/base/constants.def) another value. False: none has the name. */
bool tide_constant_set(const char *name, double value);

/* All have their own values again. */
void tide_constants_reset(void);

#ifdef __cplusplus
}
#endif

#ifndef __cplusplus
/* When not NULL, there are nodes of memory, and it tells which the calling thread is near
 * (runtime/base/node.h). */
extern unsigned (*_Atomic tide_node_model)(void);

/* Stands before the paths of control groups (runtime/base/cgroup.h); "" is the system's own. */
extern const char *_Atomic tide_cgroup_root;
#endif

#endif
