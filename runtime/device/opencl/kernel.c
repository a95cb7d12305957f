/* SPDX-License-Identifier: MIT */
/* Kernels for OpenCL devices: built from source text, found by name, launched. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/device/opencl/opencl.h"

/* The arguments of a launch belong to the driver's kernel. So each launch makes one of its own by
 * this (which costs a fiftieth of the launch), and nobody waits for a launch of another thread. */
typedef struct kernel {
    struct kernel *next;
    tide_cl_program program;
    char name[];
} kernel;

typedef struct tide_opencl_module {
    tide_cl_program program;
    kernel *kernels; /* every one that was asked for; released with the module */
} module;

/* Whoever builds kernels may be in the driver when another thread forks, and the child is without
 * that thread. So nothing is allocated for what the driver is still to give, but for the log of a
 * build that has failed. */

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
    TIDE_OPENCL_INSIDE;
    tide_opencl_device *device = tide_opencl_of(base);
    tide_assert(code != NULL && bytes > 0);
    if (tide_opencl_usable(device, "tide_device") != TIDE_OK)
        return NULL;
    tide_cl_program program = opencl_build_program(device, code, bytes, options);
    if (program == NULL)
        return NULL;
    module *made = tide_os_resize(NULL, sizeof *made);
    if (made != NULL) {
        *made = (module){.program = program};
        return made;
    }
    (void)tide_opencl.clReleaseProgram(program);
    tide_fail(TIDE_ERROR_MEMORY, "tide_device", "no %zu bytes for a module", sizeof *made);
    return NULL;
}

/* Nothing of it is being launched, but once exit has begun: then it is left as it is. */
void tide_opencl_module_drop(tide_device *base, void *handle)
{
    TIDE_OPENCL_INSIDE;
    module *gone = handle;
    (void)base;
    tide_assert(gone != NULL && gone->program != NULL);
    if (tide_driver_exiting(TIDE_DRIVER_OPENCL))
        return;
    if (tide_driver_alive(TIDE_DRIVER_OPENCL))
        (void)tide_opencl.clReleaseProgram(gone->program);
    for (kernel *k = gone->kernels, *next; k != NULL; k = next) {
        next = k->next;
        tide_os_free(k);
    }
    tide_os_free(gone);
}

/* ---- finding ------------------------------------------------------------------------------- */

/* NULL with a message. */
static tide_cl_kernel opencl_make_kernel(tide_opencl_device *device, const kernel *of)
{
    int32_t error = TIDE_CL_SUCCESS;
    tide_cl_kernel made = tide_opencl.clCreateKernel(of->program, of->name, &error);
    return tide_opencl_check(device, error, "clCreateKernel") == TIDE_OK ? made : NULL;
}

void *tide_opencl_kernel(tide_device *base, void *handle, const char *name)
{
    TIDE_OPENCL_INSIDE;
    tide_opencl_device *device = tide_opencl_of(base);
    module *from = handle;
    tide_assert(from != NULL && from->program != NULL && name != NULL);
    if (tide_opencl_usable(device, "tide_device") != TIDE_OK)
        return NULL;
    size_t bytes = strlen(name) + 1;
    kernel *made = tide_os_resize(NULL, sizeof *made + bytes);
    if (made == NULL) {
        tide_fail(TIDE_ERROR_MEMORY, "tide_device", "no memory for kernel '%s'", name);
        return NULL;
    }
    *made = (kernel){.next = from->kernels, .program = from->program};
    memcpy(made->name, name, bytes);
    tide_cl_kernel tried = opencl_make_kernel(device, made);
    if (tried == NULL) {
        tide_os_free(made);
        return NULL;
    }
    (void)tide_opencl.clReleaseKernel(tried);
    return from->kernels = made;
}

/* ---- launching ------------------------------------------------------------------------------ */

/* A parameter is a whole slot: kernels of frames get offsets in it beside. */
static tide_status opencl_set_buffer(tide_opencl_device *device, tide_cl_kernel to, uint32_t index,
                                     const void *address)
{
    tide_opencl_span span;
    tide_assert(device->memory == TIDE_OPENCL_BUFFERS);
    if (!tide_opencl_span_copy(device, address, &span) || span.reserved == 0 ||
        address != span.start)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_device",
                         "argument %u, %p, is not the start of memory of device %s", index, address,
                         device->base->name);
    return tide_opencl_check(device,
                             tide_opencl.clSetKernelArg(to, index, sizeof span.mem, &span.mem),
                             "clSetKernelArg");
}

static tide_status opencl_set_argument(tide_opencl_device *device, tide_cl_kernel to,
                                       uint32_t index, const tide_argument *argument)
{
    tide_assert(argument->value != NULL);
    if (argument->bytes != 0)
        return tide_opencl_check(
            device, tide_opencl.clSetKernelArg(to, index, argument->bytes, argument->value),
            "clSetKernelArg");
    const void *address;
    memcpy(&address, argument->value, sizeof address);
    if (device->memory == TIDE_OPENCL_BUFFERS)
        return opencl_set_buffer(device, to, index, address);
    return tide_opencl_check(device, tide_opencl.clSetKernelArgSVMPointer(to, index, address),
                             "clSetKernelArgSVMPointer");
}

static tide_status opencl_queue_launch(tide_opencl_device *device, void *stream,
                                       tide_cl_kernel launched, size_t groups, size_t group,
                                       const tide_argument *arguments, size_t count)
{
    for (size_t i = 0; i < count; i++)
        TIDE_FORWARD(opencl_set_argument(device, launched, (uint32_t)i, &arguments[i]));
    tide_assert(groups <= SIZE_MAX / group);
    size_t all = groups * group;
    return tide_opencl_check(device,
                             tide_opencl.clEnqueueNDRangeKernel(tide_opencl_queue(device, stream),
                                                                launched, 1, NULL, &all, &group, 0,
                                                                NULL, NULL),
                             "clEnqueueNDRangeKernel");
}

tide_status tide_opencl_launch(tide_device *base, void *stream, void *handle, size_t groups,
                               size_t group, const tide_argument *arguments, size_t count)
{
    TIDE_OPENCL_INSIDE;
    tide_opencl_device *device = tide_opencl_of(base);
    kernel *of = handle;
    tide_assert(of != NULL && groups > 0 && group > 0);
    tide_assert(count <= UINT32_MAX && (count == 0 || arguments != NULL));
    TIDE_FORWARD(tide_opencl_usable(device, "tide_device"));
    tide_cl_kernel own = opencl_make_kernel(device, of);
    if (own == NULL)
        return tide_error_status();
    tide_status status = opencl_queue_launch(device, stream, own, groups, group, arguments, count);
    (void)tide_opencl.clReleaseKernel(own);
    if (status == TIDE_OK)
        tide_device_count(&base->launches);
    return status;
}
