/* SPDX-License-Identifier: MIT */
/* Runs the programs that make a mistake which the library itself diagnoses, and wants them to end
 * as expected, having said what they announced. Argument: the folder of the programs. */
#define _GNU_SOURCE
#include "forms.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *folder;

typedef struct mistake {
    const char *program;
    int signal;     /* that ends it; 0: it exits with 0                                */
    size_t reports; /* that it makes                                                   */
    bool faults;    /* and survives that: the sanitizers' own handlers would not let it */
} mistake;

static const mistake mistakes[] = {
    {"use_after_rewind", SIGSEGV, 1, false},
    {"use_after_rewind_cpp", SIGSEGV, 1, false},
    {"use_after_rewind_in_a_thread", SIGSEGV, 1, false},
    {"use_after_mark", SIGSEGV, 1, false},
    {"use_after_reset", SIGSEGV, 1, false},
    {"use_after_destroy", SIGSEGV, 1, false},
    {"use_of_a_view", SIGSEGV, 2, false},
    {"write_past_the_end", SIGSEGV, 1, false},
    {"read_far_past_the_end", SIGSEGV, 1, false},
    {"write_in_the_gap", 0, 1, false},
    {"write_before_the_start", 0, 1, false},
    {"escape_from_a_scope", 0, 1, false},
    {"leaked_scope", 0, 1, false},
    {"foreign_thread", 0, 1, false},
    {"stale_mark", 0, 0, false},
    {"foreign_mark", 0, 0, false},
    {"double_leave", 0, 1, false},
    {"destroy_with_a_live_scope", 0, 0, false},
    {"read_of_poison", 0, 0, false},
    {"none_at_level_2", 0, 0, false},
    {"handler_of_its_own", 0, 2, true},
    {"sent_signal", SIGSEGV, 0, false},
    {"unloaded_module", 0, 3, false},
};
enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

/* ---- running ---- */

typedef struct outcome {
    int status;                            /* as waitpid says */
    char said[1 << 14], reported[1 << 14]; /* stdout, stderr */
} outcome;

static void become(const char *program, int out, int err)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, program);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    alarm(120);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execl(path, path, (char *)NULL);
    _exit(127);
}

static void run_program(const char *program, outcome *result)
{
    int out[2], err[2];
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    pid_t child = fork_child(0);
    if (child == 0)
        become(program, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    /* Both pipes hold all that these programs say, so one is read after the other. */
    read_to_end(out[0], result->said, sizeof result->said);
    read_to_end(err[0], result->reported, sizeof result->reported);
    assert_int_equal(waitpid(child, &result->status, 0), child);
}

/* ---- comparing ---- */

static void expect_end(const mistake *m, const outcome *result)
{
    bool right = m->signal != 0
                     ? WIFSIGNALED(result->status) && WTERMSIG(result->status) == m->signal
                     : WIFEXITED(result->status) && WEXITSTATUS(result->status) == 0;
    if (!right)
        fail_msg("%s ended with %#x after saying\n%s%s", m->program, (unsigned)result->status,
                 result->said, result->reported);
}

/* What stands after "expect: ", up to the end of its line, is in the report; a line that is
 * followed by an empty one is a whole line there. */
static size_t expect_announced(const mistake *m, outcome *result)
{
    static const char mark[] = "expect: ";
    size_t count = 0;
    for (char *at = result->said; (at = strstr(at, mark)) != NULL; count++) {
        at += strlen(mark);
        char *end = strchr(at, '\n');
        assert_non_null(end);
        char after = end[1];
        end[after == '\n' ? 1 : 0] = 0;
        if (strstr(result->reported, at) == NULL)
            fail_msg("%s: '%s' is not in\n%s", m->program, at, result->reported);
        at = end + 1;
    }
    return count;
}

static size_t occurrences(const char *text, const char *words)
{
    size_t count = 0;
    for (; (text = strstr(text, words)) != NULL; text++)
        count++;
    return count;
}

static void each_mistake_is_diagnosed(void **state)
{
    const mistake *m = *state;
    static outcome result;
    if ((m->signal != 0 || m->faults) && under_sanitizer())
        skip();
    run_program(m->program, &result);
    expect_end(m, &result);
    size_t announced = expect_announced(m, &result);
    assert_int_equal(occurrences(result.reported, "tidepool: "), m->reports);
    if (m->reports > 0)
        assert_true(announced > 0);
    else if (announced == 0)
        assert_string_equal(result.reported, "");
}

/* ---- the environment ---- */

static void expect_from(const char *variable, const char *value, const char *sample,
                        const char *expected)
{
    static outcome result;
    setenv(variable, value, 1);
    if (sample != NULL)
        setenv("TIDEPOOL_GUARD_SAMPLE", sample, 1);
    run_program("environment", &result);
    unsetenv(variable);
    unsetenv("TIDEPOOL_GUARD_SAMPLE");
    if (!WIFEXITED(result.status) || WEXITSTATUS(result.status) != 0 ||
        strcmp(result.said, expected) != 0)
        fail_msg("%s=%s: not %s, but %s%s", variable, value, expected, result.said,
                 result.reported);
}

static void the_environment_sets_the_level(void **state)
{
    (void)state;
    expect_from("TIDEPOOL_CHECK", "0", NULL, "kept 1000 poisoned 0 gone 0 held 1\n");
    expect_from("TIDEPOOL_CHECK", "1", NULL, "kept 0 poisoned 1000 gone 0 held 1\n");
    expect_from("TIDEPOOL_CHECK", "2", "10", "kept 900 poisoned 0 gone 100 held 1\n");
    expect_from("TIDEPOOL_CHECK", "2", "1000", "kept 999 poisoned 0 gone 1 held 1\n");
    expect_from("TIDEPOOL_DISABLE", "1", NULL, "kept 0 poisoned 0 gone 0 held 0\n");
}

static void the_environment_guards_every_array(void **state)
{
    (void)state;
    expect_from("TIDEPOOL_CHECK", "2", NULL, "kept 0 poisoned 0 gone 0 held 0\n");
}

int main(int count, char **arguments)
{
    struct CMUnitTest tests[MISTAKES + 2] = {
        cmocka_unit_test(the_environment_sets_the_level),
        cmocka_unit_test(the_environment_guards_every_array),
    };
    if (count != 2)
        return EXIT_FAILURE;
    folder = arguments[1];
    for (size_t i = 0; i < MISTAKES; i++)
        tests[i + 2] = (struct CMUnitTest){
            .name = mistakes[i].program,
            .test_func = each_mistake_is_diagnosed,
            .initial_state = (void *)(uintptr_t)&mistakes[i],
        };
    return cmocka_run_group_tests_name("diagnosed", tests, NULL, NULL);
}
