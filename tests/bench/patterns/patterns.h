/* SPDX-License-Identifier: MIT */
/* Patterns of allocation: who acquires what when, and who releases it. */
#ifndef TIDEPOOL_BENCH_PATTERNS_H
#define TIDEPOOL_BENCH_PATTERNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where memory comes from, and what the threads of a pattern hold. */
typedef struct pattern_user pattern_user;

typedef struct pattern pattern;
struct pattern {
    const char *name;
    /* About so many acquires, all of them released in the end or by a later run; returns how
     * many. */
    uint64_t (*run)(const pattern *p, pattern_user *user, uint64_t operations);
    size_t bytes_min, bytes_max; /* sizes between them are equally likely by their logarithm */
    unsigned threads, blocks;    /* blocks that a thread holds */
    bool touches;                /* all pages are written; else the first and last byte */
};

/* NULL: there is none. */
const pattern *pattern_find(const char *name);

/* Ends the process with a complaint when there is no memory. */
pattern_user *pattern_open(const pattern *p, bool buffers);
void pattern_close(pattern_user *user);

#endif
