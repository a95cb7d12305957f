/* SPDX-License-Identifier: MIT */
/* The library's way to die, for the component that links none of it. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/assert.h"

void tide_assert_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "tidepool-listen: %s:%d: %s\n", file, line, what);
    abort();
}
