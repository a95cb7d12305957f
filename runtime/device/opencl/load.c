/* SPDX-License-Identifier: MIT */
/* The ICD loader: loaded when the first OpenCL device is asked for, and never unloaded, because
 * drivers would not survive that. Also: their errors in words. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/device/opencl/opencl.h"

tide_opencl_calls tide_opencl;

const char *tide_opencl_library = "libOpenCL.so.1";

static bool opencl_loaded; /* changed in turn (runtime/device/device.c) */

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

tide_status tide_opencl_load(const char *call)
{
    tide_opencl_calls calls;
    if (opencl_loaded)
        return TIDE_OK;
    void *library = dlopen(tide_opencl_library, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return tide_fail(TIDE_ERROR_DEVICE, call, "no OpenCL: %s", dlerror());
    tide_status status = opencl_find_entries(library, call, &calls);
    opencl_loaded = status == TIDE_OK;
    if (opencl_loaded) {
        tide_driver_use(TIDE_DRIVER_OPENCL);
        tide_opencl = calls;
    } else {
        dlclose(library);
    }
    return status;
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
