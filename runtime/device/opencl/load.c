/* SPDX-License-Identifier: MIT */
/* The ICD loader: loaded when the first OpenCL device is asked for, and never unloaded, because
 * drivers would not survive that. Also: when they may no longer be called; their
 * errors in words. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/device/opencl/backend.h"
#include "runtime/device/opencl/opencl.h"

tide_opencl_calls tide_opencl;

const char *tide_opencl_library = "libOpenCL.so.1";

static bool opencl_loaded; /* atomic; set once all entry points are there */

typedef struct entry {
    const char *name;
    size_t at;
} entry;

static const entry entries[] = {
#define TIDE_CL(result, name, arguments) {#name, offsetof(tide_opencl_calls, name)},
    TIDE_CL_ENTRIES(TIDE_CL)
#undef TIDE_CL
};

_Static_assert(sizeof entries / sizeof *entries == sizeof tide_opencl / sizeof(void *),
               "each entry point has its line");

static tide_status opencl_find_entries(void *library, const char *call, tide_opencl_calls *calls)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *found = dlsym(library, entries[i].name);
        if (found == NULL)
            return tide_fail(TIDE_ERROR_DEVICE, call, "%s has no %s: it is older than OpenCL 2.0",
                             tide_opencl_library, entries[i].name);
        memcpy((char *)calls + entries[i].at, &found, sizeof found);
    }
    return TIDE_OK;
}

/* Another thread may have been first: with the same entry points. */
static void opencl_publish(const tide_opencl_calls *calls)
{
    tide_registry_lock();
    if (!opencl_loaded)
        tide_opencl = *calls;
    __atomic_store_n(&opencl_loaded, true, __ATOMIC_RELEASE);
    tide_registry_unlock();
}

tide_status tide_opencl_load(const char *call)
{
    tide_opencl_calls calls;
    if (__atomic_load_n(&opencl_loaded, __ATOMIC_ACQUIRE))
        return TIDE_OK;
    void *library = dlopen(tide_opencl_library, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return tide_fail(TIDE_ERROR_DEVICE, call, "no OpenCL: %s", dlerror());
    tide_status status = opencl_find_entries(library, call, &calls);
    if (status == TIDE_OK)
        opencl_publish(&calls);
    else
        dlclose(library);
    return status;
}

/* ---- when the driver may no longer be called ---------------------------------------------- */

static uint32_t opencl_forks; /* of this process and those that it comes from; atomic */

/* Atomic and sequentially consistent: either a thread that enters sees that exit has begun, or the
 * exiting thread sees it inside. */
static bool opencl_exiting;
static uint32_t opencl_calls_inside;

/* Of these calls, those of this thread: as small as can be, for copies have little such memory. */
static _Thread_local uint8_t opencl_calls_own;

int tide_opencl_go_in(void)
{
    tide_assert(opencl_calls_own < UINT8_MAX);
    opencl_calls_own++;
    return (int)__atomic_fetch_add(&opencl_calls_inside, 1, __ATOMIC_SEQ_CST);
}

void tide_opencl_come_out(const int *unused)
{
    (void)unused;
    uint32_t before = __atomic_fetch_sub(&opencl_calls_inside, 1, __ATOMIC_SEQ_CST);
    tide_assert(opencl_calls_own > 0 && before >= opencl_calls_own);
    (void)before;
    opencl_calls_own--;
}

/* Of those who were inside, only the thread that forks is there in the child, whose exit has not
 * begun. */
static void opencl_begin_child(void)
{
    __atomic_add_fetch(&opencl_forks, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&opencl_exiting, false, __ATOMIC_SEQ_CST);
    __atomic_store_n(&opencl_calls_inside, opencl_calls_own, __ATOMIC_SEQ_CST);
}

/* Threads that are in a call get time to come out; not for ever, because they may wait for work that
 * does not end. The exiting thread may itself be inside, in a callback of the driver, and does not wait
 * for itself. */
static void opencl_begin_exit(void)
{
    enum { TRIES = 2000, MICROSECONDS = 1000 };
    __atomic_store_n(&opencl_exiting, true, __ATOMIC_SEQ_CST);
    for (int i = 0; i < TRIES; i++) {
        if (__atomic_load_n(&opencl_calls_inside, __ATOMIC_SEQ_CST) == opencl_calls_own)
            return;
        usleep(MICROSECONDS);
    }
}

void tide_opencl_prepare(void)
{
    static const tide_fork_handlers handlers = {.child = opencl_begin_child};
    tide_fork_register(TIDE_FORK_OPENCL, &handlers);
}

tide_status tide_opencl_watch_exit(const char *call)
{
    static bool watched; /* registry locked */
    tide_registry_lock();
    watched = watched || atexit(opencl_begin_exit) == 0;
    tide_registry_unlock();
    return watched
               ? TIDE_OK
               : tide_fail(TIDE_ERROR_MEMORY, call, "no memory to notice the end of the process");
}

uint32_t tide_opencl_forks(void)
{
    return __atomic_load_n(&opencl_forks, __ATOMIC_RELAXED);
}

static bool opencl_forked(const tide_opencl_device *device)
{
    tide_assert(device->forks <= __atomic_load_n(&opencl_forks, __ATOMIC_RELAXED));
    return device->forks != __atomic_load_n(&opencl_forks, __ATOMIC_RELAXED);
}

bool tide_opencl_ended(void)
{
    return __atomic_load_n(&opencl_exiting, __ATOMIC_SEQ_CST);
}

bool tide_opencl_alive(const tide_opencl_device *device)
{
    return !opencl_forked(device) && !tide_opencl_ended();
}

bool tide_opencl_exiting(const tide_opencl_device *device)
{
    return !opencl_forked(device) && tide_opencl_ended();
}

tide_status tide_opencl_refuse(const char *call)
{
    return tide_fail(TIDE_ERROR_DEVICE, call, "the process is exiting");
}

tide_status tide_opencl_usable(const tide_opencl_device *device, const char *call)
{
    tide_assert(device->base != NULL && call != NULL);
    if (TIDE_UNLIKELY(opencl_forked(device)))
        return tide_device_lose(device->base, call,
                                "it was opened before this process was forked, and OpenCL does not "
                                "work in the child");
    if (TIDE_UNLIKELY(tide_opencl_exiting(device)))
        return tide_opencl_refuse(call);
    if (TIDE_UNLIKELY(tide_device_lost(device->base)))
        return tide_fail(TIDE_ERROR_DEVICE, call, "device %s is lost", device->base->name);
    return TIDE_OK;
}

/* ---- errors ------------------------------------------------------------------------------- */

static const char *opencl_error_name(int32_t error)
{
    switch (error) {
    case TIDE_CL_DEVICE_NOT_FOUND: return "device not found";
    case TIDE_CL_DEVICE_NOT_AVAILABLE: return "device not available";
    case TIDE_CL_MEM_OBJECT_ALLOCATION_FAILURE: return "no device memory";
    case TIDE_CL_OUT_OF_RESOURCES: return "out of resources";
    case TIDE_CL_OUT_OF_HOST_MEMORY: return "out of host memory";
    case -14: return "what it waits for has failed";
    case -30: return "invalid value";
    case -34: return "invalid context";
    case -36: return "invalid command queue";
    case -38: return "invalid buffer";
    case -48: return "copied parts overlap";
    default: return "see CL/cl.h";
    }
}

tide_status tide_opencl_check(const tide_opencl_device *device, int32_t error, const char *call)
{
    if (TIDE_LIKELY(error == TIDE_CL_SUCCESS))
        return TIDE_OK;
    if (error == TIDE_CL_DEVICE_NOT_AVAILABLE)
        return tide_device_lose(device->base, call, opencl_error_name(error));
    bool memory =
        error == TIDE_CL_MEM_OBJECT_ALLOCATION_FAILURE || error == TIDE_CL_OUT_OF_HOST_MEMORY;
    return tide_fail(memory ? TIDE_ERROR_MEMORY : TIDE_ERROR_DEVICE, call,
                     "device %s answered %d (%s)", device->base->name, (int)error,
                     opencl_error_name(error));
}
