/* SPDX-License-Identifier: MIT */
/* What we use of OpenCL 2.0 and later, declared here: building needs no header of OpenCL, and the
 * ICD loader is loaded, not linked. Layouts and values are those of Khronos' cl.h; tests/device
 * compares the two. */
#ifndef TIDEPOOL_RUNTIME_DEVICE_OPENCL_API_H
#define TIDEPOOL_RUNTIME_DEVICE_OPENCL_API_H

#include <tidepool/inline/config.h>

/* Handles: each a pointer to something of the driver's. */
typedef struct cl_platform_ *tide_cl_platform;
typedef struct cl_device_ *tide_cl_device;
typedef struct cl_context_ *tide_cl_context;
typedef struct cl_queue_ *tide_cl_queue;
typedef struct cl_mem_ *tide_cl_mem;
typedef struct cl_event_ *tide_cl_event;

/* results */
enum {
    TIDE_CL_SUCCESS = 0,
    TIDE_CL_DEVICE_NOT_FOUND = -1,
    TIDE_CL_DEVICE_NOT_AVAILABLE = -2,
    TIDE_CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
    TIDE_CL_OUT_OF_RESOURCES = -5,
    TIDE_CL_OUT_OF_HOST_MEMORY = -6,
};

/* what is asked of devices, queues and events */
enum {
    TIDE_CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
    TIDE_CL_DEVICE_NAME = 0x102B,
    TIDE_CL_DEVICE_HOST_UNIFIED_MEMORY = 0x1035,
    TIDE_CL_DEVICE_SVM_CAPABILITIES = 0x1053,
    TIDE_CL_QUEUE_CONTEXT = 0x1090,
    TIDE_CL_QUEUE_PROPERTIES = 0x1093,
    TIDE_CL_EVENT_STATUS = 0x11D3
};

#define TIDE_CL_DEVICE_TYPE_ALL UINT64_C(0xFFFFFFFF)

/* values */
enum {
    TIDE_CL_QUEUE_OUT_OF_ORDER = 1,
    TIDE_CL_SVM_COARSE = 1,
    TIDE_CL_MEM_READ_WRITE = 1,
    TIDE_CL_COMPLETE = 0 /* of an event; less: it failed */
};

/* Every entry point: TIDE_CL(result, name, arguments). */
#define TIDE_CL_ENTRIES(TIDE_CL)                                                                   \
    TIDE_CL(int32_t, clGetPlatformIDs, (uint32_t, tide_cl_platform *, uint32_t *))                 \
    TIDE_CL(int32_t, clGetDeviceIDs,                                                               \
            (tide_cl_platform, uint64_t, uint32_t, tide_cl_device *, uint32_t *))                  \
    TIDE_CL(int32_t, clGetDeviceInfo, (tide_cl_device, uint32_t, size_t, void *, size_t *))        \
    TIDE_CL(tide_cl_context, clCreateContext,                                                      \
            (const intptr_t *, uint32_t, const tide_cl_device *,                                   \
             void (*)(const char *, const void *, size_t, void *), void *, int32_t *))             \
    TIDE_CL(int32_t, clReleaseContext, (tide_cl_context))                                          \
    TIDE_CL(tide_cl_queue, clCreateCommandQueueWithProperties,                                     \
            (tide_cl_context, tide_cl_device, const uint64_t *, int32_t *))                        \
    TIDE_CL(int32_t, clReleaseCommandQueue, (tide_cl_queue))                                       \
    TIDE_CL(int32_t, clGetCommandQueueInfo, (tide_cl_queue, uint32_t, size_t, void *, size_t *))   \
    TIDE_CL(int32_t, clFlush, (tide_cl_queue))                                                     \
    TIDE_CL(int32_t, clFinish, (tide_cl_queue))                                                    \
    TIDE_CL(tide_cl_mem, clCreateBuffer, (tide_cl_context, uint64_t, size_t, void *, int32_t *))   \
    TIDE_CL(int32_t, clReleaseMemObject, (tide_cl_mem))                                            \
    TIDE_CL(void *, clSVMAlloc, (tide_cl_context, uint64_t, size_t, uint32_t))                     \
    TIDE_CL(void, clSVMFree, (tide_cl_context, void *))                                            \
    TIDE_CL(int32_t, clEnqueueSVMFree,                                                             \
            (tide_cl_queue, uint32_t, void **, void (*)(tide_cl_queue, uint32_t, void **, void *), \
             void *, uint32_t, const tide_cl_event *, tide_cl_event *))                            \
    TIDE_CL(int32_t, clEnqueueSVMMemFill,                                                          \
            (tide_cl_queue, void *, const void *, size_t, size_t, uint32_t, const tide_cl_event *, \
             tide_cl_event *))                                                                     \
    TIDE_CL(int32_t, clEnqueueSVMMemcpy,                                                           \
            (tide_cl_queue, uint32_t, void *, const void *, size_t, uint32_t,                      \
             const tide_cl_event *, tide_cl_event *))                                              \
    TIDE_CL(int32_t, clEnqueueFillBuffer,                                                          \
            (tide_cl_queue, tide_cl_mem, const void *, size_t, size_t, size_t, uint32_t,           \
             const tide_cl_event *, tide_cl_event *))                                              \
    TIDE_CL(int32_t, clEnqueueCopyBuffer,                                                          \
            (tide_cl_queue, tide_cl_mem, tide_cl_mem, size_t, size_t, size_t, uint32_t,            \
             const tide_cl_event *, tide_cl_event *))                                              \
    TIDE_CL(int32_t, clEnqueueReadBuffer,                                                          \
            (tide_cl_queue, tide_cl_mem, uint32_t, size_t, size_t, void *, uint32_t,               \
             const tide_cl_event *, tide_cl_event *))                                              \
    TIDE_CL(int32_t, clEnqueueWriteBuffer,                                                         \
            (tide_cl_queue, tide_cl_mem, uint32_t, size_t, size_t, const void *, uint32_t,         \
             const tide_cl_event *, tide_cl_event *))                                              \
    TIDE_CL(int32_t, clEnqueueMarkerWithWaitList,                                                  \
            (tide_cl_queue, uint32_t, const tide_cl_event *, tide_cl_event *))                     \
    TIDE_CL(int32_t, clEnqueueBarrierWithWaitList,                                                 \
            (tide_cl_queue, uint32_t, const tide_cl_event *, tide_cl_event *))                     \
    TIDE_CL(int32_t, clGetEventInfo, (tide_cl_event, uint32_t, size_t, void *, size_t *))          \
    TIDE_CL(int32_t, clWaitForEvents, (uint32_t, const tide_cl_event *))                           \
    TIDE_CL(int32_t, clReleaseEvent, (tide_cl_event))

#endif
