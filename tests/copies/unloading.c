/* SPDX-License-Identifier: MIT */
/* A program that has never heard of Tidepool loads and unloads plugins with copies of it. Argument:
 * such a plugin; files of their own with its content are further ones. */
#define _GNU_SOURCE
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/base/copy.h"
#include "tests/copies/copied.h"

static const char *plugin_path;
static char folder[] = "/tmp/tidepool-copies-XXXXXX";

typedef struct plugin {
    char path[PATH_MAX];
    void *handle;
    const copied_calls *calls;
} plugin;

static void load_file(plugin *p, const char *path)
{
    const copied_calls *(*get)(void);
    snprintf(p->path, sizeof p->path, "%s", path);
    p->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (p->handle == NULL)
        fail_msg("%s", dlerror());
    void *found = dlsym(p->handle, "copied_get");
    assert_non_null(found);
    memcpy(&get, &found, sizeof found);
    p->calls = get();
}

/* Loads a plugin of a file that no other has. The file goes: nobody may need it again. */
static void load(plugin *p)
{
    static unsigned files;
    char path[PATH_MAX];
    struct stat status;
    snprintf(path, sizeof path, "%s/%u.so", folder, files++);
    int from = open(plugin_path, O_RDONLY), to = open(path, O_WRONLY | O_CREAT | O_EXCL, 0700);
    assert_true(from >= 0 && to >= 0 && fstat(from, &status) == 0);
    while (status.st_size > 0) {
        ssize_t sent = sendfile(to, from, NULL, (size_t)status.st_size);
        assert_true(sent > 0);
        status.st_size -= sent;
    }
    close(from);
    close(to);
    load_file(p, path);
    assert_int_equal(unlink(path), 0);
}

static void unload(plugin *p)
{
    assert_int_equal(dlclose(p->handle), 0);
}

static bool is_loaded(const plugin *p)
{
    void *handle = dlopen(p->path, RTLD_NOW | RTLD_NOLOAD);
    return handle != NULL && dlclose(handle) == 0;
}

/* Lines of the list of the process's mappings. */
static size_t count_mappings(void)
{
    size_t lines = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    assert_non_null(file);
    for (int c; (c = getc(file)) != EOF;)
        lines += c == '\n';
    fclose(file);
    return lines;
}

/* ---- threads ---------------------------------------------------------------------------- */

typedef struct visit {
    plugin *plugin;
    pthread_barrier_t used, unloaded;
    int got;
} visit;

static void *use_and_outlive(void *state)
{
    visit *v = state;
    v->got = v->plugin->calls->use();
    pthread_barrier_wait(&v->used);
    pthread_barrier_wait(&v->unloaded);
    return NULL; /* the thread's pool, buffers and message are given back here */
}

/* What a thread got that ends after the plugin has been unloaded. */
static int outlive(plugin *p)
{
    visit v = {.plugin = p};
    pthread_t thread;
    pthread_barrier_init(&v.used, NULL, 2);
    pthread_barrier_init(&v.unloaded, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, use_and_outlive, &v), 0);
    pthread_barrier_wait(&v.used);
    unload(p);
    pthread_barrier_wait(&v.unloaded);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_barrier_destroy(&v.used);
    pthread_barrier_destroy(&v.unloaded);
    return v.got;
}

static void a_thread_may_end_after_the_plugin_was_unloaded(void **state)
{
    (void)state;
    plugin p;
    load(&p);
    int all = p.calls->use_all();
    assert_int_equal(outlive(&p), all);
    assert_true(is_loaded(&p)); /* since it was used */
}

/* Whoever looks for leaks (LeakSanitizer, Valgrind) finds no way any more to what a plugin kept
 * that is gone. */
static bool leaks_are_looked_for(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    return true;
#endif
#endif
    return getenv("TIDE_TEST_LEAKS") != NULL;
}

static void a_plugin_that_cannot_stay_does_without_what_would_outlive_it(void **state)
{
    (void)state;
    plugin p;
    load(&p);
    p.calls->refuse_stay(true);
    int all = p.calls->use_all();
    tide_pool *pool = p.calls->make_pool(); /* which the program ends itself */
    assert_non_null(pool);
    assert_true(p.calls->acquire(pool) > 0);
    assert_int_equal(p.calls->destroy_pool(pool), TIDE_OK);
    assert_int_not_equal(p.calls->start_keeper(), TIDE_OK);
    assert_int_equal(p.calls->status(), TIDE_ERROR_STATE);
    assert_non_null(strstr(p.calls->message(), "unloaded"));
    if (leaks_are_looked_for())
        assert_ptr_equal(dlopen(p.path, RTLD_NOW | RTLD_NOLOAD), p.handle);
    int got = outlive(&p);
    assert_in_range(got, 1, all - 1); /* buffers, but no pool of the thread */
    assert_int_equal(is_loaded(&p), leaks_are_looked_for());
}

/* ---- again and again --------------------------------------------------------------------- */

static void a_plugin_that_was_not_used_goes_and_leaves_nothing(void **state)
{
    (void)state;
    plugin p;
    load(&p);
    unload(&p);
    assert_false(is_loaded(&p));
    size_t mappings = count_mappings();
    for (int i = 0; i < 100; i++) {
        load_file(&p, plugin_path);
        assert_int_equal(p.calls->sites(), 1); /* of the plugin in C: known when it is loaded */
        unload(&p);
        assert_false(is_loaded(&p));
    }
    assert_in_range(count_mappings(), mappings - 4, mappings + 4);
    pid_t child = fork(); /* no handler of a plugin that is gone is called */
    assert_true(child >= 0);
    if (child == 0)
        _exit(0);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void a_plugin_that_comes_back_again_and_again_is_there_once(void **state)
{
    (void)state;
    plugin p;
    load_file(&p, plugin_path);
    int all = p.calls->use_all();
    const copied_calls *calls = p.calls;
    assert_int_equal(outlive(&p), all);
    size_t mappings = 0;
    for (int i = 0; i < 100; i++) {
        if (i == 50) /* by then its sites have been decided on, and its keeper runs */
            mappings = count_mappings();
        load_file(&p, plugin_path);
        assert_ptr_equal(p.calls, calls);
        assert_int_equal(outlive(&p), all);
    }
    assert_in_range(count_mappings(), mappings - 25, mappings + 25); /* each time one more: 50 */
}

/* The keeper calls the linker by itself: to find where the library lies, to load code. */
static void a_plugin_with_a_keeper_may_be_unloaded(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        plugin p;
        load(&p);
        assert_int_equal(p.calls->start_keeper(), TIDE_OK);
        tide_pool *pool = p.calls->make_pool();
        for (int use = 0; use < 300; use++) {
            assert_true(p.calls->acquire(pool) > 0);
            assert_int_equal(p.calls->cold(pool), TIDE_OK);
        }
        assert_int_equal(p.calls->destroy_pool(pool), TIDE_OK);
        unload(&p);
        assert_true(is_loaded(&p));
    }
}

static void many_plugins_load_in_one_process(void **state)
{
    enum { PLUGINS = 30 };
    (void)state;
    static plugin p[PLUGINS];
    for (int i = 0; i < PLUGINS; i++)
        load(&p[i]);
    for (int i = 0; i < PLUGINS; i++)
        assert_int_equal(p[i].calls->use(), p[i].calls->use_all());
    for (int i = 1; i < PLUGINS; i++) /* the numbers of no two are the same */
        for (int k = 0; k < i; k++)
            assert_int_not_equal(p[i].calls->type(), p[k].calls->type());
    for (int i = 0; i < PLUGINS; i++)
        assert_int_equal(outlive(&p[i]), p[i].calls->use_all());
}

/* The numbers of the first chunk are those of the plugin that was the first to register a type. */
static void a_plugin_whose_first_type_a_visitor_registers_has_its_own_number(void **state)
{
    (void)state;
    plugin p;
    load(&p);
    assert_true(p.calls->sites() > 0);
    tide_type type = p.calls->type_in_visitor();
    assert_int_not_equal(type, TIDE_NO_TYPE);
    assert_true(type >= TIDE_COPY_CHUNK);
    unload(&p);
    assert_true(is_loaded(&p)); /* for types stay */
}

static unsigned register_until_refused(const plugin *p)
{
    char name[20];
    unsigned count = 0;
    do
        snprintf(name, sizeof name, "type %u", count);
    while (p->calls->register_type(name, 1, 1) != TIDE_NO_TYPE && ++count < TIDE_TYPE_LIMIT);
    assert_int_equal(p->calls->status(), TIDE_ERROR_LIMIT);
    return count;
}

/* Two copies with the same number for different types would take each other's memory. Last of all:
 * no copy finds numbers any more. */
static void a_plugin_gets_no_types_when_others_have_all_numbers(void **state)
{
    (void)state;
    plugin greedy, late;
    load(&greedy);
    load(&late);
    assert_true(register_until_refused(&greedy) > TIDE_TYPE_LIMIT / 4);
    tide_pool *theirs = greedy.calls->make_pool(), *own = late.calls->make_pool();
    assert_int_equal(late.calls->type(), TIDE_NO_TYPE);
    assert_int_equal(late.calls->status(), TIDE_ERROR_LIMIT);
    assert_non_null(strstr(late.calls->message(), "copies of the library"));
    assert_int_equal(late.calls->type_in_visitor(), TIDE_NO_TYPE);
    assert_int_equal(late.calls->status(), TIDE_ERROR_LIMIT);
    assert_int_equal(late.calls->acquire(own), 0);
    assert_int_equal(late.calls->acquire(theirs), 0);
    assert_int_equal(late.calls->acquire_builtin(own, 100), 1);
    assert_int_equal(late.calls->cold(own), TIDE_OK);
    assert_int_equal(late.calls->destroy_pool(own), TIDE_OK);
    assert_int_equal(greedy.calls->destroy_pool(theirs), TIDE_OK);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plugin_that_was_not_used_goes_and_leaves_nothing),
        cmocka_unit_test(a_thread_may_end_after_the_plugin_was_unloaded),
        cmocka_unit_test(a_plugin_that_cannot_stay_does_without_what_would_outlive_it),
        cmocka_unit_test(a_plugin_that_comes_back_again_and_again_is_there_once),
        cmocka_unit_test(a_plugin_with_a_keeper_may_be_unloaded),
        cmocka_unit_test(many_plugins_load_in_one_process),
        cmocka_unit_test(a_plugin_whose_first_type_a_visitor_registers_has_its_own_number),
        cmocka_unit_test(a_plugin_gets_no_types_when_others_have_all_numbers),
    };
    if (count != 2 || mkdtemp(folder) == NULL)
        return EXIT_FAILURE;
    plugin_path = arguments[1];
    int failed = cmocka_run_group_tests_name("unloading", tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
