/* SPDX-License-Identifier: MIT */
/* The thread that serves: where the system gives none, and where the process exits while another
 * thread waits for its end. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <tidepool/tidepool.h>

#include "../support.h"
#include "jit/events/event.h"

enum { JOINED_TWICE = 7 };

static bool no_thread, join_waits, join_begun;
static char folder[] = "/tmp/tide-threads-XXXXXX";

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *),
                          void *user);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *),
                          void *user);
int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *until);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *),
                          void *user)
{
    return no_thread ? EAGAIN : __real_pthread_create(thread, how, run, user);
}

/* Once it is to wait, it does so for ever. */
int __wrap_pthread_join(pthread_t thread, void **result)
{
    __atomic_store_n(&join_begun, true, __ATOMIC_RELEASE);
    while (join_waits)
        pause();
    return __real_pthread_join(thread, result);
}

int __wrap_pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *until)
{
    (void)thread;
    (void)result;
    (void)until;
    _exit(JOINED_TWICE);
}

static void without_a_thread_nobody_hears_of_events(void **state)
{
    (void)state;
    no_thread = true;
    assert_int_equal(tide_listen(folder), TIDE_ERROR_MEMORY);
    assert_true(tide_events_also == NULL);
    no_thread = false;
    assert_int_equal(tide_listen(folder), TIDE_OK);
    assert_true(tide_events_also != NULL);
    assert_int_equal(tide_listen_end(), TIDE_OK);
    assert_true(tide_events_also == NULL);
}

/* The scene that follows leaves a thread behind, as it should. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "report_thread_leaks=0";
}

static void *end_listening(void *unused)
{
    (void)tide_listen_end();
    return unused;
}

static void exit_while_another_thread_ends_it(void)
{
    pthread_t other;
    if (tide_listen(folder) != TIDE_OK)
        _exit(1);
    join_begun = false;
    join_waits = true;
    if (__real_pthread_create(&other, NULL, end_listening, NULL) != 0)
        _exit(2);
    while (!__atomic_load_n(&join_begun, __ATOMIC_ACQUIRE))
        usleep(1000);
    exit(0);
}

static void a_thread_is_joined_once(void **state)
{
    (void)state;
    pid_t child = fork_child(60);
    if (child == 0)
        exit_while_another_thread_ends_it();
    expect_child_ends_well(child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_is_joined_once),
        cmocka_unit_test(without_a_thread_nobody_hears_of_events),
    };
    tide_tune_set("keeper", 0);
    if (mkdtemp(folder) == NULL)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)rmdir(folder);
    return failed;
}
