/* SPDX-License-Identifier: MIT */
/* Runs the programs of tests/misuse, each a mistake, under whatever tool is at hand, and wants
 * it reported: by AddressSanitizer if they were built with it, else by Valgrind. Argument: the
 * folder of the programs. */
#define _GNU_SOURCE
#include "forms.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *folder;

typedef struct outcome {
    int status; /* as waitpid says */
    char output[1 << 18];
} outcome;

static void run_program(char *const arguments[], outcome *out)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork_child(0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        execvp(arguments[0], arguments);
        _exit(127);
    }
    close(ends[1]);
    read_to_end(ends[0], out->output, sizeof out->output);
    assert_int_equal(waitpid(child, &out->status, 0), child);
}

static void expect_exit(const outcome *out, int status)
{
    if (!WIFEXITED(out->status) || WEXITSTATUS(out->status) != status)
        fail_msg("ended with %#x, not by exit(%d):\n%s", (unsigned)out->status, status,
                 out->output);
}

static void expect_words(const outcome *out, const char *words)
{
    if (strstr(out->output, words) == NULL)
        fail_msg("'%s' is not in:\n%s", words, out->output);
}

/* ---- the two tools ---- */

static bool built_with_asan(void)
{
    extern void __asan_poison_memory_region(void const volatile *, size_t) __attribute__((weak));
    return __asan_poison_memory_region != NULL;
}

static void expect_asan_to_object(const char *program)
{
    static outcome out;
    char path[512], number[24];
    snprintf(path, sizeof path, "%s/%s", folder, program);
    setenv("ASAN_OPTIONS", "exitcode=98:abort_on_error=0:detect_leaks=0:symbolize=0", 1);
    for (size_t i = 0; i < form_count(); i++) {
        note("%s in %s", program, form_at(i)->name);
        snprintf(number, sizeof number, "%zu", i);
        run_program((char *[]){path, number, NULL}, &out);
        expect_exit(&out, 98);
        expect_words(&out, "ERROR: AddressSanitizer: use-after-poison");
        expect_words(&out, program); /* the report names its module */
    }
}

static bool have_valgrind(void)
{
#if defined(TIDE_HAVE_VALGRIND)
    static outcome out;
    run_program((char *[]){"valgrind", "--version", NULL}, &out);
    return !under_sanitizer() && WIFEXITED(out.status) && WEXITSTATUS(out.status) == 0;
#else
    return false;
#endif
}

static void run_under_valgrind(const char *program, outcome *out)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, program);
    run_program((char *[]){"valgrind", "--quiet", "--error-exitcode=97", path, NULL}, out);
}

static void expect_objection(const char *program, const char *valgrinds_words)
{
    static outcome out;
    if (built_with_asan()) {
        expect_asan_to_object(program);
    } else if (have_valgrind()) {
        run_under_valgrind(program, &out);
        expect_exit(&out, 97);
        expect_words(&out, valgrinds_words);
        char all[64];
        snprintf(all, sizeof all, "noticed %zu of %zu", form_count(), form_count());
        if (strstr(out.output, all) == NULL)
            fail_msg("not '%s', but:\n%s", all,
                     out.output + strlen(out.output) - (strlen(out.output) > 900 ? 900 : 0));
    } else {
        skip();
    }
}

/* ---- the mistakes ---- */

static void a_read_after_the_rewind_is_reported(void **state)
{
    (void)state;
    expect_objection("read_after_rewind", "Invalid read of size 8");
}

static void a_write_after_the_rewind_is_reported(void **state)
{
    (void)state;
    expect_objection("write_after_rewind", "Invalid write of size 8");
}

static void a_read_after_a_reset_is_reported(void **state)
{
    (void)state;
    expect_objection("read_after_reset", "Invalid read of size 8");
}

static void a_read_past_the_end_is_reported(void **state)
{
    (void)state;
    expect_objection("read_past_the_end", "Invalid read of size 8");
}

static void a_read_of_a_slot_that_is_shorter_now_is_reported(void **state)
{
    (void)state;
    expect_objection("read_of_the_rewound_slot", "Invalid read of size 8");
}

static void good_use_is_not_reported(void **state)
{
    (void)state;
    static outcome out;
    char path[512], number[24];
    snprintf(path, sizeof path, "%s/none", folder);
    for (size_t i = 0; i < form_count(); i++) {
        snprintf(number, sizeof number, "%zu", i);
        run_program((char *[]){path, number, NULL}, &out);
        expect_exit(&out, 0);
        assert_string_equal(out.output, "unnoticed\n");
    }
    if (have_valgrind()) {
        run_under_valgrind("none", &out);
        expect_exit(&out, 1); /* not Valgrind's 97 */
        expect_words(&out, "noticed 0 of");
        assert_null(strstr(out.output, "Invalid"));
    }
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_after_the_rewind_is_reported),
        cmocka_unit_test(a_write_after_the_rewind_is_reported),
        cmocka_unit_test(a_read_after_a_reset_is_reported),
        cmocka_unit_test(a_read_past_the_end_is_reported),
        cmocka_unit_test(a_read_of_a_slot_that_is_shorter_now_is_reported),
        cmocka_unit_test(good_use_is_not_reported),
    };
    if (count != 2)
        return EXIT_FAILURE;
    folder = arguments[1];
    return cmocka_run_group_tests_name("misuse", tests, NULL, NULL);
}
