/* SPDX-License-Identifier: MIT */
/* One copy of the library in a process. A second one, in a plugin, works on what it made, refuses what
 * it did not make, and stays loaded. Argument: the plugin. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <dlfcn.h>
#include <pthread.h>

#include <cmocka.h>

#include <tidepool/buffers.h>
#include <tidepool/dynamic.h>
#include <tidepool/tidepool.h>
#include <tidepool/upkeep.h>

#include "tests/contract/copied.h"

#define expect_ok(call) assert_int_equal((call), TIDE_OK)

static const char *plugin_path;
static void *plugin_handle;
static const copied_calls *plugin;

static void load_plugin(void)
{
    const copied_calls *(*get)(void);
    plugin_handle = dlopen(plugin_path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(plugin_handle);
    void *found = dlsym(plugin_handle, "copied_get");
    assert_non_null(found);
    memcpy(&get, &found, sizeof found);
    plugin = get();
}

static bool plugin_is_loaded(void)
{
    void *handle = dlopen(plugin_path, RTLD_NOW | RTLD_NOLOAD);
    return handle != NULL && dlclose(handle) == 0;
}

static void expect_plugin_refused(void)
{
    assert_int_equal(plugin->status(), TIDE_ERROR_ARGUMENT);
    assert_non_null(strstr(plugin->message(), "another copy of the library"));
}

static void expect_refused(void)
{
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    assert_non_null(strstr(tide_error_message(), "another copy of the library"));
}

static void a_plugin_that_was_not_used_goes(void **state)
{
    (void)state;
    load_plugin();
    expect_ok(dlclose(plugin_handle));
    assert_false(plugin_is_loaded());
    load_plugin();
}

static void each_copy_works_on_what_it_made(void **state)
{
    (void)state;
    tide_pool *pool = plugin->make_pool();
    assert_int_equal(plugin->acquire(pool), COPIED_ARRAYS);
    assert_int_equal(plugin->acquire(plugin->local_pool()), COPIED_ARRAYS);
    assert_ptr_not_equal(plugin->local_pool(), tide_pool_local());
    expect_ok(plugin->reset_pool(pool));
    expect_ok(plugin->destroy_pool(pool));
    tide_buffers *buffers = plugin->make_buffers();
    assert_int_equal(plugin->use_buffers(buffers), 1);
    expect_ok(plugin->destroy_buffers(buffers));
}

static void each_copy_numbers_its_own_types(void **state)
{
    (void)state;
    tide_type theirs = plugin->type();
    assert_in_range(theirs, TIDE_BUILTIN_COUNT + 1, tide_type_count() + 1);
    tide_type ours = tide_type_register("ours alone", 4, 4);
    assert_int_not_equal(ours, TIDE_NO_TYPE);
    assert_string_equal(tide_type_name(ours), "ours alone");
}

static void a_pool_of_another_copy_is_refused(void **state)
{
    (void)state;
    tide_pool *ours = tide_pool_create(NULL), *theirs = plugin->make_pool();
    assert_int_equal(plugin->acquire(ours), 0);
    expect_plugin_refused();
    assert_int_equal(plugin->reset_pool(ours), TIDE_ERROR_ARGUMENT);
    assert_int_equal(plugin->destroy_pool(ours), TIDE_ERROR_ARGUMENT);
    expect_plugin_refused();
    assert_null(tide_acquire_type(theirs, TIDE_F64, 1));
    expect_refused();
    assert_int_equal(tide_pool_adopt(theirs), TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_pool_destroy(theirs), TIDE_ERROR_ARGUMENT);
    expect_refused();
    expect_ok(tide_pool_check(ours));
    assert_int_equal(tide_pool_depth(ours), 0);
    expect_ok(tide_pool_destroy(ours));
    expect_ok(plugin->destroy_pool(theirs));
}

static void buffers_of_another_copy_are_refused(void **state)
{
    (void)state;
    tide_buffers *ours = tide_buffers_create(NULL, NULL), *theirs = plugin->make_buffers();
    assert_int_equal(plugin->use_buffers(ours), 0);
    expect_plugin_refused();
    assert_int_equal(plugin->destroy_buffers(ours), TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_buffer_acquire(theirs, 5000).generation, 0);
    expect_refused();
    assert_null(tide_pool_create(&(tide_pool_options){.buffers = theirs}));
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    expect_ok(tide_buffers_destroy(ours));
    expect_ok(plugin->destroy_buffers(theirs));
}

typedef struct life {
    pthread_barrier_t used, unloaded;
    int got;
} life;

static void *use_and_outlive(void *state)
{
    life *l = state;
    l->got = plugin->acquire(plugin->local_pool());
    pthread_barrier_wait(&l->used);
    pthread_barrier_wait(&l->unloaded);
    return NULL; /* here the thread's pool of the plugin's copy ends */
}

static void a_copy_that_was_used_stays_loaded(void **state)
{
    (void)state;
    life l;
    pthread_t thread;
    pthread_barrier_init(&l.used, NULL, 2);
    pthread_barrier_init(&l.unloaded, NULL, 2);
    expect_ok(pthread_create(&thread, NULL, use_and_outlive, &l));
    expect_ok(plugin->start_thread());
    pthread_barrier_wait(&l.used);
    expect_ok(dlclose(plugin_handle));
    assert_true(plugin_is_loaded());
    pthread_barrier_wait(&l.unloaded);
    expect_ok(pthread_join(thread, NULL));
    assert_int_equal(l.got, COPIED_ARRAYS);
    assert_int_equal(plugin->acquire(plugin->local_pool()), COPIED_ARRAYS);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plugin_that_was_not_used_goes),
        cmocka_unit_test(each_copy_works_on_what_it_made),
        cmocka_unit_test(each_copy_numbers_its_own_types),
        cmocka_unit_test(a_pool_of_another_copy_is_refused),
        cmocka_unit_test(buffers_of_another_copy_are_refused),
        cmocka_unit_test(a_copy_that_was_used_stays_loaded),
    };
    if (count != 2)
        return EXIT_FAILURE;
    plugin_path = arguments[1];
    return cmocka_run_group_tests_name("contract: copies", tests, NULL, NULL);
}
