/* SPDX-License-Identifier: MIT */
/* Programs that stagers must not mind: that collect every child, that have the system collect them,
 * that fork, that leave. */
#define _GNU_SOURCE
#include "tests/stager/support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/settings.h"

static void serve_some(uint64_t first, size_t count)
{
    for (uint64_t id = first; id < first + count; id++) {
        order(id, "text");
        expect_answer(id, TIDE_STAGER_OK);
    }
}

/* ---- who collects children ---------------------------------------------------------------- */

static void go_through_everything(void)
{
    use_fake("good");
    tide_setting_set(TIDE_SETTING_stager_recycle, 3);
    serve_some(1, 12);
    tide_stager_stop(true);
    use_fake("dies");
    order(20, "text");
    expect_answer(20, TIDE_STAGER_DIED);
    use_fake("hangs");
    order(21, "text");
    pass_time(10001);
    expect_answer(21, TIDE_STAGER_LATE);
    use_fake("quits");
    order(22, "text");
    tide_stager_answer answer = next(); /* it may have ended and been collected before we look */
    assert_true(answer.result == TIDE_STAGER_DIED || answer.result == TIDE_STAGER_MISSING);
    use_fake("garbage");
    order(23, "text");
    expect_answer(23, TIDE_STAGER_GARBAGE);
    tide_stager_stop(true);
}

static void a_program_that_ignores_its_children(void **state)
{
    (void)state;
    signal(SIGCHLD, SIG_IGN);
    go_through_everything();
    signal(SIGCHLD, SIG_DFL);
}

static bool stop_collecting;

static void *collect_all(void *unused)
{
    while (!__atomic_load_n(&stop_collecting, __ATOMIC_RELAXED)) {
        if (waitpid(-1, NULL, WNOHANG) <= 0)
            usleep(50);
    }
    return unused;
}

static void a_program_that_collects_every_child(void **state)
{
    (void)state;
    pthread_t thread;
    stop_collecting = false;
    assert_int_equal(pthread_create(&thread, NULL, collect_all, NULL), 0);
    for (int i = 0; i < 5; i++)
        go_through_everything();
    __atomic_store_n(&stop_collecting, true, __ATOMIC_RELAXED);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* ---- fork --------------------------------------------------------------------------------- */

static void a_forked_child_has_nothing_of_it(void **state)
{
    (void)state;
    order(1, "text");
    expect_answer(1, TIDE_STAGER_OK);
    for (uint64_t id = 2; id <= 9; id++)
        order(id, "text");
    int process = tide_stager_process();
    pid_t child = fork_child(0);
    if (child == 0) {
        CHILD_MUST(tide_stager_pending() == 0);
        CHILD_MUST(tide_stager_process() == 0);
        exit(0); /* leaves with all destructors: the parent's directory stays */
    }
    expect_child_ends_well(child);
    assert_int_equal(tide_stager_process(), process);
    for (uint64_t id = 2; id <= 9; id++)
        expect_answer(id, TIDE_STAGER_OK);
}

static void a_forked_child_starts_its_own(void **state)
{
    (void)state;
    order(1, "text");
    pid_t child = fork_child(0);
    if (child == 0) {
        tide_stager_answer answer;
        order(7, "text");
        CHILD_MUST(count_directories() == 2);
        CHILD_MUST(tide_stager_poll(&answer, PATIENCE));
        CHILD_MUST(answer.request == 7 && answer.result == TIDE_STAGER_OK);
        CHILD_MUST(access(answer.path, R_OK) == 0);
        exit(0); /* and takes its own directory and stager with it */
    }
    expect_child_ends_well(child);
    assert_int_equal(count_directories(), 1);
    expect_answer(1, TIDE_STAGER_OK);
    serve_some(2, 3);
    assert_int_equal(count_directories(), 1);
}

/* The last copy of the parent's connection must be the parent's, or its stager would outlive it. */
static void a_forked_child_does_not_keep_the_stager(void **state)
{
    (void)state;
    int wait_here[2];
    assert_int_equal(pipe(wait_here), 0);
    fflush(NULL);
    pid_t parent = fork();
    if (parent == 0) {
        order(1, "text");
        tide_stager_answer answer;
        CHILD_MUST(tide_stager_poll(&answer, PATIENCE));
        if (fork() == 0) { /* lives on, idle, until the test is over */
            char byte;
            close(wait_here[1]);
            (void)!read(wait_here[0], &byte, 1);
            _exit(0);
        }
        _exit(0); /* no destructors: as if it had crashed */
    }
    expect_child_ends_well(parent);
    for (int i = 0; i < PATIENCE && count_processes() + count_directories() > 0; i++)
        usleep(1000); /* the stager sees the end of its input, and cleans up */
    assert_int_equal(count_processes(), 0);
    assert_int_equal(count_directories(), 0);
    close(wait_here[1]);
    close(wait_here[0]);
}

/* ---- leaving ------------------------------------------------------------------------------ */

static void run_and_leave(const char *behaviour, void (*leave)(int))
{
    pid_t child = fork_child(0);
    if (child == 0) {
        tide_stager_answer answer;
        use_fake(behaviour);
        for (uint64_t id = 1; id <= 20; id++)
            order(id, "text");
        tide_stager_poll(&answer, 0);
        leave(0);
    }
    expect_child_ends_well(child);
}

static void nothing_is_left_at_exit(void **state)
{
    static const char *const ways[] = {"good", "hangs", "stops", "mute", "deaf", "endless"};
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        run_and_leave(ways[i], exit);
        assert_int_equal(count_directories(), 0);
    }
}

static void a_stager_cleans_up_after_a_crash(void **state)
{
    (void)state;
    run_and_leave("good", _exit);
    for (int i = 0; i < PATIENCE && count_processes() + count_directories() > 0; i++)
        usleep(1000);
    assert_int_equal(count_directories(), 0);
}

/* ---- processes run out -------------------------------------------------------------------- */

/* A user of our own choice who may have no more processes: only root can become one. */
static void processes_run_out(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    pid_t child = fork_child(0);
    if (child == 0) {
        struct rlimit none = {1, 1};
        tide_stager_answer answer;
        CHILD_MUST(chmod(folder(), 0755) == 0 && chmod(in_folder("bin"), 0755) == 0);
        CHILD_MUST(chown(in_folder("run"), 65533, 65533) == 0);
        CHILD_MUST(setrlimit(RLIMIT_NPROC, &none) == 0 && setresuid(65533, 65533, 65533) == 0);
        order(1, "text");
        CHILD_MUST(tide_stager_poll(&answer, PATIENCE));
        CHILD_MUST(answer.result == TIDE_STAGER_SHORT);
        CHILD_MUST(strstr(answer.error, strerror(EAGAIN)) != NULL);
        tide_stager_stop(true);
        _exit(0); /* a leak checker would want a process to check with */
    }
    expect_child_ends_well(child);
    assert_int_equal(chown(in_folder("run"), 0, 0), 0);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        STAGER_TEST(a_program_that_ignores_its_children),
        STAGER_TEST(a_program_that_collects_every_child),
        STAGER_TEST(a_forked_child_has_nothing_of_it),
        STAGER_TEST(a_forked_child_starts_its_own),
        STAGER_TEST(a_forked_child_does_not_keep_the_stager),
        STAGER_TEST(nothing_is_left_at_exit),
        STAGER_TEST(a_stager_cleans_up_after_a_crash),
        STAGER_TEST(processes_run_out),
    };
    return SUPPORT_MAIN(tests);
}
