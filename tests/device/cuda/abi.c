/* SPDX-License-Identifier: MIT */
/* Our declarations of the driver's ABI (runtime/device/cuda/api.h) are the toolkit's: prototypes,
 * sizes, offsets and values, at each version that we ask cuGetProcAddress for. Compiling this is
 * most of the test. */
#include <cuda.h>
#include <cudaTypedefs.h>
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
SAME(TIDE_CU_IPC_LAZY_PEER_ACCESS, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
SAME(sizeof(tide_cu_ipc_handle), sizeof(CUipcMemHandle));
SAME(TIDE_CU_DEVICE_POOLS_SUPPORTED, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
SAME(TIDE_CU_POOL_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME(TIDE_CU_POOL_RESERVED, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
SAME(TIDE_CU_POOL_RESERVED_PEAK, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
SAME(TIDE_CU_POOL_USED, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
SAME(TIDE_CU_POOL_USED_PEAK, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
SAME(TIDE_CU_POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(TIDE_CU_POINTER_RANGE_START, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
SAME(TIDE_CU_POINTER_RANGE_BYTES, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SAME(TIDE_CU_MEMORY_HOST, CU_MEMORYTYPE_HOST);
SAME(TIDE_CU_ALLOCATION_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(TIDE_CU_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(TIDE_CU_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
SAME(TIDE_CU_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(TIDE_CU_CAPTURE_NONE, CU_STREAM_CAPTURE_STATUS_NONE);
SAME(TIDE_CU_CAPTURE_ACTIVE, CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME(TIDE_CU_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(TIDE_CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BUFFER);
SAME(TIDE_CU_JIT_ERROR_LOG_BYTES, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME(TIDE_CU_PROC_LEGACY_STREAM, CU_GET_PROC_ADDRESS_LEGACY_STREAM);

SAME(sizeof(tide_cu_pool_properties), sizeof(CUmemPoolProps));
SAME(offsetof(tide_cu_pool_properties, handles), offsetof(CUmemPoolProps, handleTypes));
SAME(offsetof(tide_cu_pool_properties, location), offsetof(CUmemPoolProps, location));
SAME(offsetof(tide_cu_pool_properties, location.id), offsetof(CUmemPoolProps, location.id));
SAME(offsetof(tide_cu_pool_properties, security),
     offsetof(CUmemPoolProps, win32SecurityAttributes));
SAME(offsetof(tide_cu_pool_properties, most), offsetof(CUmemPoolProps, maxSize));
SAME(offsetof(tide_cu_pool_properties, usage), offsetof(CUmemPoolProps, usage));
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
SAME(TIDE_CU_ACCESS_NONE, CU_MEM_ACCESS_FLAGS_PROT_NONE);
SAME(TIDE_CU_ACCESS_READ_WRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(sizeof(tide_cu_result), sizeof(CUresult));
SAME(sizeof(tide_cu_device), sizeof(CUdevice));
SAME(sizeof(tide_cu_address), sizeof(CUdeviceptr));

/* A parameter of ours and the driver's: the same type, or an enumeration and an int, or structures
 * of the same layout (above) behind a pointer. What is compared is the number of parameters and
 * the size and kind of each, by declaring theirs once more with ours in place of what only has
 * another name. */
#define CUresult                         tide_cu_result
#define CUdevice_attribute               int
#define CUmemPool_attribute              int
#define CUpointer_attribute              int
#define CUstreamCaptureStatus            int
#define CUstreamCaptureMode              int
#define CUjit_option                     int
#define CUmemPoolProps                   tide_cu_pool_properties
#define CUmemAccessDesc                  tide_cu_access
#define CUmemAllocationProp              tide_cu_page_properties
#define CUmemAllocationGranularity_flags int
#define CUipcMemHandle                   tide_cu_ipc_handle

#define OURS(name) __typeof__(((tide_cu_driver *)0)->name)
#define PROTOTYPE(name, ...) \
    _Static_assert(__builtin_types_compatible_p(OURS(name), tide_cu_result(*)(__VA_ARGS__)), #name)

PROTOTYPE(cuInit, unsigned int);
PROTOTYPE(cuDriverGetVersion, int *);
PROTOTYPE(cuGetErrorName, CUresult, const char **);
PROTOTYPE(cuGetErrorString, CUresult, const char **);
PROTOTYPE(cuDeviceGetCount, int *);
PROTOTYPE(cuDeviceGet, CUdevice *, int);
PROTOTYPE(cuDeviceGetName, char *, int, CUdevice);
PROTOTYPE(cuDeviceTotalMem, size_t *, CUdevice);
PROTOTYPE(cuDeviceGetAttribute, int *, CUdevice_attribute, CUdevice);
PROTOTYPE(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice);
PROTOTYPE(cuDevicePrimaryCtxRelease, CUdevice);
PROTOTYPE(cuCtxGetCurrent, CUcontext *);
PROTOTYPE(cuCtxPushCurrent, CUcontext);
PROTOTYPE(cuCtxPopCurrent, CUcontext *);
PROTOTYPE(cuCtxSynchronize, void);
PROTOTYPE(cuMemPoolCreate, CUmemoryPool *, const CUmemPoolProps *);
PROTOTYPE(cuMemPoolDestroy, CUmemoryPool);
PROTOTYPE(cuMemPoolSetAttribute, CUmemoryPool, CUmemPool_attribute, void *);
PROTOTYPE(cuMemPoolSetAccess, CUmemoryPool, const CUmemAccessDesc *, size_t);
PROTOTYPE(cuDeviceCanAccessPeer, int *, CUdevice, CUdevice);
PROTOTYPE(cuMemcpyPeerAsync, CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream);
PROTOTYPE(cuMemPoolGetAttribute, CUmemoryPool, CUmemPool_attribute, void *);
PROTOTYPE(cuMemGetAllocationGranularity, size_t *, const CUmemAllocationProp *,
          CUmemAllocationGranularity_flags);
PROTOTYPE(cuMemAddressReserve, CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
PROTOTYPE(cuMemAddressFree, CUdeviceptr, size_t);
PROTOTYPE(cuMemCreate, CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
          unsigned long long);
PROTOTYPE(cuMemRelease, CUmemGenericAllocationHandle);
PROTOTYPE(cuMemMap, CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
PROTOTYPE(cuMemUnmap, CUdeviceptr, size_t);
PROTOTYPE(cuMemSetAccess, CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
PROTOTYPE(cuMemPoolTrimTo, CUmemoryPool, size_t);
PROTOTYPE(cuPointerGetAttributes, unsigned, CUpointer_attribute *, void **, CUdeviceptr);
PROTOTYPE(cuMemAllocFromPoolAsync, CUdeviceptr *, size_t, CUmemoryPool, CUstream);
PROTOTYPE(cuMemFreeAsync, CUdeviceptr, CUstream);
PROTOTYPE(cuMemHostAlloc, void **, size_t, unsigned int);
PROTOTYPE(cuIpcGetMemHandle, CUipcMemHandle *, CUdeviceptr);
PROTOTYPE(cuIpcOpenMemHandle, CUdeviceptr *, CUipcMemHandle, unsigned int);
PROTOTYPE(cuIpcCloseMemHandle, CUdeviceptr);
PROTOTYPE(cuMemAllocManaged, CUdeviceptr *, size_t, unsigned int);
PROTOTYPE(cuMemFreeHost, void *);
PROTOTYPE(cuMemcpyAsync, CUdeviceptr, CUdeviceptr, size_t, CUstream);
PROTOTYPE(cuEventCreate, CUevent *, unsigned int);
PROTOTYPE(cuEventDestroy, CUevent);
PROTOTYPE(cuEventRecord, CUevent, CUstream);
PROTOTYPE(cuStreamWaitEvent, CUstream, CUevent, unsigned int);
PROTOTYPE(cuStreamCreate, CUstream *, unsigned int);
PROTOTYPE(cuStreamDestroy, CUstream);
PROTOTYPE(cuStreamIsCapturing, CUstream, CUstreamCaptureStatus *);
PROTOTYPE(cuStreamGetId, CUstream, unsigned long long *);
PROTOTYPE(cuStreamGetCtx, CUstream, CUcontext *);
PROTOTYPE(cuModuleGetFunction, CUfunction *, CUmodule, const char *);

#undef CUresult
#undef CUdevice_attribute
#undef CUmemPool_attribute
#undef CUpointer_attribute
#undef CUstreamCaptureStatus
#undef CUstreamCaptureMode
#undef CUjit_option
#undef CUmemPoolProps
#undef CUmemAccessDesc
#undef CUmemAllocationProp
#undef CUmemAllocationGranularity_flags
#undef CUipcMemHandle

/* Theirs at the version we ask for: that there is such a version, and that a call with our
 * arguments is a call of theirs, warnings being errors. */
#define CALLABLE(name, version, ...)                              \
    static CUresult call_##name(PFN_##name##_v##version function) \
    {                                                             \
        return function(__VA_ARGS__);                             \
    }
CALLABLE(cuInit, 2000, 0U)
CALLABLE(cuDriverGetVersion, 2020, (int *)0)
CALLABLE(cuGetErrorName, 6000, CUDA_SUCCESS, (const char **)0)
CALLABLE(cuGetErrorString, 6000, CUDA_SUCCESS, (const char **)0)
CALLABLE(cuDeviceGetCount, 2000, (int *)0)
CALLABLE(cuDeviceGet, 2000, (tide_cu_device *)0, 0)
CALLABLE(cuDeviceGetName, 2000, (char *)0, 0, (tide_cu_device)0)
CALLABLE(cuDeviceTotalMem, 3020, (size_t *)0, (tide_cu_device)0)
CALLABLE(cuDeviceGetAttribute, 2000, (int *)0, (CUdevice_attribute)0, (tide_cu_device)0)
CALLABLE(cuDevicePrimaryCtxRetain, 7000, (tide_cu_context *)0, (tide_cu_device)0)
CALLABLE(cuDevicePrimaryCtxRelease, 11000, (tide_cu_device)0)
CALLABLE(cuCtxGetCurrent, 4000, (tide_cu_context *)0)
CALLABLE(cuCtxPushCurrent, 4000, (tide_cu_context)0)
CALLABLE(cuCtxPopCurrent, 4000, (tide_cu_context *)0)
CALLABLE(cuCtxSynchronize, 2000, )
CALLABLE(cuMemPoolCreate, 11020, (tide_cu_pool *)0, (const CUmemPoolProps *)0)
CALLABLE(cuMemPoolDestroy, 11020, (tide_cu_pool)0)
CALLABLE(cuMemPoolSetAttribute, 11020, (tide_cu_pool)0, (CUmemPool_attribute)0, (void *)0)
CALLABLE(cuMemPoolSetAccess, 11020, (tide_cu_pool)0, (const CUmemAccessDesc *)0, (size_t)0)
CALLABLE(cuDeviceCanAccessPeer, 4000, (int *)0, (tide_cu_device)0, (tide_cu_device)0)
CALLABLE(cuMemcpyPeerAsync, 4000, (tide_cu_address)0, (tide_cu_context)0, (tide_cu_address)0,
         (tide_cu_context)0, (size_t)0, (tide_cu_stream)0)
CALLABLE(cuMemPoolGetAttribute, 11020, (tide_cu_pool)0, (CUmemPool_attribute)0, (void *)0)
CALLABLE(cuMemGetAllocationGranularity, 10020, (size_t *)0, (const CUmemAllocationProp *)0,
         (CUmemAllocationGranularity_flags)0)
CALLABLE(cuMemAddressReserve, 10020, (tide_cu_address *)0, (size_t)0, (size_t)0, (tide_cu_address)0,
         0ULL)
CALLABLE(cuMemAddressFree, 10020, (tide_cu_address)0, (size_t)0)
CALLABLE(cuMemCreate, 10020, (unsigned long long *)0, (size_t)0, (const CUmemAllocationProp *)0,
         0ULL)
CALLABLE(cuMemRelease, 10020, 0ULL)
CALLABLE(cuMemMap, 10020, (tide_cu_address)0, (size_t)0, (size_t)0, 0ULL, 0ULL)
CALLABLE(cuMemUnmap, 10020, (tide_cu_address)0, (size_t)0)
CALLABLE(cuMemSetAccess, 10020, (tide_cu_address)0, (size_t)0, (const CUmemAccessDesc *)0,
         (size_t)0)
CALLABLE(cuMemPoolTrimTo, 11020, (tide_cu_pool)0, (size_t)0)
CALLABLE(cuMemAlloc, 3020, (tide_cu_address *)0, (size_t)0)
CALLABLE(cuMemFree, 3020, (tide_cu_address)0)
CALLABLE(cuPointerGetAttributes, 7000, 0U, (CUpointer_attribute *)0, (void **)0, (tide_cu_address)0)
CALLABLE(cuMemAllocFromPoolAsync, 11020, (tide_cu_address *)0, (size_t)0, (tide_cu_pool)0,
         (tide_cu_stream)0)
CALLABLE(cuMemFreeAsync, 11020, (tide_cu_address)0, (tide_cu_stream)0)
CALLABLE(cuMemHostAlloc, 2020, (void **)0, (size_t)0, 0U)
CALLABLE(cuIpcGetMemHandle, 4010, (CUipcMemHandle *)0, (CUdeviceptr)0)
CALLABLE(cuIpcOpenMemHandle, 11000, (CUdeviceptr *)0, (CUipcMemHandle){{0}}, 0U)
CALLABLE(cuIpcCloseMemHandle, 4010, (CUdeviceptr)0)
CALLABLE(cuMemAllocManaged, 6000, (CUdeviceptr *)0, (size_t)0, 0U)
CALLABLE(cuMemFreeHost, 2000, (void *)0)
CALLABLE(cuMemsetD8Async, 3020, (tide_cu_address)0, (unsigned char)0, (size_t)0, (tide_cu_stream)0)
CALLABLE(cuMemsetD16Async, 3020, (tide_cu_address)0, (unsigned short)0, (size_t)0,
         (tide_cu_stream)0)
CALLABLE(cuMemsetD32Async, 3020, (tide_cu_address)0, 0U, (size_t)0, (tide_cu_stream)0)
CALLABLE(cuMemsetD2D8Async, 3020, (tide_cu_address)0, (size_t)0, (unsigned char)0, (size_t)0,
         (size_t)0, (tide_cu_stream)0)
CALLABLE(cuMemsetD2D16Async, 3020, (tide_cu_address)0, (size_t)0, (unsigned short)0, (size_t)0,
         (size_t)0, (tide_cu_stream)0)
CALLABLE(cuMemsetD2D32Async, 3020, (tide_cu_address)0, (size_t)0, 0U, (size_t)0, (size_t)0,
         (tide_cu_stream)0)
CALLABLE(cuMemcpyAsync, 4000, (tide_cu_address)0, (tide_cu_address)0, (size_t)0, (tide_cu_stream)0)
CALLABLE(cuEventCreate, 2000, (tide_cu_event *)0, 0U)
CALLABLE(cuEventDestroy, 4000, (tide_cu_event)0)
CALLABLE(cuEventRecord, 2000, (tide_cu_event)0, (tide_cu_stream)0)
CALLABLE(cuEventQuery, 2000, (tide_cu_event)0)
CALLABLE(cuEventSynchronize, 2000, (tide_cu_event)0)
CALLABLE(cuStreamWaitEvent, 3020, (tide_cu_stream)0, (tide_cu_event)0, 0U)
CALLABLE(cuStreamCreate, 2000, (tide_cu_stream *)0, 0U)
CALLABLE(cuStreamDestroy, 4000, (tide_cu_stream)0)
CALLABLE(cuStreamSynchronize, 2000, (tide_cu_stream)0)
CALLABLE(cuStreamQuery, 2000, (tide_cu_stream)0)
CALLABLE(cuStreamIsCapturing, 10000, (tide_cu_stream)0, (CUstreamCaptureStatus *)0)
CALLABLE(cuStreamGetId, 12000, (tide_cu_stream)0, (unsigned long long *)0)
CALLABLE(cuStreamGetCtx, 9020, (tide_cu_stream)0, (tide_cu_context *)0)
CALLABLE(cuThreadExchangeStreamCaptureMode, 10010, (CUstreamCaptureMode *)0)
CALLABLE(cuModuleLoadDataEx, 2010, (tide_cu_module *)0, (const void *)0, 0U, (CUjit_option *)0,
         (void **)0)
CALLABLE(cuModuleUnload, 2000, (tide_cu_module)0)
CALLABLE(cuModuleGetFunction, 2000, (tide_cu_function *)0, (tide_cu_module)0, (const char *)0)
CALLABLE(cuLaunchKernel, 4000, (tide_cu_function)0, 0U, 0U, 0U, 0U, 0U, 0U, 0U, (tide_cu_stream)0,
         (void **)0, (void **)0)

/* Every entry point we ask for, and the tests ask for, is declared at that version. */
#define VERSION(name, version, arguments) \
    _Static_assert(sizeof(PFN_##name##_v##version) != 0, #name);
TIDE_CU_ENTRIES(VERSION)
BESIDE_ENTRIES(VERSION)

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
    unsigned count = 0;
    if (!has_same_handles())
        return 1;
#define COUNT(name, version, arguments) count += call_##name != NULL;
    TIDE_CU_ENTRIES(COUNT)
    printf("%u entry points are as CUDA %d.%d declares them\n", count, CUDA_VERSION / 1000,
           CUDA_VERSION % 1000 / 10);
    return count != 0 ? 0 : 1;
}
