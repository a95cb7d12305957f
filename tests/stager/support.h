/* SPDX-License-Identifier: MIT */
/* What the tests of the stager's side share: fake stagers by name, a clock to turn, and a look at
 * what is left behind. */
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

/* Takes the path of the fake stager from the command line; makes the folder all happens in. */
int support_main(int argc, char **argv, const struct CMUnitTest *tests, size_t count);
#define SUPPORT_MAIN(tests) support_main(argc, argv, tests, sizeof(tests) / sizeof *(tests))

/* Other arguments than the first. */
const char *support_argument(int i);

/* The folder; a path in it. */
const char *folder(void);
const char *in_folder(const char *name);

/* From now on the stager is the fake of that behaviour; NULL: there is none. */
void use_fake(const char *behaviour);

/* Before and after each test. */
int begin_test(void **state);
int end_test(void **state);
#define STAGER_TEST(function) cmocka_unit_test_setup_teardown(function, begin_test, end_test)

/* Turns the clock of deadlines by so many milliseconds. */
void pass_time(int64_t ms);

/* Orders one site, with that text in it. */
void order(uint64_t id, const char *text);

/* The next answer, which must come. */
tide_stager_answer next(void);

/* The next answer must be to this order, and this. */
void expect_answer(uint64_t id, tide_stager_result result);

/* Runs the scene in a child, where it is alone with the library. One that lacks a right it needs
 * ends the child with NO_RIGHTS: then the test is skipped. */
enum { NO_RIGHTS = 77 };
void play(void (*scene)(void));

/* One that has ended, and that nobody collects, does not. */
bool process_runs(int process);

/* But the standard streams. */
void close_every_descriptor(void);

/* Children not collected, processes that came from a fake, entries of the folder. */
bool have_children(void);
size_t count_processes(void);
size_t count_directories(void);

#endif
