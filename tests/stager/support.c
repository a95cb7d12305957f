/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/stager/support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jit/stager/locate.h"
#include "jit/stager/privilege.h"
#include "jit/stager/test_hooks.h"
#include "runtime/base/settings.h"

static const char *fake;
static char **arguments;
static char root[128];
static int64_t turned;

/* ---- the folder --------------------------------------------------------------------------- */

const char *folder(void)
{
    return root;
}

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
    (void)seen;
    (void)type;
    (void)ftw;
    return remove(path);
}

int support_main(int argc, char **argv, const struct CMUnitTest *tests, size_t count)
{
    pid_t self = getpid();
    if (argc < 2)
        return EXIT_FAILURE;
    char *temporary = realpath("/tmp", NULL); /* where processes say that they are */
    snprintf(root, sizeof root, "%s/tide-test-XXXXXX", temporary != NULL ? temporary : "/tmp");
    free(temporary);
    if (mkdtemp(root) == NULL || mkdir(in_folder("run"), 0700) != 0 ||
        mkdir(in_folder("bin"), 0700) != 0)
        return EXIT_FAILURE;
    fake = realpath(argv[1], NULL);
    arguments = argv;
    setenv("XDG_RUNTIME_DIR", in_folder("run"), 1);
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
    snprintf(path, sizeof path, "%s/bin/%s", root, behaviour != NULL ? behaviour : "none-such");
    if (behaviour != NULL && symlink(fake, path) != 0)
        assert_int_equal(errno, EEXIST);
    setenv("TIDEPOOL_STAGER", path, 1);
    tide_locate_environment_forget();
}

/* ---- time --------------------------------------------------------------------------------- */

static int64_t turned_clock(void)
{
    return turned;
}

void pass_time(int64_t ms)
{
    turned += ms;
}

/* ---- what is left ------------------------------------------------------------------------- */

bool have_children(void)
{
    siginfo_t seen;
    return waitid(P_ALL, 0, &seen, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static bool comes_from_fake(const char *pid)
{
    char path[300], line[512] = "";
    snprintf(path, sizeof path, "/proc/%s/cmdline", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t got = read(file, line, sizeof line - 1);
    close(file);
    return got > 0 && strncmp(line, root, strlen(root)) == 0;
}

size_t count_processes(void)
{
    return count_entries("/proc", comes_from_fake);
}

bool process_runs(int process)
{
    return strchr("?ZX", system_state(process)) == NULL;
}

void close_every_descriptor(void)
{
    for (int i = STDERR_FILENO + 1; i < 256; i++)
        close(i);
}

size_t count_directories(void)
{
    return count_entries(in_folder("run"), NULL);
}

/* ---- in a child --------------------------------------------------------------------------- */

void play(void (*scene)(void))
{
    pid_t child = fork_child(60);
    if (child == 0) {
        scene();
        exit(0);
    }
    int status = wait_for_child(child);
    if (status == NO_RIGHTS) {
        skip();
    }
    assert_int_equal(status, 0);
}

/* ---- each test ---------------------------------------------------------------------------- */

int begin_test(void **state)
{
    (void)state;
    tide_stager_clock = turned_clock;
    tide_setting_set(TIDE_SETTING_stager_deadline, 10000);
    tide_setting_set(TIDE_SETTING_stager_recycle, 1e6);
    use_fake("good");
    return 0;
}

/* A killed grandchild is gone from the list a moment after its parent. */
static size_t count_lasting_processes(void)
{
    size_t count = count_processes();
    for (int i = 0; i < PATIENCE && count > 0; i++) {
        usleep(1000);
        count = count_processes();
    }
    return count;
}

int end_test(void **state)
{
    (void)state;
    tide_stager_stop(true);
    tide_privileges_hook = NULL;
    assert_int_equal(tide_stager_pending(), 0);
    assert_int_equal(count_lasting_processes(), 0);
    assert_int_equal(count_directories(), 0);
    assert_false(have_children());
    return 0;
}

void order(uint64_t id, const char *text)
{
    char specs[1024];
    int length = snprintf(specs, sizeof specs, "%s\nsite scope x\nend\n", text);
    assert_true(tide_stager_submit(id, specs, (size_t)length));
}

tide_stager_answer next(void)
{
    tide_stager_answer got = {.request = 0};
    assert_true(tide_stager_poll(&got, PATIENCE));
    return got;
}

void expect_answer(uint64_t id, tide_stager_result result)
{
    tide_stager_answer got = next();
    if (got.request != id || got.result != result)
        fail_msg("answer to %llu: %d '%s', not to %llu: %d", (unsigned long long)got.request,
                 got.result, got.error, (unsigned long long)id, result);
    if (result == TIDE_STAGER_OK) {
        assert_int_equal(access(got.path, R_OK), 0);
        assert_int_equal(unlink(got.path), 0);
    } else {
        assert_int_not_equal(strlen(got.error), 0);
        assert_null(strchr(got.error, '\n'));
    }
}
