/* SPDX-License-Identifier: MIT */
/* The keeper: the background thread that does the rounds.
 *
 * The first window that fills starts it, so the first site that is used often enough; where the
 * setting `background` is 2, the first pool of a program that has sites. A program without sites never
 * has the thread. */
#ifndef TIDEPOOL_JIT_LEARN_BACKGROUND_H
#define TIDEPOOL_JIT_LEARN_BACKGROUND_H

#include <pthread.h>

/* pthread_create for a thread of the library's own, wherever its creator runs: that is a hot thread
 * mostly, and may go before all others, on a processor of its own. Ours must take neither from it.
 * All this is set before it runs: on such a processor it would never come to set it. Its processors
 * are those of the process (jit/stager/processors.h). An error number. */
int tide_background_create_described(pthread_t *thread, void *(*run)(void *));

/* What no attribute says, so each such thread does it first: a niceness below 0, which Linux gives
 * it from who made it, becomes 0. */
void tide_background_lower_thread(void);

/* Some window is full: starts the keeper if there is none and the setting `background` allows it. If
 * the system gives no thread, does itself what can be done at once. */
void tide_background_wanted(void);

/* A pool was made, or some thread is at work. Starts the keeper where the first pool does. If this
 * process was forked by one that had a keeper, the first such thread starts another, as
 * tide_background_wanted does. */
void tide_background_passed(void);

/* Registers what is done around fork. While the library is attached. */
void tide_background_prepare(void);

#endif
