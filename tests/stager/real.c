/* SPDX-License-Identifier: MIT */
/* The compiler process that compiles, through the library's side of it. */
#define _GNU_SOURCE
#include "tests/stager/support.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "jit/spec/spec.h"
#include "jit/stager/code.h"

enum { SITES = 16 };

static tide_spec spec_of(unsigned i)
{
    tide_spec spec = {.item_count = 1};
    snprintf(spec.stem, sizeof spec.stem, "tide_real_%u", i);
    spec.items[0] = (tide_spec_item){.type = TIDE_F64, .name = "f64"};
    return spec;
}

static const char *text_of(unsigned count)
{
    static char text[TIDE_SPEC_SITE_BYTES * (SITES + 1)];
    size_t bytes = tide_spec_write_head(text, sizeof text);
    for (unsigned i = 0; i < count; i++) {
        tide_spec spec = spec_of(i);
        bytes += tide_spec_write(&spec, text + bytes, sizeof text - bytes);
    }
    return text;
}

static void *next_object(void)
{
    char error[256];
    tide_stager_answer answer = next();
    if (answer.result != TIDE_STAGER_OK)
        fail_msg("answer %d: %s", answer.result, answer.error);
    assert_true(answer.spent_us > 0);
    void *object = tide_code_load(answer.path, error, sizeof error);
    if (object == NULL)
        fail_msg("%s", error);
    return object;
}

static int begin_real(void **state)
{
    begin_test(state);
    use_fake("real"); /* a link to the program that this test was given */
    return 0;
}

#define REAL_TEST(function) cmocka_unit_test_setup_teardown(function, begin_real, end_test)

static void sites_become_code(void **state)
{
    (void)state;
    order(1, text_of(SITES));
    void *object = next_object();
    for (unsigned i = 0; i < SITES; i++) {
        tide_spec spec = spec_of(i);
        const tide_code *code = tide_code_find(object, i, &spec);
        assert_true(code != NULL && code->enter != NULL && code->leave != NULL);
    }
}

static void what_cannot_be_compiled_is_an_error(void **state)
{
    (void)state;
    order(1, "tidepool-spec 1\nlayout 0000000000000001\nsite x y\n");
    tide_stager_answer answer = next();
    assert_int_equal(answer.result, TIDE_STAGER_FAILED);
    assert_int_not_equal(strlen(answer.error), 0);
    order(2, text_of(1));
    (void)next_object();
}

/* A pipe's other end comes to its end though the process runs. */
static void it_holds_no_descriptor_of_the_program(void **state)
{
    (void)state;
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    order(1, text_of(1));
    (void)next_object();
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    assert_int_not_equal(tide_stager_process(), 0);
    close(ends[0]);
}

/* Between submitting and compiling, linking, answering: wherever it hits. */
static void killed_at_random(void **state)
{
    (void)state;
    size_t times = scaled(20, 0) + 2;
    for (size_t i = 0; i < times; i++) {
        tide_stager_answer answer;
        order(i + 1, text_of(2));
        (void)!tide_stager_poll(&answer, 0);
        usleep((useconds_t)(i * 1709 % 30000));
        if (tide_stager_process() != 0)
            kill(tide_stager_process(), i % 2 ? SIGKILL : SIGTERM);
        if (tide_stager_busy())
            answer = next();
        assert_true(answer.result == TIDE_STAGER_OK || answer.result == TIDE_STAGER_DIED);
    }
    /* The last signal may have reached a compiler that was idle and is still ending: then this answer is its
     * death, and the one after it comes from a new compiler. */
    order(times + 1, text_of(1));
    if (next().result != TIDE_STAGER_OK) {
        order(times + 2, text_of(1));
        (void)next_object();
    }
}

static void stopping_in_the_middle_leaves_nothing(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        tide_stager_answer answer;
        order(i + 1, text_of(SITES));
        (void)!tide_stager_poll(&answer, (int)i * 7);
        tide_stager_stop();
        expect_nothing_left();
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        REAL_TEST(sites_become_code),
        REAL_TEST(what_cannot_be_compiled_is_an_error),
        REAL_TEST(it_holds_no_descriptor_of_the_program),
        REAL_TEST(killed_at_random),
        REAL_TEST(stopping_in_the_middle_leaves_nothing),
    };
    return SUPPORT_MAIN(tests);
}
