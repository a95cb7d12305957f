/* SPDX-License-Identifier: MIT */
/* One limit for the whole process: memory of the host that all its pools and buffers hold.
 *
 * Counted are the slots of pools (free ones too, N-D headers that scopes rewind, exported arrays
 * until their deleter has run) and all memory of buffers, what they have cached included. Not
 * counted are memory of devices and pinned memory, which have limits of their own; memory that the
 * program gave to a pool; guarded arrays (check level 2); and the library's own books. It is
 * counted where memory is taken from the system and given back, never where an array or a buffer
 * is only handed out. A limit of one pool (tide_pool_options.limit_bytes) holds beside it.
 *
 * With the setting `process_limit` at -1 (TIDEPOOL_PROCESS_LIMIT=auto) the control groups of the
 * process set it, of version 1 or 2: the least memory.max on the path is the hard limit, where
 * hard_bytes is 0. Beyond the least memory.high what nobody uses goes back, and nothing is refused.
 * So it does, all of it, where the kernel says (memory.pressure) that threads waited for memory in a
 * tenth of the last ten seconds or more. The files are read at the first use of memory, then after
 * each 32 MiB that were taken from the system, every 100 calls of tide_step and about once a second
 * by the background thread, if it is there. After lock-down, and where the files cannot be read any
 * more, what was read last holds: lock down while no other thread takes memory.
 *
 * A process with several copies of the library has a limit for each. Any thread, all functions. */
#ifndef TIDEPOOL_LIMIT_H
#define TIDEPOOL_LIMIT_H

#include <tidepool/inline/config.h>
#include <tidepool/status.h>

TIDE_BEGIN_DECLS

/* Asked before an allocation that would take the process past the soft limit: `held` bytes are held
 * and `wanted` more are. It may give memory back (tide_buffers_trim, tide_pool_trim of another pool
 * of its thread, tide_pool_request for pools of other threads, its own caches) and returns true if
 * the library is to look again; it is then asked again, at most 16 times, while there is still too
 * little. False: it has nothing more to give, and the allocation goes on, up to the hard limit.
 *
 * It is called on the thread that wants the memory, with no lock of the library held, and never
 * inside of itself: what it allocates is not asked about. The pool that wants the memory stands
 * half-way and refuses it (TIDE_ERROR_STATE); it may neither acquire from nor release to the
 * buffers that want it, but it may trim them. It must return. */
typedef bool (*tide_limit_function)(size_t held, size_t wanted, void *user);

/* All zero means: no limit. */
typedef struct tide_limit_options {
    size_t soft_bytes TIDE_ZERO;            /* beyond it `function` is asked; 0: none            */
    size_t hard_bytes TIDE_ZERO;            /* beyond it allocations fail with TIDE_ERROR_LIMIT,
                                               once what nobody uses is given back: see below;
                                               0: as the setting `process_limit` says, which is
                                               none at first                                     */
    tide_limit_function function TIDE_ZERO; /* with soft_bytes, and only then                    */
    void *user TIDE_ZERO;                   /* given to the function                             */
    TIDE_GROWTH TIDE_ZERO;
} tide_limit_options;

/* Where memory is short (the limit of a pool, of the process or of a device leaves no room, or there
 * is none), what nobody uses goes back before anything is refused: the slot that is replaced by a
 * larger one, then other free slots of the same pool; unless it is the pool's own limit, then the
 * free slots of other pools that are idle, no more than is missing, and then the caches of buffers,
 * instance by instance until it is enough. An idle pool is one whose owner is at the root and asleep
 * in a system call, or is the thread that wants the memory. So a signal handler must not wait for
 * anything on top of code that uses a pool (sigsuspend, as collectors stop threads): with
 * TIDEPOOL_LOCKED=1 no other thread's pool is touched. Pools with a check level, a hook or buffers of
 * their own are left alone.
 *
 * A pool that needs 16 MiB or more takes them from an idle thread's pool, where one has them free, also
 * while memory is not short. */

/* Sets both limits; NULL: none. What is held already stays, however much it is. Other threads may
 * see the new bytes together with the old function for a moment, so set a function before others
 * allocate, or keep what the old one needs. TIDE_ERROR_ARGUMENT, nothing changed, for a function
 * without a soft limit or the other way round, and a soft limit above the hard one. */
TIDE_API tide_status tide_limit_set(const tide_limit_options *options);

typedef struct tide_limit_statistics {
    size_t bytes_held, bytes_peak; /* now; the most so far                      */
    size_t soft_bytes, hard_bytes; /* in force, a control group's too; 0: none  */
    uint64_t asked;                /* times that a function was asked           */
    uint64_t refused;              /* times the hard limit refused memory; some were
                                      served after free memory was given back */
    uint64_t pressed;              /* times that idle pools or buffers gave some back
                                      so that it need not be refused             */
    TIDE_GROWTH;
} tide_limit_statistics;

/* TIDE_ERROR_ARGUMENT for a NULL result. */
TIDE_API tide_status tide_limit_stats(tide_limit_statistics *out);

TIDE_END_DECLS

#endif
