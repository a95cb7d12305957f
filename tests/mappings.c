/* SPDX-License-Identifier: MIT */
/* Memory that is given back to the system is wholly gone, its last page too, whatever its size:
 * ThreadSanitizer must not take what its next owner does for a race with us. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/os.h"
#include "support.h"

enum { PAGE = 4096, HUGE = 2 << 20, MAPS_READ_WRITE = PROT_READ | PROT_WRITE };

/* What another thread is to write to. It is told by a relaxed store: that orders nothing. */
static uint64_t *told;
static bool waits; /* as relaxed */

static void *write_when_told(void *nothing)
{
    uint64_t *at;
    __atomic_store_n(&waits, true, __ATOMIC_RELAXED);
    while ((at = __atomic_load_n(&told, __ATOMIC_RELAXED)) == NULL)
        ;
    *at = 1;
    return nothing;
}

/* Maps a page as the dynamic linker does: nobody sees the call. It lies there if nothing else does.
 */
static uint64_t *map_unseen(char *at)
{
    long got = syscall(SYS_mmap, at, PAGE, MAPS_READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_equal((char *)got, at); /* NOLINT(performance-no-int-to-ptr) */
    return (uint64_t *)(void *)at;
}

/* A thread that begins maps memory of its own (a sanitizer's stack for signals, say), which might
 * come to lie where some was given back: it has begun before. */
static void is_gone(void *(*map)(size_t bytes), void (*unmap)(void *start, size_t bytes),
                    size_t bytes)
{
    __atomic_store_n(&told, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&waits, false, __ATOMIC_RELAXED);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_when_told, NULL), 0);
    while (!__atomic_load_n(&waits, __ATOMIC_RELAXED))
        sched_yield();
    char *start = map(bytes);
    assert_non_null(start);
    char *last = start + (bytes - 1) / PAGE * PAGE;
    start[0] = *last = 1;
    unmap(start, bytes);
    uint64_t *next = map_unseen(last);
    __atomic_store_n(&told, next, __ATOMIC_RELAXED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(*next, 1);
    assert_int_equal(munmap(next, PAGE), 0);
}

static void reserved_memory_goes_whole(void **state)
{
    (void)state;
    is_gone(tide_os_reserve, tide_os_unreserve, PAGE);
    is_gone(tide_os_reserve, tide_os_unreserve, PAGE + 32);
    is_gone(tide_os_reserve, tide_os_unreserve, 64 * PAGE + 8);
}

static void huge_memory_goes_whole(void **state)
{
    (void)state;
    is_gone(tide_os_map_huge, tide_os_unmap_huge, HUGE);
    is_gone(tide_os_map_huge, tide_os_unmap_huge, HUGE + 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reserved_memory_goes_whole),
        cmocka_unit_test(huge_memory_goes_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
