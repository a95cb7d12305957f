/* SPDX-License-Identifier: MIT */
/* Artefacts: what is refused, and that the last use takes code and file away. */
#define _GNU_SOURCE
#include "tests/stager/support.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit/cache/artefact.h"
#include "jit/stager/directory.h"
#include "runtime/base/test_hooks.h"
#include "runtime/scope/compiled.h"

static char error[256];

static const char *module(const char *way)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/artefact-%s.so", support_argument(2), way);
    return path;
}

/* As the stager would: a file in the private directory. */
static const char *module_in_directory(const char *way)
{
    static char path[512], command[1200];
    static int count;
    const char *directory = tide_directory_get(error, sizeof error);
    assert_non_null(directory);
    snprintf(path, sizeof path, "%s/%s-%d.so", directory, way, count++);
    snprintf(command, sizeof command, "cp '%s' '%s'", module(way), path);
    assert_int_equal(system(command), 0);
    return path;
}

static void it_is_attached_and_found(void **state)
{
    (void)state;
    size_t before = tide_artefact_count();
    tide_artefact *artefact = tide_artefact_load(module("right"), false, error, sizeof error);
    assert_non_null(artefact);
    assert_int_equal(tide_artefact_count(), before + 1);
    const tide_runtime *(*enter)(void);
    *(void **)&enter = tide_artefact_find(artefact, "x", "_enter");
    assert_true(enter != NULL && enter() == &tide_runtime_general);
    assert_null(tide_artefact_find(artefact, "x", "_leave"));
    tide_artefact_drop(artefact);
    assert_int_equal(tide_artefact_count(), before);
    assert_int_equal(access(module("right"), F_OK), 0); /* not temporary */
}

static void wrong_ones_are_refused_before_they_run(void **state)
{
    static const char *const ways[][2] = {{"wrong_magic", "tide_artefact_magic"},
                                          {"wrong_layout", "tide_artefact_layout"},
                                          {"no_layout", "tide_artefact_layout"},
                                          {"no_table", "tide_artefact_table"},
                                          {"none_such", "artefact refused"}};
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        size_t before = tide_artefact_count();
        assert_null(tide_artefact_load(module(ways[i][0]), false, error, sizeof error));
        assert_non_null(strstr(error, ways[i][1]));
        assert_null(dlopen(module(ways[i][0]), RTLD_NOW | RTLD_NOLOAD));
        assert_int_equal(tide_artefact_count(), before);
    }
}

static void its_code_has_a_range(void **state)
{
    uintptr_t first, last;
    (void)state;
    tide_artefact *artefact = tide_artefact_load(module("right"), false, error, sizeof error);
    assert_non_null(artefact);
    tide_artefact_range(artefact, &first, &last);
    assert_int_equal(first, (uintptr_t)tide_artefact_find(artefact, "x", "_enter"));
    assert_int_equal(last, first + 16);
    tide_artefact_drop(artefact);
}

/* Of code that does not say where it lies, nobody can be shown to be outside. */
static void code_of_no_range_is_everywhere(void **state)
{
    uintptr_t first, last;
    (void)state;
    tide_artefact *artefact = tide_artefact_load(module("no_range"), false, error, sizeof error);
    assert_non_null(artefact);
    tide_artefact_range(artefact, &first, &last);
    assert_true(first == 0 && last == UINTPTR_MAX);
    tide_artefact_drop(artefact);
}

/* Its file goes: where nothing can be loaded, the directory would fill. */
static void damage_is_refused_and_leaves_no_file(void **state)
{
    (void)state;
    static const off_t bytes[] = {100, 0};
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        const char *path = module_in_directory("right");
        assert_int_equal(truncate(path, bytes[i]), 0);
        assert_null(tide_artefact_load(path, true, error, sizeof error));
        assert_int_not_equal(access(path, F_OK), 0);
    }
    const char *path = module_in_directory("wrong_layout");
    assert_null(tide_artefact_load(path, true, error, sizeof error));
    assert_int_not_equal(access(path, F_OK), 0);
}

static void the_last_use_takes_it_away(void **state)
{
    (void)state;
    const char *path = module_in_directory("right");
    tide_artefact *artefact = tide_artefact_load(path, true, error, sizeof error);
    assert_non_null(artefact);
    tide_artefact_use(artefact);
    tide_artefact_drop(artefact);
    assert_int_equal(access(path, F_OK), 0); /* for perf and gdb */
    tide_artefact_drop(artefact);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD));
}

static void code_has_names(void **state)
{
    (void)state;
    Dl_info info;
    const char *path = module_in_directory("right");
    tide_artefact *artefact = tide_artefact_load(path, true, error, sizeof error);
    assert_non_null(artefact);
    assert_int_not_equal(dladdr(tide_artefact_find(artefact, "y", "_enter"), &info), 0);
    assert_string_equal(info.dli_sname, "y_enter");
    assert_string_equal(info.dli_fname, path);
    tide_artefact_drop(artefact);
}

static void temporary_ones_lie_in_the_directory(void **state)
{
    (void)state;
    assert_null(tide_artefact_load(module("right"), true, error, sizeof error));
    const char *path = module_in_directory("right");
    char directory[512];
    snprintf(directory, sizeof directory, "%s", path);
    *strrchr(directory, '/') = '\0';
    assert_int_equal(chmod(directory, 0750), 0);
    assert_null(tide_artefact_load(path, true, error, sizeof error));
    assert_non_null(strstr(error, "0700"));
    assert_int_equal(chmod(directory, 02700), 0); /* as where the folder around it is a group's */
    tide_artefact *artefact = tide_artefact_load(path, true, error, sizeof error);
    assert_non_null(artefact);
    tide_artefact_drop(artefact);
}

static bool fail_always(size_t bytes)
{
    (void)bytes;
    return true;
}

static void without_memory_nothing_is_loaded(void **state)
{
    (void)state;
    size_t before = tide_artefact_count();
    tide_os_fault = fail_always;
    tide_artefact *artefact = tide_artefact_load(module("right"), false, error, sizeof error);
    tide_os_fault = NULL;
    assert_null(artefact);
    assert_non_null(strstr(error, "no memory"));
    assert_int_equal(tide_artefact_count(), before);
}

static void a_label_finds_what_is_loaded(void **state)
{
    (void)state;
    const tide_artefact_label label = {"fifteen letters"}, other = {"others"};
    tide_artefact *artefact = tide_artefact_load(module("right"), false, error, sizeof error);
    assert_non_null(artefact);
    assert_null(tide_artefact_labelled(&label));
    tide_artefact_set_label(artefact, &label);
    assert_ptr_equal(tide_artefact_labelled(&label), artefact);
    assert_null(tide_artefact_labelled(&other));
    tide_artefact_drop(artefact);
    assert_int_equal(tide_artefact_count(), 1);
    tide_artefact_drop(artefact);
    assert_null(tide_artefact_labelled(&label));
}

/* ---- threads, processes ------------------------------------------------------------------- */

static void *use_and_drop(void *artefact)
{
    for (int i = 0; i < 10000; i++) {
        tide_artefact_use(artefact);
        if (tide_artefact_count() == 0)
            abort();
        tide_artefact_drop(artefact);
    }
    tide_artefact_drop(artefact);
    return NULL;
}

static void uses_are_counted_exactly(void **state)
{
    enum { THREADS = 4 };
    (void)state;
    pthread_t threads[THREADS];
    const char *path = module_in_directory("right");
    tide_artefact *artefact = tide_artefact_load(path, true, error, sizeof error);
    assert_non_null(artefact);
    for (int i = 0; i < THREADS; i++) {
        tide_artefact_use(artefact);
        assert_int_equal(pthread_create(&threads[i], NULL, use_and_drop, artefact), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(tide_artefact_count(), 1);
    tide_artefact_drop(artefact);
    assert_int_equal(tide_artefact_count(), 0);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void a_forked_child_leaves_the_file(void **state)
{
    (void)state;
    const char *path = module_in_directory("right");
    tide_artefact *artefact = tide_artefact_load(path, true, error, sizeof error);
    assert_non_null(artefact);
    pid_t child = fork_child(0);
    if (child == 0) {
        tide_artefact_drop(artefact);
        exit(tide_artefact_count() != 0);
    }
    expect_child_ends_well(child);
    assert_int_equal(access(path, F_OK), 0);
    tide_artefact_drop(artefact);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        STAGER_TEST(it_is_attached_and_found),
        STAGER_TEST(wrong_ones_are_refused_before_they_run),
        STAGER_TEST(its_code_has_a_range),
        STAGER_TEST(code_of_no_range_is_everywhere),
        STAGER_TEST(damage_is_refused_and_leaves_no_file),
        STAGER_TEST(the_last_use_takes_it_away),
        STAGER_TEST(code_has_names),
        STAGER_TEST(temporary_ones_lie_in_the_directory),
        STAGER_TEST(without_memory_nothing_is_loaded),
        STAGER_TEST(a_label_finds_what_is_loaded),
        STAGER_TEST(uses_are_counted_exactly),
        STAGER_TEST(a_forked_child_leaves_the_file),
    };
    return SUPPORT_MAIN(tests);
}
