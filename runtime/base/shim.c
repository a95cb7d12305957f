/* SPDX-License-Identifier: MIT */
/* Tells AddressSanitizer, LeakSanitizer and Valgrind what is live, where they are there. */
#include "runtime/base/shim.h"

#include "runtime/base/assert.h"

#ifdef TIDE_HAVE_VALGRIND
#include <valgrind/memcheck.h>
#else
#define RUNNING_ON_VALGRIND                       0
#define VALGRIND_MAKE_MEM_NOACCESS(start, bytes)  ((void)(start), (void)(bytes))
#define VALGRIND_MAKE_MEM_UNDEFINED(start, bytes) ((void)(start), (void)(bytes))
#endif

/* NULL where the program has no such sanitizer. */
#define TIDE_WEAK __attribute__((weak, visibility("default")))

TIDE_WEAK void __asan_poison_memory_region(void const volatile *start, size_t bytes);
TIDE_WEAK void __asan_unpoison_memory_region(void const volatile *start, size_t bytes);
TIDE_WEAK void __lsan_register_root_region(const void *start, size_t bytes);
TIDE_WEAK void __lsan_unregister_root_region(const void *start, size_t bytes);

static void shim_asan_poison(void *start, size_t bytes)
{
    if (__asan_poison_memory_region != NULL)
        __asan_poison_memory_region(start, bytes);
}

static void shim_asan_unpoison(void *start, size_t bytes)
{
    if (__asan_unpoison_memory_region != NULL)
        __asan_unpoison_memory_region(start, bytes);
}

void tide_shim_live(void *data, size_t used, size_t bytes)
{
    tide_assert(data != NULL && used <= bytes);
    tide_shim_dead(data, bytes);
    shim_asan_unpoison(data, used);
    (void)VALGRIND_MAKE_MEM_UNDEFINED(data, used);
}

void tide_shim_longer(void *data, size_t kept, size_t used, size_t bytes)
{
    char *start = data;
    tide_assert(data != NULL && kept <= used && used <= bytes);
    shim_asan_unpoison(start, used);
    shim_asan_poison(start + used, bytes - used);
    (void)VALGRIND_MAKE_MEM_UNDEFINED(start + kept, used - kept);
    (void)VALGRIND_MAKE_MEM_NOACCESS(start + used, bytes - used);
}

void tide_shim_dead(void *data, size_t bytes)
{
    tide_assert(data != NULL && bytes > 0);
    shim_asan_poison(data, bytes);
    (void)VALGRIND_MAKE_MEM_NOACCESS(data, bytes);
}

void tide_shim_release(void *data, size_t bytes)
{
    shim_asan_unpoison(data, bytes);
    (void)VALGRIND_MAKE_MEM_UNDEFINED(data, bytes);
}

void tide_shim_root(void *start, size_t bytes)
{
    if (__lsan_register_root_region != NULL)
        __lsan_register_root_region(start, bytes);
}

void tide_shim_unroot(void *start, size_t bytes)
{
    if (__lsan_unregister_root_region != NULL)
        __lsan_unregister_root_region(start, bytes);
}

TIDE_WEAK void __lsan_ignore_object(const void *memory);

void tide_shim_no_leak(const void *memory)
{
    if (__lsan_ignore_object != NULL)
        __lsan_ignore_object(memory);
}

TIDE_WEAK void AnnotateIgnoreReadsBegin(const char *file, int line);
TIDE_WEAK void AnnotateIgnoreReadsEnd(const char *file, int line);
TIDE_WEAK void AnnotateIgnoreWritesBegin(const char *file, int line);
TIDE_WEAK void AnnotateIgnoreWritesEnd(const char *file, int line);

void tide_shim_trust_begin(void)
{
    if (AnnotateIgnoreReadsBegin != NULL && AnnotateIgnoreWritesBegin != NULL) {
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    }
}

void tide_shim_trust_end(void)
{
    if (AnnotateIgnoreReadsEnd != NULL && AnnotateIgnoreWritesEnd != NULL) {
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    }
}

bool tide_shim_schedules(void)
{
    return RUNNING_ON_VALGRIND != 0;
}
