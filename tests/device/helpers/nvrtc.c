/* SPDX-License-Identifier: MIT */
/* NVRTC compiles what is for CUDA, for every architecture it knows; and says in one line what is
 * wrong. No device is needed. Skipped where there is no NVRTC. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <tidepool/device_bump.h>

#include "jit/kernels/source.h"
#include "jit/stage/nvrtc.h"

enum { LONG_MS = 120000, SKIPPED = 77 };

static int architectures[64];
static size_t architecture_count;

static bool is_elf(const stage_cuda_code *made)
{
    return made->bytes > 64 && memcmp(made->code,
                                      "\x7f"
                                      "ELF",
                                      4) == 0;
}

static bool names(const stage_cuda_code *made, const char *name)
{
    return memmem(made->code, made->bytes, name, strlen(name)) != NULL;
}

static void compile_for_all(const char *source, const char *kernel)
{
    char error[300] = "";
    for (size_t i = 0; i < architecture_count; i++) {
        stage_cuda_code made;
        if (!stage_nvrtc_compile(source,
                                 &(stage_cuda_device){.architecture = (unsigned)architectures[i]},
                                 LONG_MS, &made, error, sizeof error))
            fail_msg("sm_%d: %s", architectures[i], error);
        assert_string_equal(made.kind, "cubin");
        assert_true(is_elf(&made));
        assert_true(names(&made, kernel));
        free(made.code);
    }
}

static void kernels_compile_for_every_architecture(void **unused)
{
    (void)unused;
    static char source[TIDE_KERNELS_SOURCE_BYTES];
    tide_kernels_source(TIDE_KERNELS_CUDA, source, sizeof source);
    compile_for_all(source, "tide_hash");
}

static void the_bump_allocator_compiles_for_every_architecture(void **unused)
{
    (void)unused;
    static const char kernel[] =
        "extern \"C\" __global__ void take(tide_bump *bump, void **out, unsigned n)\n"
        "{\n"
        "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < n)\n"
        "        out[i] = tide_bump_acquire(bump, i % 50);\n"
        "}\n";
    size_t room = strlen(tide_bump_source()) + sizeof kernel;
    char *source = malloc(room);
    assert_non_null(source);
    snprintf(source, room, "%s%s", tide_bump_source(), kernel);
    compile_for_all(source, "take");
    free(source);
}

static void a_newer_device_gets_ptx(void **unused)
{
    (void)unused;
    char error[300];
    stage_cuda_code made;
    assert_true(stage_nvrtc_compile("__global__ void k() {}",
                                    &(stage_cuda_device){.architecture = 999}, LONG_MS, &made,
                                    error, sizeof error));
    assert_string_equal(made.kind, "ptx");
    assert_true(names(&made, ".version"));
    free(made.code);
}

static void an_older_device_is_refused(void **unused)
{
    (void)unused;
    char error[300] = "";
    stage_cuda_code made;
    assert_false(stage_nvrtc_compile("", &(stage_cuda_device){.architecture = 13}, LONG_MS, &made,
                                     error, sizeof error));
    assert_non_null(strstr(error, "does not know sm_13"));
}

static void an_error_is_one_readable_line(void **unused)
{
    (void)unused;
    char error[300] = "";
    stage_cuda_code made;
    assert_false(
        stage_nvrtc_compile("__global__ void k()\n{ nonsense; }\n",
                            &(stage_cuda_device){.architecture = (unsigned)architectures[0]},
                            LONG_MS, &made, error, sizeof error));
    assert_non_null(strstr(error, "tidepool.cu(2)"));
    assert_non_null(strstr(error, "nonsense"));
    assert_null(strchr(error, '\n'));
}

static void what_takes_too_long_is_cancelled(void **unused)
{
    (void)unused;
    char error[300] = "";
    static char source[TIDE_KERNELS_SOURCE_BYTES];
    stage_cuda_code made;
    tide_kernels_source(TIDE_KERNELS_CUDA, source, sizeof source);
    bool done = stage_nvrtc_compile(
        source, &(stage_cuda_device){.architecture = (unsigned)architectures[0]}, 0, &made, error,
        sizeof error);
    if (done) /* an NVRTC before 12.8 cannot be */
        free(made.code);
    else
        assert_non_null(strstr(error, "cancelled after 0 ms"));
    assert_true(!done || architecture_count > 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_compile_for_every_architecture),
        cmocka_unit_test(the_bump_allocator_compiles_for_every_architecture),
        cmocka_unit_test(a_newer_device_gets_ptx),
        cmocka_unit_test(an_older_device_is_refused),
        cmocka_unit_test(an_error_is_one_readable_line),
        cmocka_unit_test(what_takes_too_long_is_cancelled),
    };
    char error[300];
    architecture_count = stage_nvrtc_architectures(
        architectures, sizeof architectures / sizeof *architectures, error, sizeof error);
    if (architecture_count == 0) {
        printf("skipped: %s\n", error);
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
