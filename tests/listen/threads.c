/* SPDX-License-Identifier: MIT */
/* The thread that serves: where the system gives none, and what becomes of it around fork and
 * exit. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tidepool/listen.h>
#include <tidepool/tidepool.h>
#include <tidepool/tune.h>

#include "../support.h"

static bool no_thread;
static char folder[] = "/tmp/tide-threads-XXXXXX";

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *),
                          void *user);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *),
                          void *user);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *),
                          void *user)
{
    return no_thread ? EAGAIN : __real_pthread_create(thread, how, run, user);
}

static bool has_socket(pid_t pid)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%d.sock", folder, (int)pid);
    return access(path, F_OK) == 0;
}

static size_t count_sockets(void)
{
    DIR *list = opendir("/proc/self/fd");
    size_t count = 0;
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
        char link[64] = "";
        ssize_t length = readlinkat(dirfd(list), entry->d_name, link, sizeof link - 1);
        count += length > 0 && strncmp(link, "socket:", 7) == 0;
    }
    closedir(list);
    return count;
}

/* ---- fork and exit ------------------------------------------------------------------------ */

/* It closes its copy of the socket, leaves the name to the parent, and works. Without handlers of exit: a
 * thread that was starting may have left a lock of LeakSanitizer's taken. */
static void be_a_child(size_t sockets)
{
    tide_pool *pool = tide_pool_create(NULL);
    bool good = count_sockets() < sockets && pool != NULL;
    good = good && tide_listen(folder) == TIDE_ERROR_STATE && tide_listen_end() == TIDE_OK;
    _exit(good && !has_socket(getpid()) ? 0 : 1);
}

static void a_forked_child_does_not_listen(void **state)
{
    (void)state;
    assert_int_equal(tide_listen(folder), TIDE_OK);
    size_t sockets = count_sockets();
    pid_t child = fork_child(60);
    if (child == 0)
        be_a_child(sockets);
    expect_child_ends_well(child);
    assert_true(has_socket(getpid()));
    assert_int_equal(tide_listen_end(), TIDE_OK);
    assert_false(has_socket(getpid()));
}

static bool is_to_exit;

__attribute__((destructor)) static void run_after_exit(void)
{
    if (is_to_exit)
        _exit(tide_listen(folder) == TIDE_ERROR_STATE && !has_socket(getpid()) ? 0 : 1);
}

static void once_exit_has_begun_nothing_listens(void **state)
{
    char *const args[] = {"/proc/self/exe", folder, NULL};
    (void)state;
    pid_t child = fork_child(60);
    if (child == 0) {
        execv(args[0], args);
        _exit(2);
    }
    expect_child_ends_well(child);
}

/* ---- the thread --------------------------------------------------------------------------- */

static void without_a_thread_there_is_no_socket(void **state)
{
    (void)state;
    no_thread = true;
    assert_int_equal(tide_listen(folder), TIDE_ERROR_FILE);
    assert_false(has_socket(getpid()));
    no_thread = false;
    assert_int_equal(tide_listen(folder), TIDE_OK);
    assert_true(has_socket(getpid()) && tide_listen(folder) == TIDE_OK);
    assert_int_equal(tide_listen_end(), TIDE_OK);
    assert_false(has_socket(getpid()));
}

static void a_folder_that_is_none_is_refused(void **state)
{
    char path[200];
    (void)state;
    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    assert_int_equal(tide_listen("relative"), TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_listen("/dev/null/folder"), TIDE_ERROR_FILE);
    assert_int_equal(tide_listen(path), TIDE_ERROR_FILE);
    assert_non_null(strstr(tide_error_message(), "too long"));
}

int main(int count, char **args)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forked_child_does_not_listen),
        cmocka_unit_test(once_exit_has_begun_nothing_listens),
        cmocka_unit_test(without_a_thread_there_is_no_socket),
        cmocka_unit_test(a_folder_that_is_none_is_refused),
    };
    tide_tune_set("background", 0);
    if (count > 1) { /* the program that exits while it listens */
        snprintf(folder, sizeof folder, "%s", args[1]);
        is_to_exit = true;
        if (tide_listen(folder) != TIDE_OK || !has_socket(getpid()))
            _exit(4);
        return 3;
    }
    if (mkdtemp(folder) == NULL || setenv("XDG_RUNTIME_DIR", folder, 1) != 0)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)rmdir(folder);
    return failed;
}
