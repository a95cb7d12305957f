/* SPDX-License-Identifier: MIT */
/* How often a site is used, estimated: nothing counts uses outside windows, but a window tells how
 * fast it filled. Between two windows the site is taken to go on as in the later one. */
#ifndef TIDEPOOL_PROFILER_RATE_H
#define TIDEPOOL_PROFILER_RATE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tide_rate {
    uint64_t first_ns,
        last_ns;       /* atomic: of the open window's first and last ticket; 0: none yet */
    uint64_t begun_ns; /* when it was begun. Registry locked, as are all below */
    uint64_t seen_ns;  /* up to when `calls` goes                              */
    double calls, per_second;
} tide_rate;

/* A window begins. Registry locked. */
void tide_rate_begin(tide_rate *rate);

/* A use took a ticket; the last one. Any thread. */
void tide_rate_ticket(tide_rate *rate, bool last);

/* The window was taken, with so many uses. Registry locked. */
void tide_rate_taken(tide_rate *rate, uint64_t uses);

/* Uses up to now. Registry locked. */
double tide_rate_calls(const tide_rate *rate);

#endif
