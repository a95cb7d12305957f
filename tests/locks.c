/* SPDX-License-Identifier: MIT */
/* The law of locks (runtime/base/lock.h), where asserts hold the code to it: a wrong order and a
 * call of foreign code end the process. */
#define _GNU_SOURCE
#include "forms.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/assert.h"
#include "runtime/base/lock.h"
#include "runtime/base/registry.h"

static void take_in_order(void)
{
    tide_lock outer = TIDE_LOCK(TIDE_FORK_POOLS), inner = TIDE_LOCK(TIDE_FORK_BUFFERS);
    tide_lock_take(&outer);
    tide_registry_lock();
    tide_registry_lock(); /* which one thread may take twice */
    tide_lock_take(&inner);
    tide_lock_let_go(&inner);
    tide_registry_unlock();
    tide_registry_unlock();
    tide_lock_let_go(&outer);
    tide_lock_assert_none();
}

static void take_in_wrong_order(void)
{
    tide_lock inner = TIDE_LOCK(TIDE_FORK_BUFFERS);
    tide_lock_take(&inner);
    tide_registry_lock();
}

static void take_two_of_a_rank(void)
{
    tide_lock first = TIDE_LOCK(TIDE_FORK_BUFFERS), second = TIDE_LOCK(TIDE_FORK_BUFFERS);
    tide_lock_take(&first);
    tide_lock_take(&second);
}

static void leave_with_registry(void)
{
    tide_registry_lock();
    tide_lock_assert_none();
}

/* What a child says on stderr that does this; it has ended by abort, or well. */
static void play(void (*what)(void), const char *says)
{
    int ends[2], status = 0;
    char said[512] = "";
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        what();
        _exit(0);
    }
    close(ends[1]);
    for (size_t at = 0; at < sizeof said - 1;) {
        ssize_t got = read(ends[0], said + at, sizeof said - 1 - at);
        if (got <= 0)
            break;
        at += (size_t)got;
    }
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (says == NULL) {
        assert_int_equal(status, 0);
        assert_string_equal(said, "");
    } else if (strstr(said, says) == NULL) {
        fail_msg("said '%s', not '%s'", said, says);
    } else {
        assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void locks_are_taken_in_the_order_of_their_ranks(void **state)
{
    (void)state;
    play(take_in_order, NULL);
    if (TIDE_ASSERT_LEVEL < 1) {
        print_message("no asserts in this build\n");
        skip();
    }
    play(take_in_wrong_order, "lock_mine >> rank == 0");
    play(take_two_of_a_rank, "lock_mine >> rank == 0");
}

static void code_that_is_not_ours_is_called_with_none_held(void **state)
{
    (void)state;
    if (TIDE_ASSERT_LEVEL < 1)
        skip();
    play(leave_with_registry, "lock_mine == 0");
}

static tide_lock contended = TIDE_LOCK(TIDE_FORK_BUFFERS);
static unsigned uses;

/* By a plain addition: one is lost where two threads have the lock at once. */
static void *take_often(void *own)
{
    for (size_t i = 0; i < scaled(100000, 3000); i++) {
        if (i % 8 != 0)
            tide_lock_take(&contended);
        else if (!tide_lock_try(&contended))
            continue;
        uses++;
        ++*(unsigned *)own;
        tide_lock_let_go(&contended);
    }
    return NULL;
}

static void one_thread_has_it_at_a_time(void **state)
{
    (void)state;
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    unsigned own[THREADS] = {0}, all = 0;
    uses = 0;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_often, &own[i]), 0);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        all += own[i];
    }
    assert_int_equal(uses, all);
    assert_true(all >= THREADS * (scaled(100000, 3000) * 7 / 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locks_are_taken_in_the_order_of_their_ranks),
        cmocka_unit_test(code_that_is_not_ours_is_called_with_none_held),
        cmocka_unit_test(one_thread_has_it_at_a_time),
    };
    return cmocka_run_group_tests_name("locks", tests, NULL, NULL);
}
