/* SPDX-License-Identifier: MIT */
/* The compiler process may be missing, die, hang, lie, be reaped by the program: each request has
 * its answer, the next one starts another process, and nothing is left behind. */
#define _GNU_SOURCE
#include "tests/stager/support.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef TIDE_HAVE_VALGRIND
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

#include "jit/stager/directory.h"
#include "jit/stager/test_hooks.h"
#include "runtime/base/settings.h"
#include "runtime/base/test_hooks.h"

static void expect_good(uint64_t number)
{
    use_fake("good");
    expect_result(number, TIDE_STAGER_OK);
}

/* ---- as it should be ---------------------------------------------------------------------- */

static void one_process_answers_one_request_after_the_other(void **state)
{
    (void)state;
    uint64_t before = tide_stager_started();
    expect_result(1, TIDE_STAGER_OK);
    int process = tide_stager_process();
    assert_true(process > 1);
    expect_result(2, TIDE_STAGER_OK);
    assert_int_equal(tide_stager_process(), process);
    assert_int_equal(tide_stager_started(), before + 1);
    assert_int_equal(count_directories(), 1);
}

static void what_cannot_be_compiled_is_an_error_of_one_line(void **state)
{
    (void)state;
    order(1, "error of the site");
    tide_stager_answer got = next();
    assert_int_equal(got.result, TIDE_STAGER_FAILED);
    assert_string_equal(got.error, "error of the site");
    expect_result(2, TIDE_STAGER_OK);
}

/* Larger than any buffer of the system. */
static void a_large_request_is_sent_in_parts(void **state)
{
    (void)state;
    enum { BYTES = 8 << 20 };
    char *text = malloc(BYTES);
    assert_non_null(text);
    memset(text, 'x', BYTES);
    assert_true(tide_stager_submit(1, text, BYTES));
    assert_int_equal(next().result, TIDE_STAGER_OK);
    use_fake("deaf");
    tide_stager_stop();
    tide_constant_set("stager_deadline", 100);
    assert_true(tide_stager_submit(2, text, BYTES));
    assert_int_equal(next().result, TIDE_STAGER_LATE);
    free(text);
}

static void one_that_is_idle_ends_and_comes_again(void **state)
{
    (void)state;
    expect_result(1, TIDE_STAGER_OK);
    tide_stager_tend();
    assert_int_not_equal(tide_stager_process(), 0);
    tide_constant_set("stager_idle", 1);
    usleep(2000);
    tide_stager_tend();
    assert_int_equal(tide_stager_process(), 0);
    assert_int_equal(count_processes(), 0);
    expect_result(2, TIDE_STAGER_OK);
}

/* As by whoever clears old files away. */
static int remove_entry(const char *path, const struct stat *seen, int type, struct FTW *ftw)
{
    (void)seen, (void)type, (void)ftw;
    return remove(path);
}

static void a_directory_that_was_removed_is_made_anew(void **state)
{
    (void)state;
    expect_result(1, TIDE_STAGER_OK);
    assert_int_equal(nftw(tide_directory_path(), remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
    expect_result(2, TIDE_STAGER_OK);
    assert_int_equal(count_directories(), 1);
    assert_int_equal(chmod(tide_directory_path(), 0777), 0); /* it might be anybody's */
    char before[TIDE_DIRECTORY_PATH];
    strcpy(before, tide_directory_path());
    expect_result(3, TIDE_STAGER_OK);
    assert_string_not_equal(tide_directory_path(), before);
    assert_int_equal(nftw(before, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* ---- missing ------------------------------------------------------------------------------ */

static bool yes(void)
{
    return true;
}

static void it_may_be_missing(void **state)
{
    (void)state;
    static const char *const values[] = {"none", "/nonexistent", "/tmp", "/etc/passwd"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        setenv("TIDEPOOL_STAGER", values[i], 1);
        tide_locate_environment_forget();
        order(i + 1, "site");
        tide_stager_result result = next().result;
        /* What Valgrind makes of posix_spawn tells of no failure but by the child's end. */
        if (!RUNNING_ON_VALGRIND || result != TIDE_STAGER_DIED)
            assert_int_equal(result, TIDE_STAGER_MISSING);
    }
    expect_good(9);
}

static void under_raised_privileges_none_is_started(void **state)
{
    (void)state;
    tide_locate_privileges_hook = yes;
    expect_result(1, TIDE_STAGER_REFUSED);
    assert_int_equal(tide_stager_process(), 0);
    assert_int_equal(count_directories(), 0);
}

/* ---- it dies, hangs, lies ----------------------------------------------------------------- */

static void it_may_die_at_each_step(void **state)
{
    (void)state;
    static const char *const ways[] = {"dies-at-once", "dies-with-order", "dies-in-answer"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        use_fake(ways[i]);
        expect_result(2 * i + 1, TIDE_STAGER_DIED);
        assert_int_equal(tide_stager_process(), 0);
        expect_good(2 * i + 2);
        tide_stager_stop();
    }
}

static void it_may_die_while_it_is_idle(void **state)
{
    (void)state;
    expect_result(1, TIDE_STAGER_OK);
    kill(tide_stager_process(), SIGKILL);
    while (tide_stager_process() != 0)
        tide_stager_tend();
    expect_result(2, TIDE_STAGER_OK);
}

static void it_may_hang_at_each_step(void **state)
{
    (void)state;
    static const char *const ways[] = {"deaf", "hangs", "stops"};
    tide_constant_set("stager_deadline", 100);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        use_fake(ways[i]);
        expect_result(2 * i + 1, TIDE_STAGER_LATE);
        assert_int_equal(tide_stager_process(), 0);
        tide_constant_set("stager_deadline", 1e6);
        expect_good(2 * i + 2);
        tide_constant_set("stager_deadline", 100);
        tide_stager_stop();
    }
}

static void it_may_answer_nonsense(void **state)
{
    (void)state;
    static const char *const ways[] = {"rude",    "speaks-first", "garbage", "no-number",
                                       "no-file", "no-text",      "bells",   "endless"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        use_fake(ways[i]);
        expect_result(2 * i + 1, TIDE_STAGER_GARBAGE);
        assert_int_equal(tide_stager_process(), 0);
        expect_good(2 * i + 2);
        tide_stager_stop();
    }
}

static void what_it_says_unasked_ends_it(void **state)
{
    (void)state;
    use_fake("twice");
    expect_result(1, TIDE_STAGER_OK);
    while (tide_stager_process() != 0)
        tide_stager_tend();
    expect_good(3);
}

/* ---- a program with children of its own --------------------------------------------------- */

static void reap_all(int number)
{
    int error = errno; /* of whoever is interrupted */
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    errno = error;
}

static void the_program_may_reap_it(void **state)
{
    (void)state;
    void (*const handlers[])(int) = {reap_all, SIG_IGN};
    for (size_t i = 0; i < 2; i++) {
        void (*before)(int) = signal(SIGCHLD, handlers[i]);
        use_fake("dies-with-order");
        expect_result(1, TIDE_STAGER_DIED);
        expect_good(2);
        int process = tide_stager_process();
        kill(process, SIGKILL);
        while (kill(process, 0) == 0)
            usleep(1000);
        expect_result(3, TIDE_STAGER_OK);
        tide_stager_stop();
        signal(SIGCHLD, before);
    }
}

static void signals_are_those_of_a_fresh_process(void **state)
{
    (void)state;
    sigset_t some, before;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    sigprocmask(SIG_BLOCK, &some, &before);
    void (*action)(int) = signal(SIGUSR2, SIG_IGN);
    expect_result(1, TIDE_STAGER_OK); /* the fake looks */
    signal(SIGUSR2, action);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

/* ---- fork, exec, the end ------------------------------------------------------------------ */

static void a_child_of_a_fork_leaves_it_alone(void **state)
{
    (void)state;
    expect_result(1, TIDE_STAGER_OK);
    int process = tide_stager_process();
    order(2, "site");
    pid_t child = fork_child(60);
    if (child == 0) {
        CHILD_MUST(!tide_stager_busy() && tide_stager_process() == 0);
        tide_stager_stop();
        exit(0);
    }
    expect_child_ends_well(child);
    assert_int_equal(next().result, TIDE_STAGER_OK);
    assert_int_equal(tide_stager_process(), process);
    assert_int_equal(count_directories(), 1);
}

typedef enum ending { EXITS, KILLED, EXECUTES } ending;

static void end_with_a_process(ending how)
{
    tide_stager_answer got;
    CHILD_MUST(tide_stager_submit(1, "site", 4) && tide_stager_poll(&got, PATIENCE));
    CHILD_MUST(got.result == TIDE_STAGER_OK && tide_stager_process() > 1);
    if (how == KILLED)
        kill(getpid(), SIGKILL);
    else if (how == EXECUTES)
        execl("/bin/true", "true", (char *)NULL);
    atexit(tide_stager_stop);
    exit(0);
}

static void it_ends_with_the_program(void **state)
{
    (void)state;
    for (ending how = EXITS; how <= EXECUTES; how++) {
        pid_t child = fork_child(60);
        if (child == 0)
            end_with_a_process(how);
        assert_int_equal(wait_for_child(child), how == KILLED ? 128 + SIGKILL : 0);
        expect_nothing_left();
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        STAGER_TEST(one_process_answers_one_request_after_the_other),
        STAGER_TEST(what_cannot_be_compiled_is_an_error_of_one_line),
        STAGER_TEST(a_large_request_is_sent_in_parts),
        STAGER_TEST(one_that_is_idle_ends_and_comes_again),
        STAGER_TEST(a_directory_that_was_removed_is_made_anew),
        STAGER_TEST(it_may_be_missing),
        STAGER_TEST(under_raised_privileges_none_is_started),
        STAGER_TEST(it_may_die_at_each_step),
        STAGER_TEST(it_may_die_while_it_is_idle),
        STAGER_TEST(it_may_hang_at_each_step),
        STAGER_TEST(it_may_answer_nonsense),
        STAGER_TEST(what_it_says_unasked_ends_it),
        STAGER_TEST(the_program_may_reap_it),
        STAGER_TEST(signals_are_those_of_a_fresh_process),
        STAGER_TEST(a_child_of_a_fork_leaves_it_alone),
        STAGER_TEST(it_ends_with_the_program),
    };
    return SUPPORT_MAIN(tests);
}
