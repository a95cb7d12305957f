/* SPDX-License-Identifier: MIT */
/* The stager as the library uses it: orders in, answers out. */
#ifndef TIDEPOOL_JIT_STAGE_SERVE_H
#define TIDEPOOL_JIT_STAGE_SERVE_H

/* Build of the library and version of libgccjit, one word. */
const char *stage_version(void);

/* Serves until told to stop, or until no order has come for so many milliseconds ("0": as long as
 * it takes); returns what main should. */
int stage_serve(const char *directory, const char *idle);

#endif
