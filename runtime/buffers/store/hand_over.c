/* SPDX-License-Identifier: MIT */
/* A buffer passes from the stream of its last use to the stream of its next, by a mark; and the
 * memory of buffers comes from the device and goes back in that order. */
#include "runtime/buffers/store/hand_over.h"

#include "runtime/base/error.h"
#include "runtime/base/shim.h"
#include "runtime/device/budget.h"
#include "runtime/device/limit.h"

enum { ALIGN = 64 };

_Static_assert(TIDE_BUCKET_MIN % ALIGN == 0, "every size is a multiple of the alignment");

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

/* On a device that shares the host's memory, buffers of the device are pinned memory, which the
 * host can see; OpenCL's are not, since kernels do not take its pinned memory. */
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

/* Where memory that no stream gives back cannot be marked, the host waits: only then may it go. A
 * capture may have begun since the caller asked; then neither can be done. */
tide_status tide_hand_over_mark(const tide_buffers *buffers, unsigned key,
                                const tide_hand_over *passing, const char *call, void **mark)
{
    tide_device *device = buffers->device;
    tide_assert(!tide_buffer_plain(buffers, key));
    *mark = NULL;
    if (device->methods->capturing(device, passing->stream))
        return tide_fail(TIDE_ERROR_STATE, call,
                         "a graph is captured on the stream: each of its launches would use the "
                         "buffer of '%s' again",
                         buffers->name);
    *mark = device->methods->mark(device, passing->stream);
    if (*mark != NULL || tide_hand_over_goes_by_stream(buffers, key) ||
        tide_device_stream_over(device, passing->stream))
        return TIDE_OK;
    return tide_fail(TIDE_ERROR_STATE, call, "%s", tide_error_message());
}

void tide_hand_over_leave(tide_buffer_record *record, const tide_hand_over *passing, void *mark)
{
    tide_assert(record->mark == NULL && !tide_handle_live(record));
    record->stream = passing->number;
    record->mark = mark;
}

bool tide_hand_over_over(const tide_buffers *buffers, tide_buffer_record *record)
{
    tide_device *device = buffers->device;
    tide_assert(!tide_handle_live(record));
    if (record->mark == NULL)
        return true;
    if (!device->methods->mark_done(device, record->mark))
        return false;
    hand_over_drop_mark(buffers, record);
    return true;
}

/* The stream waits for the mark, which is then gone. False: the device cannot. */
static bool hand_over_follow_mark(const tide_buffers *buffers, tide_buffer_record *record,
                                  void *stream)
{
    tide_device *device = buffers->device;
    tide_assert(record->mark != NULL);
    if (device->methods->mark_follow == NULL ||
        device->methods->mark_follow(device, record->mark, stream) != TIDE_OK)
        return false;
    hand_over_drop_mark(buffers, record);
    return true;
}

bool tide_hand_over_ready(const tide_buffers *buffers, tide_buffer_record *record,
                          const tide_hand_over *passing)
{
    tide_device *device = buffers->device;
    tide_assert(!tide_handle_live(record));
    if (record->mark == NULL)
        return true;
    bool both = tide_buffer_of_both(record->key);
    if (!both && record->stream == passing->number) {
        hand_over_drop_mark(buffers, record);
        return true;
    }
    if (device->methods->capturing(device, passing->stream))
        return false;
    if (tide_hand_over_over(buffers, record))
        return true;
    return !both && hand_over_follow_mark(buffers, record, passing->stream);
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

bool tide_hand_over_goes(const tide_buffers *buffers, tide_buffer_record *record,
                         const tide_hand_over *passing)
{
    tide_assert(!tide_handle_live(record));
    bool ordered = tide_hand_over_goes_by_stream(buffers, record->key);
    if (record->mark == NULL || !ordered || record->stream != passing->number)
        return tide_hand_over_over(buffers, record);
    hand_over_drop_mark(buffers, record);
    return true;
}

tide_status tide_hand_over_allocate(const tide_buffers *buffers, unsigned key, size_t bytes,
                                    const tide_hand_over *passing, const char *call, void **data)
{
    tide_assert(bytes != 0 && bytes % TIDE_BUCKET_MIN == 0);
    tide_device *device = tide_hand_over_device_of(buffers, key);
    TIDE_FORWARD(tide_hand_over_has(device, tide_buffer_flags(key), call));
    if (!tide_buffer_plain(buffers, key) && device->methods->capturing(device, passing->stream))
        return tide_fail(TIDE_ERROR_STATE, call,
                         "a graph is captured on the stream, and no buffer of %zu bytes of '%s' "
                         "was last used there",
                         bytes, buffers->name);
    if (device == &tide_device_host)
        tide_limit_ask(bytes);
    tide_status status = tide_budget_allocate(
        device, passing->stream, tide_hand_over_memory_of(buffers, key), bytes, ALIGN, data);
    if (status == TIDE_ERROR_LIMIT)
        return status; /* as where there is no memory: who wants it may give some back */
    return status == TIDE_OK || status == TIDE_ERROR_MEMORY
               ? status
               : tide_fail(status, call, "%s", tide_error_message());
}

tide_status tide_hand_over_quiet(const tide_buffers *buffers, const char *call)
{
    tide_device *device = buffers->device;
    if (buffers->immediate || !device->methods->capturing(device, buffers->stream))
        return TIDE_OK;
    return tide_fail(TIDE_ERROR_STATE, call, "a graph is captured on the stream of '%s'",
                     buffers->name);
}

/* The memory may be given back on the stream from now on. The host waits only where no stream can
 * wait for the mark. No mark lies in a capture, so it can always be waited for. */
static void hand_over_settle(const tide_buffers *buffers, tide_buffer_record *record, int memory,
                             void *stream)
{
    tide_device *device = buffers->device;
    if (tide_hand_over_over(buffers, record) ||
        (memory == TIDE_MEMORY_DEVICE && hand_over_follow_mark(buffers, record, stream)))
        return;
    bool over = tide_device_mark_over(device, record->mark);
    tide_assert(over);
    (void)over;
    hand_over_drop_mark(buffers, record);
    tide_assert(record->mark == NULL);
}

void tide_hand_over_free(const tide_buffers *buffers, tide_buffer_record *record,
                         const tide_hand_over *passing)
{
    tide_assert(!tide_handle_live(record));
    tide_device *device = tide_hand_over_device_of(buffers, record->key);
    int memory = tide_hand_over_memory_of(buffers, record->key);
    size_t bytes = tide_handle_bytes(buffers, record);
    void *stream = passing != NULL ? passing->stream : device->service;
    if (tide_buffer_plain(buffers, record->key)) {
        tide_assert(record->mark == NULL);
        stream = NULL;
        if (buffers->careful)
            tide_shim_release(record->data, bytes);
    } else if (record->mark != NULL && passing != NULL && memory == TIDE_MEMORY_DEVICE &&
               record->stream == passing->number) {
        hand_over_drop_mark(buffers, record);
    } else {
        hand_over_settle(buffers, record, memory, stream);
    }
    tide_budget_release(device, stream, memory, record->data, bytes);
}
