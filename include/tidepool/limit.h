/* SPDX-License-Identifier: MIT */
/* One limit for the whole process: memory of the host that all its pools and buffers hold.
 *
 * Counted are the slots of pools (free ones, N-D headers and exported arrays too) and all memory of
 * buffers, cached or not, where it is taken from the system and given back. Not counted are memory of
 * devices and pinned memory, which have limits of their own; memory that the program gave to a pool;
 * guarded arrays (check level 2); and the library's books. Limits of single pools hold beside it.
 *
 * With the setting `process_limit` at -1 (TIDEPOOL_PROCESS_LIMIT=auto) the control groups of the process
 * set it (version 1 or 2): the least memory.max on the path is the hard limit, where hard_bytes is 0.
 * Beyond the least memory.high what nobody uses goes back, and nothing is refused; all of it goes where
 * memory.pressure says that threads waited for memory in a tenth of the last ten seconds. The files are
 * read at the first use of memory, after each 32 MiB taken from the system, every 100 steps and about
 * once a second by the background thread. After lock-down, and where they cannot be read any more, what
 * was read last holds: lock down while no other thread takes memory.
 *
 * A process with several copies of the library has a limit for each. Any thread, all functions. */
#ifndef TIDEPOOL_LIMIT_H
#define TIDEPOOL_LIMIT_H

#include <tidepool/inline/config.h>
#include <tidepool/status.h>

TIDE_BEGIN_DECLS

/* Asked before an allocation that would take the process past the soft limit: `held` bytes are held
 * and `wanted` more are. It may give memory back (tide_buffers_trim, tide_pool_trim of another pool of
 * its thread, tide_pool_request for others', its own caches); true: look again (it is asked 16 times at
 * most for each try of an allocation). False: it has no more, and the allocation goes on, up to the hard
 * limit.
 *
 * It runs on the thread that wants the memory, with no lock of the library held, and never inside of
 * itself. The pool that wants the memory refuses it (TIDE_ERROR_STATE); the buffers that want it may be
 * trimmed, not acquired from or released to. It must return. */
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

/* Where memory is short, by any limit or because there is none, what nobody uses goes back before
 * anything is refused: the slot that is replaced by a larger one, then other free slots of the pool;
 * unless it is the pool's own limit, then the free slots of other idle pools, no more than is missing,
 * and then the caches of buffers. An idle pool is one whose owner is at the root and asleep in a system
 * call, or is the thread that wants the memory. So a signal handler must not wait for anything on top
 * of code that uses a pool; with TIDEPOOL_LOCKED=1 no other thread's pool is touched. Pools with a check
 * level, a hook or buffers of their own are left alone. (Memory of a device: <tidepool/device_memory.h>.) */

/* Sets both limits; NULL: none. What is held stays, however much it is. Other threads may for a moment
 * see the new bytes with the old function: keep what that needs. TIDE_ERROR_ARGUMENT, nothing changed,
 * for a function without a soft limit or the other way round, and a soft limit above the hard one. */
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
