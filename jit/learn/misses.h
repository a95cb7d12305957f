/* SPDX-License-Identifier: MIT */
/* Misses: uses that the plan in force did not foresee. Rounds look at them; those of scopes are
 * also told at once, when there are `misses_max` of the learner. Registry locked, throughout. */
#ifndef TIDEPOOL_JIT_LEARN_MISSES_H
#define TIDEPOOL_JIT_LEARN_MISSES_H

#include <tidepool/scope.h>

#include "jit/learn/learner.h"

/* In a round: enough misses make a window due; a long quiet makes fewer enough. */
void tide_misses_look(tide_learner *learner, uint64_t round);

/* What was done about misses was in vain, or not: the next time it takes more, or fewer. */
void tide_misses_be_patient(tide_learner *learner, bool in_vain);

/* Learning is to be told of the misses of a scope's plan in force. After a window, which hides
 * them. */
void tide_misses_listen(tide_learner *learner);

/* What the thread that uses a scope's site decides itself, at once, in cold code: when the site's
 * window is full, and when scopes acquire what the plan in force did not save. Sending plans to the
 * stager, telling events, and the misses of dispatches are left to the rounds.
 *
 * A change to types that were in force before costs a few uses: the first `misses` unforeseen ones,
 * the last of which finds the plan of exactly its types. If there is none, a short window shows
 * what the site does now. If changes come so soon after each other that none of them lasts, a
 * window is opened as well: it sees all of the types that alternate; and each next look takes more
 * misses. */

/* The hooks. Nothing is locked. Neither waits for a round or for the registry: if another thread
 * has them, the site is left to the next round, or to its next miss. */
void tide_adapt_filled(tide_site *site);
void tide_adapt_missed(const tide_scope *scope);

#endif
