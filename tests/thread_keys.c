/* SPDX-License-Identifier: MIT */
/* A program that has used up all thread keys: its threads get no pools of their own, and are told;
 * buffers work without anything of a thread's own. The library has one key for all of this
 * (runtime/base/thread.h), so that is all that can miss. */
#define _GNU_SOURCE
#include "forms.h"

#include <limits.h>
#include <pthread.h>

#include <tidepool/buffers.h>

static void use_up_keys(void)
{
    pthread_key_t key;
    unsigned made = 0;
    while (made < PTHREAD_KEYS_MAX && pthread_key_create(&key, NULL) == 0)
        made++;
    assert_true(made > 0);
}

/* The first failure of a thread: even the text of it has no place of its own. */
static void *be_refused(void *unused)
{
    (void)unused;
    assert_null(tide_pool_local());
    assert_int_equal(tide_error_status(), TIDE_ERROR_LIMIT);
    assert_non_null(strstr(tide_error_message(), "no thread key left"));
    assert_int_equal(tide_pool_destroy(tide_pool_create(NULL)), TIDE_OK); /* all else works */
    assert_int_equal(tide_type_register("", 1, 1), TIDE_NO_TYPE);
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    assert_string_not_equal(tide_error_message(), "");
    return NULL;
}

static void without_a_key_a_thread_has_no_pool_and_a_message(void **state)
{
    (void)state;
    pthread_t thread;
    use_up_keys();
    be_refused(NULL);
    be_refused(NULL);
    assert_int_equal(pthread_create(&thread, NULL, be_refused, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void without_a_key_buffers_are_everybodys(void **state)
{
    (void)state;
    tide_buffers *buffers = tide_buffers_create(NULL, NULL);
    assert_non_null(buffers);
    for (int i = 0; i < 10; i++) {
        tide_buffer buffer = tide_buffer_acquire(buffers, 1000);
        assert_int_not_equal(buffer.generation, 0);
        assert_int_equal(tide_buffer_release(buffers, buffer), TIDE_OK);
    }
    tide_buffers_statistics stats;
    assert_int_equal(tide_buffers_stats(buffers, &stats, NULL, 0), TIDE_OK);
    assert_int_equal(stats.misses, 1); /* the others found it in the depot */
    assert_int_equal(tide_buffers_destroy(buffers), TIDE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_key_a_thread_has_no_pool_and_a_message),
        cmocka_unit_test(without_a_key_buffers_are_everybodys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
