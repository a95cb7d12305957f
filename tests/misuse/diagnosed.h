/* SPDX-License-Identifier: MIT */
/* One mistake that the library itself diagnoses.
 *
 * A program first says on its output, line by line, what the report has to contain, places as the
 * compiler knows them; then it makes the mistake. tests/diagnosed.c compares. */
#ifndef TIDEPOOL_TESTS_DIAGNOSED_H
#define TIDEPOOL_TESTS_DIAGNOSED_H

#include <tidepool/tidepool.h>

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(...) (printf("expect: " __VA_ARGS__), (void)puts(""), (void)fflush(stdout))

/* On the line of the acquire, or of the scope. */
#define ACQUIRED_HERE       EXPECT("  acquired  %s:%d in %s\n", __FILE__, __LINE__, __func__)
#define OPENED_HERE(before) EXPECT("%s%s:%d in %s", before, __FILE__, __LINE__, __func__)

#define REWOUND "  rewound   with the scope opened at "

#ifdef __cplusplus
extern "C" {
#endif

/* Not static, so that reports know its name. */
double use(const volatile double *array);
double use(const volatile double *array)
{
    return *array;
}

#ifdef __cplusplus
}
#endif

static inline tide_pool *pool_at(tide_check level)
{
    static const tide_pool_options none;
    tide_pool_options options = none;
    options.name = "the pool";
    options.check = level;
    tide_pool *pool = tide_pool_create(&options);
    if (pool == NULL)
        exit(3);
    return pool;
}

static inline void need(int condition)
{
    if (!condition)
        exit(4);
}

/* The call was refused by its status, and the message has these words. Nothing is reported. */
static inline void need_refused(tide_status got, tide_status expected, const char *words)
{
    need(got == expected && strstr(tide_error_message(), words) != NULL);
}

#endif
