/* SPDX-License-Identifier: MIT */
/* The keeper: the background thread that does the rounds.
 *
 * The first window that fills starts it, so the first site that is used often enough. A program
 * without such a site never has the thread. */
#ifndef TIDEPOOL_JIT_LEARN_KEEPER_H
#define TIDEPOOL_JIT_LEARN_KEEPER_H

/* Some window is full: starts the keeper if there is none and the setting `keeper` allows it. */
void tide_keeper_wanted(void);

#endif
