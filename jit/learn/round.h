/* SPDX-License-Identifier: MIT */
/* One round of learning, by the keeper or by hand; and the lock that lets only one be under way.
 *
 * Order of locks: that of rounds, then the registry's. Neither loading nor unloading code happens
 * with the registry locked: the dynamic linker has a lock of its own, under which constructors of
 * modules take the registry's. */
#ifndef TIDEPOOL_JIT_LEARN_ROUND_H
#define TIDEPOOL_JIT_LEARN_ROUND_H

#include <stdbool.h>

/* A round that waits at most so long for the stager. Returns whether something was going on. */
bool tide_round_run(int wait_ms);

/* Takes the lock, as tide_round_run does; the thread that has it may take it again. */
void tide_round_lock(void);
void tide_round_unlock(void);

/* Does this thread hold it? Then it is inside a listener to events. */
bool tide_round_held(void);

#endif
