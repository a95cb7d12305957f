/* SPDX-License-Identifier: MIT */
/* Visits of the linker's list, and fork; which module an address is in. */
#define _GNU_SOURCE
#include "runtime/base/linker.h"

#include <dlfcn.h>
#include <link.h>

#include "runtime/base/assert.h"
#include "runtime/base/fork.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"

/* Atomic and sequentially consistent: either who begins a visit sees the fork, or who forks sees
 * the visit. */
static uint32_t linker_visits, linker_forks;
static uint32_t linker_waiting; /* atomic: forks that wait for visits */

/* A fork that still waits keeps nobody out for long: what it waits for may need a visit more. */
static void linker_before_fork(void)
{
    __atomic_fetch_add(&linker_waiting, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&linker_forks, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&linker_visits, __ATOMIC_SEQ_CST) != 0) {
        __atomic_fetch_sub(&linker_forks, 1, __ATOMIC_SEQ_CST);
        tide_os_nap();
        __atomic_fetch_add(&linker_forks, 1, __ATOMIC_SEQ_CST);
    }
    __atomic_fetch_sub(&linker_waiting, 1, __ATOMIC_RELAXED);
}

static void linker_after_fork(void)
{
    uint32_t before = __atomic_fetch_sub(&linker_forks, 1, __ATOMIC_SEQ_CST);
    tide_assert(before > 0);
    (void)before;
}

/* Other threads may have been about to find that they must wait, or to fork themselves. */
static void linker_in_child(void)
{
    __atomic_store_n(&linker_visits, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&linker_forks, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&linker_waiting, 0, __ATOMIC_RELAXED);
}

void tide_linker_prepare(void)
{
    static const tide_fork_handlers handlers = {linker_before_fork, linker_after_fork,
                                                linker_in_child};
    tide_fork_register(TIDE_FORK_LINKER, &handlers);
}

static void linker_end_visit(void)
{
    uint32_t before = __atomic_fetch_sub(&linker_visits, 1, __ATOMIC_SEQ_CST);
    tide_assert(before > 0);
    (void)before;
}

/* Threads that visit on and on would have no moment without a visit, for which a fork waits. */
static void linker_give_way(void)
{
    enum { NAPS = 20 };
    for (int i = 0; i < NAPS && __atomic_load_n(&linker_waiting, __ATOMIC_RELAXED) != 0; i++)
        tide_os_nap();
}

/* No fork goes by until the visit ends. */
static void linker_begin_visit(void)
{
    tide_linker_prepare();
    linker_give_way();
    __atomic_fetch_add(&linker_visits, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&linker_forks, __ATOMIC_SEQ_CST) != 0) {
        linker_end_visit();
        tide_os_nap();
        __atomic_fetch_add(&linker_visits, 1, __ATOMIC_SEQ_CST);
    }
}

int tide_linker_each_module(int (*visit)(struct dl_phdr_info *info, size_t size, void *user),
                            void *user)
{
    tide_assert(visit != NULL);
    tide_outside outside = tide_outside_enter();
    linker_begin_visit();
    int found = dl_iterate_phdr(visit, user);
    linker_end_visit();
    tide_outside_leave(outside);
    return found;
}

/* ---- which module an address is in ---- */

#if defined DLFO_STRUCT_HAS_EH_DBASE /* glibc 2.35 */
bool tide_linker_module_of(const void *address, uintptr_t *first, uintptr_t *last)
{
    struct dl_find_object found;
    if (_dl_find_object((void *)(uintptr_t)address, &found) != 0)
        return false;
    *first = (uintptr_t)found.dlfo_map_start;
    *last = (uintptr_t)found.dlfo_map_end;
    tide_assert(*first <= (uintptr_t)address && (uintptr_t)address < *last);
    return true;
}
#else

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
#endif
