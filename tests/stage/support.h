/* SPDX-License-Identifier: MIT */
/* What tests of the stager share: specs made in a line, compiled for real and loaded. */
#ifndef TIDEPOOL_TESTS_STAGE_SUPPORT_H
#define TIDEPOOL_TESTS_STAGE_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/tidepool.h>

#include <cmocka.h>

#include "jit/spec/spec.h"
#include "runtime/scope/compiled.h"
#include "tests/support.h"

extern const char *stager; /* the program; from the command line */

/* A spec of these types, a list that ends with 0. */
tide_spec spec_of(const char *stem, int count, ...);

/* Compiles the specs by --compile in one text, and loads what comes out. Fails the test if it
 * cannot. */
void *compile_specs(const tide_spec *specs, uint32_t count);

/* A symbol that must be there. */
void *code_of(void *object, const char *stem, const char *suffix);

/* A plan as one that learning would make: of these types, compiled or a table. */
typedef struct test_plan {
    tide_plan plan;
    tide_plan_counts counts;
    tide_type types[TIDE_SPEC_ITEMS];
    uint32_t shelves[TIDE_SPEC_ITEMS];
} test_plan;

void plan_of(test_plan *out, const tide_spec *spec, void *compiled);

/* Runs a program; its standard output and error, together, in `said`. Gives its exit status, 128
 * and the signal's number if it was killed. */
int run_program(const char *const *args, char *said, size_t room);

/* Writes a file in the test's own folder, and gives its path (static). */
const char *write_file(const char *name, const char *text);
const char *test_folder(void);
void remove_test_folder(void);

#endif
