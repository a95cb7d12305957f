/* SPDX-License-Identifier: MIT */
/* Does the program run with more rights than the user who started it? Then it starts no stager, and
 * loads no code that lay on a disk. */
#ifndef TIDEPOOL_JIT_STAGER_PRIVILEGE_H
#define TIDEPOOL_JIT_STAGER_PRIVILEGE_H

#include <stdbool.h>

bool tide_privileges_raised(void);

#endif
