/* SPDX-License-Identifier: MIT */
/* The stager's protocol, over pipes: orders, errors, nonsense, and each way to end. */
#include "support.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct service {
    pid_t process;
    FILE *to, *from;
    char folder[64], line[1024];
} service;

static void become_stager(int in, int out, const char *path)
{
    setpgid(0, 0);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    if (path != NULL)
        setenv("PATH", path, 1);
    execl(stager, stager, "--serve", service.folder, (char *)NULL);
    _exit(127);
}

/* Starts it, as leader of its group; `path` NULL: the PATH of the test. */
static void start_with(const char *path)
{
    int in[2], out[2];
    assert_int_equal(pipe(in) | pipe(out), 0);
    strcpy(service.folder, "/tmp/tidepool-serve-XXXXXX");
    assert_non_null(mkdtemp(service.folder));
    service.process = fork_child(0);
    if (service.process == 0)
        become_stager(in[0], out[1], path);
    setpgid(service.process, service.process);
    close(in[0]);
    close(out[1]);
    service.to = fdopen(in[1], "w");
    service.from = fdopen(out[0], "r");
    assert_true(service.to != NULL && service.from != NULL);
    assert_non_null(fgets(service.line, sizeof service.line, service.from));
    assert_int_equal(strncmp(service.line, "hello ", 6), 0);
    assert_null(strchr(service.line + 6, ' '));
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

static void remove_folder(void)
{
    char path[128];
    for (int i = 0; i < 200; i++) {
        snprintf(path, sizeof path, "%s/u%d.so", service.folder, i);
        unlink(path);
    }
    assert_int_equal(rmdir(service.folder), 0);
}

static void send_order(unsigned order, const char *text, size_t bytes)
{
    fprintf(service.to, "order %u %zu\n", order, bytes);
    fwrite(text, 1, bytes, service.to);
    assert_int_equal(fflush(service.to), 0);
}

static const char *ask(unsigned order, const char *text, size_t bytes)
{
    send_order(order, text, bytes);
    assert_non_null(fgets(service.line, sizeof service.line, service.from));
    return service.line;
}

/* What it took of the processor comes before an artefact's name. */
static const char *ask_for_artefact(unsigned order, const char *text, size_t bytes)
{
    unsigned about;
    unsigned long microseconds;
    const char *spent = ask(order, text, bytes);
    assert_int_equal(sscanf(spent, "spent %u %lu\n", &about, &microseconds), 2);
    assert_int_equal(about, order);
    assert_in_range(microseconds, 100, 600000000);
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
        tide_spec spec = spec_of(TIDE_KIND_SCOPE, stem, false, (tide_type)3, (tide_type)7, 0);
        used += tide_spec_write(&spec, text + used, sizeof text - used);
    }
    return text;
}

static void bye(void)
{
    fputs("bye\n", service.to);
    assert_int_equal(end(), 0);
    assert_true(folder_exists());
    remove_folder();
}

/* ---- orders ---- */

static void expect_artefact(unsigned order, const char *text)
{
    char expected[128];
    struct stat status;
    snprintf(expected, sizeof expected, "ok %u %s/u%u.so\n", order, service.folder, order);
    assert_string_equal(ask_for_artefact(order, text, strlen(text)), expected);
    *strrchr(expected, '\n') = '\0';
    assert_int_equal(stat(strchr(expected, '/'), &status), 0);
    assert_true(status.st_size > 1000);
}

static void test_orders(void **state)
{
    (void)state;
    expect_artefact(1, scopes(1));
    expect_artefact(2, scopes(3));
    expect_artefact(100, scopes(1));
    bye();
}

static void expect_error(unsigned order, const char *text, size_t bytes, const char *says)
{
    char expected[32];
    snprintf(expected, sizeof expected, "error %u ", order);
    const char *answer = ask(order, text, bytes);
    assert_int_equal(strncmp(answer, expected, strlen(expected)), 0);
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
    snprintf(text, sizeof text, "%ssite scope tide_artefact\ntype f64 3\nend\n", scopes(0));
    expect_error(7, text, strlen(text), "is taken");
    expect_error(8, scopes(TIDE_SPEC_SITES + 1), strlen(scopes(TIDE_SPEC_SITES + 1)),
                 "more than 64 sites");
    expect_artefact(9, scopes(1)); /* none of it did any harm */
    bye();
}

/* ---- ends ---- */

static void test_host_dies(void **state)
{
    (void)state;
    expect_artefact(1, scopes(1));
    assert_int_equal(end(), 0);
    assert_false(folder_exists());
}

static void test_host_dies_in_an_order(void **state)
{
    (void)state;
    fputs("order 1 500\ntidepool-spec 1\n", service.to);
    assert_int_equal(end(), 0);
    assert_false(folder_exists());
}

static void test_nonsense(void **state)
{
    (void)state;
    fputs("ordre 1 500\n", service.to);
    assert_int_equal(end(), 1);
    assert_true(folder_exists());
    remove_folder();
}

static void test_too_long_an_order(void **state)
{
    (void)state;
    fputs("order 7 99999999999\n", service.to);
    fflush(service.to);
    assert_non_null(fgets(service.line, sizeof service.line, service.from));
    assert_int_equal(strncmp(service.line, "error 7 ", 8), 0);
    assert_int_equal(end(), 1);
    remove_folder();
}

/* An assembler that never ends: SIGTERM to the stager ends both. */
static void test_hanging_assembler(void **state)
{
    (void)state;
    char said[64], path[300];
    FILE *sign;
    snprintf(path, sizeof path, "%s/sign", test_folder());
    char script[512];
    snprintf(script, sizeof script, "#!/bin/sh\necho $$ > %s\nexec sleep 60\n", path);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(chmod(write_file("as", script), 0700), 0);
    snprintf(script, sizeof script, "%s:%s", test_folder(), getenv("PATH"));
    start_with(script);
    send_order(1, scopes(1), strlen(scopes(1)));
    sign = fopen(path, "r"); /* waits for the assembler */
    assert_non_null(sign);
    assert_non_null(fgets(said, sizeof said, sign));
    fclose(sign);
    assert_int_equal(kill(service.process, SIGTERM), 0);
    assert_int_equal(end(), 128 + SIGKILL);
    int waits = 0;
    for (; kill(-service.process, 0) == 0 && waits < 30000; waits++) {
        waitpid(-1, NULL, WNOHANG); /* the assembler */
        usleep(1000);
    }
    assert_true(waits < 30000);
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", service.folder);
    assert_int_equal(system(command), 0);
}

/* No assembler at all: each order is answered with that, and leaves nothing. */
static void test_no_assembler(void **state)
{
    (void)state;
    char command[128];
    start_with("/nonexistent");
    for (int order = 1; order <= 2; order++) {
        char wanted[32];
        snprintf(wanted, sizeof wanted, "error %d as: ", order);
        send_order((unsigned)order, scopes(1), strlen(scopes(1)));
        assert_non_null(fgets(service.line, sizeof service.line, service.from));
        assert_int_equal(strncmp(service.line, wanted, strlen(wanted)), 0);
        snprintf(command, sizeof command, "test -z \"$(ls -A %s)\"", service.folder);
        assert_int_equal(system(command), 0);
    }
    end();
    snprintf(command, sizeof command, "rm -rf %s", service.folder);
    assert_int_equal(system(command), 0);
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
        cmocka_unit_test_setup(test_host_dies, start),
        cmocka_unit_test_setup(test_host_dies_in_an_order, start),
        cmocka_unit_test_setup(test_nonsense, start),
        cmocka_unit_test_setup(test_too_long_an_order, start),
        cmocka_unit_test(test_hanging_assembler),
        cmocka_unit_test(test_no_assembler),
    };
    if (count != 2)
        return 2;
    stager = args[1];
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("stage: serve", tests, NULL, end_group);
}
