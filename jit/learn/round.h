/* SPDX-License-Identifier: MIT */
/* One round of learning, by the keeper or by hand; one at a time.
 *
 * A thread *has the round* from its beginning to its end. It also holds the lock of the round, but
 * for the moments in which it is outside (runtime/base/lock.h): in the dynamic linker, or in a
 * listener to events. So whoever has the lock knows:
 *
 *  1. nobody else is in the middle of anything that the round guards, but perhaps outside, from a
 *     place where all that stands in lists is whole. What such a thread has in hand, a list of its
 *     own room names, so that the child of a fork can give it up: no memory that only its stack
 *     knows of, and no open file. Fork waits for the lock, and a moment for the linker.
 *  2. if another thread has the round, that may last for as long as the linker or the listener
 *     likes. Each of them may wait for the thread that asks: the linker while this thread runs a
 *     constructor, the listener for a lock of the program. So tide_step does not wait, and
 *     tide_settle no longer than it was told to.
 *
 * A listener may do a round of its own, inside that of its thread.
 *
 * After its round a thread, without the round, gives back old buffers, for which hooks of the
 * program are called. */
#ifndef TIDEPOOL_JIT_LEARN_ROUND_H
#define TIDEPOOL_JIT_LEARN_ROUND_H

#include <stdbool.h>
#include <stdint.h>

/* A round that waits at most so long for the stager. Returns whether something was going on; true
 * without a round while another thread has one and is outside; false without one once the process
 * ends. */
bool tide_round_run(int wait_ms);

/* The same without waiting, so many rounds after the last one: whoever did none meanwhile lets
 * those pass that would have found nothing to do. */
bool tide_round_run_after(uint64_t rounds);

/* So many rounds have passed since the keeper last called: asks the pools for what the settings
 * auto_trim and auto_compact want, each after its period. The keeper's thread only. */
void tide_round_request_memory_after(uint64_t rounds);

/* The part of a round that a use of a site may do, where there is no thread for rounds: decides,
 * and gives scopes their tables. Nothing is compiled, and no listener hears of it, before the next
 * round. Waits for nobody. */
void tide_round_run_without_thread(void);

/* Begins what nobody may do during a round, and waits for that of another thread; the thread that
 * has the round may do so again. */
void tide_round_lock(void);
void tide_round_unlock(void);

/* The same with the registry, but waits for nobody; false: somebody else has one of the two, this
 * thread is in the middle of a round or has the registry, or the process ends. */
bool tide_round_begin_at_once(void);
void tide_round_end_at_once(void);

/* Of the round that this thread has: its number, or that of the last one that was a whole round. */
uint64_t tide_round_number(void);

/* Has this thread the round? Then it is inside a listener to events. */
bool tide_round_held(void);

/* The calling thread is the keeper from now on. Is it? Then it is inside a function of the program:
 * a listener to events or a hook of buffers. */
void tide_round_become_keeper(void);
bool tide_round_is_keeper(void);

/* From now on no round begins, since the process ends; waits for the round of another thread, and
 * for the keeper if it is giving back old
 * buffers. True: nothing of this is under way, and the keeper may be waited for. False:
 *  - this thread has the round, in a listener or in the linker, or is the keeper;
 *  - another one has the round and is in the linker, which this one may have entered before it
 *    called exit, or in a listener that has not returned for two seconds. Then the round and its
 *    lock stay with this one, so that the other does nothing more;
 *  - the keeper has not come back from old buffers for two seconds. It may be in a hook that waits
 *    for this thread, as above. It finishes what it has in hand, if it can, and does nothing more:
 *    until then somebody may wait for it, to destroy the buffers.
 * Again: does the same, but each is waited for once. */
bool tide_round_close(void);

/* For runtime/base/lock.h: around code that is not ours. */
unsigned tide_round_let_go(void);
void tide_round_take_again(unsigned inside);

/* Registers what is done around fork. While the library is attached. */
void tide_round_prepare(void);

/* How long a fork waits for the linker that another thread's round is in. Tests prolong it. */
extern double tide_round_fork_patience_ms;

#endif
