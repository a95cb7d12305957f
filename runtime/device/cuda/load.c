/* SPDX-License-Identifier: MIT */
/* The CUDA driver: loaded when the first device is opened, by as many threads as open one then, of
 * which none waits for another (runtime/device/device.c), never unloaded, and no longer called
 * once the process has begun to exit. Also its errors, and its current context. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/device/cuda/backend.h"
#include "runtime/device/cuda/cuda.h"

tide_cu_driver tide_cu;

static char cuda_library[1024] = "libcuda.so.1";
static bool cuda_loaded;      /* atomic; set once all entry points are there */
static uint32_t cuda_loading; /* atomic: threads that load it                */

/* Why the driver may not be called any more. */
enum { CUDA_OPEN = 0, CUDA_EXITING, CUDA_FORKED };

/* Atomic and sequentially consistent: either a thread that enters sees that exit has begun, or the
 * exiting thread sees it inside. */
static uint32_t cuda_closed, cuda_calls_inside;

/* Of these calls, those of this thread: as small as can be, for copies have little such memory. */
static _Thread_local uint8_t cuda_calls_own;
static const char call[] = "tide_device_open";
static const char cuda_words_forked[] =
    "CUDA was used before this process was forked, and does not work in the child";

void tide_cuda_driver_set(const char *path)
{
    snprintf(cuda_library, sizeof cuda_library, "%s", path != NULL ? path : "libcuda.so.1");
}

/* ---- exit --------------------------------------------------------------------------------- */

bool tide_cuda_begin(void)
{
    tide_assert(cuda_calls_own < UINT8_MAX);
    cuda_calls_own++;
    __atomic_fetch_add(&cuda_calls_inside, 1, __ATOMIC_SEQ_CST);
    if (TIDE_LIKELY(__atomic_load_n(&cuda_closed, __ATOMIC_SEQ_CST) == CUDA_OPEN))
        return true;
    tide_cuda_end();
    return false;
}

void tide_cuda_end(void)
{
    uint32_t before = __atomic_fetch_sub(&cuda_calls_inside, 1, __ATOMIC_SEQ_CST);
    tide_assert(cuda_calls_own > 0 && before >= cuda_calls_own);
    (void)before;
    cuda_calls_own--;
}

/* Registered after the driver's own handlers, so it runs before them. Other threads that are in a
 * call get time to come out; not for ever, because they may wait for work that does not end. The
 * exiting thread may itself be in one, in a function that the driver calls. */
static void cuda_begin_exit(void)
{
    enum { TRIES = 2000, MICROSECONDS = 1000 };
    uint32_t open = CUDA_OPEN;
    (void)__atomic_compare_exchange_n(&cuda_closed, &open, CUDA_EXITING, false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST);
    for (int i = 0; i < TRIES; i++) {
        if (__atomic_load_n(&cuda_calls_inside, __ATOMIC_SEQ_CST) == cuda_calls_own)
            return;
        usleep(MICROSECONDS);
    }
}

tide_status tide_cuda_refuse(const char *whose)
{
    tide_assert(__atomic_load_n(&cuda_closed, __ATOMIC_RELAXED) != CUDA_OPEN);
    return tide_fail(TIDE_ERROR_DEVICE, whose, "%s",
                     tide_cuda_forked() ? cuda_words_forked : "the process is exiting");
}

/* ---- fork --------------------------------------------------------------------------------- */

bool tide_cuda_forked(void)
{
    return __atomic_load_n(&cuda_closed, __ATOMIC_RELAXED) == CUDA_FORKED;
}

/* A driver that was loaded, or was just being loaded, does not work in the child. Fork itself waits
 * for no driver. Of those who were inside only the thread that forks is there in the child, if it
 * was one, in a constructor of what the driver loads. */
static void cuda_leave_in_child(void)
{
    __atomic_store_n(&cuda_calls_inside, cuda_calls_own, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&cuda_loaded, __ATOMIC_SEQ_CST) ||
        __atomic_load_n(&cuda_loading, __ATOMIC_SEQ_CST) != 0)
        __atomic_store_n(&cuda_closed, CUDA_FORKED, __ATOMIC_SEQ_CST);
}

bool tide_cuda_exiting(const tide_device *device)
{
    (void)device;
    return __atomic_load_n(&cuda_closed, __ATOMIC_SEQ_CST) == CUDA_EXITING;
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

/* Registry locked. Another thread may have been first: with the same entry points. */
static tide_status cuda_publish_driver(const tide_cu_driver *driver)
{
    static bool registered;
    if (cuda_loaded)
        return TIDE_OK;
    if (!registered && atexit(cuda_begin_exit) != 0)
        return tide_fail(TIDE_ERROR_MEMORY, call, "no memory to notice the end of the process");
    registered = true;
    tide_cu = *driver;
    __atomic_store_n(&cuda_loaded, true, __ATOMIC_RELEASE);
    return TIDE_OK;
}

static tide_status cuda_load_and_publish(void)
{
    tide_cu_driver driver;
    TIDE_FORWARD(cuda_load_driver(&driver));
    tide_registry_lock();
    tide_status status = cuda_publish_driver(&driver);
    tide_registry_unlock();
    return status;
}

void tide_cuda_prepare(void)
{
    static const tide_fork_handlers handlers = {.child = cuda_leave_in_child};
    tide_fork_register(TIDE_FORK_CUDA, &handlers);
}

tide_status tide_cuda_load(void)
{
    if (__atomic_load_n(&cuda_loaded, __ATOMIC_ACQUIRE))
        return TIDE_OK;
    if (tide_cuda_forked())
        return tide_cuda_refuse(call);
    __atomic_fetch_add(&cuda_loading, 1, __ATOMIC_SEQ_CST);
    tide_status status = cuda_load_and_publish();
    __atomic_fetch_sub(&cuda_loading, 1, __ATOMIC_SEQ_CST);
    return status;
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
    if (tide_cuda_begin()) {
        (void)tide_cu.cuGetErrorName(result, &name);
        (void)tide_cu.cuGetErrorString(result, &words);
        tide_cuda_end();
    }
    name = name != NULL ? name : "unknown";
    words = words != NULL ? words : "no words";
    bool lost = cuda_is_for_good(result) && tide_device_mark_lost(device);
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

/* Tried once more, or the thread would be in another mode than the program's for good. */
void tide_cuda_relax_end(int mode)
{
    int back = mode, again = mode;
    if (mode != MODE_AS_IT_WAS &&
        tide_cu.cuThreadExchangeStreamCaptureMode(&back) != TIDE_CU_SUCCESS)
        (void)tide_cu.cuThreadExchangeStreamCaptureMode(&again);
}

/* ---- context ------------------------------------------------------------------------------ */

/* The primary context keeps its handle when it is made anew, but not its number. */
static bool cuda_context_is_ours(const tide_cuda *cuda)
{
    unsigned flags = 0;
    unsigned long long made = cuda->made;
    int active = 1;
    if (tide_cu.cuDevicePrimaryCtxGetState(cuda->ordinal, &flags, &active) == TIDE_CU_SUCCESS &&
        active == 0)
        return false;
    tide_cu_result result = tide_cu.cuCtxGetId(cuda->context, &made);
    if (result == TIDE_CU_SUCCESS)
        return made == cuda->made;
    return result != TIDE_CU_CONTEXT_IS_DESTROYED && result != TIDE_CU_INVALID_CONTEXT;
}

/* Another user of the process may reset the device (cudaDeviceReset): then the driver must not be
 * given a handle of ours any more, also when somebody has made the context anew. */
static bool cuda_was_reset(tide_device *device)
{
    tide_cuda *cuda = tide_cuda_of(device);
    if (TIDE_UNLIKELY(__atomic_load_n(&cuda->reset, __ATOMIC_RELAXED)))
        return true;
    if (TIDE_LIKELY(cuda_context_is_ours(cuda)))
        return false;
    if (tide_device_mark_lost(device)) /* else the driver ends, and may say anything */
        __atomic_store_n(&cuda->reset, true, __ATOMIC_RELAXED);
    return true;
}

tide_status tide_cuda_enter(tide_device *device, tide_cuda_entered *entered)
{
    tide_cu_context wanted = tide_cuda_of(device)->context, current = NULL;
    tide_assert(__atomic_load_n(&cuda_loaded, __ATOMIC_RELAXED));
    entered->pushed = false;
    if (TIDE_UNLIKELY(!tide_cuda_begin()))
        return tide_cuda_forked() ? tide_device_lose(device, device->name, cuda_words_forked)
                                  : tide_cuda_refuse(device->name);
    if (TIDE_UNLIKELY(cuda_was_reset(device))) {
        tide_cuda_end();
        return tide_device_unwatched(device)
                   ? tide_cuda_refuse(device->name)
                   : tide_device_lose(device, device->name,
                                      "it was reset, and all its memory is gone");
    }
    tide_cu_result result = tide_cu.cuCtxGetCurrent(&current);
    if (result != TIDE_CU_SUCCESS || current != wanted) {
        result = tide_cu.cuCtxPushCurrent(wanted);
        entered->pushed = result == TIDE_CU_SUCCESS;
    }
    if (result == TIDE_CU_SUCCESS) {
        entered->mode = tide_cuda_relax();
        return TIDE_OK;
    }
    tide_cuda_end();
    return tide_cuda_fail(device, "cuCtxPushCurrent", result);
}

void tide_cuda_leave(tide_cuda_entered entered)
{
    tide_cu_context popped = NULL;
    tide_cuda_relax_end(entered.mode);
    if (entered.pushed)
        (void)tide_cu.cuCtxPopCurrent(&popped);
    tide_cuda_end();
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
