/* SPDX-License-Identifier: MIT */
/* The work: call sites of both kinds, whose types and shapes are those of the phase. */
#ifndef PHASES_WORK_H
#define PHASES_WORK_H

#include <tidepool/tidepool.h>

/* What the program computes with for a while. */
typedef struct phase {
    const char *name;
    tide_type numbers, indices;
    int ndim;
    int64_t shape[3];
} phase;

enum { PHASES = 3 };
extern const phase phases[PHASES];

/* A call site, and the function that uses it so many times. */
typedef struct work {
    const char *name; /* of the site, as the library knows it */
    tide_kind kind;
    void (*use)(tide_pool *pool, const phase *now, size_t times);
} work;

enum { WORKS = 3 };
extern const work works[WORKS];

/* Makes what the work needs. False: no memory; tide_error_message() says more. */
bool work_prepare(void);

/* Did memory run out in any use so far? */
bool work_failed(void);

/* The library's record of that site. NULL: it was never used. */
tide_site *work_site(const work *w);

#endif
