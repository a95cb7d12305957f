/* SPDX-License-Identifier: MIT */
/* The paths of compiled code whose instructions are counted. */
#ifndef TIDEPOOL_GOLDEN_COMPILED_H
#define TIDEPOOL_GOLDEN_COMPILED_H

#include "paths.h"

extern const golden_path golden_compiled_paths[];
extern const size_t golden_compiled_path_count;

/* Has the stager compile the site of the paths. False, with a message on stderr, when it
 * cannot. */
bool golden_compile(const char *stager);

#endif
