/* SPDX-License-Identifier: MIT */
/* Where the stager is looked for, in each kind of tree and with each kind of environment. */
#define _GNU_SOURCE
#include "tests/stager/support.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/stager/locate.h"
#include "jit/stager/test_hooks.h"

static char path[PATH_MAX], error[256];

static void run(const char *format, const char *first, const char *second)
{
    char command[2048];
    snprintf(command, sizeof command, format, first, second);
    assert_int_equal(system(command), 0);
}

/* Lays out a tree with the library and the stager at these places; asks that library. */
static bool ask_library(const char *library, const char *stager)
{
    bool (*probe)(char *, size_t, char *, size_t);
    unsetenv("TIDEPOOL_STAGER");
    run("mkdir -p \"$(dirname '%s')\" \"$(dirname '%s')\"", library, stager);
    run("cp '%s' '%s'", support_argument(2), library);
    run("cp '%s' '%s'", support_argument(1), stager);
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(handle);
    *(void **)&probe = dlsym(handle, "probe");
    assert_true(probe != NULL);
    bool found = probe(path, sizeof path, error, sizeof error);
    assert_int_equal(dlclose(handle), 0);
    return found;
}

static void expect_found(const char *library, const char *stager)
{
    char wanted[PATH_MAX], got[PATH_MAX];
    assert_true(ask_library(in_folder(library), in_folder(stager)));
    assert_non_null(realpath(in_folder(stager), wanted));
    assert_non_null(realpath(path, got));
    assert_string_equal(got, wanted);
}

static void in_a_build_tree(void **state)
{
    (void)state;
    expect_found("build/libprobe.so", "build/tidepool-stage");
}

static void in_an_installed_tree(void **state)
{
    (void)state;
    expect_found("prefix/lib/libprobe.so", "prefix/libexec/tidepool/tidepool-stage");
}

static void in_a_multiarch_tree(void **state)
{
    (void)state;
    expect_found("usr/lib/x86_64-linux-gnu/libprobe.so", "usr/libexec/tidepool/tidepool-stage");
}

static void through_a_link(void **state)
{
    (void)state;
    expect_found("real/lib/libprobe.so", "real/libexec/tidepool/tidepool-stage");
    run("ln -s '%s' '%s'", in_folder("real/lib/libprobe.so"), in_folder("libprobe.so"));
    expect_found("libprobe.so", "real/libexec/tidepool/tidepool-stage");
}

/* ---- what the environment says ------------------------------------------------------------ */

static bool ask_with(const char *value)
{
    setenv("TIDEPOOL_STAGER", value, 1);
    tide_locate_environment_forget();
    return tide_locate_stager(path, sizeof path, error, sizeof error);
}

static void the_environment_decides(void **state)
{
    (void)state;
    assert_true(ask_with(support_argument(1)));
    assert_string_equal(path, support_argument(1));
    assert_false(ask_with(in_folder("no-such-stager")));
    assert_non_null(strstr(error, "no-such-stager"));
    assert_false(ask_with("none"));
    assert_non_null(strstr(error, "TIDEPOOL_STAGER=none"));
}

/* The complaint goes to stderr once, and then all is as if it were not set. */
static void a_relative_path_is_ignored(void **state)
{
    (void)state;
    char said[512];
    FILE *capture = tmpfile();
    assert_non_null(capture);
    fflush(stderr);
    int saved = dup(STDERR_FILENO);
    dup2(fileno(capture), STDERR_FILENO);
    bool found = ask_with("bin/stager");
    tide_locate_stager(path, sizeof path, error, sizeof error);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(capture);
    size_t got = fread(said, 1, sizeof said - 1, capture);
    fclose(capture);
    said[got] = '\0';
    assert_string_equal(said,
                        "tidepool: TIDEPOOL_STAGER=bin/stager ignored: not an absolute path\n");
    if (!found)
        assert_non_null(strstr(error, "beside the library"));
}

static void the_environment_is_read_once(void **state)
{
    (void)state;
    assert_true(ask_with(support_argument(1)));
    setenv("TIDEPOOL_STAGER", "none", 1);
    assert_true(tide_locate_stager(path, sizeof path, error, sizeof error));
    assert_false(ask_with("none"));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        STAGER_TEST(in_a_build_tree),
        STAGER_TEST(in_an_installed_tree),
        STAGER_TEST(in_a_multiarch_tree),
        STAGER_TEST(through_a_link),
        STAGER_TEST(the_environment_decides),
        STAGER_TEST(a_relative_path_is_ignored),
        STAGER_TEST(the_environment_is_read_once),
    };
    return SUPPORT_MAIN(tests);
}
