/* SPDX-License-Identifier: MIT */
/* What compiled code depends on beside its spec: the library's own build, and the processor. */
#ifndef TIDEPOOL_JIT_CACHE_IDENTITY_H
#define TIDEPOOL_JIT_CACHE_IDENTITY_H

#include <stddef.h>

/* Asks for what does not change while the process lives, the dynamic linker and the system: the
 * first time only. Others may fork meanwhile, so it is called with no memory and no file in hand
 * that the child would not know of. Whoever holds the round lock (jit/learn/round.h). */
void tide_identity_prepare(void);

/* After that: writes lines for a person and a hash alike, and a final 0; the bytes without it. The
 * same in each process of one build on one machine. */
size_t tide_identity_write(char *out, size_t room);

#endif
