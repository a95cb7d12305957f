/* SPDX-License-Identifier: MIT */
/* The stager that compiles, through the library's side of it: orders to code, and killed in the
 * middle. */
#define _GNU_SOURCE
#include "tests/stager/support.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit/spec/spec.h"
#include "jit/stager/code.h"
#include "jit/stager/locate.h"
#include "jit/stager/test_hooks.h"
#include "runtime/base/settings.h"

enum { SITES = 16 };

static char error[256];

static tide_spec spec_of(unsigned i)
{
    tide_spec spec = {.kind = TIDE_KIND_SCOPE, .item_count = 1};
    snprintf(spec.stem, sizeof spec.stem, "tide_real_%u", i);
    spec.items[0] = (tide_spec_item){.type = TIDE_F64, .name = "f64"};
    return spec;
}

static void order_sites(uint64_t id, unsigned first, unsigned count)
{
    static char text[TIDE_SPEC_SITE_BYTES * (SITES + 1)];
    size_t bytes = tide_spec_write_head(text, sizeof text);
    for (unsigned i = first; i < first + count; i++) {
        tide_spec spec = spec_of(i);
        bytes += tide_spec_write(&spec, text + bytes, sizeof text - bytes);
    }
    assert_true(tide_stager_submit(id, text, bytes));
}

static void *next_object(void)
{
    tide_stager_answer answer = next();
    if (answer.result != TIDE_STAGER_OK)
        fail_msg("answer %d: %s", answer.result, answer.error);
    void *object = tide_code_load(answer.path, error, sizeof error);
    if (object == NULL)
        fail_msg("%s", error);
    return object;
}

static int begin_real(void **state)
{
    begin_test(state);
    use_fake("real"); /* a link to the program that this test was given */
    tide_locate_environment_forget();
    return 0;
}

#define REAL_TEST(function) cmocka_unit_test_setup_teardown(function, begin_real, end_test)

static void sites_become_code(void **state)
{
    (void)state;
    order_sites(1, 0, SITES);
    void *object = next_object();
    for (unsigned i = 0; i < SITES; i++) {
        assert_non_null(tide_code_find(object, spec_of(i).stem, "_enter"));
        assert_non_null(tide_code_find(object, spec_of(i).stem, "_leave"));
    }
    assert_int_not_equal(strlen(tide_stager_version()), 0);
}

static void what_cannot_be_compiled_is_an_error(void **state)
{
    static const char nonsense[] = "tidepool-spec 1\nlayout 0000000000000001\nsite x y\n";
    (void)state;
    assert_true(tide_stager_submit(1, nonsense, strlen(nonsense)));
    tide_stager_answer answer = next();
    assert_int_equal(answer.result, TIDE_STAGER_FAILED);
    assert_int_not_equal(strlen(answer.error), 0);
    order_sites(2, 0, 1);
    (void)next_object();
}

static void recycling_loses_nothing(void **state)
{
    (void)state;
    tide_setting_set(TIDE_SETTING_stager_recycle, 2);
    for (unsigned i = 0; i < 8; i++)
        order_sites(i + 1, i, 1);
    for (unsigned i = 0; i < 8; i++)
        (void)next_object();
}

/* Between submitting and compiling, linking, answering: wherever it hits. */
static void killed_at_random(void **state)
{
    (void)state;
    size_t times = scaled(20, 0) + 2, sent = 0;
    for (size_t i = 0; i < times; i++) {
        tide_stager_answer answer;
        order_sites(++sent, 0, 1);
        order_sites(++sent, 1, 1);
        tide_stager_poll(&answer, 0);
        usleep((useconds_t)(i * 1709 % 30000));
        if (tide_stager_process() != 0)
            kill(tide_stager_process(), i % 2 ? SIGKILL : SIGTERM);
        while (tide_stager_pending() > 0) {
            answer = next();
            assert_true(answer.result == TIDE_STAGER_OK || answer.result == TIDE_STAGER_DIED);
            if (answer.result == TIDE_STAGER_OK)
                assert_int_equal(unlink(answer.path), 0);
        }
    }
    order_sites(++sent, 0, 1);
    (void)next_object();
}

/* ---- the program is killed while a tool of the stager hangs ---- */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHILD_MUST(file != NULL);
    CHILD_MUST(fputs(text, file) >= 0 && fclose(file) == 0);
}

static int read_number(const char *path)
{
    int number = 0;
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        if (fscanf(file, "%d", &number) != 1)
            number = 0;
        fclose(file);
    }
    return number;
}

/* An assembler that says who it is, and hangs. */
static void make_hanging_assembler(void)
{
    char text[512], path[512];
    snprintf(text, sizeof text,
             "#!/bin/sh\necho $$ > %s/number\nmv %s/number %s\nexec sleep 1000\n", folder(),
             folder(), in_folder("assembler"));
    write_file(in_folder("bin/as"), text);
    CHILD_MUST(chmod(in_folder("bin/as"), 0755) == 0);
    snprintf(path, sizeof path, "%s:/usr/bin:/bin", in_folder("bin"));
    setenv("PATH", path, 1);
    tide_locate_environment_forget();
}

static void compile_until_killed(void)
{
    char number[16];
    tide_stager_answer answer;
    order_sites(1, 0, 1);
    snprintf(number, sizeof number, "%d", tide_stager_process());
    write_file(in_folder("stager"), number);
    while (read_number(in_folder("assembler")) == 0)
        CHILD_MUST(!tide_stager_poll(&answer, 10));
    kill(getpid(), SIGKILL);
}

static void nothing_outlives_a_program_that_was_killed(void **state)
{
    (void)state;
    pid_t child = fork_child(60);
    if (child == 0) {
        make_hanging_assembler();
        compile_until_killed();
    }
    assert_int_equal(wait_for_child(child), 128 + SIGKILL);
    int numbers[] = {read_number(in_folder("assembler")), read_number(in_folder("stager"))};
    for (int i = 0; i < 2; i++) {
        assert_true(numbers[i] > 1);
        for (int j = 0; j < PATIENCE && process_runs(numbers[i]); j++)
            usleep(1000);
        assert_false(process_runs(numbers[i]));
    }
    for (int i = 0; i < PATIENCE && count_directories() > 0; i++)
        usleep(1000);
    assert_int_equal(count_directories(), 0);
    assert_int_equal(unlink(in_folder("bin/as")), 0);
}

static void stopping_in_the_middle_leaves_nothing(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        tide_stager_answer answer;
        order_sites(i + 1, 0, SITES);
        tide_stager_poll(&answer, (int)i * 7);
        tide_stager_stop(true);
        assert_int_equal(count_directories(), 0);
    }
}

/* A file system of its own, smaller than what is to be written; seen by this child only. */
static void compile_on_a_full_disk(void)
{
    tide_stager_answer answer;
    order_sites(1, 0, SITES);
    bool answered = tide_stager_poll(&answer, PATIENCE);
    bool failed =
        answered && (answer.result == TIDE_STAGER_FAILED || answer.result == TIDE_STAGER_DIED);
    if (!failed)
        fprintf(stderr, "child: answered %d, result %d %s\n", answered,
                answered ? (int)answer.result : -1, answered ? answer.error : "");
    tide_stager_stop(true);
    exit(failed && count_directories() == 0 ? 0 : 1);
}

static void get_a_full_disk(void)
{
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", in_folder("run"), "tmpfs", 0, "size=12k") != 0)
        _exit(NO_RIGHTS);
    compile_on_a_full_disk();
}

static void a_full_disk_is_an_error(void **state)
{
    (void)state;
    play(get_a_full_disk);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        REAL_TEST(sites_become_code),
        REAL_TEST(what_cannot_be_compiled_is_an_error),
        REAL_TEST(recycling_loses_nothing),
        REAL_TEST(killed_at_random),
        REAL_TEST(nothing_outlives_a_program_that_was_killed),
        REAL_TEST(stopping_in_the_middle_leaves_nothing),
        REAL_TEST(a_full_disk_is_an_error),
    };
    return SUPPORT_MAIN(tests);
}
