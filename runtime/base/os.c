/* SPDX-License-Identifier: MIT */
/* Linux, through libc. */
#define _GNU_SOURCE
#include "runtime/base/os.h"

#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/assert.h"
#include "runtime/base/shim.h"

bool (*tide_os_fault)(size_t bytes);

bool tide_os_faulted(size_t bytes)
{
    return TIDE_UNLIKELY(tide_os_fault != NULL) && tide_os_fault(bytes);
}

static void unmap(void *start, size_t bytes)
{
    int failed = munmap(start, bytes);
    tide_assert(!failed);
    (void)failed;
}

/* No huge pages here: a pool touches a few lines of a large range, and one huge page for each
 * of them would cost megabytes for every pool. */
void *tide_os_reserve(size_t bytes)
{
    if (tide_os_faulted(bytes))
        return NULL;
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    (void)madvise(start, bytes, MADV_NOHUGEPAGE);
    tide_shim_root(start, bytes);
    return start;
}

void tide_os_unreserve(void *start, size_t bytes)
{
    tide_shim_unroot(start, bytes);
    unmap(start, bytes);
}

void *tide_os_map_guarded(size_t bytes, size_t guard)
{
    if (tide_os_faulted(bytes))
        return NULL;
    char *start = mmap(NULL, bytes + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                       -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    if (mprotect(start + bytes, guard, PROT_NONE) == 0)
        return start;
    unmap(start, bytes + guard);
    return NULL;
}

/* Neighbours that look alike are one mapping to the kernel, and it may have none left for what
 * a hole would part: then the addresses stay forbidden for good. */
void tide_os_unmap_guarded(void *start, size_t bytes)
{
    (void)munmap(start, bytes);
}

/* The kernel may refuse either when a process has as many mappings as it may: then the memory
 * stays as it is. (A fresh mapping over the old one would be one call, but leave a hole if it
 * failed, for another thread's memory to fill.) */
void tide_os_forbid(void *start, size_t bytes)
{
    (void)mprotect(start, bytes, PROT_NONE);
    (void)madvise(start, bytes, MADV_DONTNEED);
}

void *tide_os_map_huge(size_t bytes)
{
    const size_t huge = (size_t)2 << 20, page = (size_t)sysconf(_SC_PAGESIZE);
    if (tide_os_faulted(bytes))
        return NULL;
    bytes = (bytes + page - 1) / page * page;
    char *start = mmap(NULL, bytes + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                       -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    char *aligned = start + (huge - (uintptr_t)start % huge) % huge;
    if (aligned != start)
        unmap(start, (size_t)(aligned - start));
    unmap(aligned + bytes, (size_t)(start + bytes + huge - (aligned + bytes)));
    (void)madvise(aligned, bytes, MADV_HUGEPAGE);
    return aligned;
}

void tide_os_unmap_huge(void *start, size_t bytes)
{
    unmap(start, bytes);
}

void *tide_os_resize(void *old, size_t bytes)
{
    return tide_os_faulted(bytes) ? NULL : realloc(old, bytes);
}

void tide_os_free(void *memory)
{
    free(memory);
}

void *tide_os_aligned(size_t bytes, size_t align)
{
    void *memory = NULL;
    if (tide_os_faulted(bytes) || posix_memalign(&memory, align, bytes) != 0)
        return NULL;
    return memory;
}

uintptr_t tide_os_thread(void)
{
    return (uintptr_t)pthread_self();
}

void tide_os_thread_name(char name[TIDE_OS_NAME_BYTES])
{
    if (pthread_getname_np(pthread_self(), name, TIDE_OS_NAME_BYTES) != 0)
        strcpy(name, "?");
}

void tide_os_write_error(const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = write(STDERR_FILENO, text, bytes);
        if (written <= 0)
            return; /* nobody listens */
        text += written;
        bytes -= (size_t)written;
    }
}

typedef struct module_query {
    uintptr_t address, first, last;
} module_query;

static int visit_module(struct dl_phdr_info *info, size_t size, void *user)
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

bool tide_os_module(const void *address, uintptr_t *first, uintptr_t *last)
{
    module_query query = {.address = (uintptr_t)address};
    if (dl_iterate_phdr(visit_module, &query) == 0)
        return false;
    *first = query.first;
    *last = query.last;
    return true;
}
