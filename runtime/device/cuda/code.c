/* SPDX-License-Identifier: MIT */
/* Code for CUDA devices: modules made from cubins, their kernels by name, and launches. */
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/device/cuda/cuda.h"

void *tide_cuda_module(tide_device *device, const void *code)
{
    tide_cuda_entered entered;
    tide_cu_module module = NULL;
    tide_assert(code != NULL);
    if (tide_cuda_enter(device, &entered) != TIDE_OK)
        return NULL;
    tide_status status = TIDE_CUDA_CALL(device, cuModuleLoadDataEx, &module, code, 0, NULL, NULL);
    return tide_cuda_left(entered, status) == TIDE_OK ? module : NULL;
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
    tide_status status = TIDE_CUDA_CALL(device, cuModuleGetFunction, &function, module, name);
    return tide_cuda_left(entered, status) == TIDE_OK ? function : NULL;
}

tide_status tide_cuda_launch(tide_device *device, void *stream, void *kernel, size_t groups,
                             size_t group, void **arguments)
{
    tide_assert(kernel != NULL && groups > 0 && groups <= INT32_MAX && group > 0 && group <= 1024);
    tide_cuda_entered entered;
    TIDE_FORWARD(tide_cuda_enter_for(device, stream, &entered));
    tide_device_count(&device->launches);
    return tide_cuda_left(entered,
                          TIDE_CUDA_CALL(device, cuLaunchKernel, kernel, (unsigned)groups, 1, 1,
                                         (unsigned)group, 1, 1, 0, stream, arguments, NULL));
}
