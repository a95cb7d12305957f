/* SPDX-License-Identifier: MIT */
/* The model finds mistakes: they are planted in the oracle, where they look just like mistakes of the library. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "interpret.h"
#include "tests/support.h"

enum { SOON = 60 };

/* Some program fails soon, and fails for the plant alone; `words` are in what it says. */
static void expect_found(enum plant plant, unsigned forms, const char *words)
{
    uint8_t bytes[PROGRAM_BYTES];
    char wrong[640] = "";
    for (uint64_t seed = 1; seed <= SOON; seed++) {
        struct program program = {bytes, program_generate(seed, bytes)};
        model_run(&program, forms, plant, wrong);
        if (wrong[0] == '\0')
            continue;
        if (strstr(wrong, words) == NULL)
            fail_msg("'%s' is not in '%s'", words, wrong);
        model_run(&program, forms, PLANT_NOTHING, wrong);
        assert_string_equal(wrong, "");
        return;
    }
    fail_msg("%d programs did not find plant %d", SOON, plant);
}

/* A forgotten level needs a level left open in another, and that one's end. */
static void a_forgotten_level_is_found(void **state)
{
    (void)state;
    expect_found(PLANT_LEAK, 1u << FORM_TYPES, "depth");
}

static void a_stale_mark_taken_for_good_is_found(void **state)
{
    (void)state;
    expect_found(PLANT_STALE, 1u << FORM_FFI, "must be");
}

static void a_difference_between_forms_is_found(void **state)
{
    (void)state;
    expect_found(PLANT_FORM, model_all_forms(), "in another form");
}

/* Printing must not depend on what a program is, and tell of every operation. */
static void any_bytes_are_a_program(void **state)
{
    (void)state;
    uint8_t bytes[PROGRAM_BYTES];
    for (unsigned value = 0; value < 256; value++) {
        memset(bytes, (int)value, sizeof bytes);
        struct program program = {bytes, PROGRAM_HEADER + 3 * OPERATION_BYTES + value % 4};
        assert_int_equal(program_operations(&program), 3);
        struct operation op = program_operation(&program, 2);
        assert_in_range(op.code, 0, OPERATION_COUNT - 1);
        char text[4096] = "";
        FILE *out = fmemopen(text, sizeof text, "w");
        assert_non_null(out);
        program_report(&program, "", out);
        fclose(out);
        assert_non_null(strstr(text, operation_name(op.code)));
    }
    assert_int_equal(program_operations(&(struct program){bytes, 0}), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_bytes_are_a_program),
        cmocka_unit_test(a_forgotten_level_is_found),
        cmocka_unit_test(a_stale_mark_taken_for_good_is_found),
        cmocka_unit_test(a_difference_between_forms_is_found),
    };
    model_prepare();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
