/* SPDX-License-Identifier: MIT */
/* How often a site is used while it is, told by how fast its windows fill: so learning judges what
 * a site would gain. (How often it was used in all pools count: runtime/pool/uses.h.) */
#ifndef TIDEPOOL_PROFILER_RATE_H
#define TIDEPOOL_PROFILER_RATE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tide_rate {
    uint64_t first_ns,
        last_ns;           /* atomic: of the open window's first and last ticket; 0: none yet */
    uint64_t begun_ns;     /* when it was begun; 0: never. Registry locked, as are all below */
    double while_used;     /* uses in a second of the last full window, if they were not observed */
    double confirmed;      /* uses, if it idled between windows as it did before the last one */
    uint64_t confirmed_ns; /* up to when that goes                                     */
    uint64_t tickets;      /* of the window                                            */
    bool in_use;           /* a use of the site has begun it                           */
} tide_rate;

/* Now, by the clock of all rates; never 0. */
uint64_t tide_rate_now(void);

/* A window of so many uses begins; was it begun by a use? Registry locked. */
void tide_rate_begin(tide_rate *rate, uint64_t uses, bool in_use);

/* A use took a ticket; the last one. Any thread. */
void tide_rate_ticket(tide_rate *rate, bool last);

/* The window was taken, with so many uses. Registry locked. */
void tide_rate_taken(tide_rate *rate, uint64_t uses);

/* What was estimated is forgotten. Registry locked. */
void tide_rate_clear(tide_rate *rate);

/* Uses up to the end of the window that was taken last, for who would rather think too low of a
 * site than too high: a site that is used in bursts is taken for what it does on the average of the
 * moments at which windows were opened, and between a window and one that a use began nothing is
 * counted. Registry locked. */
double tide_rate_confirmed(const tide_rate *rate);

#endif
