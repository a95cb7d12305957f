/* SPDX-License-Identifier: MIT */
/* The dynamic linker's list of modules.
 *
 * The linker locks its list while it is visited, and does not make that lock anew in a child: a
 * fork in the middle of another thread's visit leaves it locked there for good. So whoever forks
 * waits for our visits. They end: only the linker's list is waited for in them, and whoever has
 * that waits for nothing of ours. */
#ifndef TIDEPOOL_RUNTIME_BASE_LINKER_H
#define TIDEPOOL_RUNTIME_BASE_LINKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dl_phdr_info;

/* As dl_iterate_phdr, with no lock held. `visit` takes none, and may visit the list itself, by
 * dl_iterate_phdr. */
int tide_linker_each_module(int (*visit)(struct dl_phdr_info *info, size_t size, void *user),
                            void *user);

/* The address range of the loaded module that contains `address`. False: there is none. */
bool tide_linker_module_of(const void *address, uintptr_t *first, uintptr_t *last);

#endif
