/* SPDX-License-Identifier: MIT */
/* Visits of the linker's list, and fork; which module an address is in. */
#define _GNU_SOURCE
#include "runtime/base/linker.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "runtime/base/assert.h"
#include "runtime/base/fork.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/base/test_hooks.h"

bool tide_linker_without_finder;

/* Atomic and sequentially consistent: either who begins a visit sees the fork, or who forks sees
 * the visit. */
static uint32_t linker_visits, linker_forks;
static uint32_t linker_waiting; /* atomic: forks that wait for visits */

/* The process that this copy was loaded in; is this a child of one that used the library? Each tells
 * what the other cannot: handlers of forks come with the first use, and pids come again. Atomic. */
static pid_t linker_home;
static bool linker_in_fork;

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
    __atomic_store_n(&linker_in_fork, true, __ATOMIC_RELAXED);
}

__attribute__((constructor)) static void linker_note_process(void)
{
    __atomic_store_n(&linker_home, getpid(), __ATOMIC_RELAXED);
}

bool tide_linker_in_doubt(void)
{
    pid_t home = __atomic_load_n(&linker_home, __ATOMIC_RELAXED);
    return __atomic_load_n(&linker_in_fork, __ATOMIC_RELAXED) || (home != 0 && home != getpid());
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

/* From the first byte of the module's segments to the end of the last. False: the address is in
 * none of them. */
static bool linker_range_of(const ElfW(Phdr) * headers, size_t count, uintptr_t bias,
                            uintptr_t address, tide_linker_range *out)
{
    tide_linker_range range = {UINTPTR_MAX, 0};
    bool inside = false;
    for (size_t i = 0; i < count; i++) {
        if (headers[i].p_type != PT_LOAD)
            continue;
        uintptr_t start = bias + headers[i].p_vaddr, end = start + headers[i].p_memsz;
        inside |= address >= start && address < end;
        range.first = start < range.first ? start : range.first;
        range.last = end > range.last ? end : range.last;
    }
    if (inside)
        *out = range;
    return inside;
}

/* How far from its own addresses the program lies. A static one need not have a header that tells
 * where the headers are; they follow the head of the file then, with which the first segment
 * begins. */
static uintptr_t linker_program_bias(const ElfW(Phdr) * headers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (headers[i].p_type == PT_PHDR)
            return (uintptr_t)headers - headers[i].p_vaddr;
    for (size_t i = 0; i < count; i++)
        if (headers[i].p_type == PT_LOAD && headers[i].p_offset == 0)
            return (uintptr_t)headers - sizeof(ElfW(Ehdr)) - headers[i].p_vaddr;
    return 0;
}

bool tide_linker_in_program(const void *address, tide_linker_range *out)
{
    const ElfW(Phdr) *headers = (const void *)(uintptr_t)getauxval(AT_PHDR);
    size_t count = getauxval(AT_PHNUM);
    return headers != NULL && linker_range_of(headers, count, linker_program_bias(headers, count),
                                              (uintptr_t)address, out);
}

#if defined DLFO_STRUCT_HAS_EH_DBASE /* glibc 2.35 */
typedef int linker_finder(void *address, struct dl_find_object *found);

static linker_finder *linker_find; /* atomic; NULL: not looked for yet, or the C library is older */

/* By name: a library that names it is refused by an older C library. As this module is loaded, when
 * the linker's lock is this thread's, or no other thread is there. Later it might not be had: a first
 * use of the library may come from a constructor or a visitor, while another thread's waits. */
__attribute__((constructor)) static void linker_look_for_finder(void)
{
    linker_finder *found = NULL;
    *(void **)&found = dlsym(RTLD_DEFAULT, "_dl_find_object");
    __atomic_store_n(&linker_find, found, __ATOMIC_RELAXED);
}

static bool linker_has_finder(void)
{
    return !tide_linker_without_finder && __atomic_load_n(&linker_find, __ATOMIC_RELAXED) != NULL;
}

static bool linker_ask_finder(const void *address, tide_linker_range *out)
{
    struct dl_find_object found;
    linker_finder *find = __atomic_load_n(&linker_find, __ATOMIC_RELAXED);
    if (find((void *)(uintptr_t)address, &found) != 0)
        return false;
    *out = (tide_linker_range){(uintptr_t)found.dlfo_map_start, (uintptr_t)found.dlfo_map_end};
    return true;
}
#else
static bool linker_has_finder(void)
{
    return false;
}

static bool linker_ask_finder(const void *address, tide_linker_range *out)
{
    (void)address, (void)out;
    return false;
}
#endif

typedef struct module_query {
    uintptr_t address;
    tide_linker_range range;
} module_query;

/* 1, which ends the visit, if the address lies there. */
static int linker_visit_module(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    module_query *query = user;
    return linker_range_of(info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr, query->address,
                           &query->range);
}

static bool linker_visit_for(const void *address, tide_linker_range *out)
{
    module_query query = {.address = (uintptr_t)address};
    int found = tide_linker_each_module(linker_visit_module, &query);
    if (found != 0)
        *out = query.range;
    return found != 0;
}

bool tide_linker_module_of(const void *address, tide_linker_range *out)
{
    tide_outside outside = tide_outside_enter(); /* also where no visit is needed */
    bool found = tide_linker_in_program(address, out);
    if (!found)
        found =
            linker_has_finder() ? linker_ask_finder(address, out) : linker_visit_for(address, out);
    tide_outside_leave(outside);
    tide_assert(!found || (out->first <= (uintptr_t)address && (uintptr_t)address < out->last));
    return found;
}
