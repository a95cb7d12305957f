/* SPDX-License-Identifier: MIT */
/* Rehearsals: one for each kind of site. Each is given a use that is about to be made. It does the
 * same some dozens of times, by the plan in force and by the candidate in turn, and says the least
 * time of each. Nothing remains of it: scopes are left, slots are put back. A rehearsal is not
 * possible in a pool that checks, where no slots stand ready, or of a use that the candidate did
 * not foresee. It never calls methods of generic functions: it calls stand-ins.
 *
 * Any thread that makes a use calls these, several threads at a time. */
#ifndef TIDEPOOL_JIT_LEARN_REHEARSE_H
#define TIDEPOOL_JIT_LEARN_REHEARSE_H

#include <tidepool/generic.h>

#include "jit/learn/learner.h"

typedef struct tide_rehearsed {
    bool fit; /* a rehearsal was possible */
    uint64_t control_ns, candidate_ns;
} tide_rehearsed;

tide_rehearsed tide_rehearse_scope(const tide_trial *trial, tide_pool *pool, tide_site *site);
tide_rehearsed tide_rehearse_frame(const tide_trial *trial, tide_pool *pool, tide_site *site,
                                   uint32_t count, const tide_type *types);
tide_rehearsed tide_rehearse_acquire(const tide_trial *trial, tide_pool *pool, tide_type type,
                                     tide_site *site);
tide_rehearsed tide_rehearse_array(const tide_trial *trial, tide_pool *pool, tide_type type,
                                   int ndim, const int64_t *shape, tide_site *site);
tide_rehearsed tide_rehearse_dispatch(const tide_trial *trial, tide_generic *generic,
                                      tide_type type, tide_site *site);

#endif
