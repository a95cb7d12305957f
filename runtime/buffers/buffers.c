/* SPDX-License-Identifier: MIT */
/* Instances of buffers: created, shared, held, aged, forked, destroyed. */
#include "runtime/buffers/buffers.h"

#include <stdio.h>
#include <string.h>

#include <tidepool/device.h>

#include "runtime/base/assert.h"
#include "runtime/buffers/depot.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/base/hooks.h"
#include "runtime/base/settings.h"

#define RECORDS_BYTES (TIDE_BUFFER_MAX * sizeof(tide_buffer_record))

static tide_buffers *instances; /* guarded by the registry, as are */
static uint64_t created;
static uint64_t ticks; /* atomic: releases read it */

/* ---- the list ------------------------------------------------------------------------------- */

static void enlist(tide_buffers *buffers)
{
    buffers->next = instances;
    buffers->link = &instances;
    if (instances != NULL)
        instances->link = &buffers->next;
    instances = buffers;
}

static void delist(tide_buffers *buffers)
{
    *buffers->link = buffers->next;
    if (buffers->next != NULL)
        buffers->next->link = buffers->link;
}

void tide_buffers_each(void (*visit)(tide_buffers *buffers, void *user), void *user)
{
    tide_registry_lock();
    for (tide_buffers *b = instances; b != NULL; b = b->next)
        visit(b, user);
    tide_registry_unlock();
}

tide_status tide_buffers_hold(tide_buffers *buffers, const char *call)
{
    tide_registry_lock();
    tide_buffers *known = instances;
    while (known != NULL && known != buffers)
        known = known->next;
    if (known != NULL)
        known->users++;
    tide_registry_unlock();
    return known != NULL
               ? TIDE_OK
               : tide_fail(TIDE_ERROR_ARGUMENT, call, "%p are no buffers", (void *)buffers);
}

void tide_buffers_hold_again(tide_buffers *buffers)
{
    tide_registry_lock();
    buffers->users++;
    tide_registry_unlock();
}

void tide_buffers_drop(tide_buffers *buffers)
{
    tide_registry_lock();
    tide_assert(buffers->users > 0);
    buffers->users--;
    tide_registry_unlock();
}

/* ---- fork ----------------------------------------------------------------------------------- */

/* The child finds every instance whole: nobody was in its depot or in a magazine. What threads
 * cached that the child does not have is found there by whoever misses. */
static void before_fork(void)
{
    for (tide_buffers *b = instances; b != NULL; b = b->next) {
        pthread_mutex_lock(&b->mutex);
        tide_magazines_stop(b);
    }
}

static void after_fork(void)
{
    for (tide_buffers *b = instances; b != NULL; b = b->next) {
        tide_magazines_resume(b);
        pthread_mutex_unlock(&b->mutex);
    }
}


/* A thread that was just finding out that it must wait said that it was busy, and is not there to
 * take it back. */
static void after_fork_in_child(void)
{
    for (tide_buffers *b = instances; b != NULL; b = b->next)
        for (tide_magazine *m = b->magazines; m != NULL; m = m->next)
            __atomic_store_n(&m->busy, 0, __ATOMIC_RELAXED);
    after_fork();
}

static const tide_fork_handlers around_fork = {before_fork, after_fork, after_fork_in_child};

/* ---- create --------------------------------------------------------------------------------- */

static tide_status validate(const tide_buffers_options *options)
{
    const char *call = "tide_buffers_create";
    if ((unsigned)options->policy > TIDE_BUFFERS_LIST)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "policy is %d, most is %d",
                         (int)options->policy, TIDE_BUFFERS_LIST);
    if (tide_buffer_key(options->flags) == TIDE_BUFFER_KEYS)
        return tide_fail(TIDE_ERROR_ARGUMENT, call,
                         "no buffers have flags %#x: kinds are 0 to %d, tags 0 to %d",
                         options->flags, TIDE_BUFFER_KINDS - 1, TIDE_BUFFER_TAGS - 1);
    return TIDE_OK;
}

static void set_bounds(tide_buffers *buffers, const tide_buffers_options *options)
{
    buffers->bytes_max = options->bytes_max != 0
                              ? options->bytes_max
                              : (size_t)(tide_setting_get(TIDE_SETTING_buffers_bytes) * 1048576);
    buffers->count_max = options->count_max != 0
                              ? options->count_max
                              : (uint32_t)tide_setting_get(TIDE_SETTING_buffers_count);
    buffers->age_max = options->age_max != 0
                            ? options->age_max
                            : (uint32_t)tide_setting_get(TIDE_SETTING_buffers_age);
    if (tide_setting_get(TIDE_SETTING_disable) != 0)
        buffers->count_max = 0;
}

static void set_options(tide_buffers *buffers, tide_device *device,
                        const tide_buffers_options *options)
{
    snprintf(buffers->name, sizeof buffers->name, "%s",
             options->name != NULL ? options->name : "buffers");
    buffers->policy = options->policy;
    buffers->flags = options->flags;
    buffers->device = device;
    buffers->stream = options->stream;
    buffers->hook = options->hook;
    buffers->user = options->user;
    buffers->immediate = device == &tide_device_host;
    buffers->careful = tide_setting_get(TIDE_SETTING_check) >= 1;
    buffers->record_free = TIDE_NO_RECORD;
    pthread_mutex_init(&buffers->mutex, NULL);
    set_bounds(buffers, options);
}

/* The stream's number; a device that is lost, or has no such stream, is refused. */
static tide_status find_stream(tide_buffers *buffers)
{
    tide_device *device = buffers->device;
    const char *call = "tide_buffers_create";
    buffers->stream_number = device->methods->stream_number(device, buffers->stream);
    if (tide_device_lost(device))
        return tide_fail(TIDE_ERROR_DEVICE, call, "device %s is lost", device->name);
    return buffers->stream_number != 0
               ? TIDE_OK
               : tide_fail(TIDE_ERROR_ARGUMENT, call, "device %s has no stream %p", device->name,
                           buffers->stream);
}

static tide_buffers *make(tide_device *device, const tide_buffers_options *options)
{
    tide_buffers *buffers = tide_os_aligned(sizeof *buffers, 64);
    tide_buffer_record *records = buffers != NULL ? tide_os_reserve(RECORDS_BYTES) : NULL;
    if (records == NULL) {
        tide_fail(TIDE_ERROR_MEMORY, "tide_buffers_create", "no %zu bytes of address space",
                  (size_t)RECORDS_BYTES);
        tide_os_free(buffers);
        return NULL;
    }
    memset(buffers, 0, sizeof *buffers);
    buffers->records = records;
    set_options(buffers, device, options);
    return buffers;
}

static void unmake(tide_buffers *buffers)
{
    for (unsigned i = 0; i < TIDE_BUFFER_KEYS; i++)
        tide_os_free(buffers->depot[i]);
    tide_os_unreserve(buffers->records, RECORDS_BYTES);
    pthread_mutex_destroy(&buffers->mutex);
    tide_os_free(buffers);
}

tide_buffers *tide_buffers_create(tide_device *device, const tide_buffers_options *options)
{
    const tide_buffers_options defaults = {0};
    options = options != NULL ? options : &defaults;
    device = device != NULL ? device : &tide_device_host;
    tide_attach();
    tide_fence_prepare();
    tide_fork_register(TIDE_FORK_BUFFERS, &around_fork);
    if (validate(options) != TIDE_OK || tide_device_hold(device, "tide_buffers_create") != TIDE_OK)
        return NULL;
    tide_buffers *buffers = make(device, options);
    if (buffers != NULL && find_stream(buffers) != TIDE_OK) {
        unmake(buffers);
        buffers = NULL;
    }
    if (buffers == NULL) {
        tide_device_drop(device);
        return NULL;
    }
    tide_registry_lock();
    buffers->number = ++created;
    enlist(buffers);
    tide_registry_unlock();
    return buffers;
}

/* ---- shared --------------------------------------------------------------------------------- */

/* Pinned memory is a context's, which devices may have in common; all other a device's. */
static bool serves(const tide_buffers *buffers, tide_device *device, uint32_t kind)
{
    if (buffers->shares == 0 || buffers->shared_kind != kind)
        return false;
    return buffers->device == device ||
           (kind == TIDE_BUFFER_PINNED && device->context != NULL &&
            tide_device_context(buffers->device) == tide_device_context(device));
}

static tide_buffers *find_shared(tide_device *device, uint32_t kind)
{
    tide_buffers *buffers = instances;
    while (buffers != NULL && !serves(buffers, device, kind))
        buffers = buffers->next;
    return buffers;
}

tide_buffers *tide_buffers_shared(tide_device *device, uint32_t kind)
{
    const char *call = "tide_buffers_shared";
    device = device != NULL ? device : &tide_device_host;
    if (kind >= TIDE_BUFFER_KINDS) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "kind is %u, most is %d", kind, TIDE_BUFFER_KINDS - 1);
        return NULL;
    }
    if (tide_device_hold(device, call) != TIDE_OK)
        return NULL;
    tide_registry_lock();
    tide_buffers *buffers = find_shared(device, kind);
    if (buffers == NULL) {
        static const char *const kinds[] = {"", " pinned", " host"};
        char name[sizeof buffers->name];
        snprintf(name, sizeof name, "%.20s%s", device->name, kinds[kind]);
        buffers = tide_buffers_create(device, &(tide_buffers_options){.name = name, .flags = kind});
    }
    if (buffers != NULL) {
        buffers->shares++;
        buffers->shared_kind = kind;
    }
    tide_registry_unlock();
    tide_device_drop(device);
    return buffers;
}

/* ---- destroy -------------------------------------------------------------------------------- */

static tide_status check_unused(tide_buffers *buffers)
{
    const char *call = "tide_buffers_destroy";
    tide_buffers_statistics now;
    TIDE_FORWARD(tide_hand_over_quiet(buffers, call));
    TIDE_FORWARD(tide_buffers_stats(buffers, &now, NULL, 0));
    if (buffers->users != 0)
        return tide_fail(TIDE_ERROR_STATE, call, "%u pools draw from '%s'", buffers->users,
                         buffers->name);
    if (now.live != 0)
        return tide_fail(TIDE_ERROR_STATE, call, "%zu buffers of '%s' are live", now.live,
                         buffers->name);
    return TIDE_OK;
}

static void end(tide_buffers *buffers)
{
    tide_device *device = buffers->device;
    delist(buffers);
    tide_depot_trim(buffers, 0, true);
    tide_assert(buffers->bytes_held == 0);
    pthread_mutex_lock(&buffers->mutex);
    tide_magazines_end(buffers);
    pthread_mutex_unlock(&buffers->mutex);
    unmake(buffers);
    tide_device_drop(device);
}

tide_status tide_buffers_destroy(tide_buffers *buffers)
{
    if (buffers == NULL)
        return TIDE_OK;
    tide_status status = TIDE_OK;
    tide_registry_lock();
    if (buffers->shares > 1) {
        buffers->shares--;
    } else {
        status = check_unused(buffers);
        if (status == TIDE_OK)
            end(buffers);
    }
    tide_registry_unlock();
    return status;
}

/* ---- age ------------------------------------------------------------------------------------ */

uint64_t tide_buffers_now(void)
{
    return __atomic_load_n(&ticks, __ATOMIC_RELAXED);
}

/* Looking stops all threads, so it is done eight times in the longest age. */
static void age(tide_buffers *buffers, void *user)
{
    uint64_t now = *(const uint64_t *)user;
    if (now - buffers->aged < (buffers->age_max + 7) / 8)
        return;
    buffers->aged = now;
    if (tide_hand_over_quiet(buffers, "tide_step") == TIDE_OK)
        tide_depot_trim(buffers, buffers->age_max, false);
}

void tide_buffers_tick(void)
{
    uint64_t now = __atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED);
    tide_buffers_each(age, &now);
}

tide_trim_summary tide_buffers_trim(tide_buffers *buffers, uint32_t at_min)
{
    const char *call = "tide_buffers_trim";
    if (buffers == NULL)
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the buffers are NULL");
    if (buffers == NULL || tide_hand_over_quiet(buffers, call) != TIDE_OK)
        return (tide_trim_summary){0};
    return tide_depot_trim(buffers, at_min, false);
}
