/* SPDX-License-Identifier: MIT */
/* Our declarations of the driver's ABI (runtime/device/cuda/api.h) are the toolkit's: prototypes,
 * sizes, offsets and values, at each version that we ask cuGetProcAddress for. Compiling this is
 * most of the test. */
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "beside.h"
#include "runtime/device/cuda/api.h"

#define SAME(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #theirs)

SAME(TIDE_CU_SUCCESS, CUDA_SUCCESS);
SAME(TIDE_CU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(TIDE_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(TIDE_CU_DEINITIALIZED, CUDA_ERROR_DEINITIALIZED);
SAME(TIDE_CU_DEVICE_UNAVAILABLE, CUDA_ERROR_DEVICE_UNAVAILABLE);
SAME(TIDE_CU_ECC_UNCORRECTABLE, CUDA_ERROR_ECC_UNCORRECTABLE);
SAME(TIDE_CU_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
SAME(TIDE_CU_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(TIDE_CU_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(TIDE_CU_LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT);
SAME(TIDE_CU_CONTEXT_IS_DESTROYED, CUDA_ERROR_CONTEXT_IS_DESTROYED);
SAME(TIDE_CU_ASSERT, CUDA_ERROR_ASSERT);
SAME(TIDE_CU_HARDWARE_STACK_ERROR, CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME(TIDE_CU_ILLEGAL_INSTRUCTION, CUDA_ERROR_ILLEGAL_INSTRUCTION);
SAME(TIDE_CU_MISALIGNED_ADDRESS, CUDA_ERROR_MISALIGNED_ADDRESS);
SAME(TIDE_CU_INVALID_ADDRESS_SPACE, CUDA_ERROR_INVALID_ADDRESS_SPACE);
SAME(TIDE_CU_INVALID_PC, CUDA_ERROR_INVALID_PC);
SAME(TIDE_CU_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED);
SAME(TIDE_CU_CONTAINED, CUDA_ERROR_CONTAINED);
SAME(TIDE_CU_TENSOR_MEMORY_LEAK, CUDA_ERROR_TENSOR_MEMORY_LEAK);
SAME(TIDE_CU_MPS_CLIENT_TERMINATED, CUDA_ERROR_MPS_CLIENT_TERMINATED);
SAME(TIDE_CU_EXTERNAL_DEVICE, CUDA_ERROR_EXTERNAL_DEVICE);
SAME(TIDE_CU_CAPTURE_FIRST, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME(TIDE_CU_CAPTURE_LAST, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
SAME(TIDE_CU_CAPTURE_IMPLICIT, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
SAME(TIDE_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(TIDE_CU_DEVICE_INTEGRATED, CU_DEVICE_ATTRIBUTE_INTEGRATED);
SAME(TIDE_CU_DEVICE_MANAGED, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
SAME(TIDE_CU_DEVICE_CONCURRENT, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
SAME(TIDE_CU_ATTACH_GLOBAL, CU_MEM_ATTACH_GLOBAL);
SAME(TIDE_CU_DEVICE_IPC, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED);
SAME(TIDE_CU_DEVICE_POOLS_SUPPORTED, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
SAME(TIDE_CU_POOL_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME(TIDE_CU_POOL_RESERVED, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
SAME(TIDE_CU_POOL_RESERVED_PEAK, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
SAME(TIDE_CU_POOL_USED, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
SAME(TIDE_CU_POOL_USED_PEAK, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
SAME(TIDE_CU_POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(TIDE_CU_POINTER_IS_MANAGED, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME(TIDE_CU_POINTER_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(TIDE_CU_ALLOCATION_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(TIDE_CU_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(TIDE_CU_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
SAME(TIDE_CU_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(TIDE_CU_CAPTURE_NONE, CU_STREAM_CAPTURE_STATUS_NONE);
SAME(TIDE_CU_CAPTURE_ACTIVE, CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME(TIDE_CU_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(TIDE_CU_PROC_LEGACY_STREAM, CU_GET_PROC_ADDRESS_LEGACY_STREAM);

SAME(sizeof(tide_cu_pool_properties), sizeof(CUmemPoolProps));
SAME(offsetof(tide_cu_pool_properties, handles), offsetof(CUmemPoolProps, handleTypes));
SAME(offsetof(tide_cu_pool_properties, location), offsetof(CUmemPoolProps, location));
SAME(offsetof(tide_cu_pool_properties, location.id), offsetof(CUmemPoolProps, location.id));
SAME(offsetof(tide_cu_pool_properties, security),
     offsetof(CUmemPoolProps, win32SecurityAttributes));
SAME(offsetof(tide_cu_pool_properties, most), offsetof(CUmemPoolProps, maxSize));
SAME(offsetof(tide_cu_pool_properties, usage), offsetof(CUmemPoolProps, usage));
SAME(TIDE_CU_DEVICE_FILES, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
SAME(TIDE_CU_HANDLE_FILE, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME(TIDE_CU_DEVICE_DIRECT, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
SAME(TIDE_CU_DEVICE_PAGES, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME(sizeof(tide_cu_page_properties), sizeof(CUmemAllocationProp));
SAME(offsetof(tide_cu_page_properties, handles),
     offsetof(CUmemAllocationProp, requestedHandleTypes));
SAME(offsetof(tide_cu_page_properties, location), offsetof(CUmemAllocationProp, location));
SAME(offsetof(tide_cu_page_properties, security),
     offsetof(CUmemAllocationProp, win32HandleMetaData));
SAME(offsetof(tide_cu_page_properties, direct),
     offsetof(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable));
SAME(offsetof(tide_cu_page_properties, usage), offsetof(CUmemAllocationProp, allocFlags.usage));
SAME(sizeof(tide_cu_access), sizeof(CUmemAccessDesc));
SAME(offsetof(tide_cu_access, flags), offsetof(CUmemAccessDesc, flags));
SAME(TIDE_CU_ACCESS_READ_WRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(sizeof(tide_cu_result), sizeof(CUresult));
SAME(sizeof(tide_cu_device), sizeof(CUdevice));
SAME(sizeof(tide_cu_address), sizeof(CUdeviceptr));

/* Each entry point that we ask for, and that the tests ask for, is declared by the toolkit at that version,
 * with the same parameters: enumerations are ints, and structures of the same layout (above) are ours. */
#define CUresult                         tide_cu_result
#define CUdevice_attribute               int
#define CUmemPool_attribute              int
#define CUpointer_attribute              int
#define CUstreamCaptureStatus            int
#define CUstreamCaptureMode              int
#define CUjit_option                     int
#define CUmemAllocationGranularity_flags int
#define CUmemPoolProps_v1                tide_cu_pool_properties
#define CUmemAccessDesc_v1               tide_cu_access
#define CUmemAllocationProp_v1           tide_cu_page_properties
#include <cudaTypedefs.h>
#undef CUresult

#define TIDE_X(name, version, arguments)                                                    \
    _Static_assert(                                                                         \
        __builtin_types_compatible_p(tide_cu_result(*) arguments, PFN_##name##_v##version), \
        #name);
TIDE_CU_ENTRIES(TIDE_X)
BESIDE_ENTRIES(TIDE_X)
#undef TIDE_X

SAME(sizeof(uint64_t), sizeof(cuuint64_t));
SAME(sizeof(int), sizeof(CUdriverProcAddressQueryResult));
_Static_assert(__builtin_types_compatible_p(tide_cu_get_proc, tide_cu_result(const char *, void **,
                                                                             int, uint64_t, int *)),
               "cuGetProcAddress_v2");

/* Pointers made of numbers are no constants to every compiler. */
static bool has_same_handles(void)
{
    return (uintptr_t)CU_STREAM_LEGACY == TIDE_CU_STREAM_LEGACY &&
           (uintptr_t)CU_STREAM_PER_THREAD == TIDE_CU_STREAM_PER_THREAD;
}

int main(void)
{
#define TIDE_X(name, version, arguments) +1
    printf("%d entry points are as CUDA %d.%d declares them\n", 0 TIDE_CU_ENTRIES(TIDE_X),
           CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    return has_same_handles() ? 0 : 1;
}
