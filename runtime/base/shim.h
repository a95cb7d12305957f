/* SPDX-License-Identifier: MIT */
/* The one place that tells AddressSanitizer, LeakSanitizer and Valgrind what is live, and
 * ThreadSanitizer what it cannot see.
 *
 * The sanitizers are reached through weak symbols, so that a library built without them serves
 * a program built with them. */
#ifndef TIDEPOOL_RUNTIME_BASE_SHIM_H
#define TIDEPOOL_RUNTIME_BASE_SHIM_H

#include <tidepool/inline/config.h>

/* `used` bytes from `data` may be written and then read; the rest of `bytes` may not be touched. */
void tide_shim_live(void *data, size_t used, size_t bytes);

/* The first `used` of `bytes` may be touched, the rest may not. Those from `kept` on are new. */
void tide_shim_longer(void *data, size_t kept, size_t used, size_t bytes);

/* No byte may be touched until the next tide_shim_live. */
void tide_shim_dead(void *data, size_t bytes);

/* All bytes may be touched: the memory goes back to its allocator. */
void tide_shim_release(void *data, size_t bytes);

/* Does a tool let one thread run at a time? Then what the system says of a thread is the tool's doing. */
bool tide_shim_schedules(void);

/* In between ThreadSanitizer takes for granted that nobody else touches what this thread reads,
 * writes and frees: the system has said so, which it cannot see. */
void tide_shim_trust_begin(void);
void tide_shim_trust_end(void);

/* Pointers kept in this range keep what they point to from being called a leak. */
void tide_shim_root(void *start, size_t bytes);
void tide_shim_unroot(void *start, size_t bytes);

/* Only variables of a thread point to this memory: in the child of another thread's fork nothing does. */
void tide_shim_no_leak(const void *memory);

#endif
