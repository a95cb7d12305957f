/* SPDX-License-Identifier: MIT */
/* The hook that writes a trace: a line for each acquire and release. A buffer's release is told
 * before anybody can acquire it again, and each line is written whole. So acquires and releases of
 * one slot take turns in the trace. */
#define _GNU_SOURCE
#include "runtime/base/os.h"
#include "runtime/buffers/store/instance.h"

static uint64_t trace_started; /* the clock at the first line; atomic. 0: no line yet */
static uint32_t trace_threads; /* that have written a line; atomic                    */
static _Thread_local uint32_t trace_thread; /* this thread's number; 0: none yet */

/* Nanoseconds since the first line, of whatever thread. */
static uint64_t trace_since_start(void)
{
    uint64_t at = tide_os_now_ns(), first = 0;
    if (__atomic_compare_exchange_n(&trace_started, &first, at, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
        first = at;
    return at > first ? at - first : 0;
}

/* Different for the slots of all instances, which may write to one file: those of the first
 * instance of the process as they are, those of the next from TIDE_BUFFER_MAX on, and so on. */
static uint64_t trace_slot(const tide_buffer_event *event)
{
    uint64_t before = (event->buffers->number & TIDE_INSTANCE_MASK) - 1;
    uint32_t slot = (uint32_t)event->slot; /* without the bucket */
    tide_assert(slot < TIDE_BUFFER_MAX);
    return before * TIDE_BUFFER_MAX + slot;
}

void tide_buffer_trace(const tide_buffer_event *event, void *file)
{
    if (event->happening != TIDE_BUFFER_ACQUIRED && event->happening != TIDE_BUFFER_RELEASED)
        return;
    if (trace_thread == 0)
        trace_thread = __atomic_add_fetch(&trace_threads, 1, __ATOMIC_RELAXED);
    fprintf(file, "%llu %u %llu %s %llu %zu %u\n", (unsigned long long)trace_since_start(),
            trace_thread, (unsigned long long)event->stream,
            event->happening == TIDE_BUFFER_ACQUIRED ? "acquire" : "release",
            (unsigned long long)trace_slot(event), event->asked, event->flags);
}
