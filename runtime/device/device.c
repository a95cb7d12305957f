/* SPDX-License-Identifier: MIT */
/* Devices by name: opened, counted, held by what lies on them, closed. What a device does itself
 * stands behind its table of methods. */
#include "runtime/device/device.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/device.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/hooks.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/device/later.h"

/* Every device ever opened except the host. Guarded by the registry; never freed. */
static tide_device *device_list;

/* ---- the lock ----------------------------------------------------------------------------- */

/* One device is opened or closed at a time. No lock can be held for that: drivers load and unload
 * code, so they take the dynamic linker's lock, and under that lock constructors of modules fork
 * and take locks of ours. So whose turn it is has a flag, and only the flag has a lock. In the
 * child of a fork a device that another thread was opening stays closed. */
static tide_lock device_turn = TIDE_LOCK(TIDE_FORK_DEVICES);
static pthread_cond_t device_turn_over = PTHREAD_COND_INITIALIZER;
static pthread_once_t device_fork_prepared = PTHREAD_ONCE_INIT;
static bool device_changing; /* guarded by the lock, as is the next */
static int device_cancel;    /* the state of whose turn it is, before */

static void device_before_fork(void)
{
    tide_lock_take(&device_turn);
}

static void device_after_fork(void)
{
    tide_lock_let_go(&device_turn);
}

static void device_in_child(void)
{
    device_turn_over = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    device_changing = false;
    device_after_fork();
}

static void device_prepare_fork(void)
{
    static const tide_fork_handlers handlers = {device_before_fork, device_after_fork,
                                                device_in_child};
    tide_fork_register(TIDE_FORK_DEVICES, &handlers);
}

void tide_devices_prepare(void)
{
    pthread_once(&device_fork_prepared, device_prepare_fork);
}

static void device_begin_change(void)
{
    tide_devices_prepare();
    int cancel = tide_os_forbid_cancel(); /* the turn would never end */
    tide_lock_take(&device_turn);
    while (device_changing)
        tide_lock_wait(&device_turn, &device_turn_over);
    device_changing = true;
    device_cancel = cancel;
    tide_lock_let_go(&device_turn);
}

static void device_end_change(void)
{
    tide_lock_take(&device_turn);
    device_changing = false;
    int cancel = device_cancel;
    pthread_cond_broadcast(&device_turn_over);
    tide_lock_let_go(&device_turn);
    tide_os_restore_cancel(cancel);
}

/* ---- open and close ----------------------------------------------------------------------- */

enum { DIGITS_MAX = 4 }; /* of a device's number */

static tide_backend device_backends[TIDE_BACKENDS_MAX];
static size_t device_backend_count;

void tide_device_add_backend(tide_backend backend)
{
    for (size_t i = 0; i < device_backend_count; i++)
        if (strcmp(device_backends[i].prefix, backend.prefix) == 0)
            return;
    tide_assert(device_backend_count < TIDE_BACKENDS_MAX && backend.open != NULL);
    tide_assert(strlen(backend.prefix) > 0 &&
                strlen(backend.prefix) + DIGITS_MAX < sizeof device_list->name);
    device_backends[device_backend_count++] = backend;
}

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

static tide_device *device_find_named(const char *name)
{
    tide_device *device = device_list;
    while (device != NULL && strcmp(device->name, name) != 0)
        device = device->next;
    return device;
}

/* The listed, closed device of this name, all zero but for the name; listed now if it is new.
 * Registry locked. */
static tide_device *device_list_closed(const char *name)
{
    tide_device *device = device_find_named(name);
    if (device == NULL) {
        device = tide_os_resize(NULL, sizeof *device);
        if (device == NULL) {
            tide_fail(TIDE_ERROR_MEMORY, "tide_device_open", "no memory to remember '%s'", name);
            return NULL;
        }
        *device = (tide_device){.next = device_list};
        device_list = device;
    }
    tide_assert(device->opened == 0 && __atomic_load_n(&device->holds, __ATOMIC_RELAXED) == 0);
    tide_device *next = device->next;
    *device = (tide_device){.next = next};
    snprintf(device->name, sizeof device->name, "%s", name);
    return device;
}

/* The device of this name. It is counted once more if it is open; else the caller has
 * to open it. */
static tide_device *device_count_or_list(const char *name)
{
    tide_registry_lock();
    tide_device *device = device_find_named(name);
    if (device != NULL && device->opened != 0)
        device->opened++;
    else
        device = device_list_closed(name);
    tide_registry_unlock();
    return device;
}

/* Of a closed device others read only the name and that it is closed, so the backend may fill it in
 * without the registry's lock. */
static bool device_open_listed(tide_device *device, const tide_backend *backend, unsigned ordinal)
{
    tide_assert(device->opened == 0 && device->methods == NULL);
    tide_outside outside = tide_outside_enter(); /* drivers load code */
    tide_status status = backend->open(device, ordinal);
    tide_outside_leave(outside);
    if (status != TIDE_OK)
        return false;
    tide_assert(device->methods != NULL && device->holds == 0);
    tide_registry_lock();
    device->opened = 1;
    tide_registry_unlock();
    return true;
}

/* Builds the name anew: "cuda:007" is "cuda:7". */
static tide_device *device_open_on_backend(const tide_backend *backend, unsigned ordinal)
{
    char name[sizeof device_list->name];
    tide_assert(ordinal <= 9999); /* so it has at most DIGITS_MAX digits: the name fits */
    snprintf(name, sizeof name, "%s%u", backend->prefix, ordinal);
    device_begin_change();
    tide_device *device = device_count_or_list(name);
    if (device != NULL && device->opened == 0 && !device_open_listed(device, backend, ordinal))
        device = NULL;
    device_end_change();
    return device;
}

/* Says which kinds of name there are. */
static void device_refuse_name(const char *name, const char *call)
{
    char known[200];
    size_t used = 0;
    for (size_t i = 0; i < device_backend_count; i++) {
        int wrote = snprintf(known + used, sizeof known - used, ", %s0 … %s9999",
                             device_backends[i].prefix, device_backends[i].prefix);
        tide_assert(wrote > 0 && (size_t)wrote < sizeof known - used);
        used += (size_t)wrote;
    }
    tide_fail(TIDE_ERROR_NAME, call, "no kind of device is called '%.40s': there are host%s", name,
              known);
}

tide_device *tide_device_open(const char *name)
{
    const char *call = "tide_device_open";
    if (name == NULL) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the name is NULL");
        return NULL;
    }
    tide_attach(); /* adds the backends; policy may name another driver */
    if (strcmp(name, tide_device_host.name) == 0)
        return &tide_device_host;
    if (tide_registry_admit(call) != TIDE_OK) /* others open devices, too, and want the registry */
        return NULL;
    for (size_t i = 0; i < device_backend_count; i++) {
        int ordinal = device_ordinal_of(name, device_backends[i].prefix);
        if (ordinal >= 0)
            return device_open_on_backend(&device_backends[i], (unsigned)ordinal);
    }
    device_refuse_name(name, call);
    return NULL;
}

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
        return tide_fail(TIDE_ERROR_STATE, call, "%u pools or exported arrays are on device %s",
                         holds, device->name);
    tide_assert(device->opened > 0);
    device->opened--;
    return TIDE_OK;
}

/* After the last closing. Policy first, while the methods still work. */
static void device_let_go(tide_device *device)
{
    tide_assert(device->opened == 0 && __atomic_load_n(&device->holds, __ATOMIC_RELAXED) == 0);
    tide_assert(device->methods != NULL && device != &tide_device_host);
    tide_outside outside = tide_outside_enter(); /* drivers unload code */
    if (tide_hooks_policy.close != NULL)
        tide_hooks_policy.close(device);
    device->methods->close(device);
    device->context = device->stream = device->service = NULL;
    tide_outside_leave(outside);
}

/* What was put off goes if it can. Held meanwhile, but only then: others would be refused to close
 * the device. */
static void device_settle(tide_device *device)
{
    tide_registry_lock();
    bool any = device_check_open(device, "tide_device_close") == TIDE_OK &&
               __atomic_load_n(&device->later, __ATOMIC_RELAXED) != NULL;
    if (any)
        tide_device_hold_again(device);
    tide_registry_unlock();
    if (!any)
        return;
    (void)tide_later_settle(device);
    tide_device_drop(device);
}

tide_status tide_device_close(tide_device *device)
{
    if (device == NULL || device == &tide_device_host)
        return TIDE_OK;
    TIDE_FORWARD(tide_registry_admit("tide_device_close"));
    device_settle(device);
    device_begin_change();
    tide_registry_lock();
    tide_status status = device_close_once(device, "tide_device_close");
    bool last = status == TIDE_OK && device->opened == 0;
    tide_registry_unlock();
    if (last)
        device_let_go(device);
    device_end_change();
    return status;
}

tide_status tide_device_hold(tide_device *device, const char *call)
{
    tide_registry_lock();
    tide_status status = device_check_open(device, call);
    tide_assert(status != TIDE_OK || device->methods != NULL);
    if (status == TIDE_OK)
        tide_device_hold_again(device);
    tide_registry_unlock();
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

tide_status tide_device_lose(tide_device *device, const char *call, const char *words)
{
    tide_assert(device != &tide_device_host && call != NULL && words != NULL);
    __atomic_store_n(&device->lost, true, __ATOMIC_RELAXED);
    return tide_fail(TIDE_ERROR_DEVICE, call, "device %s is lost: %s", device->name, words);
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

void *tide_device_context(const tide_device *device)
{
    return device != NULL ? device->context : NULL;
}

void *tide_device_stream(const tide_device *device)
{
    return device != NULL ? device->stream : NULL;
}
