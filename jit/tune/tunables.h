/* SPDX-License-Identifier: MIT */
/* The tunables of the process: the list, what is measured of each key, and what profiles say. */
#ifndef TIDEPOOL_JIT_TUNE_TUNABLES_H
#define TIDEPOOL_JIT_TUNE_TUNABLES_H

#include <tidepool/tunable.h>

#include "jit/learn/series.h"

/* tide_tunable.listed */
enum {
    TIDE_TUNABLE_LISTED = 1,
    TIDE_TUNABLE_ANEW = 2, /* it was reset: what was loaded does not count */
};

/* One variant on a key. */
typedef struct tide_tuned_variant {
    tide_series taken; /* nanoseconds of a use, in this process */
    double least;      /* of them */
} tide_tuned_variant;

/* What is measured of one key. The registry guards all that is not atomic; a row stays for as long
 * as its tunable is listed. */
typedef struct tide_tuned {
    tide_tunable *of;
    uint64_t key;
    uint64_t uses;  /* atomic */
    uint64_t order; /* atomic: the variants still measured, four bits each, in the order of turns */
    uint32_t active; /* atomic: how many they are; 1: it is chosen */
    uint32_t every;  /* atomic: of a chosen one, one use in so many is timed */
    bool pinned;
    bool loaded;      /* what is chosen was loaded */
    uint64_t sampled; /* since the last judgement */
    tide_tuned_variant variants[];
} tide_tuned;

/* The chosen one, or the fastest so far. Registry locked, as for the rest. */
uint32_t tide_tuned_choice(const tide_tuned *row);

/* All figures are forgotten. Chosen: a variant, pinned or not; else all are measured. */
void tide_tuned_begin(tide_tuned *row);
void tide_tuned_choose(tide_tuned *row, uint32_t variant, bool pinned);

/* The row of a key, made if there is none. NULL: no memory; without waiting, also if another thread
 * has the registry. */
tide_tuned *tide_tuned_row(tide_tunable *tunable, uint64_t key, bool waits);

/* The first tunable; each leads to the `next`. */
tide_tunable *tide_tunables_first(void);

#endif
