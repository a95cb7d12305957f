/* SPDX-License-Identifier: MIT */
/* The hook that writes a trace: a line for each acquire and release. A buffer's release is told
 * before anybody can acquire it again, and each line is written whole, so lines of one slot
 * alternate. */
#define _GNU_SOURCE
#include <time.h>

#include <tidepool/buffers.h>

static uint64_t started; /* atomic */
static uint32_t threads; /* atomic */
static _Thread_local uint32_t thread;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t since_start(void)
{
    uint64_t at = now(), first = 0;
    if (__atomic_compare_exchange_n(&started, &first, at, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
        first = at;
    return at > first ? at - first : 0;
}

void tide_buffer_trace(const tide_buffer_event *event, void *file)
{
    if (event->happening != TIDE_BUFFER_ACQUIRED && event->happening != TIDE_BUFFER_RELEASED)
        return;
    if (thread == 0)
        thread = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
    fprintf(file, "%llu %u %llu %s %llu %zu %u\n", (unsigned long long)since_start(), thread,
            (unsigned long long)event->stream,
            event->happening == TIDE_BUFFER_ACQUIRED ? "acquire" : "release",
            (unsigned long long)event->slot, event->asked, event->flags);
}
