/* SPDX-License-Identifier: MIT */
#include "bed.h"

#include <dlfcn.h>
#include <stdio.h>

#include <tidepool/device.h>
#include <tidepool/tune.h>

#include "runtime/base/settings.h"

enum { SKIPPED = 77, GROUP = 64 };

tide_device *gpu;

static int memory;
static void *kernels; /* the program of the one below */

static const char source[] =
    "__kernel void add(__global uint *to, __global const uint *from, ulong n, uint value,"
    "                  uint rounds) {\n"
    "    size_t i = get_global_id(0);\n"
    "    volatile uint idle = (uint)i;\n"
    "    for (uint r = 0; r < rounds; r++) idle = idle * 1664525u + 1013904223u;\n"
    "    if (i < n) to[i] = from[i] + value;\n"
    "}\n";

/* ---- kernels ------------------------------------------------------------------------------- */

void *bed_function(const char *name)
{
    void *loader = dlopen("libOpenCL.so.1", RTLD_NOW);
    assert_non_null(loader);
    void *function = dlsym(loader, name);
    assert_non_null(function);
    return function;
}

void *bed_program(const char *text)
{
    void *(*create)(void *, uint32_t, const char **, const size_t *, int32_t *);
    int32_t (*compile)(void *, uint32_t, void *const *, const char *, void *, void *);
    int32_t error = 0;
    void *const on = tide_opencl_of(gpu)->device;
    *(void **)(void *)&create = bed_function("clCreateProgramWithSource");
    *(void **)(void *)&compile = bed_function("clBuildProgram");
    void *made = create(tide_device_context(gpu), 1, &text, NULL, &error);
    assert_int_equal(error, 0);
    assert_int_equal(compile(made, 1, &on, "", NULL, NULL), 0);
    return made;
}

void bed_program_end(void *program)
{
    int32_t (*release)(void *);
    *(void **)(void *)&release = bed_function("clReleaseProgram");
    assert_int_equal(release(program), 0);
}

/* Shared memory is passed as it is, a number as the buffer that it stands for. */
static void set_argument(void *kernel, uint32_t index, const bed_argument *argument)
{
    int32_t (*set)(void *, uint32_t, size_t, const void *);
    int32_t (*set_shared)(void *, uint32_t, const void *);
    *(void **)(void *)&set = bed_function("clSetKernelArg");
    *(void **)(void *)&set_shared = bed_function("clSetKernelArgSVMPointer");
    if (argument->bytes != 0) {
        assert_int_equal(set(kernel, index, argument->bytes, argument->value), 0);
        return;
    }
    size_t offset = 0;
    const void *data = *(void *const *)argument->value;
    void *buffer = gpu->methods->buffer(gpu, data, &offset);
    assert_int_equal(offset, 0); /* a parameter is a whole slot */
    assert_int_equal(buffer != NULL ? set(kernel, index, sizeof buffer, &buffer)
                                    : set_shared(kernel, index, data),
                     0);
}

/* The arguments of a launch belong to the driver's kernel: each launch has one of its own. */
void bed_launch(void *stream, void *program, const char *name, size_t threads,
                const bed_argument *arguments, uint32_t count)
{
    void *(*create)(void *, const char *, int32_t *);
    int32_t (*release)(void *);
    int32_t (*start)(void *, void *, uint32_t, const size_t *, const size_t *, const size_t *,
                     uint32_t, const void *, void *);
    int32_t error = 0;
    const size_t group = GROUP, all = (threads + GROUP - 1) / GROUP * GROUP;
    *(void **)(void *)&create = bed_function("clCreateKernel");
    *(void **)(void *)&release = bed_function("clReleaseKernel");
    *(void **)(void *)&start = bed_function("clEnqueueNDRangeKernel");
    void *kernel = create(program, name, &error);
    assert_int_equal(error, 0);
    for (uint32_t i = 0; i < count; i++)
        set_argument(kernel, i, &arguments[i]);
    assert_int_equal(start(tide_opencl_queue(tide_opencl_of(gpu), stream), kernel, 1, NULL, &all,
                           &group, 0, NULL, NULL),
                     0);
    assert_int_equal(release(kernel), 0);
}

void launch_add(void *stream, void *to, const void *from, size_t n, uint32_t value, uint32_t rounds)
{
    uint64_t elements = n;
    bed_launch(stream, kernels, "add", n,
               (bed_argument[]){{&to, 0}, {&from, 0}, {&elements, 8}, {&value, 4}, {&rounds, 4}},
               5);
}

/* ---- data ---------------------------------------------------------------------------------- */

uint32_t *words_made(size_t n, uint32_t seed)
{
    uint32_t *words = malloc((n + 1) * sizeof *words);
    assert_non_null(words);
    for (size_t i = 0; i < n; i++)
        words[i] = (uint32_t)i * 2654435761u + seed;
    return words;
}

void fill_by_upload(tide_pool *pool, void *array, size_t n, uint32_t seed)
{
    uint32_t *words = words_made(n, seed);
    expect_ok(tide_upload(pool, array, words, n * sizeof *words));
    memset(words, 0xEE, n * sizeof *words); /* it may be overwritten now */
    free(words);
}

void expect_words(tide_pool *pool, const void *array, size_t n, uint32_t seed)
{
    uint32_t *wanted = words_made(n, seed), *got = malloc((n + 1) * sizeof *got);
    assert_non_null(got);
    expect_ok(tide_download(pool, got, array, n * sizeof *got));
    assert_memory_equal(got, wanted, n * sizeof *got);
    free(got);
    free(wanted);
}

/* ---- the device ----------------------------------------------------------------------------- */

int bed_memory(void)
{
    return memory;
}

tide_pool *bed_pool(void *stream)
{
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.device = gpu, .stream = stream});
    if (pool == NULL)
        fail_msg("%s", tide_error_message());
    return pool;
}

tide_device_information bed_info(void)
{
    tide_device_information info;
    expect_ok(tide_device_info(gpu, &info));
    return info;
}

void *bed_queue(void)
{
    tide_opencl_device *device = tide_opencl_of(gpu);
    int32_t error = 0;
    tide_cl_queue queue = tide_opencl.clCreateCommandQueueWithProperties(
        tide_device_context(gpu), device->device, NULL, &error);
    assert_int_equal(error, 0);
    return queue;
}

void bed_queue_end(void *queue)
{
    assert_int_equal(tide_opencl.clReleaseCommandQueue(queue), 0);
}

static int choose(int count, char **arguments)
{
    static const char *const names[] = {"best", "shared", "buffers"};
    for (int i = 0; count > 1 && i < 4; i++)
        if (strcmp(arguments[1], names[i]) == 0)
            return i;
    return TIDE_OPENCL_BEST;
}

int bed_main(const char *group, int count, char **arguments, const struct CMUnitTest *tests,
             size_t test_count)
{
    if (under_valgrind()) {
        fprintf(stderr, "skipped: drivers compile for this processor, which Valgrind is not\n");
        return SKIPPED;
    }
    memory = choose(count, arguments);
    expect_ok(tide_tune_set("opencl_memory", memory));
    gpu = tide_device_open("opencl:0");
    if (gpu == NULL) {
        fprintf(stderr, "skipped: %s\n", tide_error_message());
        return SKIPPED;
    }
    printf("on %s: %s\n", gpu->name, gpu->description);
    memory = tide_opencl_of(gpu)->memory;
    kernels = bed_program(source);
    int failed = _cmocka_run_group_tests(group, tests, test_count, NULL, NULL);
    bed_program_end(kernels);
    if (failed == 0 && tide_device_close(gpu) != TIDE_OK) {
        fprintf(stderr, "%s\n", tide_error_message());
        return 1;
    }
    return failed;
}
