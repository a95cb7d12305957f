/* SPDX-License-Identifier: MIT */
#include "bed.h"

#include <stdio.h>

#include <tidepool/device.h>
#include <tidepool/tune.h>

#include "runtime/base/settings.h"

enum { SKIPPED = 77, GROUP = 64 };

tide_device *gpu;

static int memory;
static void *module, *add, *halves;

static const char source[] =
    "__kernel void add(__global uint *to, __global const uint *from, ulong n, uint value,"
    "                  uint rounds) {\n"
    "    size_t i = get_global_id(0);\n"
    "    volatile uint idle = (uint)i;\n"
    "    for (uint r = 0; r < rounds; r++) idle = idle * 1664525u + 1013904223u;\n"
    "    if (i < n) to[i] = from[i] + value;\n"
    "}\n"
    "__kernel void halves(__global half *to, __global const half *from, ulong n, float value) {\n"
    "    size_t i = get_global_id(0);\n"
    "    if (i < n) vstore_half(vload_half(i, from) + value, i, to);\n"
    "}\n";

/* ---- kernels ------------------------------------------------------------------------------- */

static void launch(void *stream, void *kernel, size_t n, const tide_argument *arguments,
                   size_t count)
{
    expect_ok(gpu->methods->launch(gpu, stream, kernel, (n + GROUP - 1) / GROUP, GROUP, arguments,
                                   count));
}

void launch_add(void *stream, void *to, const void *from, size_t n, uint32_t value, uint32_t rounds)
{
    uint64_t elements = n;
    launch(stream, add, n,
           (tide_argument[]){{&to, 0}, {&from, 0}, {&elements, 8}, {&value, 4}, {&rounds, 4}}, 5);
}

void launch_halves(void *stream, void *to, const void *from, size_t n, float value)
{
    uint64_t elements = n;
    launch(stream, halves, n, (tide_argument[]){{&to, 0}, {&from, 0}, {&elements, 8}, {&value, 4}},
           4);
}

static void build(void)
{
    module = gpu->methods->load(gpu, source, sizeof source - 1, "");
    if (module == NULL)
        fprintf(stderr, "%s\n", tide_error_message());
    assert_non_null(module);
    add = gpu->methods->kernel(gpu, module, "add");
    halves = gpu->methods->kernel(gpu, module, "halves");
    assert_non_null(add);
    assert_non_null(halves);
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
    forms_prepare(forms_c);
    forms_prepare(forms_cpp);
    memory = choose(count, arguments);
    expect_ok(tide_tune_set("opencl_memory", memory));
    gpu = tide_device_open("opencl:0");
    if (gpu == NULL) {
        fprintf(stderr, "skipped: %s\n", tide_error_message());
        return SKIPPED;
    }
    memory = tide_opencl_of(gpu)->memory;
    forms_of_the_host = false;
    build();
    int failed = _cmocka_run_group_tests(group, tests, test_count, NULL, NULL);
    gpu->methods->unload(gpu, module);
    if (failed == 0 && tide_device_close(gpu) != TIDE_OK) {
        fprintf(stderr, "%s\n", tide_error_message());
        return 1;
    }
    return failed;
}
