/* SPDX-License-Identifier: MIT */
/* The background thread, which does rounds. It calls neither the program nor a driver.
 *
 * It is there while there is work for it: a window that fills starts it, or something that has to
 * go by age. When nothing was going on for some time (the constant background_idle) it ends, and
 * leaves each site observed, so that the next uses start it again. Who forks ends it before; the
 * child has none. */
#ifndef TIDEPOOL_JIT_LEARN_BACKGROUND_H
#define TIDEPOOL_JIT_LEARN_BACKGROUND_H

#include <pthread.h>

/* pthread_create for a thread of the library's own, wherever its creator runs: that is a hot thread
 * mostly, and may go before all others, on a processor of its own. Ours must take neither from it.
 * All this is set before it runs: on such a processor it would never come to set it. Its processors
 * are those of the process (jit/stager/processors.h). It blocks all signals: those are for the
 * program's own threads. An error number. */
int tide_background_create_thread(pthread_t *thread, void *(*run)(void *));

/* Some window or burst of a trial is full, or code was ordered: the next round is due after one
 * period. Starts the thread if there is none and the setting `background` allows it. Nothing while
 * nothing is learned (setting `learn`). When a call makes both settings 1, this is called for what came
 * meanwhile. */
void tide_background_wanted(void);

/* Something has to go by age, soon or later: starts the thread likewise, which looks after it for as
 * long as tide_round_run_in_background finds something of the kind. Quick; any lock of an outer rank
 * may be held. */
void tide_background_need(void);

/* Ends it, until it is wanted again. */
void tide_background_end(void);

/* Registers what is done around fork and at exit. While the library is attached. */
void tide_background_prepare(void);

#endif
