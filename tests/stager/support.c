/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/stager/support.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit/learn/background.h"
#include "jit/stager/test_hooks.h"
#include "runtime/base/settings.h"
#include "runtime/base/test_hooks.h"

static const char *fake;
static char **arguments;
static char root[128];

const char *in_folder(const char *name)
{
    static char paths[8][256];
    static unsigned at;
    char *path = paths[at++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

static int remove_entry(const char *path, const struct stat *seen, int type, struct FTW *ftw)
{
    (void)seen, (void)type, (void)ftw;
    return remove(path);
}

int support_main(int argc, char **argv, const struct CMUnitTest *tests, size_t count)
{
    pid_t self = getpid();
    snprintf(root, sizeof root, "/tmp/tide-test-XXXXXX");
    if (argc < 2 || mkdtemp(root) == NULL || mkdir(in_folder("run"), 0700) != 0 ||
        mkdir(in_folder("bin"), 0700) != 0)
        return EXIT_FAILURE;
    fake = realpath(argv[1], NULL);
    arguments = argv;
    setenv("XDG_RUNTIME_DIR", in_folder("run"), 1);
    tide_background_prepare();
    int failed = _cmocka_run_group_tests("stager", tests, count, NULL, NULL);
    if (getpid() == self)
        nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return failed;
}

const char *support_argument(int i)
{
    return arguments[i];
}

void use_fake(const char *behaviour)
{
    char path[256];
    snprintf(path, sizeof path, "%s/bin/%s", root, behaviour);
    if (symlink(fake, path) != 0)
        assert_int_equal(errno, EEXIST);
    setenv("TIDEPOOL_STAGER", path, 1);
    tide_locate_environment_forget();
}

static bool comes_from_fake(const char *pid)
{
    char path[300], line[512] = "";
    snprintf(path, sizeof path, "/proc/%s/cmdline", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file >= 0 ? read(file, line, sizeof line - 1) : -1;
    if (file >= 0)
        close(file);
    return got > 0 && strncmp(line, root, strlen(root)) == 0;
}

size_t count_processes(void)
{
    return count_entries("/proc", comes_from_fake);
}

size_t count_directories(void)
{
    return count_entries(in_folder("run"), NULL);
}

void expect_nothing_left(void)
{
    for (int i = 0; i < PATIENCE && count_processes() + count_directories() > 0; i++)
        usleep(1000);
    assert_int_equal(count_processes(), 0);
    assert_int_equal(count_directories(), 0);
}

int begin_test(void **state)
{
    (void)state;
    tide_constant_set("stager_deadline", 1e6);
    tide_constant_set("stager_idle", 0);
    use_fake("good");
    return 0;
}

int end_test(void **state)
{
    (void)state;
    tide_stager_stop();
    tide_locate_privileges_hook = NULL;
    assert_false(tide_stager_busy());
    expect_nothing_left();
    return 0;
}

void order(uint64_t number, const char *text)
{
    assert_true(tide_stager_submit(number, text, strlen(text)));
    assert_true(tide_stager_busy());
}

tide_stager_answer next(void)
{
    tide_stager_answer got = {.request = 0};
    assert_true(tide_stager_poll(&got, PATIENCE));
    assert_false(tide_stager_busy());
    return got;
}

void expect_result(uint64_t number, tide_stager_result result)
{
    order(number, "site");
    tide_stager_answer got = next();
    assert_int_equal(got.request, number);
    if (got.result != result)
        fail_msg("%d '%s' in place of %d", got.result, got.error, result);
    if (result == TIDE_STAGER_OK)
        assert_int_equal(access(got.path, R_OK), 0);
    else
        assert_int_not_equal(strlen(got.error), 0);
}
