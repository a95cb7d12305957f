/* SPDX-License-Identifier: MIT */
/* The stager's protocol, over pipes: orders, errors, nonsense, and how it ends. */
#include "support.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct service {
    pid_t process;
    FILE *to, *from;
    char folder[64], line[1024];
} service;

static void become_stager(int in, int out, const char *path)
{
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    if (path != NULL)
        setenv("PATH", path, 1);
    execl(stager, stager, "--serve", service.folder, (char *)NULL);
    _exit(127);
}

/* Starts it; `path` NULL: the PATH of the test. */
static void start_with(const char *path)
{
    int in[2], out[2];
    assert_int_equal(pipe(in) | pipe(out), 0);
    strcpy(service.folder, "/tmp/tidepool-serve-XXXXXX");
    assert_non_null(mkdtemp(service.folder));
    service.process = fork_child(0);
    if (service.process == 0)
        become_stager(in[0], out[1], path);
    close(in[0]);
    close(out[1]);
    service.to = fdopen(in[1], "w");
    service.from = fdopen(out[0], "r");
    assert_true(service.to != NULL && service.from != NULL);
}

static int start(void **state)
{
    (void)state;
    start_with(NULL);
    return 0;
}

/* Its exit status, 128 and the signal if it was killed. */
static int end(void)
{
    if (service.to != NULL)
        fclose(service.to);
    service.to = NULL;
    int status = wait_for_child(service.process);
    fclose(service.from);
    return status;
}

static bool folder_exists(void)
{
    return access(service.folder, F_OK) == 0;
}

static const char *ask(unsigned order, const char *text, size_t bytes)
{
    fprintf(service.to, "order %u %zu\n", order, bytes);
    fwrite(text, 1, bytes, service.to);
    assert_int_equal(fflush(service.to), 0);
    assert_non_null(fgets(service.line, sizeof service.line, service.from));
    return service.line;
}

static const char *scopes(uint32_t count)
{
    static char text[TIDE_SPEC_SITE_BYTES * (TIDE_SPEC_SITES + 2)];
    size_t used = tide_spec_write_head(text, sizeof text);
    for (uint32_t i = 0; i < count; i++) {
        char stem[32];
        snprintf(stem, sizeof stem, "s%" PRIu32, i);
        tide_spec spec = spec_of(stem, false, (tide_type)3, (tide_type)7, 0);
        used += tide_spec_write(&spec, text + used, sizeof text - used);
    }
    return text;
}

/* When its input ends it removes the folder with all that it made. */
static void finish(void)
{
    assert_int_equal(end(), 0);
    assert_false(folder_exists());
}

/* ---- orders ---- */

static void expect_code(unsigned order, const char *text)
{
    char path[128];
    unsigned long microseconds;
    struct stat status;
    assert_int_equal(sscanf(ask(order, text, strlen(text)), "ok %lu\n", &microseconds), 1);
    assert_in_range(microseconds, 100, 600000000);
    snprintf(path, sizeof path, "%s/u%u.so", service.folder, order);
    assert_int_equal(stat(path, &status), 0);
    assert_true(status.st_size > 1000);
}

static void test_orders(void **state)
{
    (void)state;
    expect_code(1, scopes(1));
    expect_code(2, scopes(3));
    expect_code(100, scopes(1));
    finish();
}

static void expect_error(unsigned order, const char *text, size_t bytes, const char *says)
{
    const char *answer = ask(order, text, bytes);
    assert_int_equal(strncmp(answer, "error ", 6), 0);
    if (strstr(answer, says) == NULL)
        fail_msg("'%s' is not in '%s'", says, answer);
}

static void test_errors(void **state)
{
    (void)state;
    char text[512];
    expect_error(1, "", 0, "the text ends too soon");
    expect_error(2, "tidepool-spec 1\nlayout 00000000deadbeef\n", 40, "00000000deadbeef");
    char own[32];
    snprintf(own, sizeof own, "%016" PRIx64, tide_compiled_layout());
    expect_error(3, "tidepool-spec 1\nlayout 00000000deadbeef\n", 40, own);
    expect_error(4, scopes(0), strlen(scopes(0)), "no sites");
    expect_error(5, "a\0b", 3, "a byte 0");
    snprintf(text, sizeof text, "%ssite scope a\ntype f64 3\nend\nsite scope a\ntype f64 3\nend\n",
             scopes(0));
    expect_error(6, text, strlen(text), "stem 'a' is taken");
    expect_error(7, scopes(TIDE_SPEC_SITES + 1), strlen(scopes(TIDE_SPEC_SITES + 1)),
                 "more than 64 sites");
    expect_code(8, scopes(1)); /* none of it did any harm */
    finish();
}

/* ---- ends ---- */

static void test_host_dies_in_an_order(void **state)
{
    (void)state;
    fputs("order 1 500\ntidepool-spec 1\n", service.to);
    finish();
}

static void test_nonsense(void **state)
{
    (void)state;
    static const char *const lines[] = {"ordre 1 500\n", "order 7 99999999999\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (i > 0)
            start(state);
        fputs(lines[i], service.to);
        assert_int_equal(end(), 1);
        assert_true(folder_exists());
        assert_int_equal(rmdir(service.folder), 0);
    }
}

/* No assembler at all: each order is answered with that, and leaves nothing. */
static void test_no_assembler(void **state)
{
    (void)state;
    char command[128];
    start_with("/nonexistent");
    for (unsigned order = 1; order <= 2; order++) {
        static const char wanted[] = "error as: ";
        assert_int_equal(strncmp(ask(order, scopes(1), strlen(scopes(1))), wanted, 10), 0);
        snprintf(command, sizeof command, "test -z \"$(ls -A %s)\"", service.folder);
        assert_int_equal(system(command), 0);
    }
    finish();
}

static int end_group(void **state)
{
    (void)state;
    remove_test_folder();
    return 0;
}

int main(int count, char **args)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_orders, start),
        cmocka_unit_test_setup(test_errors, start),
        cmocka_unit_test_setup(test_host_dies_in_an_order, start),
        cmocka_unit_test_setup(test_nonsense, start),
        cmocka_unit_test(test_no_assembler),
    };
    if (count != 2)
        return 2;
    stager = args[1];
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("stage: serve", tests, NULL, end_group);
}
