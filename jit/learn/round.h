/* SPDX-License-Identifier: MIT */
/* One round of learning, by the background thread or by hand; one at a time.
 *
 * The thread that does a round holds a lock from the round's beginning to its end. Nothing of the
 * program's and no driver is called meanwhile. The dynamic linker is, for the library's own
 * compiled code; it may be busy for as long as a constructor of the program's likes. So a step and
 * a use of a site do without a round that another thread is doing, and whoever waits for one does
 * so for a time that it was told.
 *
 * A step of the program's then goes on without the lock: it gives back old buffers, for which hooks
 * and drivers are called, and has the listener told of events. The background thread does neither.
 *
 * In the child of a fork, and once the process ends, no round is done any more. */
#ifndef TIDEPOOL_JIT_LEARN_ROUND_H
#define TIDEPOOL_JIT_LEARN_ROUND_H

#include <stdbool.h>
#include <stdint.h>

/* What the background thread finds when its round is over. */
typedef enum tide_round_rest {
    TIDE_ROUND_IDLE,  /* nothing is left to do until a site is used                       */
    TIDE_ROUND_WAITS, /* for time to pass: buffers are cached, or a compiler process rests */
    TIDE_ROUND_BUSY   /* something is going on; or another thread does a round            */
} tide_round_rest;

/* The background thread's: a round that waits for nobody, so many rounds after its last one. What
 * the settings auto_trim and auto_compact want is asked of the pools, each after its period, and
 * buffers without hooks grow older. */
tide_round_rest tide_round_run_in_background(uint64_t rounds);

/* No rounds are done for a while: each site is observed, so that its use is noticed. False: another
 * thread does one. */
bool tide_round_leave(void);

/* Is there no learning any more? In the child of a fork, and once the process ends. Any thread. */
bool tide_round_is_over(void);

/* The process ends: no round begins any more. */
void tide_round_end(void);

/* Keeps rounds out, and waits for the one that another thread does. */
void tide_round_lock(void);
void tide_round_unlock(void);

/* The same for so many milliseconds at most, 0: for nobody. False: somebody else has it still. */
bool tide_round_lock_within(double ms);

/* The same with the registry, for nobody; false also where this thread has one of the two, or where
 * learning is over. */
bool tide_round_begin_at_once(void);
void tide_round_end_at_once(void);

/* Of the round that this thread does: its number, or that of the last one. */
uint64_t tide_round_number(void);

/* Has this thread the lock? */
bool tide_round_held(void);

/* Registers what is done around fork. While the library is attached. */
void tide_round_prepare(void);

#endif
