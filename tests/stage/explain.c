/* SPDX-License-Identifier: MIT */
/* The stager by hand: what it explains, what it compiles, and what it says to bad arguments. */
#include "support.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static char said[65536];
static char path[256];

static int write_spec(void **state)
{
    static char text[TIDE_SPEC_SITE_BYTES * 4];
    tide_spec specs[] = {
        spec_of("a_scope", true, (tide_type)3, (tide_type)7, 0),
        spec_of("wide", false, (tide_type)1, (tide_type)2, (tide_type)3, (tide_type)4, 0),
    };
    (void)state;
    size_t used = tide_spec_write_head(text, sizeof text);
    for (int i = 0; i < 2; i++)
        used += tide_spec_write(&specs[i], text + used, sizeof text - used);
    snprintf(path, sizeof path, "%s", write_file("spec", text));
    return 0;
}

static int clean(void **state)
{
    (void)state;
    remove_test_folder();
    return 0;
}

static int run(const char *a, const char *b, const char *c, const char *d)
{
    const char *args[] = {stager, a, b, c, d, NULL};
    return run_program(args, said, sizeof said);
}

static void expect_said(const char *text)
{
    if (strstr(said, text) == NULL)
        fail_msg("'%s' is not in:\n%s", text, said);
}

static void test_c(void **state)
{
    (void)state;
    assert_int_equal(run("--explain", path, NULL, NULL), 0);
    expect_said("a_scope_enter (struct tide_scope * scope, struct tide_pool * pool");
    expect_said("pool->log_top");
    expect_said("wide_enter (");
}

static void test_machine_code(void **state)
{
    (void)state;
    assert_int_equal(run("--explain", path, "--asm", NULL), 0);
    expect_said("a_scope_leave:");
    expect_said("wide_enter:");
    expect_said("ret");
    assert_null(strstr(said, "pool->log_top"));
}

static void test_compile(void **state)
{
    (void)state;
    char library[256];
    snprintf(library, sizeof library, "%s/x.so", test_folder());
    assert_int_equal(run("--compile", path, "-o", library), 0);
    assert_string_equal(said, "");
    snprintf(library, sizeof library, "%s/none/x.so", test_folder());
    assert_int_not_equal(run("--compile", path, "-o", library), 0);
    assert_int_not_equal(strlen(said), 0);
}

/* Whoever starts it may ignore the ends of children, and that is inherited. */
static void test_compile_where_children_are_ignored(void **state)
{
    (void)state;
    char library[256];
    snprintf(library, sizeof library, "%s/ignored.so", test_folder());
    const char *args[] = {
        "/usr/bin/env", "--ignore-signal=CHLD", stager, "--compile", path, "-o", library, NULL};
    assert_int_equal(run_program(args, said, sizeof said), 0);
    assert_string_equal(said, "");
    assert_int_equal(access(library, R_OK), 0);
}

static void test_version(void **state)
{
    (void)state;
    char layout[32];
    assert_int_equal(run("--version", NULL, NULL, NULL), 0);
    snprintf(layout, sizeof layout, "-%016" PRIx64 "-gccjit-", tide_compiled_layout());
    expect_said(layout);
    assert_null(strchr(said, ' '));
    assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
}

static void test_bad_arguments(void **state)
{
    static const char *const bad[][4] = {{NULL},
                                         {"--explain"},
                                         {"--serve"},
                                         {"--compile", "x"},
                                         {"--compile", "x", "-p", "y"},
                                         {"--explain", "x", "--ams"},
                                         {"--frobnicate"}};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(run(bad[i][0], bad[i][1], bad[i][2], bad[i][3]), 2);
        expect_said("usage: tidepool-stage");
    }
    assert_int_equal(run("--help", NULL, NULL, NULL), 0);
    expect_said("usage: tidepool-stage");
}

static void test_bad_files(void **state)
{
    (void)state;
    assert_int_equal(run("--explain", "/nonexistent/spec", NULL, NULL), 1);
    expect_said("/nonexistent/spec: No such file");
    assert_int_equal(run("--serve", "/nonexistent/folder", NULL, NULL), 1);
    expect_said("/nonexistent/folder: No such file");
    const char *bad = write_file("bad", "tidepool-spec 1\nlayout x\n");
    assert_int_equal(run("--explain", bad, "--asm", NULL), 1);
    expect_said("line 2: 'layout x'");
}

int main(int count, char **args)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_c),         cmocka_unit_test(test_machine_code),
        cmocka_unit_test(test_compile),   cmocka_unit_test(test_compile_where_children_are_ignored),
        cmocka_unit_test(test_version),   cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_bad_files),
    };
    if (count != 2)
        return 2;
    stager = args[1];
    return cmocka_run_group_tests_name("stage: explain", tests, write_spec, clean);
}
