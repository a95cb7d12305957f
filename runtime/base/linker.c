/* SPDX-License-Identifier: MIT */
/* Visits of the linker's list, and fork; which module an address is in. */
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
    tide_outside outside = tide_outside_enter();
    tide_lock_take(&linker_lock);
    int found = dl_iterate_phdr(visit, user);
    tide_lock_let_go(&linker_lock);
    tide_outside_leave(outside);
    return found;
}

/* ---- which module an address is in ---- */

typedef struct module_query {
    uintptr_t address, first, last;
} module_query;

/* From the first byte of the module's segments to the end of the last; 1, which ends the search, if
 * the address lies there. */
static int linker_visit_module(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    module_query *query = user;
    uintptr_t first = UINTPTR_MAX, last = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD)
            continue;
        uintptr_t start = info->dlpi_addr + header->p_vaddr;
        if (start < first)
            first = start;
        if (start + header->p_memsz > last)
            last = start + header->p_memsz;
    }
    if (query->address < first || query->address >= last)
        return 0;
    query->first = first;
    query->last = last;
    return 1;
}

bool tide_linker_module_of(const void *address, uintptr_t *first, uintptr_t *last)
{
    module_query query = {.address = (uintptr_t)address};
    int found = tide_linker_each_module(linker_visit_module, &query);
    if (found == 0)
        return false;
    tide_assert(query.first <= query.address && query.address < query.last);
    *first = query.first;
    *last = query.last;
    return true;
}
