/* SPDX-License-Identifier: MIT */
/* The general path of each kind of site: its general plan runs it, and compiled code goes there
 * when a guard fails. The general path of scopes is in runtime/scope/plan.h. */
#ifndef TIDEPOOL_RUNTIME_SCOPE_GENERAL_H
#define TIDEPOOL_RUNTIME_SCOPE_GENERAL_H

#include <tidepool/site.h>

tide_frame_function tide_general_frame;
tide_leave_function tide_general_frame_leave;
tide_acquire_function tide_general_acquire;
tide_array_function tide_general_array;

/* The same where no guard failed: no miss. */
tide_acquire_function tide_general_acquire_slow;
tide_array_function tide_general_array_slow;

/* Counts that a guard of the plan failed, if the plan counts that. */
static inline void tide_plan_missed(const tide_plan *plan)
{
    if (plan->counts != NULL)
        __atomic_fetch_add(&plan->counts->misses, 1, __ATOMIC_RELAXED);
}

#endif
