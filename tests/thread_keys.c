/* SPDX-License-Identifier: MIT */
/* A program that has used up all thread keys: its threads get no pools of their own, and are told. */
#define _GNU_SOURCE
#include "forms.h"

#include <limits.h>
#include <pthread.h>

static void without_a_key_a_thread_has_no_pool_and_a_message(void **state)
{
    (void)state;
    pthread_key_t key;
    unsigned made = 0;
    while (made < PTHREAD_KEYS_MAX && pthread_key_create(&key, NULL) == 0)
        made++;
    assert_true(made > 0);
    assert_null(tide_pool_local());
    assert_int_equal(tide_error_status(), TIDE_ERROR_LIMIT);
    assert_non_null(strstr(tide_error_message(), "thread key"));
    tide_pool *pool = tide_pool_create(NULL);
    assert_non_null(pool); /* all else works */
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_key_a_thread_has_no_pool_and_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
