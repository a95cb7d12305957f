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

#include "jit/kernels/nvrtc.h"
#include "jit/kernels/source.h"
#include "runtime/base/os.h"

enum { SKIPPED = 77 };

/* Whatever it is made for; false if the compiler does not know the architecture. */
static bool compile(const char *source, unsigned architecture, const char *kernel)
{
    char error[300] = "";
    tide_cuda_code made;
    if (!tide_nvrtc_compile(source, (tide_cuda_target){.architecture = architecture}, &made, error,
                            sizeof error))
        fail_msg("sm_%u: %s", architecture, error);
    assert_true(made.bytes > 64);
    assert_int_equal(memcmp(made.code,
                            "\x7f"
                            "ELF",
                            4) == 0,
                     made.cubin);
    assert_non_null(memmem(made.code, made.bytes, kernel, strlen(kernel)));
    assert_true(made.cubin || made.code[made.bytes - 1] == '\0'); /* drivers read it as a string */
    tide_os_free(made.code);
    return made.cubin;
}

static void compile_for_all(const char *source, const char *kernel)
{
    static const unsigned known[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
    size_t cubins = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        cubins += compile(source, known[i], kernel);
    assert_in_range(cubins, 5, sizeof known / sizeof *known); /* NVRTC 12 knows fewer of them */
}

static void kernels_compile_for_every_architecture(void **unused)
{
    (void)unused;
    static char source[TIDE_KERNELS_SOURCE_BYTES];
    tide_kernels_source(TIDE_KERNELS_CUDA, source, sizeof source);
    compile_for_all(source, "tide_unpack");
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
    assert_false(compile("__global__ void k() {}", 999, ".version"));
}

/* One line that somebody can read. */
static void expect_refused(const char *source, unsigned architecture, const char *words)
{
    char error[300] = "";
    tide_cuda_code made;
    assert_false(tide_nvrtc_compile(source, (tide_cuda_target){.architecture = architecture}, &made,
                                    error, sizeof error));
    assert_non_null(strstr(error, words));
    assert_null(strchr(error, '\n'));
}

static void what_cannot_be_compiled_is_told(void **unused)
{
    (void)unused;
    expect_refused("", 13, "does not know sm_13");
    expect_refused("__global__ void k()\n{ nonsense; }\n", 90, "tidepool.cu(2)");
    expect_refused("__global__ void k()\n{ nonsense; }\n", 90, "nonsense");
    tide_nvrtc_set("none");
    expect_refused("", 90, "TIDEPOOL_NVRTC names none that can be used");
    tide_nvrtc_set(NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_compile_for_every_architecture),
        cmocka_unit_test(the_bump_allocator_compiles_for_every_architecture),
        cmocka_unit_test(a_newer_device_gets_ptx),
        cmocka_unit_test(what_cannot_be_compiled_is_told),
    };
    char error[300];
    tide_cuda_code made;
    if (!tide_nvrtc_compile("", (tide_cuda_target){.architecture = 90}, &made, error,
                            sizeof error)) {
        printf("skipped: %s\n", error);
        return SKIPPED;
    }
    tide_os_free(made.code);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
