/* SPDX-License-Identifier: MIT */
/* Code for CUDA devices: modules made from cubins or PTX, their kernels by name, and launches. */
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/device/cuda/cuda.h"

enum { ARGUMENTS_MAX = 16 };

/* The driver's log says what is wrong with PTX; of a cubin it says nothing. */
static tide_cu_module cuda_load_module(tide_device *device, const void *code)
{
    char log[256] = "";
    int options[] = {TIDE_CU_JIT_ERROR_LOG, TIDE_CU_JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    tide_cu_module module = NULL;
    tide_assert(code != NULL);
    tide_cu_result result = tide_cu.cuModuleLoadDataEx(&module, code, 2, options, values);
    if (result == TIDE_CU_SUCCESS)
        return module;
    tide_status status = tide_cuda_fail(device, "cuModuleLoadDataEx", result);
    if (log[0] != '\0')
        tide_fail(status, "cuModuleLoadDataEx", "device %s: %.240s", device->name, log);
    return NULL;
}

void *tide_cuda_module(tide_device *device, const void *code, size_t bytes, const char *options)
{
    (void)bytes, (void)options;
    tide_cuda_entered entered;
    if (tide_cuda_enter(device, &entered) != TIDE_OK)
        return NULL;
    tide_cu_module module = cuda_load_module(device, code);
    tide_cuda_leave(entered);
    return module;
}

void tide_cuda_module_drop(tide_device *device, void *module)
{
    tide_cuda_entered entered;
    tide_assert(module != NULL);
    if (tide_cuda_enter(device, &entered) != TIDE_OK)
        return;
    (void)tide_cu.cuModuleUnload(module);
    tide_cuda_leave(entered);
}

void *tide_cuda_kernel(tide_device *device, void *module, const char *name)
{
    tide_cuda_entered entered;
    tide_cu_function function = NULL;
    tide_assert(module != NULL && name != NULL);
    if (tide_cuda_enter(device, &entered) != TIDE_OK)
        return NULL;
    tide_cu_result result = tide_cu.cuModuleGetFunction(&function, module, name);
    tide_cuda_leave(entered);
    if (result != TIDE_CU_SUCCESS)
        (void)tide_cuda_fail(device, "cuModuleGetFunction", result);
    return result == TIDE_CU_SUCCESS ? function : NULL;
}

/* The driver reads each argument's size from the kernel, so an address goes like a value. */
tide_status tide_cuda_launch(tide_device *device, void *stream, void *kernel, size_t groups,
                             size_t group, const tide_argument *arguments, size_t count)
{
    void *values[ARGUMENTS_MAX];
    if (count > ARGUMENTS_MAX || groups > INT32_MAX || group > 1024)
        return tide_fail(TIDE_ERROR_LIMIT, "cuLaunchKernel",
                         "%zu groups of %zu with %zu arguments; most are %d of 1024 with %d",
                         groups, group, count, INT32_MAX, ARGUMENTS_MAX);
    tide_assert(kernel != NULL && groups > 0 && group > 0);
    for (size_t i = 0; i < count; i++) {
        tide_assert(arguments[i].value != NULL);
        values[i] = (void *)(uintptr_t)arguments[i].value;
    }
    tide_cuda_entered entered;
    TIDE_FORWARD(tide_cuda_enter_for(device, stream, &entered));
    tide_cu_result result = tide_cu.cuLaunchKernel(kernel, (unsigned)groups, 1, 1, (unsigned)group,
                                                   1, 1, 0, stream, values, NULL);
    tide_cuda_leave(entered);
    tide_device_count(&device->launches);
    return result == TIDE_CU_SUCCESS ? TIDE_OK : tide_cuda_fail(device, "cuLaunchKernel", result);
}
