/* SPDX-License-Identifier: MIT */
/* A buffer passes from the stream of its last use to the stream of its next; and the memory of
 * buffers comes from the device and goes back in that order. */
#define _GNU_SOURCE
#include "runtime/buffers/store/hand_over.h"

#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/shim.h"
#include "runtime/device/budget.h"
#include "runtime/device/deferred.h"
#include "runtime/device/limit.h"

/* How buffers of the key are aligned. */
static size_t hand_over_align(unsigned key)
{
    switch (tide_buffer_flags(key) & ~0xFFFFu) {
    case TIDE_BUFFER_PAGE_ALIGNED: return (size_t)getpagesize();
    case TIDE_BUFFER_HUGE_ALIGNED: return (size_t)2 << 20;
    default: return 64;
    }
}

tide_status tide_hand_over_find(const tide_buffers *buffers, unsigned key, void *stream,
                                tide_hand_over *out, const char *call)
{
    tide_assert(key < TIDE_BUFFER_KEYS && out != NULL);
    tide_device *device = buffers->device;
    *out = (tide_hand_over){.stream = stream, .number = 1};
    if (tide_buffer_kind(key) == TIDE_BUFFER_HOST)
        return TIDE_OK;
    return tide_device_find_stream(device, stream, call, &out->number);
}

/* Which memory of the device, a TIDE_MEMORY_*. On a device that shares the host's memory, buffers of the
 * device are pinned memory, which the host can see. OpenCL's are not, since kernels do not take its pinned
 * memory. */
int tide_hand_over_memory_of(const tide_buffers *buffers, unsigned key)
{
    const tide_device *device = buffers->device;
    bool visible = device->integrated && !device->host && device->dl.device_type == TIDE_DL_CUDA;
    bool pinned = tide_buffer_kind(key) == TIDE_BUFFER_PINNED;
    if (tide_buffer_kind(key) == TIDE_BUFFER_MANAGED)
        return TIDE_MEMORY_MANAGED;
    if (tide_buffer_kind(key) == TIDE_BUFFER_IPC)
        return TIDE_MEMORY_IPC;
    return pinned || (visible && tide_buffer_kind(key) == TIDE_BUFFER_DEVICE) ? TIDE_MEMORY_PINNED
                                                                              : TIDE_MEMORY_DEVICE;
}

bool tide_hand_over_goes_by_stream(const tide_buffers *buffers, unsigned key)
{
    return tide_hand_over_memory_of(buffers, key) == TIDE_MEMORY_DEVICE;
}

/* ---- marks ------------------------------------------------------------------------------ */

static void hand_over_drop_mark(const tide_buffers *buffers, tide_buffer_record *record)
{
    tide_assert(record->mark != NULL);
    buffers->device->methods->mark_drop(buffers->device, record->mark);
    record->mark = NULL;
}

/* Can an event be recorded on the stream later, when somebody needs one? Not where the number does
 * not tell the handle (OpenCL), nor on a thread's own default stream, which others cannot name. */
static bool hand_over_stream_named(const tide_device *device, uint64_t number)
{
    return device->dl.device_type == TIDE_DL_CUDA && (number & 7) != TIDE_STREAM_PER_THREAD;
}

/* Where memory that no stream gives back cannot be marked, the host waits: only then may it go. */
tide_status tide_hand_over_mark(const tide_buffers *buffers, unsigned key,
                                const tide_hand_over *passing, const char *call, void **mark)
{
    tide_device *device = buffers->device;
    bool ordered = tide_hand_over_goes_by_stream(buffers, key);
    tide_assert(!tide_buffer_plain(buffers, key));
    *mark = NULL;
    if (tide_device_told_capturing(device, passing->stream))
        return tide_fail(TIDE_ERROR_STATE, call,
                         "a graph is captured on the stream: each of its launches would use the "
                         "buffer of '%s' again",
                         buffers->name);
    if (ordered && hand_over_stream_named(device, passing->number))
        return TIDE_OK;
    *mark = device->methods->mark(device, passing->stream);
    if (*mark != NULL || ordered || tide_device_stream_over(device, passing->stream))
        return TIDE_OK;
    return tide_fail(TIDE_ERROR_STATE, call, "%s", tide_error_message());
}

bool tide_hand_over_keeps(const tide_buffers *buffers, unsigned key, const tide_hand_over *passing,
                          const void *mark)
{
    return mark != NULL || buffers->kept ||
           (tide_hand_over_goes_by_stream(buffers, key) &&
            hand_over_stream_named(buffers->device, passing->number));
}

bool tide_hand_over_over(const tide_buffers *buffers, tide_buffer_record *record)
{
    tide_device *device = buffers->device;
    tide_assert(!tide_handle_live(record));
    if (record->mark == NULL) /* nothing that somebody queued may still use it */
        return tide_buffer_plain(buffers, record->key) || record->stream == 0;
    if (!device->methods->mark_done(device, record->mark))
        return false;
    hand_over_drop_mark(buffers, record);
    record->stream = 0;
    return true;
}

/* The stream comes after the buffer's last use. False: the device cannot have that, or one of the
 * two streams is captured. */
static bool hand_over_follow(const tide_buffers *buffers, tide_buffer_record *record, void *stream)
{
    tide_device *device = buffers->device;
    if (record->mark == NULL) {
        void *before = (void *)(uintptr_t)record->stream; /* its number is its handle */
        tide_assert(hand_over_stream_named(device, record->stream));
        return !tide_device_capturing(device, stream) && !tide_device_capturing(device, before) &&
               device->methods->order(device, before, stream) == TIDE_OK;
    }
    if (device->methods->mark_follow == NULL || tide_device_capturing(device, stream) ||
        device->methods->mark_follow(device, record->mark, stream) != TIDE_OK)
        return false;
    hand_over_drop_mark(buffers, record);
    return true;
}

bool tide_hand_over_ready(const tide_buffers *buffers, tide_buffer_record *record,
                          const tide_hand_over *passing)
{
    tide_assert(!tide_handle_live(record));
    bool both = tide_buffer_of_both(record->key);
    if (!both && record->stream == passing->number) {
        if (record->mark != NULL)
            hand_over_drop_mark(buffers, record);
        return true;
    }
    if (!tide_hand_over_over(buffers, record) &&
        (both || !hand_over_follow(buffers, record, passing->stream)))
        return false;
    record->stream = 0;
    return true;
}

/* ---- memory ----------------------------------------------------------------------------- */

tide_device *tide_hand_over_device_of(const tide_buffers *buffers, unsigned key)
{
    return tide_buffer_kind(key) == TIDE_BUFFER_HOST ? &tide_device_host : buffers->device;
}

tide_status tide_hand_over_has(const tide_device *device, uint32_t flags, const char *call)
{
    uint32_t kind = flags & 0xFF;
    if (kind == TIDE_BUFFER_MANAGED && !device->managed && !device->host)
        return tide_fail(TIDE_ERROR_DEVICE, call, "device %s has no managed memory", device->name);
    if (kind == TIDE_BUFFER_IPC && !device->exports)
        return tide_fail(TIDE_ERROR_DEVICE, call, "device %s has no memory for other processes",
                         device->name);
    return TIDE_OK;
}

tide_status tide_hand_over_allocate(const tide_buffers *buffers, unsigned key, size_t bytes,
                                    const tide_hand_over *passing, const char *call, void **data)
{
    tide_assert(bytes != 0 && bytes % TIDE_BUCKET_MIN == 0);
    tide_device *device = tide_hand_over_device_of(buffers, key);
    TIDE_FORWARD(tide_hand_over_has(device, tide_buffer_flags(key), call));
    if (device == &tide_device_host)
        tide_limit_ask(bytes);
    int memory = tide_hand_over_memory_of(buffers, key);
    size_t align = hand_over_align(key);
    tide_status status = tide_budget_allocate(device, passing->stream, memory, bytes, align, data);
    if (status == TIDE_ERROR_LIMIT)
        return status; /* as where there is no memory: who wants it may give some back */
    return status == TIDE_OK || status == TIDE_ERROR_MEMORY
               ? status
               : tide_fail(status, call, "%s", tide_error_message());
}

/* Memory that goes when work on it is over. */
typedef struct hand_over_last {
    tide_deferred deferred; /* first */
    int memory;
    void *data;
    size_t bytes;
} hand_over_last;

static void hand_over_go(tide_device *device, tide_deferred *deferred)
{
    hand_over_last *last = (hand_over_last *)(void *)deferred;
    tide_budget_release(device, device->service, last->memory, last->data, last->bytes);
    tide_os_free(last);
}

/* Behind the mark, without a wait if there is memory to remember it. */
static void hand_over_free_behind(const tide_buffers *buffers, tide_buffer_record *record,
                                  int memory, size_t bytes)
{
    tide_device *device = buffers->device;
    hand_over_last *last = tide_os_resize(NULL, sizeof *last);
    if (last != NULL) {
        *last = (hand_over_last){.memory = memory, .data = record->data, .bytes = bytes};
        tide_deferred_put_marked(device, record->mark, &last->deferred, hand_over_go);
        record->mark = NULL;
        return;
    }
    (void)tide_device_mark_over(device, record->mark);
    hand_over_drop_mark(buffers, record);
    tide_budget_release(device, device->service, memory, record->data, bytes);
}

/* Behind which stream the memory goes that has no mark. */
static void *hand_over_last_stream(const tide_device *device, const tide_buffer_record *record,
                                   const tide_hand_over *passing)
{
    if (passing != NULL)
        return passing->stream;
    return record->stream != 0 && hand_over_stream_named(device, record->stream)
               ? (void *)(uintptr_t)record->stream
               : device->service;
}

void tide_hand_over_free(const tide_buffers *buffers, tide_buffer_record *record,
                         const tide_hand_over *passing)
{
    tide_assert(!tide_handle_live(record));
    tide_device *device = tide_hand_over_device_of(buffers, record->key);
    int memory = tide_hand_over_memory_of(buffers, record->key);
    size_t bytes = tide_handle_bytes(record);
    if (tide_buffer_plain(buffers, record->key)) {
        tide_assert(record->mark == NULL);
        if (buffers->careful)
            tide_shim_release(record->data, bytes);
        tide_budget_release(device, NULL, memory, record->data, bytes);
    } else if (!tide_hand_over_over(buffers, record) && record->mark != NULL) {
        hand_over_free_behind(buffers, record, memory, bytes);
    } else {
        tide_budget_release(device, hand_over_last_stream(device, record, passing), memory,
                            record->data, bytes);
    }
}
