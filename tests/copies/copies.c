/* SPDX-License-Identifier: MIT */
/* A program with the shared library, and plugins with copies of their own: what one copy made is
 * refused by the others, and nothing is damaged. Arguments: such plugins. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <dlfcn.h>

#include <cmocka.h>

#include <tidepool/tidepool.h>

#include "tests/copies/copied.h"

enum { PLUGINS = 2 };

static const copied_calls *plugins[PLUGINS];

/* As many types of the program as make it likely that one has the number of a plugin's, were the
 * numbers not apart; each is small, so that a plugin's element would not fit. */
typedef struct small {
    char byte;
} small;

static tide_type program_types[8];

static void register_types(void)
{
    static const char *const names[] = {"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        program_types[i] = tide_type_register(names[i], sizeof(small), 1);
        assert_int_not_equal(program_types[i], TIDE_NO_TYPE);
    }
}

/* A pool in which each of these types has a slot ready for the elements of a plugin's array. */
static tide_pool *make_ready_pool(void)
{
    tide_pool *pool = tide_pool_create(NULL);
    assert_non_null(pool);
    for (size_t i = 0; i < sizeof program_types / sizeof *program_types; i++)
        for (int k = 0; k < 3; k++)
            assert_non_null(tide_acquire_type(pool, program_types[i], COPIED_COUNT + 1));
    assert_int_equal(tide_pool_reset(pool), TIDE_OK);
    return pool;
}

static void expect_refused(const copied_calls *by)
{
    assert_int_equal(by->status(), TIDE_ERROR_ARGUMENT);
    if (strstr(by->message(), "another copy of the library") == NULL)
        fail_msg("'%s'", by->message());
}

static void a_plugin_refuses_the_pool_of_the_program(void **state)
{
    (void)state;
    for (int i = 0; i < PLUGINS; i++) {
        tide_pool *pool = make_ready_pool();
        assert_int_equal(plugins[i]->acquire(pool), 0);
        expect_refused(plugins[i]);
        assert_int_equal(plugins[i]->cold(pool), TIDE_ERROR_ARGUMENT);
        expect_refused(plugins[i]);
        assert_int_equal(plugins[i]->destroy_pool(pool), TIDE_ERROR_ARGUMENT);
        expect_refused(plugins[i]);
        assert_int_equal(tide_pool_check(pool), TIDE_OK);
        assert_int_equal(tide_pool_depth(pool), 0);
        assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
    }
}

static int fill(void *array, size_t bytes)
{
    if (array != NULL)
        memset(array, 0x5a, bytes);
    return array != NULL;
}

static void the_program_refuses_the_pool_of_a_plugin(void **state)
{
    static const copied_calls program = {.message = tide_error_message,
                                         .status = tide_error_status};
    (void)state;
    for (int i = 0; i < PLUGINS; i++) {
        tide_pool *pool = plugins[i]->make_pool();
        assert_int_equal(plugins[i]->acquire(pool), 7); /* its shelf is ready */
        assert_null(tide_acquire_type(pool, program_types[0], 1));
        expect_refused(&program);
        {
            TIDE_SCOPE_TYPES(pool, small);
            assert_int_equal(fill(tide_acquire(pool, small, 10), 10), 0);
            TIDE_FRAME(pool, (small, a, 10));
            assert_null(a);
        }
        expect_refused(&program);
        assert_int_equal(tide_pool_adopt(pool), TIDE_ERROR_ARGUMENT);
        assert_int_equal(tide_pool_destroy(pool), TIDE_ERROR_ARGUMENT);
        expect_refused(&program);
        assert_int_equal(plugins[i]->cold(pool), TIDE_OK);
        assert_int_equal(plugins[i]->destroy_pool(pool), TIDE_OK);
    }
}

static void two_plugins_refuse_each_others_pools(void **state)
{
    (void)state;
    tide_pool *pool = plugins[0]->make_pool();
    assert_int_equal(plugins[0]->acquire(pool), 7);
    assert_int_not_equal(plugins[0]->type(), plugins[1]->type());
    assert_int_equal(plugins[1]->acquire(pool), 0);
    expect_refused(plugins[1]);
    assert_int_equal(plugins[0]->cold(pool), TIDE_OK);
    assert_int_equal(plugins[0]->destroy_pool(pool), TIDE_OK);
}

/* Built-in types are the same in every copy: what is ready may be had, what is not is refused. */
static void built_in_types_do_no_harm(void **state)
{
    (void)state;
    tide_pool *pool = tide_pool_create(NULL);
    assert_non_null(tide_acquire(pool, double, 100));
    assert_int_equal(tide_pool_reset(pool), TIDE_OK);
    for (int i = 0; i < PLUGINS; i++) {
        (void)plugins[i]->acquire_builtin(pool, 100);
        assert_int_equal(plugins[i]->acquire_builtin(pool, 100000), 0);
        expect_refused(plugins[i]);
        assert_int_equal(tide_pool_check(pool), TIDE_OK);
        assert_int_equal(tide_pool_depth(pool), 0);
    }
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
}

static void buffers_and_devices_are_refused_too(void **state)
{
    (void)state;
    tide_buffers *ours = tide_buffers_create(NULL, NULL);
    tide_buffer cached = tide_buffer_acquire(ours, 5000);
    assert_int_equal(tide_buffer_release(ours, cached), TIDE_OK);
    for (int i = 0; i < PLUGINS; i++) {
        tide_buffers *theirs = plugins[i]->make_buffers();
        assert_int_equal(plugins[i]->use_buffers(theirs), 20);
        assert_int_equal(plugins[i]->use_buffers(ours), 0);
        expect_refused(plugins[i]);
        assert_int_equal(plugins[i]->destroy_buffers(ours), TIDE_ERROR_ARGUMENT);
        assert_int_equal(tide_buffer_acquire(theirs, 5000).generation, 0);
        assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
        assert_null(tide_pool_create(&(tide_pool_options){.buffers = theirs}));
        assert_null(tide_pool_create(&(tide_pool_options){.device = plugins[i]->host()}));
        assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
        assert_int_equal(plugins[i]->destroy_buffers(theirs), TIDE_OK);
    }
    assert_int_equal(tide_buffers_destroy(ours), TIDE_OK);
}

static void each_copy_works_for_itself(void **state)
{
    (void)state;
    for (int i = 0; i < PLUGINS; i++) {
        assert_int_equal(plugins[i]->use(), plugins[i]->use_all());
        assert_null(tide_type_name(plugins[i]->type())); /* the program does not know it */
    }
}

int main(int count, char **paths)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plugin_refuses_the_pool_of_the_program),
        cmocka_unit_test(the_program_refuses_the_pool_of_a_plugin),
        cmocka_unit_test(two_plugins_refuse_each_others_pools),
        cmocka_unit_test(built_in_types_do_no_harm),
        cmocka_unit_test(buffers_and_devices_are_refused_too),
        cmocka_unit_test(each_copy_works_for_itself),
    };
    if (count != 1 + PLUGINS)
        return EXIT_FAILURE;
    register_types();
    for (int i = 0; i < PLUGINS; i++) {
        const copied_calls *(*get)(void);
        void *handle = dlopen(paths[1 + i], RTLD_NOW | RTLD_LOCAL);
        void *found = handle != NULL ? dlsym(handle, "copied_get") : NULL;
        if (found == NULL)
            return EXIT_FAILURE;
        memcpy(&get, &found, sizeof found);
        plugins[i] = get();
    }
    return cmocka_run_group_tests_name("copies", tests, NULL, NULL);
}
