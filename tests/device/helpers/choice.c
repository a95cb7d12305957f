/* SPDX-License-Identifier: MIT */
/* Which of several NVRTCs compiles, and what: the newest whose code the driver loads. Two made-up
 * ones: 13.0 knows sm_75, 90, 100, 120; 12.4 knows sm_70, 80, 90. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "jit/kernels/nvrtc.h"
#include "runtime/base/os.h"

static void expect_made(unsigned architecture, unsigned driver, const char *by, const char *kind)
{
    char error[300] = "";
    tide_cuda_code made;
    if (!tide_nvrtc_compile("", (tide_cuda_target){architecture, driver}, &made, error,
                            sizeof error))
        fail_msg("sm_%u on %u: %s", architecture, driver, error);
    assert_non_null(strstr(made.code, by));
    assert_string_equal(made.cubin ? "cubin" : "ptx", kind);
    tide_os_free(made.code);
}

static void expect_refused(unsigned architecture, unsigned driver, const char *words)
{
    char error[300] = "";
    tide_cuda_code made;
    assert_false(tide_nvrtc_compile("", (tide_cuda_target){architecture, driver}, &made, error,
                                    sizeof error));
    assert_non_null(strstr(error, words));
}

static void the_newest_whose_cubins_the_driver_loads(void **unused)
{
    (void)unused;
    expect_made(90, 0, "13.0 -arch=sm_90", "cubin"); /* the driver is not known */
    expect_made(90, 13020, "13.0 -arch=sm_90", "cubin");
    expect_made(90, 13000, "13.0 -arch=sm_90", "cubin");
    expect_made(90, 12090, "12.4 -arch=sm_90", "cubin");
    expect_made(90, 12020, "12.4 -arch=sm_90", "cubin"); /* a newer minor version will do */
    expect_made(70, 13000, "12.4 -arch=sm_70", "cubin"); /* the newest does not know it any more */
}

static void ptx_for_devices_that_the_compiler_does_not_know(void **unused)
{
    (void)unused;
    expect_made(103, 13000, "13.0 -arch=compute_100", "ptx"); /* between two that it knows */
    expect_made(150, 13000, "13.0 -arch=compute_120", "ptx");
    expect_made(100, 12080, "12.4 -arch=compute_90", "ptx"); /* 13.0 is newer than the driver */
    expect_made(86, 12080, "12.4 -arch=compute_80", "ptx");
}

static void code_that_no_driver_would_load_is_not_made(void **unused)
{
    (void)unused;
    expect_refused(100, 12020, "a driver of CUDA 12.2 does not load"); /* PTX of 12.4 is newer */
    expect_refused(90, 11080, "a driver of CUDA 11.8 does not load");
    expect_refused(60, 13000, "does not know sm_60");
}

int main(int count, char **libraries)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_whose_cubins_the_driver_loads),
        cmocka_unit_test(ptx_for_devices_that_the_compiler_does_not_know),
        cmocka_unit_test(code_that_no_driver_would_load_is_not_made),
    };
    char names[1000];
    if (count != 3)
        return 2;
    snprintf(names, sizeof names, "%s:%s", libraries[1], libraries[2]);
    tide_nvrtc_set(names);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
