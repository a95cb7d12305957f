/* SPDX-License-Identifier: MIT */
/* What compiled code depends on beside its spec: the library's own build, and the processor. */
#ifndef TIDEPOOL_JIT_CACHE_IDENTITY_H
#define TIDEPOOL_JIT_CACHE_IDENTITY_H

#include <stddef.h>

/* Writes lines for a person and a hash alike, and a final 0; the bytes without it. The same in each
 * process of one build on one machine. */
size_t tide_identity_write(char *out, size_t room);

#endif
