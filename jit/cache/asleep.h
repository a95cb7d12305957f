/* SPDX-License-Identifier: MIT */
/* Threads that are asleep, and the return addresses that they will come back to.
 *
 * A thread that waits in a system call executes nothing. Linux tells of each thread of the process
 * whether it does so, and where its stack ends then; all frames that the thread is in lie above. If
 * it is inside compiled code all the same, that is seen there:
 *
 *  1. Compiled code makes no system call. It has called the library, which did; then the address to
 *     return to stands on the stack.
 *  2. Or a signal has interrupted it, and the handler waits. The kernel has put all registers on
 *     the stack: the place that was interrupted, and a code pointer that was loaded and not yet
 *     jumped to.
 *
 * So a stack without any word that points into the code is that of a thread outside. Words that
 * mean something else may look like such an address; that only takes longer. A handler on a stack
 * of its own, or a coroutine, has its stack pointer elsewhere: then nothing is known. (A handler's
 * stack must not be a part of the thread's own, and no handler may switch away from a use.)
 *
 * Whether a thread has slept all the while that its stack was read is told by how often it was
 * taken from its processor: it cannot sleep twice without that. */
#ifndef TIDEPOOL_JIT_CACHE_ASLEEP_H
#define TIDEPOOL_JIT_CACHE_ASLEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tide_code_range {
    uintptr_t first, last; /* from the first byte to behind the last one */
} tide_code_range;

/* A thread, by the system's number, and the bounds of its own stack. */
typedef struct tide_sleeper {
    int thread;
    uintptr_t stack_low, stack_high;
} tide_sleeper;

/* Was the thread outside of all this code at some moment after the call? True also if it is gone.
 * False: it runs, or nothing is known. The calling thread itself is looked at as it is. Waits for
 * nobody. */
bool tide_asleep_outside(const tide_sleeper *sleeper, const tide_code_range *code, size_t count);

#endif
