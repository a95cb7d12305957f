/* SPDX-License-Identifier: MIT */
/* The threads of a soak rest between two turns, so that what the process holds can be weighed: at
 * any other time most of it is in use for a moment, or free in the allocator. */
#ifndef TIDEPOOL_TESTS_SOAK_REST_H
#define TIDEPOOL_TESTS_SOAK_REST_H

#include <stdbool.h>
#include <stddef.h>

/* By each thread before each turn: waits while a rest lasts. */
void rest_if_asked(void);

/* By each thread at its end: it rests for good. */
void rest_for_good(void);

/* Asks for a rest, and waits until so many threads rest. False: they do not within `seconds`. */
bool rest_begin(unsigned threads, unsigned seconds);

void rest_end(void);

/* During a rest: resident memory that no file backs, without what the allocator has free. It is
 * counted page by page: the sum that the system keeps may lag by more than is allowed. Under a
 * sanitizer, whose own memory grows, what is allocated. 0: it could not be read. */
size_t rest_memory_kib(void);

#endif
