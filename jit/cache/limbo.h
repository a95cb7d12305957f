/* SPDX-License-Identifier: MIT */
/* Limbo: compiled code that was retired, until nobody can be inside it.
 *
 * A use of a site loads the site's plan, then one of the plan's two code pointers, then jumps. It
 * says nothing of this to anybody. Why unloading is safe all the same:
 *
 *  1. Retiring turns both pointers of the plan to the library's own code, which understands what
 *     the compiled code left in open scopes (runtime/scope/compiled.h). The plan itself stays as
 *     long as its site. So it is only the code that must not be executed, from a moment on; how
 *     long a scope stays open does not matter.
 *  2. Only a use that loaded a pointer before that can be in the code. Every use is made with a
 *     pool (without one, tide_site_enter and the other three inlined uses ask no plan), and the
 *     uses of one pool follow one another: pools belong to one thread at a time. Hence at most one
 *     use of each pool is in the code.
 *  3. After retiring, each pool that exists is asked for a pass (runtime/pool/request.h): that
 *     closes its log, so the next entry of a scope comes by cold code of the library and counts
 *     the pass. Count and question are one atomic each, acquire and release, so a use that begins
 *     after the pass loads the turned pointers.
 *  4. The first pass may be counted by a use that is itself in the code (its guard failed, and it
 *     called the general path). It ends before the pool's next use begins. So when a second pass,
 *     asked for after the first was seen, has been counted, no use of this pool is in the code any
 *     more, and by (3) none will be. One use counts one pass at most while it is in compiled code.
 *  5. A pool that is gone has no uses; one that was created after retiring had none before it. In
 *     the child of a fork only the thread that forked goes on: the pools of all others have none,
 *     until somebody adopts them.
 *
 *  6. A pool in which no scope opens does not pass. Only its owner uses it, so it has no use in
 *     the code if the owner, at some moment after retiring, was not in the code (or is no more).
 *     That is seen of a thread that waits in a system call, by what stands on its stack
 *     (jit/cache/asleep.h). Uses that begin later load the turned pointers: the thread went to
 *     sleep, or woke, after they were turned. Who adopts a pool takes the registry's lock, under
 *     which plans are turned, so the same holds for its uses. (Of a pool that another thread used
 *     without adopting it nobody knows who is inside: once one came by, it is never excused.)
 *  7. The question goes on standing in a pool that was excused so, and the answer to it may come
 *     after the next question, from a use of which (3) does not hold. It is one answer, for the
 *     question is one bit. So such a pool is asked for three passes the next time.
 *
 * When all pools have passed twice or were excused, the artefacts retired before the first question
 * are unloaded. What waits for a thread that neither sleeps nor comes by is bounded by the setting
 * `limbo_max`, beyond which nothing new is compiled.
 *
 * Dispatches have no pool, so (2) fails for them: their code stays (jit/cache/shared.h), so its
 * uses are given up without a question, and nothing is told of that. */
#ifndef TIDEPOOL_JIT_CACHE_LIMBO_H
#define TIDEPOOL_JIT_CACHE_LIMBO_H

#include "jit/cache/artefact.h"

/* Takes over the use of the artefact that a plan had; its pointers are turned already. `shared`: it
 * is not the artefact's last use. When memory is short it stays for good. Registry locked. */
void tide_limbo_add(tide_artefact *artefact, bool shared);

/* Asks and looks, once a round. Registry locked. */
void tide_limbo_round(void);

/* Excuses pools whose owners are seen to sleep outside of what waits. Registry not locked; only the
 * thread that has the round. */
void tide_limbo_look_at_sleepers(void);

/* Unloads what the last round found; returns of how many plans that was the code.
 * Registry not locked. */
size_t tide_limbo_unload(void);

/* After a fork, in the child. Registry locked. */
void tide_limbo_forked(void);

/* Plans' code waiting. */
size_t tide_limbo_count(void);

#endif
