/* SPDX-License-Identifier: MIT */
/* TEST(what_it_shows) { … } is a test of cmocka, and stands in its program's list, in the order of the file. */
#ifndef TIDEPOOL_TESTS_DEVICE_TESTS_H
#define TIDEPOOL_TESTS_DEVICE_TESTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TESTS_MAX = 32 };

static struct {
    struct CMUnitTest all[TESTS_MAX];
    int lines[TESTS_MAX];
    size_t count;
} listed_tests;

/* Before `main`, in any order. */
static inline void tests_add(const char *name, CMUnitTestFunction run, int line)
{
    size_t at = listed_tests.count++;
    if (at == TESTS_MAX)
        abort();
    for (; at > 0 && listed_tests.lines[at - 1] > line; at--) {
        listed_tests.all[at] = listed_tests.all[at - 1];
        listed_tests.lines[at] = listed_tests.lines[at - 1];
    }
    listed_tests.all[at].name = name;
    listed_tests.all[at].test_func = run;
    listed_tests.lines[at] = line;
}

#define TEST(name)                                               \
    static void name(void **unused);                             \
    __attribute__((constructor)) static void name##_listed(void) \
    {                                                            \
        tests_add(#name, name, __LINE__);                        \
    }                                                            \
    static void name(__attribute__((unused)) void **unused)

#define RUN_TESTS(group) \
    _cmocka_run_group_tests(group, listed_tests.all, listed_tests.count, NULL, NULL)

#endif
