/* SPDX-License-Identifier: MIT */
/* Devices by name: opened, counted, held by what lies on them, closed. What a device does itself
 * stands behind its table of methods. */
#define _GNU_SOURCE
#include "runtime/device/device.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tidepool/device.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/base/process.h"
#include "runtime/base/registry.h"
#include "runtime/base/ring.h"
#include "runtime/base/settings.h"
#include "runtime/device/deferred.h"
#include "runtime/device/gate.h"

/* Every device ever opened except the host, one of each name. Guarded by the registry; never freed.
 *
 * Threads open and close devices in turn, and nothing is locked meanwhile: drivers load and unload
 * code, which runs constructors, which may use the library. Only to open or close a device they
 * must not: the thread that has its turn may be waiting for the linker's lock, which a constructor
 * has. */
static tide_device *device_list;

/* ---- turns -------------------------------------------------------------------------------- */

static pid_t device_turn; /* the process of the thread whose turn it is; 0: nobody's; atomic */
static _Thread_local bool device_in_turn;

/* In a child of fork the parent's turn is over. */
static bool device_try_turn(void)
{
    const pid_t process = getpid();
    pid_t now = __atomic_load_n(&device_turn, __ATOMIC_RELAXED);
    return now != process && __atomic_compare_exchange_n(&device_turn, &now, process, false,
                                                         __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static tide_status device_begin_turn(const char *call)
{
    if (device_in_turn && __atomic_load_n(&device_turn, __ATOMIC_RELAXED) == getpid())
        return tide_fail(TIDE_ERROR_STATE, call,
                         "this thread is opening or closing a device: a driver's code cannot");
    tide_lock_assert_none();
    while (!device_try_turn()) {
        if (tide_exit_begun() || tide_driver_exiting(TIDE_DRIVER_CUDA) ||
            tide_driver_exiting(TIDE_DRIVER_OPENCL)) /* whose turn it is may never come back */
            return tide_fail(TIDE_ERROR_DEVICE, call, "the process is exiting");
        usleep(200);
    }
    device_in_turn = true;
    return TIDE_OK;
}

static void device_end_turn(void)
{
    tide_assert(device_in_turn);
    device_in_turn = false;
    __atomic_store_n(&device_turn, 0, __ATOMIC_RELEASE);
}

/* ---- open --------------------------------------------------------------------------------- */

enum { DIGITS_MAX = 4 }; /* of a device's number */

const tide_backend *tide_backends;
const char *tide_backend_names = "";

/* The number after the prefix, or -1: a few digits and nothing else. */
static int device_ordinal_of(const char *name, const char *prefix)
{
    size_t length = strlen(prefix), digits = 0;
    if (strncmp(name, prefix, length) != 0)
        return -1;
    for (name += length; isdigit((unsigned char)name[digits]); digits++) {
    }
    return digits >= 1 && digits <= DIGITS_MAX && name[digits] == '\0' ? atoi(name) : -1;
}

/* The device of this name, counted once more if it is open and answers; one that is closed is listed
 * now if there is none, and all zero but for the name. NULL with a message. */
static tide_device *device_find(const char *name)
{
    tide_device *device = device_list;
    while (device != NULL && strcmp(device->name, name) != 0)
        device = device->next;
    if (device != NULL && device->opened != 0) {
        if (tide_device_answers(device, "tide_device_open") != TIDE_OK)
            return NULL;
        device->opened++;
        return device;
    }
    if (device != NULL && device->own != NULL) { /* exit had begun when it was closed */
        tide_fail(TIDE_ERROR_DEVICE, "tide_device_open", "the process is exiting");
        return NULL;
    }
    if (device == NULL) {
        device = tide_os_resize(NULL, sizeof *device);
        if (device == NULL) {
            tide_fail(TIDE_ERROR_MEMORY, "tide_device_open", "no memory to remember '%s'", name);
            return NULL;
        }
        *device = (tide_device){.next = device_list};
        device_list = device;
    }
    tide_assert(__atomic_load_n(&device->holds, __ATOMIC_RELAXED) == 0);
    *device = (tide_device){.next = device->next};
    snprintf(device->name, sizeof device->name, "%s", name);
    return device;
}

/* In turn. Of a closed device others read only the name and that it is closed, so the backend may
 * fill it in without the registry's lock. */
static tide_device *device_open_in_turn(const tide_backend *backend, const char *name,
                                        unsigned ordinal)
{
    tide_registry_lock();
    tide_device *device = device_find(name);
    bool open = device != NULL && device->opened != 0;
    tide_registry_unlock();
    if (device == NULL || open)
        return device;
    if (backend->open(device, ordinal) != TIDE_OK)
        return NULL;
    tide_assert(device->methods != NULL && device->holds == 0);
    tide_registry_lock();
    device->opened = 1;
    tide_registry_unlock();
    return device;
}

/* Builds the name anew: "cuda:007" is "cuda:7". */
static tide_device *device_open_on_backend(const tide_backend *backend, unsigned ordinal)
{
    char name[sizeof device_list->name];
    int length = snprintf(name, sizeof name, "%s%u", backend->prefix, ordinal);
    tide_assert(length > 0 && (size_t)length < sizeof name);
    (void)length;
    if (device_begin_turn("tide_device_open") != TIDE_OK)
        return NULL;
    tide_device *device = device_open_in_turn(backend, name, ordinal);
    device_end_turn();
    return device;
}

tide_device *tide_device_open(const char *name)
{
    const char *call = "tide_device_open";
    if (name == NULL) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the name is NULL");
        return NULL;
    }
    tide_attach(); /* sets the backends; learning may name another driver */
    if (strcmp(name, tide_device_host.name) == 0)
        return &tide_device_host;
    if (tide_registry_admit(call) != TIDE_OK) /* others open devices, too, and want the registry */
        return NULL;
    if (tide_locked_down()) {
        tide_fail(TIDE_ERROR_STATE, call, "the process is locked down");
        return NULL;
    }
    for (const tide_backend *one = tide_backends; one != NULL && one->prefix != NULL; one++) {
        int ordinal = device_ordinal_of(name, one->prefix);
        if (ordinal >= 0)
            return device_open_on_backend(one, (unsigned)ordinal);
    }
    tide_fail(TIDE_ERROR_NAME, call, "no kind of device is called '%.40s': there are host%s", name,
              tide_backend_names);
    return NULL;
}

/* ---- close -------------------------------------------------------------------------------- */

/* Is this one of ours, and open? Registry locked. */
static tide_status device_check_open(const tide_device *device, const char *call)
{
    if (device == &tide_device_host)
        return TIDE_OK;
    const tide_device *known = device_list;
    while (known != NULL && known != device)
        known = known->next;
    if (known == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "%p is no device", (const void *)device);
    if (known->opened == 0)
        return tide_fail(TIDE_ERROR_DEVICE, call, "device %s is closed", known->name);
    return TIDE_OK;
}

/* Counts one opening less. Once the count is 0 nobody can take a hold. Registry locked. */
static tide_status device_close_once(tide_device *device, const char *call)
{
    TIDE_FORWARD(device_check_open(device, call));
    uint32_t holds = __atomic_load_n(&device->holds, __ATOMIC_ACQUIRE);
    if (device->opened == 1 && holds != 0)
        return tide_fail(TIDE_ERROR_STATE, call,
                         "device %s is in use; pools, buffers and exported arrays on it: %u",
                         device->name, holds);
    tide_assert(device->opened > 0);
    device->opened--;
    return TIDE_OK;
}

/* After the last closing, in turn. The rings first, while the methods still work. */
static void device_end(tide_device *device)
{
    tide_lock_assert_none(); /* drivers unload code */
    TIDE_RINGS_CALL(close, device);
    tide_assert(device->opened == 0 && __atomic_load_n(&device->holds, __ATOMIC_RELAXED) == 0);
    device->methods->close(device);
    device->context = device->stream = device->service = NULL;
    tide_assert(device->own == NULL || tide_device_exiting(device));
}

/* Deferred releases are waited for by the last close, for some hold the device. Held meanwhile. */
static void device_settle(tide_device *device)
{
    tide_registry_lock();
    bool any = device_check_open(device, "tide_device_close") == TIDE_OK && device->opened == 1 &&
               tide_deferred_any(device);
    if (any)
        tide_device_hold_again(device);
    tide_registry_unlock();
    if (!any)
        return;
    tide_deferred_end(device);
    tide_device_drop(device);
}

tide_status tide_device_close(tide_device *device)
{
    if (device == NULL || device == &tide_device_host)
        return TIDE_OK;
    TIDE_FORWARD(tide_registry_admit("tide_device_close"));
    device_settle(device);
    TIDE_FORWARD(device_begin_turn("tide_device_close"));
    tide_registry_lock();
    tide_status status = device_close_once(device, "tide_device_close");
    bool last = status == TIDE_OK && device->opened == 0;
    tide_registry_unlock();
    if (last)
        device_end(device);
    device_end_turn();
    return status;
}

tide_status tide_device_hold_open(tide_device *device, const char *call)
{
    tide_registry_lock();
    tide_status status = device_check_open(device, call);
    tide_assert(status != TIDE_OK || device->methods != NULL);
    if (status == TIDE_OK)
        tide_device_hold_again(device);
    tide_registry_unlock();
    return status;
}

tide_status tide_device_hold(tide_device *device, const char *call)
{
    TIDE_FORWARD(tide_device_hold_open(device, call));
    tide_status status = tide_device_answers(device, call);
    if (status != TIDE_OK)
        tide_device_drop(device);
    return status;
}

void tide_device_hold_again(tide_device *device)
{
    uint32_t before = __atomic_fetch_add(&device->holds, 1, __ATOMIC_RELAXED);
    tide_assert(before < UINT32_MAX);
    (void)before;
}

void tide_device_drop(tide_device *device)
{
    void (*unheld)(tide_device *) = device->unheld; /* who closes a device looks at its holds */
    uint32_t before = __atomic_fetch_sub(&device->holds, 1, __ATOMIC_ACQ_REL);
    tide_assert(before > 0);
    if (before == 1 && unheld != NULL)
        unheld(device);
}

/* ---- answers ------------------------------------------------------------------------------ */

bool tide_device_mark_lost(tide_device *device, const char *why)
{
    tide_assert(device != &tide_device_host && why != NULL);
    if (tide_device_exiting(device))
        return false;
    const char *none = NULL; /* the first reason is the right one */
    (void)__atomic_compare_exchange_n(&device->lost, &none, why, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED);
    return true;
}

void tide_devices_lose_forked(void)
{
    tide_assert(device_list == NULL || tide_registry_held());
    for (tide_device *device = device_list; device != NULL; device = device->next)
        if (device->opened != 0 && tide_driver_forked(device->driver))
            (void)tide_device_mark_lost(device, tide_driver_words_forked(device->driver));
}

tide_status tide_device_lose(tide_device *device, const char *call, const char *words)
{
    tide_assert(call != NULL && words != NULL);
    return tide_fail(TIDE_ERROR_DEVICE, call,
                     tide_device_mark_lost(device, words) ? "device %s is lost: %s"
                                                          : "device %s: %s",
                     device->name, words);
}

tide_status tide_device_answers(const tide_device *device, const char *call)
{
    const char *why = __atomic_load_n(&device->lost, __ATOMIC_RELAXED);
    if (TIDE_UNLIKELY(why != NULL))
        return tide_fail(TIDE_ERROR_DEVICE, call, "device %s is lost: %s", device->name, why);
    if (tide_device_exiting(device))
        return tide_fail(TIDE_ERROR_DEVICE, call, "the process is exiting");
    return TIDE_OK;
}

tide_status tide_device_find_stream(tide_device *device, void *stream, const char *call,
                                    uint64_t *number)
{
    tide_assert(call != NULL && number != NULL);
    *number = device->methods->stream_number(device, stream);
    if (TIDE_UNLIKELY(*number == 0))
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "device %s has no stream %p", device->name,
                         stream);
    return TIDE_LIKELY(!tide_device_lost(device)) ? TIDE_OK : tide_device_answers(device, call);
}

tide_status tide_device_check_captures(tide_device *device, void *stream, tide_device *other,
                                       void *other_stream, const char *call)
{
    if (device == other && stream == other_stream)
        return TIDE_OK;
    bool captured = tide_device_capturing(device, stream);
    if (captured == tide_device_capturing(other, other_stream))
        return TIDE_OK;
    return tide_fail(TIDE_ERROR_STATE, call, "a graph is captured on stream %p, and not on %p",
                     captured ? stream : other_stream, captured ? other_stream : stream);
}

/* ---- what is known of it ------------------------------------------------------------------ */

_Static_assert(sizeof((tide_device){0}.name) == sizeof((tide_device_information){0}.name) &&
                   sizeof((tide_device){0}.description) ==
                       sizeof((tide_device_information){0}.description),
               "device_describe copies them whole");

static uint64_t device_read_counter(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void device_describe(const tide_device *device, tide_device_information *out)
{
    *out = (tide_device_information){.dl = device->dl,
                                     .host = device->host,
                                     .integrated = device->integrated,
                                     .managed = device->managed,
                                     .concurrent = device->concurrent,
                                     .exports = device->exports,
                                     .lost = tide_device_lost(device),
                                     .bytes = device->bytes,
                                     .allocations = device_read_counter(&device->allocations),
                                     .releases = device_read_counter(&device->releases),
                                     .copies = device_read_counter(&device->copies),
                                     .fills = device_read_counter(&device->fills),
                                     .events = device_read_counter(&device->events),
                                     .waits = device_read_counter(&device->waits),
                                     .launches = device_read_counter(&device->launches),
                                     .bytes_copied = device_read_counter(&device->bytes_copied)};
    tide_assert(memchr(device->name, '\0', sizeof device->name) != NULL);
    memcpy(out->name, device->name, sizeof out->name);
    memcpy(out->description, device->description, sizeof out->description);
}

tide_status tide_device_info(const tide_device *device, tide_device_information *out)
{
    const char *call = "tide_device_info";
    if (device == NULL || out == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the %s is NULL",
                         device == NULL ? "device" : "result");
    tide_registry_lock();
    tide_status status = device_check_open(device, call);
    if (status == TIDE_OK)
        device_describe(device, out);
    tide_registry_unlock();
    return status;
}

static bool device_is_open(const tide_device *device, const char *call)
{
    tide_registry_lock();
    bool open = device_check_open(device, call) == TIDE_OK;
    tide_registry_unlock();
    return open;
}

void *tide_device_context(const tide_device *device)
{
    return device_is_open(device, "tide_device_context") ? device->context : NULL;
}

void *tide_device_stream(const tide_device *device)
{
    return device_is_open(device, "tide_device_stream") ? device->stream : NULL;
}

bool tide_stream_captured(tide_device *device, void *stream)
{
    return device_is_open(device, "tide_stream_captured") && tide_device_capturing(device, stream);
}
