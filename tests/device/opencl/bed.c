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

static void *bed_function(const char *name)
{
    void *loader = dlopen("libOpenCL.so.1", RTLD_NOW);
    assert_non_null(loader);
    void *function = dlsym(loader, name);
    assert_non_null(function);
    return function;
}

bed_calls bed_cl;

static void load_calls(void)
{
#define X(result, name, arguments) *(void **)(void *)&bed_cl.name = bed_function(#name);
    BED_ENTRIES(X)
#undef X
}

void *bed_program(const char *text)
{
    int32_t error = 0;
    void *const on = tide_opencl_of(gpu)->device;
    void *made = bed_cl.clCreateProgramWithSource(tide_device_context(gpu), 1, &text, NULL, &error);
    assert_int_equal(error, 0);
    assert_int_equal(bed_cl.clBuildProgram(made, 1, &on, "", NULL, NULL), 0);
    return made;
}

/* Shared memory is passed as it is, a number as the buffer that it stands for. */
static int set_argument(void *kernel, uint32_t index, const bed_argument *argument)
{
    if (argument->bytes != 0)
        return bed_cl.clSetKernelArg(kernel, index, argument->bytes, argument->value);
    size_t offset = 0;
    const void *data = *(void *const *)argument->value;
    void *buffer = gpu->methods->buffer(gpu, data, &offset);
    assert_int_equal(offset, 0); /* a parameter is a whole slot */
    return buffer != NULL ? bed_cl.clSetKernelArg(kernel, index, sizeof buffer, &buffer)
                          : bed_cl.clSetKernelArgSVMPointer(kernel, index, data);
}

/* The arguments of a launch belong to the driver's kernel: each launch has one of its own. */
void bed_launch(void *stream, void *program, const char *name, size_t threads,
                const bed_argument *arguments, uint32_t count)
{
    int32_t error = 0;
    const size_t group = GROUP, all = (threads + GROUP - 1) / GROUP * GROUP;
    void *kernel = bed_cl.clCreateKernel(program, name, &error);
    assert_int_equal(error, 0);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(set_argument(kernel, i, &arguments[i]), 0);
    void *queue = tide_opencl_queue(tide_opencl_of(gpu), stream);
    assert_int_equal(
        bed_cl.clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &all, &group, 0, NULL, NULL), 0);
    assert_int_equal(bed_cl.clReleaseKernel(kernel), 0);
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

void bed_pool_end(tide_pool *pool)
{
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

tide_device_information bed_info(void)
{
    tide_device_information info;
    expect_ok(tide_device_info(gpu, &info));
    return info;
}

void *bed_queue_of(void *context, uint64_t properties)
{
    const uint64_t list[] = {TIDE_CL_QUEUE_PROPERTIES, properties, 0};
    int32_t error = 0;
    void *queue = tide_opencl.clCreateCommandQueueWithProperties(
        context, tide_opencl_of(gpu)->device, list, &error);
    assert_int_equal(error, 0);
    return queue;
}

void *bed_queue(void)
{
    return bed_queue_of(tide_device_context(gpu), 0);
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
    load_calls();
    kernels = bed_program(source);
    int failed = _cmocka_run_group_tests(group, tests, test_count, NULL, NULL);
    (void)bed_cl.clReleaseProgram(kernels);
    if (failed == 0 && tide_device_close(gpu) != TIDE_OK) {
        fprintf(stderr, "%s\n", tide_error_message());
        return 1;
    }
    return failed;
}
