/* SPDX-License-Identifier: MIT */
/* A program whose other threads close every descriptor while the private directory is made or
 * removed: that happens here before each call by which it is, in turn. Some open folders of their
 * own then, which get the same numbers. */
#define _GNU_SOURCE
#include "tests/stager/support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit/stager/directory.h"
#include "jit/stager/test_hooks.h"

/* ---- the other thread --------------------------------------------------------------------- */

static int calls_before; /* it comes before so many more calls; 0: it does not come */
static void (*other_thread)(void);

static void call(void)
{
    if (calls_before > 0 && --calls_before == 0)
        other_thread();
}

enum { THEIRS = 16 };

static int theirs[THEIRS]; /* numbers that it has taken; 0: none */

static void close_all_and_open(void)
{
    close_every_descriptor();
    for (int i = 0; i < THEIRS; i++)
        if ((theirs[i] = open(in_folder("theirs"), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
            abort();
}

/* ---- the library's calls, wrapped by the linker -------------------------------------------- */

int __real_open(const char *path, int how, ...);
int __wrap_open(const char *path, int how, ...);
int __real_openat(int folder, const char *path, int how, ...);
int __wrap_openat(int folder, const char *path, int how, ...);
ssize_t __real_getdents64(int descriptor, void *out, size_t room);
ssize_t __wrap_getdents64(int descriptor, void *out, size_t room);
int __real_fstat(int descriptor, struct stat *out);
int __wrap_fstat(int descriptor, struct stat *out);
int __real_fstatat(int folder, const char *path, struct stat *out, int how);
int __wrap_fstatat(int folder, const char *path, struct stat *out, int how);
int __real_lstat(const char *path, struct stat *out);
int __wrap_lstat(const char *path, struct stat *out);
int __real_unlinkat(int folder, const char *path, int how);
int __wrap_unlinkat(int folder, const char *path, int how);
int __real_rmdir(const char *path);
int __wrap_rmdir(const char *path);

static mode_t mode_of(int how, va_list rest)
{
    return (how & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
}

int __wrap_open(const char *path, int how, ...)
{
    va_list rest;
    va_start(rest, how);
    mode_t mode = mode_of(how, rest);
    va_end(rest);
    call();
    return __real_open(path, how, mode);
}

int __wrap_openat(int folder, const char *path, int how, ...)
{
    va_list rest;
    va_start(rest, how);
    mode_t mode = mode_of(how, rest);
    va_end(rest);
    call();
    return __real_openat(folder, path, how, mode);
}

ssize_t __wrap_getdents64(int descriptor, void *out, size_t room)
{
    call();
    return __real_getdents64(descriptor, out, room);
}

int __wrap_fstat(int descriptor, struct stat *out)
{
    call();
    return __real_fstat(descriptor, out);
}

int __wrap_fstatat(int folder, const char *path, struct stat *out, int how)
{
    call();
    return __real_fstatat(folder, path, out, how);
}

int __wrap_lstat(const char *path, struct stat *out)
{
    call();
    return __real_lstat(path, out);
}

int __wrap_unlinkat(int folder, const char *path, int how)
{
    call();
    return __real_unlinkat(folder, path, how);
}

int __wrap_rmdir(const char *path)
{
    call();
    return __real_rmdir(path);
}

/* ---- scenes ------------------------------------------------------------------------------- */

enum { CALLS_MAX = 1000 };

static void touch(const char *folder, const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHILD_MUST(file >= 0 && close(file) == 0);
}

static void make_theirs(void)
{
    CHILD_MUST(mkdir(in_folder("theirs"), 0700) == 0 || errno == EEXIST);
    touch(in_folder("theirs"), "one");
    touch(in_folder("theirs"), "two");
}

/* What it has opened is still open, and that folder's. */
static void expect_their_descriptors(void)
{
    struct stat folder, seen;
    CHILD_MUST(stat(in_folder("theirs"), &folder) == 0);
    for (int i = 0; i < THEIRS; i++) {
        CHILD_MUST(theirs[i] == 0 ||
                   (fstat(theirs[i], &seen) == 0 && seen.st_ino == folder.st_ino));
        theirs[i] = 0;
    }
}

static void expect_theirs(void)
{
    CHILD_MUST(count_entries(in_folder("theirs"), NULL) == 2);
    CHILD_MUST(unlink(in_folder("theirs/one")) == 0 && unlink(in_folder("theirs/two")) == 0);
    CHILD_MUST(rmdir(in_folder("theirs")) == 0);
}

/* With a file, and a folder as compilers make them. */
static void make_directory(void)
{
    char error[256], inner[300];
    const char *path = tide_directory_get(error, sizeof error);
    CHILD_MUST(path != NULL);
    snprintf(inner, sizeof inner, "%s/inner", path);
    CHILD_MUST(mkdir(inner, 0700) == 0);
    touch(path, "ours");
    touch(inner, "ours");
}

/* Before each call of the removal in turn. */
static void remove_beside(void (*other)(void))
{
    int before = 0;
    bool came = true;
    other_thread = other;
    make_theirs();
    while (came) {
        CHILD_MUST(++before < CALLS_MAX);
        make_directory();
        calls_before = before;
        tide_directory_remove();
        came = calls_before == 0;
        calls_before = 0;
        expect_their_descriptors();
        CHILD_MUST(count_directories() == 0 && !tide_directory_made());
        close_every_descriptor();
    }
    CHILD_MUST(before > 12); /* so many calls there are, at least */
    expect_theirs();
}

static void remove_while_all_is_closed(void)
{
    remove_beside(close_every_descriptor);
}

static void remove_while_numbers_are_taken(void)
{
    remove_beside(close_all_and_open);
}

/* If it cannot be made here it is made in the next place, or not at all. */
static void make_beside(void (*other)(void))
{
    char error[256];
    int before = 0;
    bool came = true;
    other_thread = other;
    make_theirs();
    CHILD_MUST(mkdir(in_folder("next"), 0700) == 0);
    setenv("TMPDIR", in_folder("next"), 1);
    tide_locate_environment_forget();
    while (came) {
        CHILD_MUST(++before < CALLS_MAX);
        calls_before = before;
        const char *path = tide_directory_get(error, sizeof error);
        came = calls_before == 0;
        calls_before = 0;
        expect_their_descriptors();
        CHILD_MUST(path != NULL || error[0] != '\0');
        CHILD_MUST(count_directories() + count_entries(in_folder("next"), NULL) == (path != NULL));
        tide_directory_remove();
        CHILD_MUST(count_directories() + count_entries(in_folder("next"), NULL) == 0);
        close_every_descriptor();
    }
    CHILD_MUST(before > 4);
    CHILD_MUST(rmdir(in_folder("next")) == 0);
    expect_theirs();
}

static void make_while_all_is_closed(void)
{
    make_beside(close_every_descriptor);
}

static void make_while_numbers_are_taken(void)
{
    make_beside(close_all_and_open);
}

/* ---- tests -------------------------------------------------------------------------------- */

static void a_removal_beside_one_who_closes_all_leaves_nothing(void **state)
{
    (void)state;
    play(remove_while_all_is_closed);
}

static void a_removal_removes_nothing_that_is_theirs(void **state)
{
    (void)state;
    play(remove_while_numbers_are_taken);
}

static void one_that_is_closed_while_it_is_made_is_not_left(void **state)
{
    (void)state;
    play(make_while_all_is_closed);
}

static void what_is_theirs_is_not_taken_for_the_directory(void **state)
{
    (void)state;
    play(make_while_numbers_are_taken);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        STAGER_TEST(a_removal_beside_one_who_closes_all_leaves_nothing),
        STAGER_TEST(a_removal_removes_nothing_that_is_theirs),
        STAGER_TEST(one_that_is_closed_while_it_is_made_is_not_left),
        STAGER_TEST(what_is_theirs_is_not_taken_for_the_directory),
    };
    return SUPPORT_MAIN(tests);
}
