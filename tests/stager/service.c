/* SPDX-License-Identifier: MIT */
/* The stager as a service, when all goes well: orders, answers, recycling, leaving. */
#define _GNU_SOURCE
#include "tests/stager/support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit/stager/privilege.h"
#include "jit/stager/test_hooks.h"
#include "runtime/base/settings.h"
#include "runtime/base/test_hooks.h"

static tide_stager_figures figures(void)
{
    tide_stager_figures now;
    tide_stager_figures_get(&now);
    return now;
}

static void nothing_is_started_before_the_first_order(void **state)
{
    (void)state;
    tide_stager_answer answer;
    assert_false(tide_stager_poll(&answer, PATIENCE)); /* nothing to wait for: at once */
    assert_int_equal(tide_stager_process(), 0);
    assert_int_equal(count_directories(), 0);
}

static void orders_are_answered_with_files(void **state)
{
    (void)state;
    tide_stager_figures before = figures();
    for (uint64_t id = 1; id <= 50; id++)
        order(id, "text");
    for (uint64_t id = 1; id <= 50; id++)
        expect_answer(id, TIDE_STAGER_OK);
    assert_int_equal(tide_stager_pending(), 0);
    assert_int_equal(figures().started, before.started + 1);
    assert_int_equal(figures().requests, before.requests + 50);
    assert_int_equal(figures().answers, before.answers + 50);
    assert_string_equal(tide_stager_version(), "fake 1");
}

static void an_error_is_an_answer(void **state)
{
    (void)state;
    order(1, "error: no such type");
    tide_stager_answer got = next();
    assert_int_equal(got.result, TIDE_STAGER_FAILED);
    assert_string_equal(got.error, "error: no such type");
    order(2, "text");
    expect_answer(2, TIDE_STAGER_OK);
}

static void the_directory_is_closed_to_others(void **state)
{
    (void)state;
    struct stat seen;
    order(1, "text");
    tide_stager_answer got = next();
    *strrchr(got.path, '/') = '\0';
    assert_int_equal(lstat(got.path, &seen), 0);
    assert_int_equal(seen.st_mode & 07777, 0700);
    assert_int_equal(strncmp(got.path, in_folder("run"), strlen(in_folder("run"))), 0);
}

static void stagers_are_recycled(void **state)
{
    (void)state;
    tide_stager_figures before = figures();
    tide_setting_set(TIDE_SETTING_stager_recycle, 5);
    uint64_t recycled = 0, id = 1;
    for (; id <= 50 || (recycled < 2 && id <= PATIENCE); id++) {
        order(id, "text");
        expect_answer(id, TIDE_STAGER_OK);
        recycled = figures().recycled - before.recycled;
        if (id > 50)
            usleep(1000); /* one at a time finishes, and may take long */
    }
    assert_in_range(recycled, 2, (id - 2) / 5);
    assert_int_equal(figures().started - before.started, recycled + 1);
    assert_int_equal(figures().died, before.died);
}

static void a_recycled_stager_finishes_what_it_has(void **state)
{
    (void)state;
    tide_stager_figures before = figures();
    bool answered[41] = {false};
    tide_setting_set(TIDE_SETTING_stager_recycle, 10);
    for (uint64_t id = 1; id <= 40; id++)
        order(id, "text");
    for (int i = 0; i < 40; i++) {
        tide_stager_answer got = next();
        assert_int_equal(got.result, TIDE_STAGER_OK);
        assert_in_range(got.request, 1, 40);
        assert_false(answered[got.request]);
        answered[got.request] = true;
    }
    assert_true(figures().recycled > before.recycled);
    assert_int_equal(figures().died, before.died);
}

static void one_that_does_not_go_is_killed(void **state)
{
    (void)state;
    use_fake("lingers");
    tide_setting_set(TIDE_SETTING_stager_recycle, 1);
    order(1, "text");
    expect_answer(1, TIDE_STAGER_OK);
    order(2, "text");
    expect_answer(2, TIDE_STAGER_OK);
    assert_int_equal(count_processes(), 2);
    pass_time(10001);
    tide_stager_answer answer;
    for (int i = 0; i < PATIENCE && count_processes() > 1; i++) {
        tide_stager_poll(&answer, 0);
        pass_time(1);
        usleep(1000);
    }
    assert_int_equal(count_processes(), 1);
    order(3, "text");
    expect_answer(3, TIDE_STAGER_OK);
}

static void large_orders_pass(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20 };
    char *text = malloc(BYTES);
    assert_non_null(text);
    memset(text, 'x', BYTES);
    for (uint64_t id = 1; id <= 4; id++)
        assert_true(tide_stager_submit(id, text, BYTES));
    for (uint64_t id = 1; id <= 4; id++)
        expect_answer(id, TIDE_STAGER_OK);
    free(text);
}

static bool raised(void)
{
    return true;
}

static void raised_privileges_have_no_stager(void **state)
{
    (void)state;
    tide_privileges_hook = raised;
    order(1, "text");
    expect_answer(1, TIDE_STAGER_REFUSED);
    assert_int_equal(count_directories(), 0);
}

static bool fail_always(size_t bytes)
{
    (void)bytes;
    return true;
}

/* However many: who was told so waits for no answer. */
static void orders_without_memory_are_refused(void **state)
{
    (void)state;
    enum { MANY = 300 };
    unsigned taken = 0;
    tide_os_fault = fail_always;
    for (uint64_t id = 1; id <= MANY; id++)
        taken += tide_stager_submit(id, "text", strlen("text"));
    tide_os_fault = NULL;
    assert_int_equal(taken, 0);
    assert_int_equal(tide_stager_pending(), 0);
    order(MANY + 1, "text");
    expect_answer(MANY + 1, TIDE_STAGER_OK);
}

static void stopping_forgets_orders(void **state)
{
    (void)state;
    for (uint64_t id = 1; id <= 20; id++)
        order(id, "text");
    tide_stager_stop(true);
    assert_int_equal(tide_stager_pending(), 0);
    assert_int_equal(count_directories(), 0);
    order(21, "text");
    expect_answer(21, TIDE_STAGER_OK);
}

/* ---- what the helper is given ------------------------------------------------------------- */

static void it_inherits_nothing(void **state)
{
    (void)state;
    sigset_t blocked, before;
    int open_here = fcntl(STDERR_FILENO, F_DUPFD, 200); /* without close-on-exec */
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    signal(SIGPIPE, SIG_IGN);
    order(1, "text"); /* the fake checks */
    expect_answer(1, TIDE_STAGER_OK);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(open_here);
}

/* Each of them may be closed, whether the stager's complaints are to be seen or not. */
static void a_program_without_standard_streams_has_a_stager(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 16; way++) {
        int saved[3];
        bool untouched = true;
        if ((way & 8) != 0)
            setenv("TIDEPOOL_STAGER_VERBOSE", "1", 1);
        tide_locate_environment_forget();
        tide_stager_stop(false);
        for (int i = 0; i < 3; i++) {
            saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 100);
            if ((way & 1u << i) != 0)
                close(i);
        }
        order(way + 1, "text"); /* the fake checks that it has all three */
        tide_stager_answer got = next();
        for (int i = 0; i < 3; i++) {
            untouched = untouched && ((way & 1u << i) != 0) == (fcntl(i, F_GETFD) < 0);
            dup2(saved[i], i);
            close(saved[i]);
        }
        unsetenv("TIDEPOOL_STAGER_VERBOSE");
        tide_locate_environment_forget();
        if (got.result != TIDE_STAGER_OK)
            fail_msg("way %u: %s", way, got.error);
        assert_true(untouched);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        STAGER_TEST(nothing_is_started_before_the_first_order),
        STAGER_TEST(orders_are_answered_with_files),
        STAGER_TEST(an_error_is_an_answer),
        STAGER_TEST(the_directory_is_closed_to_others),
        STAGER_TEST(stagers_are_recycled),
        STAGER_TEST(a_recycled_stager_finishes_what_it_has),
        STAGER_TEST(one_that_does_not_go_is_killed),
        STAGER_TEST(large_orders_pass),
        STAGER_TEST(raised_privileges_have_no_stager),
        STAGER_TEST(orders_without_memory_are_refused),
        STAGER_TEST(stopping_forgets_orders),
        STAGER_TEST(it_inherits_nothing),
        STAGER_TEST(a_program_without_standard_streams_has_a_stager),
    };
    return SUPPORT_MAIN(tests);
}
