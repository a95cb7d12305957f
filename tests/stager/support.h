/* SPDX-License-Identifier: MIT */
/* What the tests of the compiler process share: fakes by name, and a look at what is left. */
#ifndef STAGER_SUPPORT_H
#define STAGER_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jit/stager/stager.h"
#include "tests/support.h"

enum { PATIENCE = 60000 }; /* milliseconds after which a test has failed; none waits for them */

/* Takes the path of the fake from the command line; makes the folder all happens in. */
int support_main(int argc, char **argv, const struct CMUnitTest *tests, size_t count);
#define SUPPORT_MAIN(tests) support_main(argc, argv, tests, sizeof(tests) / sizeof *(tests))

/* Other arguments than the first. */
const char *support_argument(int i);

/* A path in the folder. */
const char *in_folder(const char *name);

/* From now on the compiler process is the fake of that behaviour. */
void use_fake(const char *behaviour);

/* Before and after each test: the fake that does well; nothing is left. */
int begin_test(void **state);
int end_test(void **state);
#define STAGER_TEST(function) cmocka_unit_test_setup_teardown(function, begin_test, end_test)

/* Orders one site, with that text in it; the answer, which must come; the one and the other. */
void order(uint64_t number, const char *text);
tide_stager_answer next(void);
void expect_result(uint64_t number, tide_stager_result result);

/* Processes that came from a fake, entries of the folder of private directories: waits for there to
 * be none. */
void expect_nothing_left(void);
size_t count_processes(void);
size_t count_directories(void);

#endif
