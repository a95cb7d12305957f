/* SPDX-License-Identifier: MIT */
/* What we use of the CUDA driver, declared here: building needs no toolkit, and the driver is
 * loaded, not linked. cuGetProcAddress is asked for each entry point at the version whose
 * parameters stand here, because a name without a version can mean another ABI tomorrow.
 * tests/device compares all this with the toolkit's cuda.h. */
#ifndef TIDEPOOL_RUNTIME_DEVICE_CUDA_API_H
#define TIDEPOOL_RUNTIME_DEVICE_CUDA_API_H

#include <tidepool/inline/config.h>

typedef int tide_cu_result;
typedef int tide_cu_device;
typedef unsigned long long tide_cu_address;
typedef struct CUctx_st *tide_cu_context;
typedef struct CUstream_st *tide_cu_stream;
typedef struct CUevent_st *tide_cu_event;
typedef struct CUmod_st *tide_cu_module;
typedef struct CUfunc_st *tide_cu_function;
typedef struct CUmemPoolHandle_st *tide_cu_pool;

/* CUmemPoolProps. */
typedef struct tide_cu_pool_properties {
    int allocation, handles;
    struct {
        int type, id;
    } location;
    void *security;
    size_t most;
    unsigned short usage;
    unsigned char reserved[54];
} tide_cu_pool_properties;

/* CUmemAccessDesc. */
typedef struct tide_cu_access {
    struct {
        int type, id;
    } location;
    int flags;
} tide_cu_access;

/* CUmemAllocationProp. */
typedef struct tide_cu_page_properties {
    int allocation, handles;
    struct {
        int type, id;
    } location;
    void *security;
    unsigned char compression, direct;
    unsigned short usage;
    unsigned char reserved[4];
} tide_cu_page_properties;

_Static_assert(offsetof(tide_cu_pool_properties, security) == 16 &&
                   offsetof(tide_cu_pool_properties, reserved) == 34 &&
                   sizeof(tide_cu_pool_properties) == 88,
               "laid out as the driver's");
_Static_assert(sizeof(tide_cu_address) == sizeof(void *), "device addresses travel as pointers");

enum { /* results */
       TIDE_CU_SUCCESS = 0,
       TIDE_CU_INVALID_VALUE = 1,
       TIDE_CU_OUT_OF_MEMORY = 2,
       TIDE_CU_DEINITIALIZED = 4,
       TIDE_CU_DEVICE_UNAVAILABLE = 46,
       TIDE_CU_ECC_UNCORRECTABLE = 214,
       TIDE_CU_INVALID_CONTEXT = 201,
       TIDE_CU_CONTAINED = 226,
       TIDE_CU_INVALID_HANDLE = 400,
       TIDE_CU_NOT_READY = 600,
       TIDE_CU_ILLEGAL_ADDRESS = 700,
       TIDE_CU_LAUNCH_TIMEOUT = 702,
       TIDE_CU_CONTEXT_IS_DESTROYED = 709,
       TIDE_CU_ASSERT = 710,
       TIDE_CU_HARDWARE_STACK_ERROR = 714,
       TIDE_CU_ILLEGAL_INSTRUCTION = 715,
       TIDE_CU_MISALIGNED_ADDRESS = 716,
       TIDE_CU_INVALID_ADDRESS_SPACE = 717,
       TIDE_CU_INVALID_PC = 718,
       TIDE_CU_LAUNCH_FAILED = 719,
       TIDE_CU_TENSOR_MEMORY_LEAK = 721,
       TIDE_CU_MPS_CLIENT_TERMINATED = 810,
       TIDE_CU_CAPTURE_FIRST = 900, /* of the results that a capture causes */
       TIDE_CU_CAPTURE_IMPLICIT = 906,
       TIDE_CU_CAPTURE_LAST = 908,
       TIDE_CU_EXTERNAL_DEVICE = 911
};

enum { /* values */
       TIDE_CU_DEVICE_INTEGRATED = 18,
       TIDE_CU_DEVICE_MANAGED = 83,
       TIDE_CU_DEVICE_PAGES = 102,     /* virtual memory management */
       TIDE_CU_DEVICE_FILES = 103,     /* of that: as a file descriptor for other processes */
       TIDE_CU_DEVICE_DIRECT = 110,    /* of that: for network cards, too (GPUDirect RDMA) */
       TIDE_CU_DEVICE_CONCURRENT = 89, /* the host may use managed memory while kernels run */
       TIDE_CU_DEVICE_POOLS_SUPPORTED = 115,
       TIDE_CU_DEVICE_IPC = 125, /* of newer drivers: memory and events for other processes */
       TIDE_CU_POOL_RELEASE_THRESHOLD = 4,
       TIDE_CU_POOL_RESERVED = 5,
       TIDE_CU_POOL_RESERVED_PEAK = 6,
       TIDE_CU_POOL_USED = 7,
       TIDE_CU_POOL_USED_PEAK = 8,
       TIDE_CU_POINTER_MEMORY_TYPE = 2,
       TIDE_CU_POINTER_IS_MANAGED = 8,
       TIDE_CU_POINTER_DEVICE_ORDINAL = 9,
       TIDE_CU_MEMORY_DEVICE = 2,
       TIDE_CU_ALLOCATION_PINNED = 1,
       TIDE_CU_HANDLE_FILE = 1,
       TIDE_CU_LOCATION_DEVICE = 1,
       TIDE_CU_ACCESS_READ_WRITE = 3,
       TIDE_CU_HOST_PORTABLE = 1,
       TIDE_CU_ATTACH_GLOBAL = 1, /* managed memory: for all streams of all devices */
       TIDE_CU_EVENT_DISABLE_TIMING = 2,
       TIDE_CU_STREAM_NON_BLOCKING = 1,
       TIDE_CU_STREAM_LEGACY = 1,     /* a handle: what NULL stands for        */
       TIDE_CU_STREAM_PER_THREAD = 2, /* a handle: the calling thread's stream */
       TIDE_CU_CAPTURE_NONE = 0,
       TIDE_CU_CAPTURE_ACTIVE = 1,
       TIDE_CU_CAPTURE_RELAXED = 2,
       TIDE_CU_PROC_LEGACY_STREAM = 1 /* a NULL stream is the legacy default one */
};

/* Every entry point: TIDE_CU(name, CUDA version of these parameters, arguments). */
#define TIDE_CU_ENTRIES(TIDE_CU)                                                                  \
    TIDE_CU(cuInit, 2000, (unsigned))                                                             \
    TIDE_CU(cuDriverGetVersion, 2020, (int *))                                                    \
    TIDE_CU(cuGetErrorName, 6000, (tide_cu_result, const char **))                                \
    TIDE_CU(cuGetErrorString, 6000, (tide_cu_result, const char **))                              \
    TIDE_CU(cuDeviceGetCount, 2000, (int *))                                                      \
    TIDE_CU(cuDeviceGet, 2000, (tide_cu_device *, int))                                           \
    TIDE_CU(cuDeviceGetName, 2000, (char *, int, tide_cu_device))                                 \
    TIDE_CU(cuDeviceTotalMem, 3020, (size_t *, tide_cu_device))                                   \
    TIDE_CU(cuDeviceGetAttribute, 2000, (int *, int, tide_cu_device))                             \
    TIDE_CU(cuDevicePrimaryCtxRetain, 7000, (tide_cu_context *, tide_cu_device))                  \
    TIDE_CU(cuDevicePrimaryCtxRelease, 11000, (tide_cu_device))                                   \
    TIDE_CU(cuCtxGetCurrent, 4000, (tide_cu_context *))                                           \
    TIDE_CU(cuCtxPushCurrent, 4000, (tide_cu_context))                                            \
    TIDE_CU(cuCtxPopCurrent, 4000, (tide_cu_context *))                                           \
    TIDE_CU(cuCtxSynchronize, 2000, (void))                                                       \
    TIDE_CU(cuMemPoolCreate, 11020, (tide_cu_pool *, const tide_cu_pool_properties *))            \
    TIDE_CU(cuMemPoolDestroy, 11020, (tide_cu_pool))                                              \
    TIDE_CU(cuMemPoolSetAttribute, 11020, (tide_cu_pool, int, void *))                            \
    TIDE_CU(cuMemcpyPeerAsync, 4000,                                                              \
            (tide_cu_address, tide_cu_context, tide_cu_address, tide_cu_context, size_t,          \
             tide_cu_stream))                                                                     \
    TIDE_CU(cuMemPoolGetAttribute, 11020, (tide_cu_pool, int, void *))                            \
    TIDE_CU(cuMemPoolTrimTo, 11020, (tide_cu_pool, size_t))                                       \
    TIDE_CU(cuMemAlloc, 3020, (tide_cu_address *, size_t))                                        \
    TIDE_CU(cuMemFree, 3020, (tide_cu_address))                                                   \
    TIDE_CU(cuMemGetAllocationGranularity, 10020,                                                 \
            (size_t *, const tide_cu_page_properties *, int))                                     \
    TIDE_CU(cuMemAddressReserve, 10020,                                                           \
            (tide_cu_address *, size_t, size_t, tide_cu_address, unsigned long long))             \
    TIDE_CU(cuMemAddressFree, 10020, (tide_cu_address, size_t))                                   \
    TIDE_CU(cuMemCreate, 10020,                                                                   \
            (unsigned long long *, size_t, const tide_cu_page_properties *, unsigned long long))  \
    TIDE_CU(cuMemRelease, 10020, (unsigned long long))                                            \
    TIDE_CU(cuMemMap, 10020,                                                                      \
            (tide_cu_address, size_t, size_t, unsigned long long, unsigned long long))            \
    TIDE_CU(cuMemUnmap, 10020, (tide_cu_address, size_t))                                         \
    TIDE_CU(cuMemSetAccess, 10020, (tide_cu_address, size_t, const tide_cu_access *, size_t))     \
    TIDE_CU(cuPointerGetAttributes, 7000, (unsigned, int *, void **, tide_cu_address))            \
    TIDE_CU(cuMemAllocFromPoolAsync, 11020,                                                       \
            (tide_cu_address *, size_t, tide_cu_pool, tide_cu_stream))                            \
    TIDE_CU(cuMemFreeAsync, 11020, (tide_cu_address, tide_cu_stream))                             \
    TIDE_CU(cuMemHostAlloc, 2020, (void **, size_t, unsigned))                                    \
    TIDE_CU(cuMemFreeHost, 2000, (void *))                                                        \
    TIDE_CU(cuMemAllocManaged, 6000, (tide_cu_address *, size_t, unsigned))                       \
    TIDE_CU(cuMemsetD8Async, 3020, (tide_cu_address, unsigned char, size_t, tide_cu_stream))      \
    TIDE_CU(cuMemsetD16Async, 3020, (tide_cu_address, unsigned short, size_t, tide_cu_stream))    \
    TIDE_CU(cuMemsetD32Async, 3020, (tide_cu_address, unsigned, size_t, tide_cu_stream))          \
    TIDE_CU(cuMemsetD2D8Async, 3020,                                                              \
            (tide_cu_address, size_t, unsigned char, size_t, size_t, tide_cu_stream))             \
    TIDE_CU(cuMemsetD2D16Async, 3020,                                                             \
            (tide_cu_address, size_t, unsigned short, size_t, size_t, tide_cu_stream))            \
    TIDE_CU(cuMemsetD2D32Async, 3020,                                                             \
            (tide_cu_address, size_t, unsigned, size_t, size_t, tide_cu_stream))                  \
    TIDE_CU(cuMemcpyAsync, 4000, (tide_cu_address, tide_cu_address, size_t, tide_cu_stream))      \
    TIDE_CU(cuEventCreate, 2000, (tide_cu_event *, unsigned))                                     \
    TIDE_CU(cuEventDestroy, 4000, (tide_cu_event))                                                \
    TIDE_CU(cuEventRecord, 2000, (tide_cu_event, tide_cu_stream))                                 \
    TIDE_CU(cuEventQuery, 2000, (tide_cu_event))                                                  \
    TIDE_CU(cuEventSynchronize, 2000, (tide_cu_event))                                            \
    TIDE_CU(cuStreamWaitEvent, 3020, (tide_cu_stream, tide_cu_event, unsigned))                   \
    TIDE_CU(cuStreamCreate, 2000, (tide_cu_stream *, unsigned))                                   \
    TIDE_CU(cuStreamDestroy, 4000, (tide_cu_stream))                                              \
    TIDE_CU(cuStreamSynchronize, 2000, (tide_cu_stream))                                          \
    TIDE_CU(cuStreamQuery, 2000, (tide_cu_stream))                                                \
    TIDE_CU(cuStreamIsCapturing, 10000, (tide_cu_stream, int *))                                  \
    TIDE_CU(cuStreamGetId, 12000, (tide_cu_stream, unsigned long long *))                         \
    TIDE_CU(cuStreamGetCtx, 9020, (tide_cu_stream, tide_cu_context *))                            \
    TIDE_CU(cuThreadExchangeStreamCaptureMode, 10010, (int *))                                    \
    TIDE_CU(cuModuleLoadDataEx, 2010, (tide_cu_module *, const void *, unsigned, int *, void **)) \
    TIDE_CU(cuModuleUnload, 2000, (tide_cu_module))                                               \
    TIDE_CU(cuModuleGetFunction, 2000, (tide_cu_function *, tide_cu_module, const char *))        \
    TIDE_CU(cuLaunchKernel, 4000,                                                                 \
            (tide_cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,        \
             unsigned, tide_cu_stream, void **, void **))

typedef struct tide_cu_driver {
#define TIDE_X(name, version, arguments) tide_cu_result(*name) arguments;
    TIDE_CU_ENTRIES(TIDE_X)
#undef TIDE_X
} tide_cu_driver;

/* The one name that is looked up in the library itself: it finds all others. */
typedef tide_cu_result tide_cu_get_proc(const char *name, void **function, int version,
                                        uint64_t flags, int *status);

#endif
