/* SPDX-License-Identifier: MIT */
/* The sweep: every public function, with its first, second, third … allocation failing; once,
 * and from there on for ever; until it asks for no more.
 *
 * Each run is a process of its own, so that what a process does only once (its first type, its
 * first site) can fail too, and so that a leak checker sees each run's end. Nothing is learned but
 * where learning is the case: its own allocations, in cold code, would be swept with every
 * other. */
#ifndef FAULTS_SWEEP_H
#define FAULTS_SWEEP_H

#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/dlpack.h>
#include <tidepool/tidepool.h>

/* What a case has to work with. */
struct fixture {
    tide_pool *pool; /* empty, or as `prepare` left it */
    tide_site *site;
    tide_mark mark;
    tide_array *array;
    tide_dl_managed *managed;
    tide_buffers *buffers;
    tide_buffer buffer;
};

struct fault_case {
    const char *name;
    void (*prepare)(struct fixture *fixture); /* without faults; may be NULL */
    tide_status (*call)(struct fixture *fixture);
    bool allocates;   /* at least one fault must get in; else none may */
    const char *says; /* what the message must contain; NULL: "tide_" */
    unsigned also;    /* statuses to fail with beside TIDE_ERROR_MEMORY, a bit each */
};

struct fault_list {
    const struct fault_case *cases;
    unsigned count;
};

extern const struct fault_list fault_basics, fault_arrays, fault_buffers, fault_learning;

/* ---- for the cases ------------------------------------------------------------------------ */

static inline tide_status status_of(const void *result)
{
    return result != NULL ? TIDE_OK : tide_error_status();
}

/* Preparations that must work, or the process ends there and the run with it. */
void need(bool holds, const char *what);

/* Another pool in place of the fixture's. */
void replace_pool(struct fixture *fixture, tide_pool_options options);
void prepare_poison(struct fixture *fixture);
void prepare_disabled(struct fixture *fixture);
void prepare_guard(struct fixture *fixture);

#define ASKS      true
#define NEVER     false
#define REGISTERS (1u << 31) /* a type, which stays when the call fails later */

#endif
