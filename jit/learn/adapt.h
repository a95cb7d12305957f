/* SPDX-License-Identifier: MIT */
/* What the thread that uses a scope's site decides itself, at once, in cold code: when the site's
 * window is full, and when scopes acquire what the plan in force did not save. Sending plans to the
 * stager, telling events, and the sites of other kinds are left to the rounds.
 *
 * A change to types that were in force before costs a few uses: the first `misses` unforeseen ones,
 * the last of which finds the plan of exactly its types. If there is none, a short window shows
 * what the site does now. If changes come so soon after each other that none of them lasts, a
 * window is opened as well: it sees all of the types that alternate; and each next look takes more
 * misses. */
#ifndef TIDEPOOL_JIT_LEARN_ADAPT_H
#define TIDEPOOL_JIT_LEARN_ADAPT_H

#include <tidepool/scope.h>

/* The hooks. Nothing is locked. Neither waits for a round or for the registry: if another thread
 * has them, the site is left to the next round, or to its next miss. */
void tide_adapt_filled(tide_site *site);
void tide_adapt_missed(const tide_scope *scope);

#endif
