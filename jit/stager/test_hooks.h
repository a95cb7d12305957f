/* SPDX-License-Identifier: MIT */
/* What only tests set and call; the library itself changes none of it. */
#ifndef TIDEPOOL_JIT_STAGER_TEST_HOOKS_H
#define TIDEPOOL_JIT_STAGER_TEST_HOOKS_H

#include <stdbool.h>

/* When not NULL, says in the system's place whether privileges are raised. */
extern bool (*tide_locate_privileges_hook)(void);

/* Forgets what was read of the environment: it is read again when next asked for. No other thread
 * may be using it. */
void tide_locate_environment_forget(void);

#endif
