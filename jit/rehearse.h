/* SPDX-License-Identifier: MIT */
/* Rehearsals: one for each kind of site. Each is given a use that is about to be made, does the
 * same some dozens of times by the plan in force and by the candidate in turn, and adds the least
 * time of each to the trial. Nothing remains of it: scopes it opened are left, slots it took are
 * put back. Where none is possible (a pool that checks, slots that do not exist yet, a use that the
 * candidate did not foresee) nothing is added. Methods of generic functions are not called:
 * stand-ins are.
 *
 * Any thread that makes a use calls them, several of them at a time. */
#ifndef TIDEPOOL_JIT_REHEARSE_H
#define TIDEPOOL_JIT_REHEARSE_H

#include <tidepool/generic.h>

#include "jit/learner.h"

/* The clock, in nanoseconds; tests put their own here. */
extern uint64_t (*tide_rehearse_clock)(void);

void tide_rehearse_scope(tide_trial *trial, tide_pool *pool, tide_site *site);
void tide_rehearse_frame(tide_trial *trial, tide_pool *pool, tide_site *site, uint32_t count,
                         const tide_type *types);
void tide_rehearse_acquire(tide_trial *trial, tide_pool *pool, tide_type type, tide_site *site);
void tide_rehearse_array(tide_trial *trial, tide_pool *pool, tide_type type, int ndim,
                         const int64_t *shape, tide_site *site);
void tide_rehearse_dispatch(tide_trial *trial, tide_generic *generic, tide_type type,
                            tide_site *site);

#endif
