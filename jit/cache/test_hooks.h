/* SPDX-License-Identifier: MIT */
/* What only tests set: the cache itself reads it and never changes it. */
#ifndef TIDEPOOL_JIT_CACHE_TEST_HOOKS_H
#define TIDEPOOL_JIT_CACHE_TEST_HOOKS_H

/* The folder from which on folders are looked at; "/" unless a test put another one here. */
extern const char *tide_store_start;

#endif
