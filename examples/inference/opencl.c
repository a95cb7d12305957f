/* SPDX-License-Identifier: MIT */
/* The kernels on an OpenCL device, through the loader that Tidepool uses too. */
#include "kernels.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <tidepool/device.h>
#include <tidepool/device_bump.h>

static const char preamble[] = "#define KERNEL __kernel\n"
                               "#define GLOBAL __global\n"
                               "#define INDEX (int)get_global_id(0)\n";

/* Kernels allocate where there are atomics of 64 bits. */
static const char bump_begins[] = "#ifdef cl_khr_int64_base_atomics\n";
static const char bump_ends[] = "\n#define BUMP __global tide_bump\n#endif\n";

/* As CL/cl.h has them; handles are pointers. */
static struct {
    void *(*clCreateProgramWithSource)(void *, uint32_t, const char **, const size_t *, int32_t *);
    int32_t (*clBuildProgram)(void *, uint32_t, void *const *, const char *, void *, void *);
    void *(*clCreateKernel)(void *, const char *, int32_t *);
    int32_t (*clReleaseProgram)(void *);
    int32_t (*clGetContextInfo)(void *, uint32_t, size_t, void *, size_t *);
    void *(*clCreateCommandQueueWithProperties)(void *, void *, const uint64_t *, int32_t *);
    int32_t (*clReleaseCommandQueue)(void *);
    int32_t (*clSetKernelArg)(void *, uint32_t, size_t, const void *);
    int32_t (*clSetKernelArgSVMPointer)(void *, uint32_t, const void *);
    int32_t (*clEnqueueNDRangeKernel)(void *, void *, uint32_t, const size_t *, const size_t *,
                                      const size_t *, uint32_t, void *const *, void **);
} cl;

static bool load(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "inference: there is no OpenCL: %s\n", dlerror());
        return false;
    }
#define FIND(name) *(void **)(void *)&cl.name = dlsym(library, #name)
    FIND(clCreateProgramWithSource);
    FIND(clBuildProgram);
    FIND(clCreateKernel);
    FIND(clReleaseProgram);
    FIND(clGetContextInfo);
    FIND(clCreateCommandQueueWithProperties);
    FIND(clReleaseCommandQueue);
    FIND(clSetKernelArg);
    FIND(clSetKernelArgSVMPointer);
    FIND(clEnqueueNDRangeKernel);
#undef FIND
    if (cl.clSetKernelArgSVMPointer == NULL)
        fputs("inference: this OpenCL is older than 2.0\n", stderr);
    return cl.clSetKernelArgSVMPointer != NULL;
}

static bool build(kernels *k, const tide_device *device, const char *text)
{
    if (!load())
        return false;
    int32_t error = 0;
    const char *texts[] = {preamble, bump_begins, tide_bump_source(), bump_ends, text};
    void *program =
        cl.clCreateProgramWithSource(tide_device_context(device), 5, texts, NULL, &error);
    if (program == NULL || (error = cl.clBuildProgram(program, 0, NULL, "", NULL, NULL)) != 0) {
        fprintf(stderr, "inference: building the kernels: OpenCL error %d\n", (int)error);
        return false;
    }
    for (int i = 0; i < KERNEL_COUNT; i++)
        if ((k->of[i] = cl.clCreateKernel(program, kernel_names[i], &error)) == NULL &&
            i != LISTED) {
            fprintf(stderr, "inference: %s: OpenCL error %d\n", kernel_names[i], (int)error);
            return false;
        }
    k->stream = tide_device_stream(device);
    return cl.clReleaseProgram(program) == 0; /* the kernels keep it */
}

/* An array is a pointer of shared virtual memory, or a number that stands for a buffer. */
static int32_t set(const kernels *k, void *kernel, uint32_t index, const argument *a)
{
    size_t offset;
    if (a->array == NULL)
        return cl.clSetKernelArg(kernel, index, sizeof a->number, &a->number);
    void *buffer = tide_device_buffer(k->pool, a->array, &offset);
    return buffer != NULL ? cl.clSetKernelArg(kernel, index, sizeof buffer, &buffer)
                          : cl.clSetKernelArgSVMPointer(kernel, index, a->array);
}

static bool launch(const kernels *k, kernel_name name, size_t threads, const argument *arguments,
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

/* ---- CLBlast, as clblast_c.h has it --------------------------------------------------------- */

enum { ROWS_FIRST = 101, AS_IT_IS = 111 };

static int (*clblast_sgemm)(int order, int of_a, int of_b, size_t m, size_t n, size_t k,
                            float alpha, void *a, size_t a_from, size_t lda, void *b, size_t b_from,
                            size_t ldb, float beta, void *c, size_t c_from, size_t ldc,
                            void **queue, void **event);

/* It takes buffers, and no pointers of shared virtual memory. */
static const char *open_library(kernels *k)
{
    size_t offset;
    void *library = dlopen("libclblast.so.1", RTLD_NOW);
    *(void **)(void *)&clblast_sgemm = library != NULL ? dlsym(library, "CLBlastSgemm") : NULL;
    TIDE_SCOPE(k->pool);
    const float *probe = clblast_sgemm != NULL ? tide_acquire(k->pool, float, 1) : NULL;
    return probe != NULL && tide_device_buffer(k->pool, probe, &offset) != NULL ? "libclblast.so.1"
                                                                                : NULL;
}

static bool multiply_by_clblast(const kernels *k, float *out, float *in, float *weights, int rows,
                                int width)
{
    const size_t wide = (size_t)width;
    size_t a = 0, b = 0, c = 0;
    void *from = tide_device_buffer(k->pool, in, &a),
         *by = tide_device_buffer(k->pool, weights, &b);
    void *to = tide_device_buffer(k->pool, out, &c), *queue = k->stream;
    int result = clblast_sgemm(ROWS_FIRST, AS_IT_IS, AS_IT_IS, (size_t)rows, wide, wide, 1, from,
                               a / sizeof(float), wide, by, b / sizeof(float), wide, 1, to,
                               c / sizeof(float), wide, &queue, NULL);
    if (result != 0)
        fprintf(stderr, "inference: CLBlastSgemm fails with %d\n", result);
    return result == 0;
}

/* ---- queues --------------------------------------------------------------------------------- */

enum { CONTEXT_DEVICES = 0x1081 };

/* On the one device of the context that Tidepool opened. */
static void *open_queue(const tide_device *device)
{
    void *context = tide_device_context(device), *of = NULL, *queue = NULL;
    int32_t error =
        load() ? cl.clGetContextInfo(context, CONTEXT_DEVICES, sizeof of, &of, NULL) : -1;
    if (error == 0)
        queue = cl.clCreateCommandQueueWithProperties(context, of, NULL, &error);
    if (queue == NULL)
        fprintf(stderr, "inference: a queue: OpenCL error %d\n", (int)error);
    return queue;
}

static void close_queue(void *queue)
{
    (void)cl.clReleaseCommandQueue(queue);
}

const kernel_methods opencl_methods = {.device = "opencl:",
                                       .build = build,
                                       .launch = launch,
                                       .open_library = open_library,
                                       .multiply = multiply_by_clblast,
                                       .open_stream = open_queue,
                                       .close_stream = close_queue};
