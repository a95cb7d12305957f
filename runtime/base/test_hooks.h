/* SPDX-License-Identifier: MIT */
/* What only tests set: the library itself reads it and never writes it. */
#ifndef TIDEPOOL_RUNTIME_BASE_TEST_HOOKS_H
#define TIDEPOOL_RUNTIME_BASE_TEST_HOOKS_H

#include <tidepool/config.h>

/* When not NULL, asked before every allocation and mapping; true makes it fail. */
extern bool (*tide_os_fault)(size_t bytes);

#endif
