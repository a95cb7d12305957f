/* SPDX-License-Identifier: MIT */
/* Kernels for OpenCL devices: built from source text, found by name, launched. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/device/opencl/opencl.h"

typedef struct module {
    tide_cl_program program;
    tide_cl_kernel *kernels; /* every one that was asked for; released with the module */
    size_t count;
} module;

/* ---- building ------------------------------------------------------------------------------- */

/* Fails with the start of the compiler's log: enough to find the place. */
static void opencl_fail_build(tide_opencl_device *device, tide_cl_program program, int32_t error)
{
    char *log = NULL;
    size_t bytes = 0;
    tide_assert(error != TIDE_CL_SUCCESS);
    if (tide_opencl.clGetProgramBuildInfo(program, device->device, TIDE_CL_PROGRAM_BUILD_LOG, 0,
                                          NULL, &bytes) == TIDE_CL_SUCCESS)
        log = tide_os_resize(NULL, bytes + 1);
    if (log != NULL) {
        log[0] = log[bytes] = '\0';
        (void)tide_opencl.clGetProgramBuildInfo(program, device->device, TIDE_CL_PROGRAM_BUILD_LOG,
                                                bytes, log, NULL);
    }
    tide_fail(TIDE_ERROR_DEVICE, "clBuildProgram", "device %s answered %d: %.300s",
              device->base->name, (int)error, log != NULL ? log : "(no log)");
    tide_os_free(log);
}

/* NULL: failed, with the message. */
static tide_cl_program opencl_build_program(tide_opencl_device *device, const char *text,
                                            size_t bytes, const char *options)
{
    int32_t error = TIDE_CL_SUCCESS;
    tide_cl_program program =
        tide_opencl.clCreateProgramWithSource(device->context, 1, &text, &bytes, &error);
    if (tide_opencl_check(device, error, "clCreateProgramWithSource") != TIDE_OK)
        return NULL;
    error = tide_opencl.clBuildProgram(program, 1, &device->device, options, NULL, NULL);
    if (error == TIDE_CL_SUCCESS)
        return program;
    opencl_fail_build(device, program, error);
    (void)tide_opencl.clReleaseProgram(program);
    return NULL;
}

void *tide_opencl_module(tide_device *base, const void *code, size_t bytes, const char *options)
{
    TIDE_UNCANCELLED;
    tide_opencl_device *device = tide_opencl_of(base);
    tide_assert(code != NULL && bytes > 0);
    if (tide_opencl_usable(device, "tide_device") != TIDE_OK)
        return NULL;
    module *made = tide_os_resize(NULL, sizeof *made);
    if (made == NULL) {
        tide_fail(TIDE_ERROR_MEMORY, "tide_device", "no %zu bytes for a module", sizeof *made);
        return NULL;
    }
    *made = (module){.program = opencl_build_program(device, code, bytes, options)};
    if (made->program != NULL)
        return made;
    tide_os_free(made);
    return NULL;
}

void tide_opencl_module_drop(tide_device *base, void *handle)
{
    TIDE_UNCANCELLED;
    module *gone = handle;
    tide_assert(gone != NULL && gone->program != NULL);
    tide_assert(gone->count == 0 || gone->kernels != NULL);
    if (tide_opencl_alive(tide_opencl_of(base))) {
        for (size_t i = 0; i < gone->count; i++)
            (void)tide_opencl.clReleaseKernel(gone->kernels[i]);
        (void)tide_opencl.clReleaseProgram(gone->program);
    }
    tide_os_free(gone->kernels);
    tide_os_free(gone);
}

void *tide_opencl_kernel(tide_device *base, void *handle, const char *name)
{
    TIDE_UNCANCELLED;
    tide_opencl_device *device = tide_opencl_of(base);
    module *from = handle;
    tide_assert(from != NULL && from->program != NULL && name != NULL);
    if (tide_opencl_usable(device, "tide_device") != TIDE_OK)
        return NULL;
    tide_cl_kernel *kernels = tide_os_resize(from->kernels, (from->count + 1) * sizeof *kernels);
    if (kernels == NULL) {
        tide_fail(TIDE_ERROR_MEMORY, "tide_device", "no memory for kernel '%s'", name);
        return NULL;
    }
    from->kernels = kernels;
    int32_t error = TIDE_CL_SUCCESS;
    tide_cl_kernel kernel = tide_opencl.clCreateKernel(from->program, name, &error);
    if (tide_opencl_check(device, error, "clCreateKernel") != TIDE_OK)
        return NULL;
    kernels[from->count++] = kernel;
    return kernel;
}

/* ---- launching ------------------------------------------------------------------------------ */

/* Buffers that are cut for one launch. They are kept until it is queued: from then on the driver
 * keeps them. */
typedef struct cuttings {
    tide_cl_mem *mems;
    size_t count;
} cuttings;

/* The buffer, or NULL when there is none or no memory to remember it by: then it is released. */
static tide_cl_mem opencl_keep_cutting(cuttings *cut, tide_cl_mem mem)
{
    tide_cl_mem *mems = NULL;
    if (mem != NULL)
        mems = tide_os_resize(cut->mems, (cut->count + 1) * sizeof *mems);
    if (mems == NULL) {
        if (mem != NULL)
            (void)tide_opencl.clReleaseMemObject(mem);
        return NULL;
    }
    cut->mems = mems;
    return mems[cut->count++] = mem;
}

static void opencl_release_cuttings(cuttings *cut)
{
    for (size_t i = 0; i < cut->count; i++)
        (void)tide_opencl.clReleaseMemObject(cut->mems[i]);
    tide_os_free(cut->mems);
}

/* The slot's own buffer if the address is the slot's first, else a buffer cut from the parent.
 * Device locked. */
static tide_cl_mem opencl_buffer_at(tide_opencl_device *device, const char *address, cuttings *cut)
{
    const tide_opencl_span *span = tide_opencl_span_find(device, address);
    if (span == NULL || span->parent == NULL)
        return NULL;
    tide_assert(span->mem != NULL && span->start <= address);
    tide_assert((size_t)(address - span->start) < span->bytes);
    if (address == span->start)
        return span->mem;
    tide_cl_region region = {.size = span->bytes - (size_t)(address - span->start)};
    tide_cl_mem parent = tide_opencl_parent_buffer(span->parent, address, &region.origin);
    int32_t error = TIDE_CL_SUCCESS;
    return opencl_keep_cutting(cut, tide_opencl.clCreateSubBuffer(parent, TIDE_CL_MEM_READ_WRITE,
                                                                  TIDE_CL_BUFFER_CREATE_REGION,
                                                                  &region, &error));
}

static tide_status opencl_set_buffer(tide_opencl_device *device, tide_cl_kernel kernel,
                                     uint32_t index, const void *address, cuttings *cut)
{
    tide_assert(device->memory == TIDE_OPENCL_BUFFERS);
    tide_lock_take(&device->lock);
    tide_cl_mem mem = opencl_buffer_at(device, address, cut);
    tide_lock_let_go(&device->lock);
    if (mem == NULL && address != NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_device",
                         "argument %u, %p, is no memory of device %s, or not aligned to the %zu "
                         "bytes that a buffer must start at",
                         index, address, device->base->name, device->alignment);
    return tide_opencl_check(
        device, tide_opencl.clSetKernelArg(kernel, index, sizeof mem, mem != NULL ? &mem : NULL),
        "clSetKernelArg");
}

static tide_status opencl_set_argument(tide_opencl_device *device, tide_cl_kernel kernel,
                                       uint32_t index, const tide_argument *argument, cuttings *cut)
{
    tide_assert(argument->value != NULL);
    if (argument->bytes != 0)
        return tide_opencl_check(
            device, tide_opencl.clSetKernelArg(kernel, index, argument->bytes, argument->value),
            "clSetKernelArg");
    const void *address;
    memcpy(&address, argument->value, sizeof address);
    if (device->memory == TIDE_OPENCL_BUFFERS)
        return opencl_set_buffer(device, kernel, index, address, cut);
    return tide_opencl_check(device, tide_opencl.clSetKernelArgSVMPointer(kernel, index, address),
                             "clSetKernelArgSVMPointer");
}

static tide_status opencl_queue_launch(tide_opencl_device *device, void *stream,
                                       tide_cl_kernel kernel, size_t groups, size_t group,
                                       const tide_argument *arguments, size_t count, cuttings *cut)
{
    for (size_t i = 0; i < count; i++)
        TIDE_FORWARD(opencl_set_argument(device, kernel, (uint32_t)i, &arguments[i], cut));
    tide_assert(groups <= SIZE_MAX / group);
    size_t all = groups * group;
    return tide_opencl_check(device,
                             tide_opencl.clEnqueueNDRangeKernel(tide_opencl_queue(device, stream),
                                                                kernel, 1, NULL, &all, &group, 0,
                                                                NULL, NULL),
                             "clEnqueueNDRangeKernel");
}

tide_status tide_opencl_launch(tide_device *base, void *stream, void *kernel, size_t groups,
                               size_t group, const tide_argument *arguments, size_t count)
{
    TIDE_UNCANCELLED;
    tide_opencl_device *device = tide_opencl_of(base);
    tide_assert(kernel != NULL && groups > 0 && group > 0);
    tide_assert(count <= UINT32_MAX && (count == 0 || arguments != NULL));
    TIDE_FORWARD(tide_opencl_usable(device, "tide_device"));
    cuttings cut = {0};
    tide_lock_take(&device->launching);
    tide_status status =
        opencl_queue_launch(device, stream, kernel, groups, group, arguments, count, &cut);
    tide_lock_let_go(&device->launching);
    opencl_release_cuttings(&cut);
    if (status == TIDE_OK)
        tide_device_count(&base->launches);
    return status;
}
