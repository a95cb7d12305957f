/* SPDX-License-Identifier: MIT */
/* The stacks of all threads of a process, printed by itself when one of them is hung.
 *
 * It may be hung in any lock: the allocator's, that of a stream, the dynamic linker's. So nothing
 * here allocates, uses streams, or asks the linker: a frame is printed as a file and a place in it,
 * for addr2line. The background thread blocks every signal, but not that of the stacks: the program has a
 * pthread_sigmask of its own, which the library calls. */
#ifndef TIDEPOOL_TESTS_SOAK_STACKS_H
#define TIDEPOOL_TESTS_SOAK_STACKS_H

/* Before any other thread starts. From now on SIGALRM prints all stacks and aborts. */
void stacks_prepare(void);

/* Says what was waited for, prints the stack of each thread, and aborts. */
_Noreturn void stacks_give_up(const char *what);

#endif
