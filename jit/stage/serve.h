/* SPDX-License-Identifier: MIT */
/* The compiler process as the library uses it: orders in, answers out. */
#ifndef TIDEPOOL_JIT_STAGE_SERVE_H
#define TIDEPOOL_JIT_STAGE_SERVE_H

/* Build of the library and version of libgccjit, one word. */
const char *stage_version(void);

/* Serves until its input ends; returns what main should. */
int stage_serve(const char *directory);

#endif
