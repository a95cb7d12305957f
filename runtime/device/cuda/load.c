/* SPDX-License-Identifier: MIT */
/* The CUDA driver: loaded when the first device is opened, never unloaded, and called only while
 * drivers may be (runtime/device/gate.h). Also its errors, and its current context. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/device/backends.h"
#include "runtime/device/cuda/cuda.h"

tide_cu_driver tide_cu;

static char cuda_library[1024] = "libcuda.so.1";
static bool cuda_loaded; /* atomic; set once all entry points are there */

static const char call[] = "tide_device_open";
void tide_cuda_driver_set(const char *path)
{
    snprintf(cuda_library, sizeof cuda_library, "%s", path != NULL ? path : "libcuda.so.1");
}

/* ---- load --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int version;
    size_t at; /* in a tide_cu_driver */
} entries[] = {
#define TIDE_X(name, version, arguments) {#name, version, offsetof(tide_cu_driver, name)},
    TIDE_CU_ENTRIES(TIDE_X)
#undef TIDE_X
};

_Static_assert(sizeof entries / sizeof *entries == sizeof tide_cu / sizeof(void *),
               "each entry point has its line");

static tide_status cuda_resolve_entries(tide_cu_get_proc *get_proc, tide_cu_driver *driver)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        int status = 0;
        void *found = NULL;
        tide_cu_result result = get_proc(entries[i].name, &found, entries[i].version,
                                         TIDE_CU_PROC_LEGACY_STREAM, &status);
        if (result != TIDE_CU_SUCCESS || found == NULL)
            return tide_fail(TIDE_ERROR_DEVICE, call, "the CUDA driver %s has no %s of CUDA %d.%d",
                             cuda_library, entries[i].name, entries[i].version / 1000,
                             entries[i].version % 1000 / 10);
        memcpy((char *)driver + entries[i].at, &found, sizeof found);
    }
    return TIDE_OK;
}

static tide_status cuda_initialise_driver(const tide_cu_driver *driver)
{
    tide_driver_use(TIDE_DRIVER_CUDA);
    tide_cu_result result = driver->cuInit(0);
    if (result == TIDE_CU_SUCCESS)
        return TIDE_OK;
    const char *words = NULL;
    (void)driver->cuGetErrorString(result, &words);
    return tide_fail(TIDE_ERROR_DEVICE, call, "cuInit of %s fails with %d: %s", cuda_library,
                     result, words != NULL ? words : "an error without words");
}

static tide_status cuda_load_driver(tide_cu_driver *driver)
{
    void *handle = dlopen(cuda_library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return tide_fail(TIDE_ERROR_DEVICE, call, "no CUDA driver: %s", dlerror());
    void *symbol = dlsym(handle, "cuGetProcAddress_v2");
    if (symbol == NULL)
        return tide_fail(TIDE_ERROR_DEVICE, call,
                         "the CUDA driver %s is older than CUDA 12.0: no cuGetProcAddress_v2",
                         cuda_library);
    TIDE_FORWARD(cuda_resolve_entries((tide_cu_get_proc *)symbol, driver));
    return cuda_initialise_driver(driver);
}

tide_status tide_cuda_load(void)
{
    tide_cu_driver driver;
    if (__atomic_load_n(&cuda_loaded, __ATOMIC_ACQUIRE))
        return TIDE_OK;
    TIDE_FORWARD(cuda_load_driver(&driver));
    TIDE_FORWARD(tide_driver_watch_exit(TIDE_DRIVER_CUDA, call));
    tide_cu = driver;
    __atomic_store_n(&cuda_loaded, true, __ATOMIC_RELEASE);
    return TIDE_OK;
}

/* ---- errors ------------------------------------------------------------------------------- */

/* After these errors every call fails until the context is destroyed, and it is not ours alone. */
static bool cuda_is_for_good(tide_cu_result result)
{
    switch (result) {
    case TIDE_CU_DEINITIALIZED:
    case TIDE_CU_DEVICE_UNAVAILABLE:
    case TIDE_CU_ECC_UNCORRECTABLE:
    case TIDE_CU_CONTAINED:
    case TIDE_CU_ILLEGAL_ADDRESS:
    case TIDE_CU_LAUNCH_TIMEOUT:
    case TIDE_CU_CONTEXT_IS_DESTROYED:
    case TIDE_CU_ASSERT:
    case TIDE_CU_HARDWARE_STACK_ERROR:
    case TIDE_CU_ILLEGAL_INSTRUCTION:
    case TIDE_CU_MISALIGNED_ADDRESS:
    case TIDE_CU_INVALID_ADDRESS_SPACE:
    case TIDE_CU_INVALID_PC:
    case TIDE_CU_LAUNCH_FAILED:
    case TIDE_CU_TENSOR_MEMORY_LEAK:
    case TIDE_CU_MPS_CLIENT_TERMINATED:
    case TIDE_CU_EXTERNAL_DEVICE: return true;
    default: return false;
    }
}

tide_status tide_cuda_fail(tide_device *device, const char *entry, tide_cu_result result)
{
    const char *name = NULL, *words = NULL;
    tide_assert(result != TIDE_CU_SUCCESS);
    if (tide_driver_alive(TIDE_DRIVER_CUDA)) {
        (void)tide_cu.cuGetErrorName(result, &name);
        (void)tide_cu.cuGetErrorString(result, &words);
    }
    name = name != NULL ? name : "unknown";
    words = words != NULL ? words : "no words";
    bool lost = cuda_is_for_good(result) && tide_device_mark_lost(device, words);
    return tide_fail(TIDE_ERROR_DEVICE, entry, "device %s%s: %s (%d): %s", device->name,
                     lost ? " is lost" : "", name, result, words);
}

/* ---- modes of capture ----------------------------------------------------------------------- */

enum { MODE_AS_IT_WAS = -1 }; /* none of the driver's: the thread's could not be changed */

int tide_cuda_relax(void)
{
    int mode = TIDE_CU_CAPTURE_RELAXED;
    bool changed = tide_cu.cuThreadExchangeStreamCaptureMode(&mode) == TIDE_CU_SUCCESS;
    return changed ? mode : MODE_AS_IT_WAS;
}

void tide_cuda_relax_end(int mode)
{
    if (mode != MODE_AS_IT_WAS)
        (void)tide_cu.cuThreadExchangeStreamCaptureMode(&mode);
}

/* ---- context ------------------------------------------------------------------------------ */

static _Thread_local const tide_device *cuda_inside; /* which this thread has entered */

tide_status tide_cuda_enter(tide_device *device, tide_cuda_entered *entered)
{
    tide_cu_context wanted = tide_cuda_of(device)->context, current = NULL;
    tide_assert(__atomic_load_n(&cuda_loaded, __ATOMIC_RELAXED));
    *entered = (tide_cuda_entered){.before = cuda_inside};
    if (cuda_inside == device)
        return TIDE_OK;
    if (!tide_driver_alive(TIDE_DRIVER_CUDA)) {
        TIDE_FORWARD(tide_device_answers(device, device->name));
        return tide_driver_refuse(TIDE_DRIVER_CUDA, device->name); /* it is just being opened */
    }
    tide_cu_result result = tide_cu.cuCtxGetCurrent(&current);
    if (result != TIDE_CU_SUCCESS || current != wanted) {
        result = tide_cu.cuCtxPushCurrent(wanted);
        entered->pushed = result == TIDE_CU_SUCCESS;
    }
    if (result == TIDE_CU_SUCCESS) {
        entered->mode = tide_cuda_relax();
        entered->device = device;
        cuda_inside = device;
        return TIDE_OK;
    }
    return tide_cuda_fail(device, "cuCtxPushCurrent", result);
}

void tide_cuda_leave(tide_cuda_entered entered)
{
    tide_cu_context popped = NULL;
    if (entered.device == NULL)
        return;
    tide_assert(cuda_inside == entered.device);
    cuda_inside = entered.before;
    tide_cuda_relax_end(entered.mode);
    if (entered.pushed)
        (void)tide_cu.cuCtxPopCurrent(&popped);
}

/* Only the legacy stream has others that it is ordered with. To ask spoils no capture. */
static bool cuda_is_usable(void *stream)
{
    int state = TIDE_CU_CAPTURE_NONE;
    return TIDE_LIKELY((uintptr_t)stream > TIDE_CU_STREAM_LEGACY) ||
           tide_cu.cuStreamIsCapturing(stream, &state) != TIDE_CU_CAPTURE_IMPLICIT;
}

tide_status tide_cuda_enter_for(tide_device *device, void *stream, tide_cuda_entered *entered)
{
    TIDE_FORWARD(tide_cuda_enter(device, entered));
    if (cuda_is_usable(stream))
        return TIDE_OK;
    tide_cuda_leave(*entered);
    return tide_fail(TIDE_ERROR_STATE, device->name,
                     "the legacy stream cannot be used while a graph is captured on a stream that "
                     "is ordered with it");
}
