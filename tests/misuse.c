/* SPDX-License-Identifier: MIT */
/* Has tests/misuse/mistakes.c make each of its mistakes under whatever tool is at hand, and wants it
 * reported: by AddressSanitizer if it was built with it, else by Valgrind. Argument: that program. */
#define _GNU_SOURCE
#include "forms.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *program;

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

static void expect_asan_to_object(const char *mistake)
{
    static outcome out;
    char number[24];
    setenv("ASAN_OPTIONS", "exitcode=98:abort_on_error=0:detect_leaks=0:symbolize=0", 1);
    for (size_t i = 0; i < form_count(); i++) {
        note("%s in %s", mistake, form_at(i)->name);
        snprintf(number, sizeof number, "%zu", i);
        run_program(
            (char *[]){(char *)(uintptr_t)program, (char *)(uintptr_t)mistake, number, NULL}, &out);
        expect_exit(&out, 98);
        expect_words(&out, "ERROR: AddressSanitizer: use-after-poison");
        expect_words(&out, "mistakes"); /* the report names its module */
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

static void run_under_valgrind(const char *mistake, outcome *out)
{
    run_program((char *[]){"valgrind", "--quiet", "--error-exitcode=97", (char *)(uintptr_t)program,
                           (char *)(uintptr_t)mistake, NULL},
                out);
}

static void expect_objection(const char *mistake, const char *valgrinds_words)
{
    static outcome out;
    if (built_with_asan()) {
        expect_asan_to_object(mistake);
    } else if (have_valgrind()) {
        run_under_valgrind(mistake, &out);
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

static const struct {
    const char *name, *valgrinds_words;
} mistakes[] = {
    {"read_after_rewind", "Invalid read of size 8"},
    {"write_after_rewind", "Invalid write of size 8"},
    {"read_after_reset", "Invalid read of size 8"},
    {"read_past_the_end", "Invalid read of size 8"},
    {"read_of_the_rewound_slot", "Invalid read of size 8"},
};
enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

static void each_mistake_is_reported(void **state)
{
    size_t i = (size_t)(uintptr_t)*state;
    expect_objection(mistakes[i].name, mistakes[i].valgrinds_words);
}

static void good_use_is_not_reported(void **state)
{
    (void)state;
    static outcome out;
    char number[24];
    for (size_t i = 0; i < form_count(); i++) {
        snprintf(number, sizeof number, "%zu", i);
        run_program((char *[]){(char *)(uintptr_t)program, "none", number, NULL}, &out);
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
    struct CMUnitTest tests[MISTAKES + 1] = {
        cmocka_unit_test(good_use_is_not_reported),
    };
    if (count != 2)
        return EXIT_FAILURE;
    program = arguments[1];
    for (size_t i = 0; i < MISTAKES; i++)
        tests[i + 1] = (struct CMUnitTest){.name = mistakes[i].name,
                                           .test_func = each_mistake_is_reported,
                                           .initial_state = (void *)(uintptr_t)i};
    return cmocka_run_group_tests_name("misuse", tests, NULL, NULL);
}
