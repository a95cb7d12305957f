/* SPDX-License-Identifier: MIT */
/* The one place that asks the operating system (and the C library's allocator) for anything. */
#ifndef TIDEPOOL_RUNTIME_BASE_OS_H
#define TIDEPOOL_RUNTIME_BASE_OS_H

#include <tidepool/inline/config.h>

/* True when a test (test_hooks.h) wants the next allocation, made elsewhere on our behalf, to
 * fail. */
bool tide_os_faulted(size_t bytes);

/* Address space that is zero and costs memory only where it is touched. (Where the system counts
 * whatever may be written, Linux with overcommit_memory 2, all of it counts.) NULL when refused. */
void *tide_os_reserve(size_t bytes);
void tide_os_unreserve(void *start, size_t bytes);

/* Bytes of a page: 4, 16 or 64 KiB. */
size_t tide_os_page(void);

/* Accessible memory followed by `guard` bytes that fault. NULL when refused. Free with tide_os_unmap. */
void *tide_os_map_guarded(size_t bytes, size_t guard);

/* Makes mapped memory fault, and gives its pages back, as far as the system lets it. */
void tide_os_forbid(void *start, size_t bytes);

/* A mapping of its own, aligned to a page or to more. From 2 MiB on, aligned so, huge pages are
 * advised: what is left over after the last whole one has pages of the usual size, so nothing is
 * wasted. NULL when refused. */
void *tide_os_map(size_t bytes, size_t align);
void tide_os_unmap(void *start, size_t bytes);

/* The pages of such a mapping are given back, and zero where they are touched next. False: the
 * system would not; nothing changed. */
bool tide_os_renew(void *start, size_t bytes);

/* Plain memory for bookkeeping; tide_os_resize(NULL, n) allocates. Old content survives failure. */
void *tide_os_resize(void *old, size_t bytes);
void tide_os_free(void *memory);

/* Memory for slots: `align` is a power of two. Free with tide_os_free. */
void *tide_os_aligned(size_t bytes, size_t align);

#define TIDE_OS_NAME_BYTES 16

/* The calling thread: an id that survives fork, and its name as the system knows it. */
uintptr_t tide_os_thread(void);
void tide_os_thread_name(char name[TIDE_OS_NAME_BYTES]);

/* The calling thread's number, which no other thread has for a long time after its end. */
int tide_os_thread_number(void);

/* Does the thread of this number, of this process, sleep in a system call? False where the system
 * does not say. */
bool tide_os_thread_sleeps(int number);

/* Nanoseconds, on the monotonic clock. */
uint64_t tide_os_now_ns(void);

/* Straight to stderr's descriptor; usable in a signal handler. */
void tide_os_write_error(const char *text, size_t bytes);

/* The same for "tidepool: " and one line, which is cut after 500 bytes. */
__attribute__((format(printf, 1, 2))) void tide_os_complain(const char *format, ...);

/* Moves a descriptor (-1 is passed on) out of the places of the standard streams: a program that was
 * started without those may put others there. -1 with errno: it is closed. */
int tide_os_lift(int descriptor);

/* Others run for a moment (50 µs). */
void tide_os_nap(void);

#endif
