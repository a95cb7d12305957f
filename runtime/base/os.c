/* SPDX-License-Identifier: MIT */
/* Linux and the C library: memory, mappings, threads, standard error. */
#define _GNU_SOURCE
#include "runtime/base/os.h"
#include "runtime/base/test_hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/assert.h"
#include "runtime/base/shim.h"

bool (*_Atomic tide_os_fault)(size_t bytes);

/* A process names each of its threads with up to 16 bytes, and refuses a shorter buffer. */
_Static_assert(TIDE_OS_NAME_BYTES >= 16, "the name of a thread fits");

bool tide_os_faulted(size_t bytes)
{
    bool (*fault)(size_t bytes) = atomic_load_explicit(&tide_os_fault, memory_order_relaxed);
    return TIDE_UNLIKELY(fault != NULL) && fault(bytes);
}

size_t tide_os_page(void)
{
    return (size_t)getpagesize();
}

/* The kernel gives and takes whole pages. Who says fewer bytes misleads tools that watch the calls:
 * ThreadSanitizer kept what it knew of the rest of the last page, and took for a race what the next
 * owner of that address did. (sysconf would answer, too, but its table is 64 KiB more of the C
 * library in memory, for the first pool.) */
static size_t os_whole_pages(size_t bytes)
{
    const size_t page = (size_t)getpagesize();
    return (bytes + page - 1) / page * page;
}

/* No huge pages here: a pool touches a few lines of a large range, and one huge page for each
 * of them would cost megabytes for every pool. */
void *tide_os_reserve(size_t bytes)
{
    tide_assert(bytes > 0);
    if (tide_os_faulted(bytes))
        return NULL;
    bytes = os_whole_pages(bytes);
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
    bytes = os_whole_pages(bytes);
    tide_shim_unroot(start, bytes);
    (void)munmap(start, bytes);
}

void *tide_os_map_guarded(size_t bytes, size_t guard)
{
    tide_assert(bytes > 0 && guard > 0 && bytes % guard == 0); /* so the guard begins a page */
    if (tide_os_faulted(bytes))
        return NULL;
    char *start =
        mmap(NULL, bytes + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    if (mprotect(start + bytes, guard, PROT_NONE) == 0)
        return start;
    (void)munmap(start, bytes + guard);
    return NULL;
}

/* The kernel may refuse the first call, when the process has as many mappings as it may: then
 * the memory can still be read and written. (One call could do both: a fresh mapping over the
 * old one. But should that fail, it may leave a hole, and another thread's memory could come
 * to lie there.) */
void tide_os_forbid(void *start, size_t bytes)
{
    (void)mprotect(start, bytes, PROT_NONE);
    (void)madvise(start, bytes, MADV_DONTNEED);
}

/* Maps so much more that an aligned part of the size asked for lies in it; the ends go. */
void *tide_os_map(size_t bytes, size_t align)
{
    const size_t huge = (size_t)2 << 20, page = (size_t)getpagesize();
    size_t more = align > page ? align : 0;
    tide_assert(bytes > 0 && align >= page && (align & (align - 1)) == 0);
    if (tide_os_faulted(bytes))
        return NULL;
    bytes = os_whole_pages(bytes);
    char *start =
        mmap(NULL, bytes + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    size_t skip = (align - (uintptr_t)start % align) % align;
    if (skip != 0)
        (void)munmap(start, skip);
    if (more != skip)
        (void)munmap(start + skip + bytes, more - skip);
    if (align >= huge && bytes >= huge)
        (void)madvise(start + skip, bytes, MADV_HUGEPAGE);
    return start + skip;
}

/* The kernel may refuse when the process has as many mappings as it may, since a hole makes two of
 * one: then the pages go, and the addresses stay. */
void tide_os_unmap(void *start, size_t bytes)
{
    bytes = os_whole_pages(bytes);
    if (munmap(start, bytes) != 0)
        (void)madvise(start, bytes, MADV_DONTNEED);
}

bool tide_os_renew(void *start, size_t bytes)
{
    return madvise(start, bytes, MADV_DONTNEED) == 0;
}

void *tide_os_resize(void *old, size_t bytes)
{
    tide_assert(bytes > 0); /* realloc to 0 bytes would free, and look like a failure */
    return tide_os_faulted(bytes) ? NULL : realloc(old, bytes);
}

void tide_os_free(void *memory)
{
    free(memory);
}

void *tide_os_aligned(size_t bytes, size_t align)
{
    tide_assert(bytes > 0 && align >= sizeof(void *) && (align & (align - 1)) == 0);
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
    tide_assert(name != NULL);
    if (pthread_getname_np(pthread_self(), name, TIDE_OS_NAME_BYTES) != 0)
        strcpy(name, "?");
}

uint64_t tide_os_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void tide_os_write_error(const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = write(STDERR_FILENO, text, bytes);
        if (written <= 0)
            break; /* nobody listens */
        text += written;
        bytes -= (size_t)written;
    }
}

void tide_os_complain(const char *format, ...)
{
    char line[512] = "tidepool: ";
    size_t start = strlen(line), most = sizeof line - start - 1;
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(line + start, most, format, arguments);
    va_end(arguments);
    tide_assert(wanted >= 0);
    size_t bytes = start + ((size_t)wanted < most ? (size_t)wanted : most - 1);
    line[bytes] = '\n';
    tide_os_write_error(line, bytes + 1);
}

int tide_os_lift(int descriptor)
{
    if (descriptor < 0 || descriptor > STDERR_FILENO)
        return descriptor;
    int lifted = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), failed = errno;
    close(descriptor);
    errno = failed;
    tide_assert(lifted < 0 || lifted > STDERR_FILENO);
    return lifted;
}

void tide_os_nap(void)
{
    static const struct timespec ns = {.tv_nsec = 50000};
    static const uint32_t nobody = 0; /* who never wakes: a call that a locked program has */
    (void)syscall(SYS_futex, &nobody, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, nobody, &ns);
}

int tide_os_thread_number(void)
{
    return (int)syscall(SYS_gettid);
}

/* The file says "running", or the number of the call that the thread sleeps in: -1 for none. */
bool tide_os_thread_sleeps(int number)
{
    char path[40], first = 0;
    int error = errno;
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", number);
    int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from >= 0) {
        if (read(from, &first, 1) != 1)
            first = 0;
        (void)close(from);
    }
    errno = error;
    return first >= '0' && first <= '9';
}
