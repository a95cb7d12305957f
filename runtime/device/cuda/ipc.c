/* SPDX-License-Identifier: MIT */
/* Memory of a CUDA device for other processes. The driver shares what cuMemAlloc gave, as a whole;
 * memory of its pools it shares only if the whole pool was made for that, and such a pool gives
 * nothing back to the system. So this memory is no pool's. */
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/device/cuda/cuda.h"

_Static_assert(sizeof(tide_cu_ipc_handle) == 64, "as the method has it");

static tide_cu_address ipc_address(const void *data)
{
    return (tide_cu_address)(uintptr_t)data;
}

tide_status tide_cuda_ipc_export(tide_device *device, void *data, unsigned char handle[64])
{
    tide_cu_ipc_handle got;
    tide_cuda_entered entered;
    tide_assert(data != NULL && device->exports);
    TIDE_FORWARD(tide_cuda_enter(device, &entered));
    tide_cu_result result = tide_cu.cuIpcGetMemHandle(&got, ipc_address(data));
    tide_cuda_leave(entered);
    if (result != TIDE_CU_SUCCESS)
        return tide_cuda_fail(device, "cuIpcGetMemHandle", result);
    memcpy(handle, got.bytes, sizeof got.bytes);
    return TIDE_OK;
}

void *tide_cuda_ipc_open(tide_device *device, const unsigned char handle[64])
{
    tide_cu_ipc_handle of;
    tide_cu_address got = 0;
    tide_cuda_entered entered;
    memcpy(of.bytes, handle, sizeof of.bytes);
    if (tide_cuda_enter(device, &entered) != TIDE_OK)
        return NULL;
    tide_cu_result result = tide_cu.cuIpcOpenMemHandle(&got, of, TIDE_CU_IPC_LAZY_PEER_ACCESS);
    tide_cuda_leave(entered);
    if (result == TIDE_CU_SUCCESS)
        return (void *)(uintptr_t)got;
    (void)tide_cuda_fail(device, "cuIpcOpenMemHandle", result);
    return NULL;
}

tide_status tide_cuda_ipc_close(tide_device *device, void *data)
{
    tide_cuda_entered entered;
    tide_assert(data != NULL);
    TIDE_FORWARD(tide_cuda_enter(device, &entered));
    tide_cu_result result = tide_cu.cuIpcCloseMemHandle(ipc_address(data));
    tide_cuda_leave(entered);
    return result == TIDE_CU_SUCCESS ? TIDE_OK
                                     : tide_cuda_fail(device, "cuIpcCloseMemHandle", result);
}
