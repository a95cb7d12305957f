/* SPDX-License-Identifier: MIT */
/* The sweep: every public function, with its first, second, third … allocation failing; once,
 * and from there on for ever; until it asks for no more.
 *
 * Each run is a process of its own, so that what a process does only once (its first type, its
 * first site) can fail too, and so that a leak checker sees each run's end. */
#ifndef FAULTS_SWEEP_H
#define FAULTS_SWEEP_H

#include <tidepool/tidepool.h>

/* What a case has to work with. */
struct fixture {
    tide_pool *pool; /* empty, or as `prepare` left it */
    tide_site *site;
    tide_mark mark;
};

struct fault_case {
    const char *name;
    void (*prepare)(struct fixture *fixture); /* without faults; may be NULL */
    tide_status (*call)(struct fixture *fixture);
    bool allocates;   /* at least one fault must get in; else none may */
    const char *says; /* what the message must contain; NULL: "tide_" */
    unsigned also;    /* statuses to fail with beside TIDE_ERROR_MEMORY, a bit each */
};

extern const struct fault_case fault_cases[];
extern const unsigned fault_case_count;

#endif
