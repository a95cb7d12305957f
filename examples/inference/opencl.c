/* SPDX-License-Identifier: MIT */
/* The kernels on an OpenCL device, through the loader that Tidepool uses too. */
#include "kernels.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char preamble[] = "#define KERNEL __kernel\n"
                               "#define GLOBAL __global\n"
                               "#define INDEX (int)get_global_id(0)\n";

/* As CL/cl.h has them; handles are pointers. */
static struct {
    void *(*clCreateProgramWithSource)(void *, uint32_t, const char **, const size_t *, int32_t *);
    int32_t (*clBuildProgram)(void *, uint32_t, void *const *, const char *, void *, void *);
    void *(*clCreateKernel)(void *, const char *, int32_t *);
    int32_t (*clReleaseProgram)(void *);
    int32_t (*clSetKernelArg)(void *, uint32_t, size_t, const void *);
    int32_t (*clSetKernelArgSVMPointer)(void *, uint32_t, const void *);
    int32_t (*clEnqueueNDRangeKernel)(void *, void *, uint32_t, const size_t *, const size_t *,
                                      const size_t *, uint32_t, void *const *, void **);
} cl;

static bool load(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "inference: %s\n", dlerror());
        return false;
    }
#define FIND(name) *(void **)(void *)&cl.name = dlsym(library, #name)
    FIND(clCreateProgramWithSource);
    FIND(clBuildProgram);
    FIND(clCreateKernel);
    FIND(clReleaseProgram);
    FIND(clSetKernelArg);
    FIND(clSetKernelArgSVMPointer);
    FIND(clEnqueueNDRangeKernel);
#undef FIND
    return cl.clSetKernelArgSVMPointer != NULL;
}

static bool build(kernels *k, const tide_device *device, const char *text)
{
    if (!load())
        return false;
    int32_t error = 0;
    const char *texts[] = {preamble, text};
    void *program =
        cl.clCreateProgramWithSource(tide_device_context(device), 2, texts, NULL, &error);
    if (program == NULL || (error = cl.clBuildProgram(program, 0, NULL, "", NULL, NULL)) != 0) {
        fprintf(stderr, "inference: building the kernels: OpenCL error %d\n", (int)error);
        return false;
    }
    for (int i = 0; i < KERNEL_COUNT; i++)
        if ((k->of[i] = cl.clCreateKernel(program, kernel_names[i], &error)) == NULL)
            return false;
    k->stream = tide_device_stream(device);
    return cl.clReleaseProgram(program) == 0; /* the kernels keep it */
}

/* An array is a pointer of shared virtual memory, or a number that stands for a buffer. */
static int32_t set(kernels *k, void *kernel, uint32_t index, const argument *a)
{
    size_t offset;
    if (a->array == NULL)
        return cl.clSetKernelArg(kernel, index, sizeof a->number, &a->number);
    void *buffer = tide_device_buffer(k->pool, a->array, &offset);
    return buffer != NULL ? cl.clSetKernelArg(kernel, index, sizeof buffer, &buffer)
                          : cl.clSetKernelArgSVMPointer(kernel, index, a->array);
}

static bool launch(kernels *k, kernel_name name, size_t threads, const argument *arguments,
                   size_t count)
{
    const size_t group = GROUP, all = (threads + GROUP - 1) / GROUP * GROUP;
    int32_t error = 0;
    for (uint32_t i = 0; i < count && error == 0; i++)
        error = set(k, k->of[name], i, &arguments[i]);
    if (error == 0)
        error =
            cl.clEnqueueNDRangeKernel(k->stream, k->of[name], 1, NULL, &all, &group, 0, NULL, NULL);
    if (error != 0)
        fprintf(stderr, "inference: %s: OpenCL error %d\n", kernel_names[name], (int)error);
    return error == 0;
}

const kernel_methods opencl_methods = {"opencl:", build, launch};
