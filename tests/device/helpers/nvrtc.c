/* SPDX-License-Identifier: MIT */
/* NVRTC compiles what is for CUDA, for every architecture it knows; and says in one line what is
 * wrong. No device is needed. Skipped where there is no NVRTC. */
#include <stdio.h>
#include <string.h>

#include <tidepool/device_bump.h>

#include "jit/kernels/modules.h"
#include "jit/kernels/nvrtc.h"
#include "runtime/base/os.h"
#include "tests/device/tests.h"

enum { SKIPPED = 77 };

static bool is_known(unsigned architecture)
{
    size_t bytes = 0;
    void *code = tide_nvrtc_compile("", architecture, 0, &bytes);
    tide_os_free(code);
    return code != NULL;
}

static void compile(const char *source, unsigned architecture, const char *kernel)
{
    size_t bytes = 0;
    void *code = tide_nvrtc_compile(source, architecture, 0, &bytes);
    if (code == NULL)
        fail_msg("sm_%u: %s", architecture, tide_error_message());
    assert_true(bytes > 64);
    assert_memory_equal(code, "\177ELF", 4);
    assert_non_null(memmem(code, bytes, kernel, strlen(kernel)));
    tide_os_free(code);
}

static void compile_for_all(const char *source, const char *kernel)
{
    static const unsigned known[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
    size_t cubins = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (is_known(known[i])) {
            compile(source, known[i], kernel);
            cubins++;
        }
    assert_in_range(cubins, 5, sizeof known / sizeof *known); /* NVRTC 12 knows fewer of them */
}

TEST(kernels_compile_for_every_architecture)
{
    compile_for_all(tide_kernels_text, "tide_unpack");
}

TEST(the_bump_allocator_compiles_for_every_architecture)
{
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

/* One line that somebody can read. */
static void expect_refused(const char *source, unsigned architecture, const char *words)
{
    size_t bytes = 0;
    assert_null(tide_nvrtc_compile(source, architecture, 0, &bytes));
    assert_non_null(strstr(tide_error_message(), words));
    assert_null(strchr(tide_error_message(), '\n'));
}

TEST(what_cannot_be_compiled_is_told)
{
    expect_refused("", 13, "invalid value for --gpu-architecture");
    expect_refused("__global__ void k()\n{ nonsense; }\n", 90, "tidepool.cu(2)");
    expect_refused("__global__ void k()\n{ nonsense; }\n", 90, "nonsense");
    tide_nvrtc_set("none");
    expect_refused("", 90, "TIDEPOOL_NVRTC names none that can be used");
    tide_nvrtc_set(NULL);
}

int main(void)
{
    if (!is_known(90)) {
        printf("skipped: there is no NVRTC\n");
        return SKIPPED;
    }
    return RUN_TESTS("nvrtc");
}
