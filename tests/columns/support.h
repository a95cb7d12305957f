/* SPDX-License-Identifier: MIT */
/* For the tests of the columns example: files with given content, programs and what they say. */
#ifndef COLUMNS_TEST_SUPPORT_H
#define COLUMNS_TEST_SUPPORT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>

/* Writes bytes to a new file, which lasts until the test program ends. */
const char *file_with(const char *bytes, size_t length);

/* What a program printed, and how it ended. */
typedef struct outcome {
    char *out, *err; /* NUL at the end; free with outcome_free */
    size_t out_length;
    int status; /* exit status; 128 + signal if it was killed */
} outcome;

/* Runs a program found by PATH, its arguments ending with NULL. stdin is empty. */
outcome run_program(const char *const *arguments);

/* The same under $TIDE_TEST_LAUNCHER (Valgrind, say). */
outcome run_tested(const char *const *arguments);

void outcome_free(outcome *o);

/* Whether a program can be found by PATH. */
bool have_program(const char *name);

#define assert_contains(text, part)                            \
    do {                                                       \
        if (strstr((text), (part)) == NULL)                    \
            fail_msg("\"%s\" is not in:\n%s", (part), (text)); \
    } while (0)

#endif
