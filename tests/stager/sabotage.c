/* SPDX-License-Identifier: MIT */
/* Every way in which a stager can fail: each order gets its answer, the next order gets a stager,
 * and nothing is left behind. */
#define _GNU_SOURCE
#include "tests/stager/support.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit/stager/directory.h"
#include "jit/stager/locate.h"
#include "jit/stager/test_hooks.h"
#include "runtime/base/settings.h"
#include "tests/random.h"

static tide_stager_figures figures(void)
{
    tide_stager_figures now;
    tide_stager_figures_get(&now);
    return now;
}

/* Answers in whatever order they come: each order's result by its id. */
static void collect(tide_stager_result results[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tide_stager_answer answer = next();
        assert_in_range(answer.request, 1, 9);
        results[answer.request] = answer.result;
    }
}

/* After each sabotage: a good one is tried with the next order, and works. */
static void recover(void)
{
    tide_stager_stop(true);
    use_fake("good");
    order(999, "text");
    expect_answer(999, TIDE_STAGER_OK);
}

/* ---- no program --------------------------------------------------------------------------- */

static void missing(void **state)
{
    (void)state;
    tide_stager_figures before = figures();
    tide_stager_answer answer;
    use_fake(NULL);
    order(1, "text");
    order(2, "text");
    expect_answer(1, TIDE_STAGER_MISSING);
    expect_answer(2, TIDE_STAGER_MISSING);
    assert_false(tide_stager_poll(&answer, 0));
    assert_int_equal(figures().started, before.started);
    assert_int_equal(count_directories(), 0); /* there is nothing that it would be for */
    recover();
}

static void not_executable(void **state)
{
    (void)state;
    const char *path = in_folder("plain");
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(file >= 0);
    close(file);
    setenv("TIDEPOOL_STAGER", path, 1);
    tide_locate_environment_forget();
    order(1, "text");
    expect_answer(1, TIDE_STAGER_MISSING);
    recover();
}

/* Executable by its mode, and yet no program: only the start can tell. */
static void no_program(void **state)
{
    (void)state;
    const char *path = in_folder("broken");
    int file = open(path, O_CREAT | O_WRONLY, 0700);
    assert_true(file >= 0);
    assert_int_equal(write(file, "\177ELF", 4), 4);
    close(file);
    setenv("TIDEPOOL_STAGER", path, 1);
    tide_locate_environment_forget();
    order(1, "text");
    tide_stager_answer answer = next(); /* where a start tells nothing (Valgrind), it just ends */
    assert_true(answer.result == TIDE_STAGER_MISSING || answer.result == TIDE_STAGER_DIED);
    assert_true(answer.result == TIDE_STAGER_DIED || strstr(answer.error, path) != NULL);
    recover();
}

static void none_is_wanted(void **state)
{
    (void)state;
    setenv("TIDEPOOL_STAGER", "none", 1);
    tide_locate_environment_forget();
    order(1, "text");
    tide_stager_answer answer = next();
    assert_int_equal(answer.result, TIDE_STAGER_MISSING);
    assert_non_null(strstr(answer.error, "TIDEPOOL_STAGER=none"));
    recover();
}

/* ---- dying -------------------------------------------------------------------------------- */

/* Two starts for an order, never more. */
static void exits_at_once(void **state)
{
    (void)state;
    tide_stager_figures before = figures();
    use_fake("quits");
    order(1, "text");
    expect_answer(1, TIDE_STAGER_DIED);
    assert_int_equal(figures().started, before.started + 2);
    order(2, "text");
    expect_answer(2, TIDE_STAGER_DIED);
    assert_int_equal(figures().started, before.started + 4);
    recover();
}

static void dies_in_the_middle(void **state)
{
    (void)state;
    tide_stager_figures before = figures();
    use_fake("dies");
    order(1, "text");
    expect_answer(1, TIDE_STAGER_DIED);
    assert_int_equal(figures().died, before.died + 2);
    recover();
}

static void dies_once(void **state)
{
    (void)state;
    tide_stager_result results[10];
    use_fake("dies-once");
    for (uint64_t id = 1; id <= 5; id++)
        order(id, "text");
    collect(results, 5);
    for (uint64_t id = 1; id <= 5; id++)
        assert_int_equal(results[id], TIDE_STAGER_OK);
    recover();
}

/* What kills stagers does not take the others with it. */
static void dies_of_one_order(void **state)
{
    (void)state;
    tide_stager_result results[10];
    use_fake("picky");
    order(1, "text");
    expect_answer(1, TIDE_STAGER_OK);
    order(2, "poison");
    order(3, "text");
    order(4, "text");
    collect(results, 3);
    assert_int_equal(results[2], TIDE_STAGER_DIED);
    assert_int_equal(results[3], TIDE_STAGER_OK);
    assert_int_equal(results[4], TIDE_STAGER_OK);
    recover();
}

static void dies_while_idle(void **state)
{
    (void)state;
    tide_stager_figures before = figures();
    for (uint64_t id = 1; id <= 5; id++) {
        order(id, "text");
        expect_answer(id, TIDE_STAGER_OK);
        assert_int_equal(kill(tide_stager_process(), SIGKILL), 0);
    }
    order(6, "text");
    expect_answer(6, TIDE_STAGER_OK);
    assert_int_equal(figures().started, before.started + 6);
}

/* Its child holds the connection open: no end of it is seen. */
static void leaves_a_child(void **state)
{
    (void)state;
    use_fake("leaves-child");
    order(1, "text");
    expect_answer(1, TIDE_STAGER_DIED);
    recover();
}

static void killed_at_random(void **state)
{
    (void)state;
    size_t times = scaled(200, 0), answered = 0, sent = 0;
    rng random = {1};
    tide_stager_answer answer;
    for (size_t i = 0; i < times; i++) {
        for (int k = 0; k < 3; k++)
            order(++sent, "text");
        for (uint64_t spin = rng_below(&random, 8); spin > 0; spin--) {
            if (tide_stager_poll(&answer, (int)rng_below(&random, 2))) {
                assert_true(answer.result == TIDE_STAGER_OK || answer.result == TIDE_STAGER_DIED);
                answered++;
            }
        }
        if (tide_stager_process() != 0)
            kill(tide_stager_process(), SIGKILL);
    }
    while (answered < sent) {
        answer = next();
        assert_true(answer.result == TIDE_STAGER_OK || answer.result == TIDE_STAGER_DIED);
        answered++;
    }
    assert_int_equal(tide_stager_pending(), 0);
    recover();
}

/* ---- being late --------------------------------------------------------------------------- */

/* Turns the clock in small steps, as the deadline is measured from when an order could be begun. */
static tide_stager_answer next_when_late(void)
{
    tide_stager_answer answer = {.request = 0};
    for (int i = 0; i < PATIENCE; i++) {
        pass_time(500);
        if (tide_stager_poll(&answer, 1))
            return answer;
    }
    fail_msg("no answer");
    return answer;
}

static void expect_late(const char *behaviour)
{
    tide_stager_figures before = figures();
    tide_stager_answer answer;
    use_fake(behaviour);
    order(1, "text");
    assert_false(tide_stager_poll(&answer, 20));
    pass_time(9999);
    assert_false(tide_stager_poll(&answer, 0));
    pass_time(2);
    expect_answer(1, TIDE_STAGER_LATE);
    assert_int_equal(figures().late, before.late + 1);
    pass_time(201); /* what does not listen to SIGTERM is killed with its group */
    assert_false(tide_stager_poll(&answer, 0));
    recover();
}

static void hangs(void **state)
{
    (void)state;
    expect_late("hangs");
}

static void says_nothing(void **state)
{
    (void)state;
    expect_late("mute");
}

static void is_stopped(void **state)
{
    (void)state;
    expect_late("stops");
}

/* It ends, at leisure, once it is told: its directory is in use by then, and must stay. */
static void one_that_was_slow_does_not_clean_up(void **state)
{
    (void)state;
    use_fake("slow-on-poison");
    order(1, "text");
    tide_stager_answer kept = next();
    assert_int_equal(kept.result, TIDE_STAGER_OK);
    order(2, "poison");
    assert_int_equal(next_when_late().result, TIDE_STAGER_LATE);
    order(3, "text");
    expect_answer(3, TIDE_STAGER_OK);
    close(open(in_folder("go-on"), O_CREAT | O_WRONLY, 0600));
    tide_stager_answer answer;
    for (int i = 0; i < 20; i++)
        assert_false(tide_stager_poll(&answer, 0)), usleep(1000);
    assert_int_equal(access(kept.path, R_OK), 0);
    pass_time(201);
    for (int i = 0; i < PATIENCE && count_processes() > 1; i++)
        assert_false(tide_stager_poll(&answer, 0)), usleep(1000);
    assert_int_equal(count_processes(), 1);
    assert_int_equal(access(kept.path, R_OK), 0);
    assert_int_equal(unlink(in_folder("go-on")), 0);
}

static void closes_stdout(void **state)
{
    (void)state;
    expect_late("closes-stdout");
}

static void is_killed_though_nobody_asks_again(void **state)
{
    (void)state;
    use_fake("hangs");
    order(1, "text");
    pass_time(10001);
    expect_answer(1, TIDE_STAGER_LATE);
    /* end_test stops the service, and finds nothing running */
}

static void the_others_are_not_late(void **state)
{
    (void)state;
    use_fake("hangs-on-poison");
    order(1, "text");
    order(2, "poison");
    order(3, "text");
    order(4, "text");
    expect_answer(1, TIDE_STAGER_OK);
    assert_int_equal(next_when_late().result, TIDE_STAGER_LATE);
    expect_answer(3, TIDE_STAGER_OK);
    expect_answer(4, TIDE_STAGER_OK);
    recover();
}

static void never_reads(void **state)
{
    (void)state;
    enum { ORDERS = 100, BYTES = 100000 };
    char *text = calloc(1, BYTES);
    unsigned late = 0, died = 0;
    assert_non_null(text);
    memset(text, 'x', BYTES);
    use_fake("deaf");
    for (uint64_t id = 1; id <= ORDERS; id++)
        assert_true(tide_stager_submit(id, text, BYTES)); /* far more than the socket takes */
    free(text);
    for (int i = 0; i < ORDERS; i++) {
        tide_stager_answer answer = next_when_late();
        late += answer.result == TIDE_STAGER_LATE;
        died += answer.result == TIDE_STAGER_DIED;
    }
    assert_int_equal(late, 2); /* the head of the first stager, and of the second */
    assert_int_equal(died, ORDERS - 2);
    recover();
}

/* ---- garbage ------------------------------------------------------------------------------ */

static void expect_garbage(const char *behaviour)
{
    tide_stager_figures before = figures();
    tide_stager_stop(true);
    use_fake(behaviour);
    order(1, "text");
    expect_answer(1, TIDE_STAGER_GARBAGE);
    assert_int_equal(figures().garbage, before.garbage + 1);
    assert_int_equal(figures().started, before.started + 1);
    recover();
}

static void writes_garbage(void **state)
{
    static const char *const ways[] = {"garbage", "binary", "endless", "wrong-id", "outside",
                                       "climbs",  "links",  "absent",  "rude"};
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        print_message("        %s\n", ways[i]);
        expect_garbage(ways[i]);
    }
}

static void answers_twice(void **state)
{
    (void)state;
    tide_stager_figures before = figures();
    use_fake("twice");
    order(1, "text");
    expect_answer(1, TIDE_STAGER_OK);
    order(2, "text");
    tide_stager_answer answer = next(); /* the second answer may come before or after the order */
    assert_true(answer.result == TIDE_STAGER_OK || answer.result == TIDE_STAGER_GARBAGE);
    for (int i = 0; i < PATIENCE && figures().garbage == before.garbage; i++)
        assert_false(tide_stager_poll(&answer, 0)), usleep(1000);
    assert_in_range(figures().garbage, before.garbage + 1, before.garbage + 2);
    recover();
}

static void hangs_up(void **state)
{
    (void)state;
    use_fake("hangs-up");
    order(1, "text");
    expect_answer(1, TIDE_STAGER_DIED);
    recover();
}

/* ---- the system gives nothing ------------------------------------------------------------- */

/* Lowers the limit so that exactly `left` more descriptors can be had. */
static rlim_t leave_descriptors(rlim_t left)
{
    struct rlimit limit;
    int lowest = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    close(lowest);
    getrlimit(RLIMIT_NOFILE, &limit);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = (rlim_t)lowest + left;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return before;
}

static void descriptors_run_out(void **state)
{
    (void)state;
    unsigned succeeded = 0;
    for (rlim_t left = 0; left < 8; left++) {
        rlim_t before = leave_descriptors(left);
        order(1, "text");
        tide_stager_answer answer = next();
        struct rlimit limit;
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = before;
        setrlimit(RLIMIT_NOFILE, &limit);
        assert_true(answer.result == TIDE_STAGER_SHORT || answer.result == TIDE_STAGER_OK ||
                    answer.result == TIDE_STAGER_REFUSED);
        succeeded += answer.result == TIDE_STAGER_OK;
        recover();
        tide_stager_stop(true);
    }
    assert_in_range(succeeded, 1, 7);
}

static void the_directory_is_removed(void **state)
{
    (void)state;
    char path[512];
    for (uint64_t id = 1; id <= 3; id++) {
        order(id, "text");
        tide_stager_answer answer = next();
        assert_int_equal(answer.result, TIDE_STAGER_OK);
        unlink(answer.path);
        snprintf(path, sizeof path, "%s", answer.path);
        *strrchr(path, '/') = '\0';
        assert_int_equal(rmdir(path), 0);
    }
}

static void the_directory_is_removed_under_an_order(void **state)
{
    (void)state;
    char path[512];
    order(1, "text");
    tide_stager_answer answer = next();
    unlink(answer.path);
    snprintf(path, sizeof path, "%s", answer.path);
    *strrchr(path, '/') = '\0';
    order(2, "text");
    order(3, "text");
    rmdir(path); /* not empty if the stager was faster */
    for (int i = 0; i < 2; i++) {
        answer = next();
        assert_int_not_equal(answer.result, TIDE_STAGER_GARBAGE);
    }
    recover();
}

/* An earlier stager removes it, say, which takes the program for dead. */
static bool remove_directory_now(void)
{
    char error[256];
    (void)rmdir(tide_directory_get(error, sizeof error));
    return false; /* nothing else is wrong */
}

static void the_directory_is_removed_while_a_stager_starts(void **state)
{
    (void)state;
    order(1, "text");
    expect_answer(1, TIDE_STAGER_OK);
    tide_stager_stop(false);
    tide_privileges_hook = remove_directory_now;
    order(2, "text");
    tide_privileges_hook = NULL;
    expect_answer(2, TIDE_STAGER_SHORT);
    order(3, "text");
    expect_answer(3, TIDE_STAGER_OK);
}

static void the_directory_is_opened_to_others(void **state)
{
    (void)state;
    char path[512];
    order(1, "text");
    tide_stager_answer answer = next();
    snprintf(path, sizeof path, "%s", answer.path);
    *strrchr(path, '/') = '\0';
    assert_int_equal(chmod(path, 0777), 0);
    order(2, "text");
    answer = next();
    assert_int_equal(answer.result, TIDE_STAGER_OK); /* in a new one */
    assert_int_not_equal(strncmp(path, answer.path, strlen(path)), 0);
    assert_int_equal(count_directories(), 1); /* the old one is gone */
}

static void another_directory_takes_its_place(void **state)
{
    (void)state;
    char path[512], file[600];
    order(1, "text");
    tide_stager_answer answer = next();
    unlink(answer.path);
    snprintf(path, sizeof path, "%s", answer.path);
    *strrchr(path, '/') = '\0';
    assert_int_equal(rmdir(path), 0);
    close(open(in_folder("run/holds-the-inode"), O_CREAT | O_WRONLY, 0600));
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(file, sizeof file, "%s/precious", path);
    close(open(file, O_CREAT | O_WRONLY, 0600));
    order(2, "text");
    answer = next();
    assert_int_equal(answer.result, TIDE_STAGER_OK);
    assert_int_not_equal(strncmp(path, answer.path, strlen(path)), 0);
    tide_stager_stop(true);
    assert_int_equal(unlink(file), 0); /* not ours to remove */
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(unlink(in_folder("run/holds-the-inode")), 0);
}

/* Neither place exists, so the last resort would be /tmp; where that cannot be written either,
 * nothing can be had. Root can write everywhere that exists. */
static void places_that_cannot_be_used_are_passed_over(void **state)
{
    (void)state;
    setenv("XDG_RUNTIME_DIR", in_folder("no/such"), 1);
    setenv("TMPDIR", in_folder("run"), 1);
    tide_locate_environment_forget();
    order(1, "text");
    tide_stager_answer answer = next();
    assert_int_equal(answer.result, TIDE_STAGER_OK);
    assert_int_equal(strncmp(answer.path, in_folder("run"), strlen(in_folder("run"))), 0);
    setenv("XDG_RUNTIME_DIR", in_folder("run"), 1);
    unsetenv("TMPDIR");
}

static void a_file_too_large_is_an_error(void **state)
{
    (void)state;
    struct rlimit limit, none = {0, RLIM_INFINITY};
    getrlimit(RLIMIT_FSIZE, &limit);
    none.rlim_max = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0); /* the stager inherits it */
    signal(SIGXFSZ, SIG_IGN);
    order(1, "text");
    tide_stager_answer answer = next();
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, SIG_DFL);
    assert_true(answer.result == TIDE_STAGER_FAILED || answer.result == TIDE_STAGER_DIED);
    recover();
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        STAGER_TEST(missing),
        STAGER_TEST(not_executable),
        STAGER_TEST(no_program),
        STAGER_TEST(none_is_wanted),
        STAGER_TEST(exits_at_once),
        STAGER_TEST(dies_in_the_middle),
        STAGER_TEST(dies_once),
        STAGER_TEST(dies_of_one_order),
        STAGER_TEST(dies_while_idle),
        STAGER_TEST(leaves_a_child),
        STAGER_TEST(killed_at_random),
        STAGER_TEST(hangs),
        STAGER_TEST(says_nothing),
        STAGER_TEST(is_stopped),
        STAGER_TEST(one_that_was_slow_does_not_clean_up),
        STAGER_TEST(closes_stdout),
        STAGER_TEST(is_killed_though_nobody_asks_again),
        STAGER_TEST(the_others_are_not_late),
        STAGER_TEST(never_reads),
        STAGER_TEST(writes_garbage),
        STAGER_TEST(answers_twice),
        STAGER_TEST(hangs_up),
        STAGER_TEST(descriptors_run_out),
        STAGER_TEST(the_directory_is_removed),
        STAGER_TEST(the_directory_is_removed_under_an_order),
        STAGER_TEST(the_directory_is_removed_while_a_stager_starts),
        STAGER_TEST(the_directory_is_opened_to_others),
        STAGER_TEST(another_directory_takes_its_place),
        STAGER_TEST(places_that_cannot_be_used_are_passed_over),
        STAGER_TEST(a_file_too_large_is_an_error),
    };
    return SUPPORT_MAIN(tests);
}
