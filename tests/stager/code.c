/* SPDX-License-Identifier: MIT */
/* Code objects that no stager made: the right one is loaded, each wrong one is refused. */
#define _GNU_SOURCE
#include "tests/stager/support.h"

#include <stdio.h>
#include <string.h>

#include "jit/stager/code.h"
#include "runtime/base/settings.h"
#include "runtime/scope/compiled.h"

static char error[256];

static const char *module(const char *way)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/code-%s.so", support_argument(2), way);
    return path;
}

static void wrong_ones_are_refused_and_say_why(void **state)
{
    (void)state;
    static const char *const ways[][2] = {{"wrong_magic", "tide_object_magic"},
                                          {"wrong_layout", "tide_object_layout"},
                                          {"no_layout", "tide_object_layout"},
                                          {"no_table", "tide_object_table"},
                                          {"none", "cannot open"}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        assert_null(tide_code_load(module(ways[i][0]), error, sizeof error));
        if (strstr(error, ways[i][1]) == NULL)
            fail_msg("%s: %s", ways[i][0], error);
    }
    assert_int_equal(tide_code_objects(), 0);
    assert_int_equal(tide_code_bytes(), 0);
}

/* That there is room for none is told after one was refused: before, nobody knows its size. */
static void beyond_the_cap_none_is_loaded(void **state)
{
    (void)state;
    double before = tide_setting_get(TIDE_SETTING_code_bytes);
    tide_setting_set(TIDE_SETTING_code_bytes, 100);
    assert_null(tide_code_load(module("right"), error, sizeof error));
    assert_non_null(strstr(error, "code_bytes"));
    assert_true(tide_code_full());
    tide_setting_set(TIDE_SETTING_code_bytes, before);
    assert_false(tide_code_full());
}

static void the_right_one_is_loaded_and_given_the_table(void **state)
{
    (void)state;
    const tide_runtime *(*enter)(void);
    tide_spec spec = {.stem = "x"};
    void *object = tide_code_load(module("right"), error, sizeof error);
    assert_non_null(object);
    assert_null(tide_code_known(7));
    const tide_code *code = tide_code_find(object, 7, &spec);
    assert_non_null(code);
    memcpy(&enter, &code->enter, sizeof enter);
    assert_ptr_equal(enter(), &tide_runtime_general);
    assert_ptr_equal(tide_code_known(7), code);
    assert_ptr_equal(tide_code_find(object, 7, &spec), code);
    spec.stem[0] = 'y'; /* there is no y_enter */
    assert_null(tide_code_find(object, 8, &spec));
    assert_null(tide_code_known(8));
    assert_int_equal(tide_code_objects(), 1);
    assert_true(tide_code_bytes() > 1000);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        STAGER_TEST(wrong_ones_are_refused_and_say_why),
        STAGER_TEST(beyond_the_cap_none_is_loaded),
        STAGER_TEST(the_right_one_is_loaded_and_given_the_table),
    };
    return SUPPORT_MAIN(tests);
}
