/* SPDX-License-Identifier: MIT */
/* The keeper: the background thread that does the rounds.
 *
 * It is started by the first window that fills, that is, by the first site that is used often
 * enough; a program without one never has the thread. */
#ifndef TIDEPOOL_JIT_LEARN_KEEPER_H
#define TIDEPOOL_JIT_LEARN_KEEPER_H

/* Some window is full: starts the keeper if there is none and the setting `keeper` allows it. */
void tide_keeper_wanted(void);

#endif
