/* SPDX-License-Identifier: MIT */
/* Which plan of a site is in force: deciding by the evidence, putting in force, and the code of the
 * plan, which comes, is tried, adopted, or left alone for a while. Registry locked, throughout. */
#ifndef TIDEPOOL_JIT_LEARN_FORCE_H
#define TIDEPOOL_JIT_LEARN_FORCE_H

#include "jit/learn/learner.h"

/* Decides by the evidence and acts on it. `because`: the reason to give in place of the choice's
 * own; TIDE_REASON_none: its own. */
void tide_force_decide(tide_learner *learner, uint64_t round, tide_reason because);

/* Puts the plan of these items in force, made if need be, unless it is; then tries its code. */
void tide_force_items(tide_learner *learner, const tide_items *items, uint64_t round,
                      tide_reason reason);

/* Puts a plan in force (TIDE_NO_PLAN: none), which is then wanted as code if code can be made for it.
 * Code that it has is left to tide_force_try_code. */
void tide_force_change(tide_learner *learner, uint32_t number, uint64_t round, tide_reason reason);

/* If the plan in force has code that is not in use: opens its trial, or adopts it where there are
 * none. Not while it is left alone, nor while a window is open: a trial would hide it. */
void tide_force_try_code(tide_learner *learner, uint64_t round);

/* Judges the trial of the plan in force, if it is on trial. */
void tide_force_judge(tide_learner *learner, uint64_t round);

/* The code of a plan has come; or it will not, for this reason. `detail` is what the stager or the
 * system said, or "". */
void tide_force_loaded(tide_learner *learner, uint32_t number, uint64_t round);
void tide_force_failed(tide_learner *learner, uint32_t number, uint64_t round, tide_reason reason,
                       const char *detail);

#endif
