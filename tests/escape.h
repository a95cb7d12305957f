/* SPDX-License-Identifier: MIT */
/* The C++ side of the escape tests. */
#ifndef TIDEPOOL_TESTS_ESCAPE_H
#define TIDEPOOL_TESTS_ESCAPE_H

#include <tidepool/tidepool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns a pointer out of a template's scope; says where it was acquired. */
void escape_in_cpp(tide_pool *pool, const char **file, unsigned *line);
void escape_nothing_in_cpp(tide_pool *pool);

#ifdef __cplusplus
}
#endif

#endif
