/* SPDX-License-Identifier: MIT */
/* The model finds mistakes and shrinks them: mistakes are planted in the oracle, where they look
 * just like mistakes of the library. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "shrink.h"

enum { SOON = 60, HANDFUL = 6 };

/* Searches, shrinks, and checks that the plant alone is to blame. Returns the length. */
static size_t hunt(enum plant plant, unsigned forms, uint8_t bytes[PROGRAM_BYTES], char wrong[640])
{
    struct trial trial = {forms, plant}, unplanted = {forms, PLANT_NOTHING};
    for (uint64_t seed = 1; seed <= SOON; seed++) {
        size_t length = program_generate(seed, bytes);
        if (!trial_fails(&trial, bytes, length, wrong))
            continue;
        length = trial_shrink(&trial, bytes, length, wrong);
        assert_true(trial_fails(&trial, bytes, length, wrong));
        char other[640];
        assert_false(trial_fails(&unplanted, bytes, length, other));
        return length;
    }
    fail_msg("%d programs did not find plant %d", SOON, plant);
    return 0;
}

static size_t count_of(const uint8_t *bytes, size_t length, enum operation_code code)
{
    struct program program = {bytes, length};
    size_t count = 0;
    for (size_t i = 0; i < program_operations(&program); i++)
        count += program_operation(&program, i).code == code;
    return count;
}

static size_t operations(const uint8_t *bytes, size_t length)
{
    return program_operations(&(struct program){bytes, length});
}

/* A forgotten level needs a level left open in another, and that one's end. */
static void a_forgotten_level_is_found(void **state)
{
    (void)state;
    uint8_t bytes[PROGRAM_BYTES];
    char wrong[640];
    size_t length = hunt(PLANT_LEAK, 1u << FORM_TYPES, bytes, wrong);
    assert_in_range(operations(bytes, length), 1, HANDFUL);
    assert_non_null(strstr(wrong, "depth"));
}

static void a_stale_mark_taken_for_good_is_found(void **state)
{
    (void)state;
    uint8_t bytes[PROGRAM_BYTES];
    char wrong[640];
    size_t length = hunt(PLANT_STALE, 1u << FORM_FFI, bytes, wrong);
    assert_in_range(operations(bytes, length), 2, HANDFUL);
    assert_int_not_equal(count_of(bytes, length, OPERATION_MARK), 0);
    assert_int_not_equal(count_of(bytes, length, OPERATION_REWIND), 0);
    assert_non_null(strstr(wrong, "must be ok"));
}

static void a_crash_is_found(void **state)
{
    (void)state;
    uint8_t bytes[PROGRAM_BYTES];
    char wrong[640];
    size_t length = hunt(PLANT_CRASH, 1u << FORM_LOOP, bytes, wrong);
    assert_in_range(operations(bytes, length), 1, HANDFUL);
    assert_non_null(strstr(wrong, "signal"));
}

static void a_difference_between_forms_is_found(void **state)
{
    (void)state;
    uint8_t bytes[PROGRAM_BYTES];
    char wrong[640];
    size_t length = hunt(PLANT_FORM, model_all_forms(), bytes, wrong);
    assert_in_range(operations(bytes, length), 1, HANDFUL);
    assert_non_null(strstr(wrong, "form marks: "));
    assert_non_null(strstr(wrong, "in another form"));
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
        assert_true(operation_byte(op.code) <= value);
        char text[4096] = "";
        FILE *out = fmemopen(text, sizeof text, "w");
        assert_non_null(out);
        program_print(&program, out);
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
        cmocka_unit_test(a_crash_is_found),
        cmocka_unit_test(a_difference_between_forms_is_found),
    };
    model_prepare(); /* each trial is a process of its own */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
