/* SPDX-License-Identifier: MIT */
/* The dynamic linker's list of modules.
 *
 * The linker locks its list while it is visited, and does not make that lock anew in a child: a
 * fork in the middle of another thread's visit leaves it locked there for good. So whoever forks
 * waits for our visits. They end:
 *
 *  1. a visit waits for the linker's list only, or for a fork to be over, with no lock of ours
 *     held.
 *  2. who has the list may be in a visitor of the program's, and call the library from there. It
 *     finds no lock taken by a visit. Nor by a fork that waits: that comes before all locks of ours
 *     (only a wait for the round is earlier, and lets go of its lock).
 *  3. such a caller may visit, too, while a fork waits: visits give way to that for some
 *     milliseconds, and then go on. Only a fork that waits no more keeps visits out, and it ends
 *     without the list.
 *
 * The exceptions are forks that wait for ever if another thread waits for the list in a visit of
 * ours. A visitor of the program's itself forks: the linker's lock is its own then; its child could
 * never visit the list again, nor load a module. Or who forks has a lock of the program that such a
 * visitor waits for. */
#ifndef TIDEPOOL_RUNTIME_BASE_LINKER_H
#define TIDEPOOL_RUNTIME_BASE_LINKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dl_phdr_info;

/* Registers what is done around fork. While the library is attached, or with the first visit. */
void tide_linker_prepare(void);

/* In a child of a fork: the list may be locked for good, so a visit that can be done without shall
 * not be made. Any thread. */
bool tide_linker_in_doubt(void);

/* As dl_iterate_phdr, with no lock held. `visit` takes none, and may visit the list itself, by
 * dl_iterate_phdr. */
int tide_linker_each_module(int (*visit)(struct dl_phdr_info *info, size_t size, void *user),
                            void *user);

typedef struct tide_linker_range {
    uintptr_t first, last; /* `last` is the address after the end */
} tide_linker_range;

/* The addresses of the loaded module that contains `address`. False: there is none. No lock may be
 * held. In the program itself, and with glibc 2.35 and later, none of the linker's is taken. So a
 * process can end that was forked while another thread of the program loaded or unloaded a module:
 * glibc leaves its list locked there. */
bool tide_linker_module_of(const void *address, tide_linker_range *out);

/* The same for the program's own module, of which the kernel has told: static ones, too. Any
 * thread, with any lock held. */
bool tide_linker_in_program(const void *address, tide_linker_range *out);

#endif
