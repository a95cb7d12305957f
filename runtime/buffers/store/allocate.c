/* SPDX-License-Identifier: MIT */
/* Memory for a new buffer: of the device, and where that has none, after others have given theirs back. */
#include "runtime/base/error.h"
#include "runtime/base/probe.h"
#include "runtime/buffers/store/depot.h"
#include "runtime/device/budget.h"

enum { TRIES_MAX = 64 /* of a request that is refused */ };

static bool allocate_found_none(tide_status status)
{
    return status == TIDE_ERROR_MEMORY || status == TIDE_ERROR_LIMIT;
}

static size_t allocate_missing(const tide_device *device, tide_status status, size_t bytes,
                               bool again)
{
    return status == TIDE_ERROR_LIMIT || !device->host
               ? tide_budget_missing(device, status, bytes, again)
               : bytes;
}

static void allocate_count_pressed(tide_buffers *buffers, size_t bytes)
{
    tide_lock_take(&buffers->mutex);
    buffers->pressed++;
    tide_lock_let_go(&buffers->mutex);
    TIDE_USDT(buffers_pressed, buffers, (const char *)buffers->name, bytes);
}

/* What buffers have cached goes, and it is asked for once more. */
static tide_status allocate_calmly(tide_buffers *buffers, const tide_want *want, size_t bytes,
                                   tide_status status, void **data)
{
    tide_device *device = tide_hand_over_device_of(buffers, want->key);
    size_t missing = allocate_missing(device, status, bytes, false);
    if (missing == 0 ||
        tide_depot_press(device, tide_hand_over_memory_of(buffers, want->key), missing) == 0)
        return status;
    allocate_count_pressed(buffers, bytes);
    return tide_hand_over_allocate(buffers, want->key, bytes, &want->passing, want->call, data);
}

/* What nobody uses of the memory that the buffer is of is given back, and it is asked for once more;
 * of a device then again as often as somebody gives some back; not for ever, because other threads
 * may take it. */
static tide_status allocate_again(tide_buffers *buffers, const tide_want *want, size_t bytes,
                                  tide_status status, void **data)
{
    tide_device *device = tide_hand_over_device_of(buffers, want->key);
    const int memory = tide_hand_over_memory_of(buffers, want->key);
    unsigned asked = 0, tries = 1;
    if (want->yield == TIDE_YIELD_NOTHING || tide_budget_never(device, memory, bytes))
        return status;
    if (want->yield == TIDE_YIELD_CACHED)
        return allocate_calmly(buffers, want, bytes, status, data);
    allocate_count_pressed(buffers, bytes);
    for (bool again = true; again && tries < TRIES_MAX; tries++) {
        size_t missing = allocate_missing(device, status, bytes, tries > 1);
        size_t gone = missing != 0 ? tide_press(device, memory, missing) : 0;
        status =
            tide_hand_over_allocate(buffers, want->key, bytes, &want->passing, want->call, data);
        again = allocate_found_none(status) && !device->host &&
                (gone != 0 || tide_budget_ask(device, bytes, &asked));
    }
    return status;
}

tide_status tide_depot_allocate(tide_buffers *buffers, const tide_want *want, size_t bytes,
                                void **data)
{
    tide_status status =
        tide_hand_over_allocate(buffers, want->key, bytes, &want->passing, want->call, data);
    if (allocate_found_none(status))
        status = allocate_again(buffers, want, bytes, status, data);
    if (status == TIDE_ERROR_LIMIT)
        return tide_budget_refuse(tide_hand_over_device_of(buffers, want->key), bytes, want->call);
    if (status != TIDE_ERROR_MEMORY)
        return status;
    tide_lock_take(&buffers->mutex);
    size_t held = buffers->bytes_held;
    tide_lock_let_go(&buffers->mutex);
    return tide_budget_fail(
        tide_hand_over_device_of(buffers, want->key), status, want->call,
        "device %s has no %zu bytes for a buffer of %zu of '%s', which holds %zu",
        buffers->device->name, bytes, want->bytes, buffers->name, held);
}
