/* SPDX-License-Identifier: MIT */
/* The law of locks (runtime/base/lock.h), where asserts hold the code to it: a wrong order and a
 * call of foreign code end the process with a line that names the locks. And what who waits for a
 * lock does meanwhile. */
#define _GNU_SOURCE
#include "forms.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/assert.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
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
    play(take_in_wrong_order,
         "order of locks: that of the registry is taken while that of buffers is held");
    play(take_two_of_a_rank,
         "order of locks: that of buffers is taken while that of buffers is held");
}

static void code_that_is_not_ours_is_called_with_none_held(void **state)
{
    (void)state;
    if (TIDE_ASSERT_LEVEL < 1)
        skip();
    play(leave_with_registry,
         "code that is not ours is called while the lock of the registry is held");
}

/* ---- waiting ------------------------------------------------------------------------------- */

static tide_lock contended = TIDE_LOCK(TIDE_FORK_BUFFERS);
static int waiter; /* atomic: the thread that wants it; 0: there is none yet */
static unsigned uses;

static void *take_once(void *unused)
{
    __atomic_store_n(&waiter, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
    tide_lock_take(&contended);
    uses++;
    tide_lock_let_go(&contended);
    return unused;
}

/* A thread that has come as far as it can without the lock, which the caller has. */
static pthread_t start_waiter(void)
{
    pthread_t thread;
    waiter = 0;
    alarm(60);
    assert_int_equal(pthread_create(&thread, NULL, take_once, &waiter), 0);
    while (__atomic_load_n(&waiter, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
    while (system_state(waiter) != 'S') /* one that looked for ever would not be asleep */
        sched_yield();
    alarm(0);
    return thread;
}

static void who_waits_for_long_sleeps(void **state)
{
    (void)state;
    uses = 0;
    tide_lock_take(&contended);
    pthread_t thread = start_waiter();
    assert_int_equal(uses, 0);
    tide_lock_let_go(&contended);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(uses, 1);
}

/* Held as around a fork; the child has the forking thread only, which lets go. */
static void a_child_finds_no_trace_of_who_waited(void **state)
{
    (void)state;
    uses = 0;
    tide_lock_take_with_others(&contended);
    pthread_t thread = start_waiter();
    pid_t child = fork_child(60);
    if (child == 0) {
        tide_lock_let_go_with_others(&contended);
        CHILD_MUST(tide_lock_try(&contended));
        tide_lock_let_go(&contended);
        CHILD_MUST(uses == 0);
        _exit(0);
    }
    expect_child_ends_well(child);
    tide_lock_let_go_with_others(&contended);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(uses, 1);
}

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

/* ---- ended by who takes it next ------------------------------------------------------------ */

static tide_lock *going; /* its memory is another's as soon as it is unlocked */

#ifdef __has_feature
#define HAS(what) __has_feature(what)
#else
#define HAS(what) 0
#endif

#if defined(__SANITIZE_THREAD__) || HAS(thread_sanitizer) /* it has to see each unlock itself */
enum { WATCHES_UNLOCKS = 0 };
#else
enum { WATCHES_UNLOCKS = 1 };

/* In place of the C library's. */
int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    static int (*unlock)(pthread_mutex_t *);
    if (unlock == NULL)
        *(void **)&unlock = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    int error = unlock(mutex);
    if (going != NULL && mutex == &going->mutex) {
        memset(going, 0xFF, sizeof *going);
        going = NULL;
    }
    return error;
}
#endif

static void nothing_of_a_lock_is_read_once_it_is_unlocked(void **state)
{
    (void)state;
    tide_lock lock;
    if (!WATCHES_UNLOCKS)
        skip();
    tide_lock_create(&lock, TIDE_FORK_BUFFERS);
    tide_lock_take(&lock);
    going = &lock;
    tide_lock_let_go(&lock);
    assert_null(going);
    assert_false(tide_lock_held_any());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locks_are_taken_in_the_order_of_their_ranks),
        cmocka_unit_test(code_that_is_not_ours_is_called_with_none_held),
        cmocka_unit_test(who_waits_for_long_sleeps),
        cmocka_unit_test(a_child_finds_no_trace_of_who_waited),
        cmocka_unit_test(one_thread_has_it_at_a_time),
        cmocka_unit_test(nothing_of_a_lock_is_read_once_it_is_unlocked),
    };
    return cmocka_run_group_tests_name("locks", tests, NULL, NULL);
}
