/* SPDX-License-Identifier: MIT */
/* What a device's pools and buffers hold of its memory, and may hold. */
#include "runtime/device/budget.h"
#include "runtime/device/lender.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <tidepool/device_memory.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/lock.h"
#include "runtime/base/registry.h"
#include "runtime/base/ring.h"
#include "runtime/device/deferred.h"
#include "runtime/device/group.h"
#include "runtime/device/limit.h"

enum { ASKED_AGAIN_MAX = 16 };

/* This thread is inside of a function of the program, which is not asked again. */
static _Thread_local bool budget_asking;

/* All memory of the host, but not what the program gave to a pool; of a device what is its own. */
static bool budget_counts(const tide_device *device, int memory)
{
    bool own = memory == TIDE_MEMORY_DEVICE || memory == TIDE_MEMORY_IPC;
    return device == &tide_device_host || (own && !device->host);
}

bool tide_budget_is_own(const tide_device *device, int memory)
{
    bool shared = memory == TIDE_MEMORY_MANAGED && !device->concurrent; /* it is not moved out */
    return device->host || device->integrated || memory == TIDE_MEMORY_DEVICE ||
           memory == TIDE_MEMORY_IPC || shared;
}

bool tide_budget_never(const tide_device *device, int memory, size_t bytes)
{
    return !device->host && tide_budget_is_own(device, memory) && bytes > device->bytes;
}

/* ---- counting ----------------------------------------------------------------------------- */

static void budget_raise_peak(tide_device *device, size_t held)
{
    size_t peak = __atomic_load_n(&device->held_peak, __ATOMIC_RELAXED);
    while (held > peak && !__atomic_compare_exchange_n(&device->held_peak, &peak, held, true,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

/* SIZE_MAX: there is no limit. */
static size_t budget_most(const tide_device *device)
{
    if (device == &tide_device_host)
        return tide_limit_most();
    size_t limit = __atomic_load_n(&device->limit, __ATOMIC_RELAXED);
    return limit != 0 ? limit : SIZE_MAX;
}

/* Of so many bytes more, those that the limit leaves no room for. */
static size_t budget_beyond(size_t held, size_t bytes, size_t most)
{
    size_t room = held < most ? most - held : 0;
    return bytes > room ? bytes - room : 0;
}

/* `now`: held with these bytes. */
static bool budget_take(tide_device *device, size_t bytes, size_t *now)
{
    size_t most = budget_most(device), held = tide_budget_held(device);
    do {
        if (budget_beyond(held, bytes, most) != 0) {
            tide_device_count(&device->refused);
            return false;
        }
    } while (!__atomic_compare_exchange_n(&device->held, &held, held + bytes, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    tide_assert(bytes <= SIZE_MAX - held);
    if (device == &tide_device_host)
        tide_group_note_taken(bytes);
    *now = held + bytes;
    return true;
}

void tide_budget_give(tide_device *device, size_t bytes)
{
    size_t before = __atomic_fetch_sub(&device->held, bytes, __ATOMIC_RELAXED);
    tide_assert(before >= bytes); /* each byte was taken before */
    (void)before;
}

static tide_status budget_get(tide_device *device, void *stream, int memory, size_t bytes,
                              size_t align, void **data)
{
    TIDE_FORWARD(device->methods->allocate(device, stream, memory, bytes, align, data));
    if ((uintptr_t)*data % align == 0)
        return TIDE_OK;
    device->methods->release(device, stream, memory, *data, bytes);
    return tide_fail(TIDE_ERROR_DEVICE, "tide_device",
                     "device %s has no memory aligned to %zu bytes", device->name, align);
}

tide_status tide_budget_allocate(tide_device *device, void *stream, int memory, size_t bytes,
                                 size_t align, void **data)
{
    if (!budget_counts(device, memory))
        return budget_get(device, stream, memory, bytes, align, data);
    size_t now = 0;
    if (!budget_take(device, bytes, &now))
        return TIDE_ERROR_LIMIT;
    tide_status status = budget_get(device, stream, memory, bytes, align, data);
    if (status == TIDE_OK)
        budget_raise_peak(device, now);
    else
        tide_budget_give(device, bytes);
    return status;
}

void tide_budget_release(tide_device *device, void *stream, int memory, void *data, size_t bytes)
{
    TIDE_RINGS_CALL(gave, data);
    device->methods->release(device, stream, memory, data, bytes);
    if (budget_counts(device, memory))
        tide_budget_give(device, bytes);
}

tide_status tide_budget_extend(tide_device *device, void *data, size_t had, size_t bytes)
{
    size_t now = 0;
    tide_assert(bytes > had && budget_counts(device, TIDE_MEMORY_DEVICE));
    if (!device->extends || !budget_take(device, bytes - had, &now))
        return TIDE_ERROR_MEMORY;
    tide_status status = device->methods->extend(device, data, bytes);
    if (status == TIDE_OK)
        budget_raise_peak(device, now);
    else
        tide_budget_give(device, bytes - had);
    return status;
}

bool tide_budget_is_near(const tide_device *device)
{
    return tide_budget_held(device) > budget_most(device) / 4;
}

/* ---- pressing ----------------------------------------------------------------------------- */

const tide_lender *tide_lend;

size_t tide_budget_missing(const tide_device *device, tide_status status, size_t bytes, bool again)
{
    bool here = device == &tide_device_host;
    size_t held = tide_budget_held(device), most = budget_most(device);
    if (status != TIDE_ERROR_LIMIT && !device->host && again)
        return SIZE_MAX;
    if (status != TIDE_ERROR_LIMIT && here)
        return bytes <= held ? bytes : 0;
    if (status != TIDE_ERROR_LIMIT || device->host != here) /* a region's limit is its end */
        return bytes;
    size_t beyond = budget_beyond(held, bytes, most);
    if (bytes > most)
        return 0;
    return beyond != 0 ? beyond : 1; /* others have given some back meanwhile */
}

size_t tide_press(tide_device *device, int memory, size_t bytes)
{
    size_t gone = 0;
    tide_lock_assert_none();
    for (size_t i = 0; i < tide_ring_count && gone < bytes; i++)
        if (tide_rings[i]->press != NULL)
            gone += tide_rings[i]->press(device, memory, bytes - gone);
    if (gone != 0 && device == &tide_device_host)
        tide_limit_pressed();
    return gone;
}

/* What each ring holds, one after the other. */
static void budget_tell(const tide_device *device, char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < tide_ring_count; i++) {
        const size_t start = used != 0 ? used + 2 : 0;
        if (tide_rings[i]->tell == NULL || start + 1 >= room)
            continue;
        text[start] = '\0';
        tide_rings[i]->tell(device, text + start, room - start);
        if (text[start] == '\0')
            continue;
        if (start != 0)
            memcpy(text + used, "; ", 2);
        used = start + strlen(text + start);
        tide_assert(used < room);
    }
}

/* Of long names the end is cut, not who holds how much. */
tide_status tide_budget_fail(const tide_device *device, tide_status status, const char *call,
                             const char *format, ...)
{
    char what[256], holders[192];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    budget_tell(device, holders, sizeof holders);
    return tide_fail(status, call, "%s; %s", what, holders);
}

tide_status tide_budget_refuse(const tide_device *device, size_t bytes, const char *call)
{
    size_t held = tide_budget_held(device), most = budget_most(device);
    return tide_budget_fail(
        device, TIDE_ERROR_LIMIT, call,
        "%zu bytes would take %s%s from %zu past its limit of %zu bytes: %zu are missing", bytes,
        device->host ? "the process" : "device ", device->host ? "" : device->name, held, most,
        budget_beyond(held, bytes, most));
}

/* ---- asking the program ------------------------------------------------------------------- */

/* The function that is to be called, and what it is to get: of one setting. */
static tide_device_full_function budget_function(tide_device *device, void **user)
{
    tide_registry_lock();
    tide_device_full_function function = device->full;
    *user = device->full_user;
    tide_registry_unlock();
    return function;
}

bool tide_budget_ask(tide_device *device, size_t bytes, unsigned *asked)
{
    void *user = NULL;
    if (device->host || *asked == ASKED_AGAIN_MAX)
        return false;
    if (tide_deferred_settle(device, true))
        return true;
    tide_device_full_function function = budget_asking ? NULL : budget_function(device, &user);
    if (function == NULL)
        return false;
    tide_device_count(&device->asked);
    budget_asking = true;
    tide_lock_assert_none();
    bool again = function(device, bytes, (*asked)++, user);
    budget_asking = false;
    return again;
}

void tide_budget_trimmed(tide_device *device)
{
    if (device->methods->trim != NULL && !tide_device_lost(device))
        (void)device->methods->trim(device, 0);
}

/* ---- what the program sets and asks ------------------------------------------------------- */

/* Open, and no other's: held meanwhile. */
static tide_status budget_hold(tide_device *device, const char *call)
{
    if (device == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the device is NULL");
    return tide_device_hold_open(device, call);
}

tide_status tide_device_memory_set(tide_device *device, const tide_device_memory_options *options)
{
    const char *call = "tide_device_memory_set";
    const tide_device_memory_options none = {0};
    options = options != NULL ? options : &none;
    TIDE_FORWARD(tide_growth_check(options->growth_, call));
    if (device == &tide_device_host)
        return tide_fail(TIDE_ERROR_ARGUMENT, call,
                         "the host's memory is limited for the process: tide_limit_set");
    TIDE_FORWARD(budget_hold(device, call));
    tide_registry_lock(); /* the function and what it gets belong together */
    device->full_user = options->user;
    device->full = options->full;
    __atomic_store_n(&device->limit, options->limit_bytes, __ATOMIC_RELAXED);
    tide_registry_unlock();
    tide_device_drop(device);
    return TIDE_OK;
}

static tide_status budget_describe(tide_device *device, tide_device_memory *out)
{
    tide_reserved kept = {0};
    size_t most = budget_most(device);
    if (device->methods->reserved != NULL)
        TIDE_FORWARD(device->methods->reserved(device, &kept));
    *out = (tide_device_memory){.bytes_held = tide_budget_held(device),
                                .bytes_peak = __atomic_load_n(&device->held_peak, __ATOMIC_RELAXED),
                                .limit_bytes = most == SIZE_MAX ? 0 : most,
                                .refused = __atomic_load_n(&device->refused, __ATOMIC_RELAXED),
                                .asked = __atomic_load_n(&device->asked, __ATOMIC_RELAXED),
                                .driver_known = kept.known,
                                .driver_pool = kept.pool,
                                .driver_reserved = kept.reserved,
                                .driver_reserved_peak = kept.reserved_peak,
                                .driver_used = kept.used,
                                .driver_used_peak = kept.used_peak};
    return TIDE_OK;
}

tide_status tide_device_memory_stats(tide_device *device, tide_device_memory *out)
{
    const char *call = "tide_device_memory_stats";
    if (out == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the result is NULL");
    TIDE_FORWARD(budget_hold(device, call));
    tide_status status = budget_describe(device, out);
    tide_device_drop(device);
    return status;
}

tide_status tide_device_memory_trim(tide_device *device, size_t keep_bytes)
{
    TIDE_FORWARD(budget_hold(device, "tide_device_memory_trim"));
    TIDE_RINGS_CALL(trim, device, TIDE_MEMORY_DEVICE, SIZE_MAX);
    (void)tide_deferred_settle(device, true);
    tide_status status =
        device->methods->trim != NULL ? device->methods->trim(device, keep_bytes) : TIDE_OK;
    tide_device_drop(device);
    return status;
}
