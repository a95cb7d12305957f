/* SPDX-License-Identifier: MIT */
/* Visits of the linker's list, and fork. */
#define _GNU_SOURCE
#include "runtime/base/linker.h"

#include <link.h>

#include "runtime/base/assert.h"
#include "runtime/base/lock.h"

static tide_lock linker_lock = TIDE_LOCK(TIDE_FORK_LINKER);

static void linker_before_fork(void)
{
    tide_lock_take(&linker_lock);
}

static void linker_after_fork(void)
{
    tide_lock_let_go(&linker_lock);
}

int tide_linker_each_module(int (*visit)(struct dl_phdr_info *info, size_t size, void *user),
                            void *user)
{
    static const tide_fork_handlers handlers = {linker_before_fork, linker_after_fork,
                                                linker_after_fork};
    tide_assert(visit != NULL);
    tide_fork_register(TIDE_FORK_LINKER, &handlers);
    unsigned let_go = tide_outside_enter();
    tide_lock_take(&linker_lock);
    int found = dl_iterate_phdr(visit, user);
    tide_lock_let_go(&linker_lock);
    tide_outside_leave(let_go);
    return found;
}
