/* SPDX-License-Identifier: MIT */
/* The thread that serves: where the system gives none, where the process exits while another thread
 * waits for its end or begins it, and where one forks while it begins; names that it removes. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <tidepool/tidepool.h>

#include "../support.h"
#include "jit/events/event.h"

enum { JOINED_TWICE = 7 };

static bool no_thread, comes_late, join_waits, join_begun, forks, exits;
static char folder[] = "/tmp/tide-threads-XXXXXX";
static pid_t forked;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *),
                          void *user);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *),
                          void *user);
int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);
int __real_pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *until);
int __wrap_pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *until);

/* Threads that were made while threads come late: each has its place. */
static struct late {
    void *(*run)(void *);
    void *user;
} lates[64];
static unsigned late_count;

static void *run_late(void *place)
{
    const struct late *late = place;
    usleep(200000);
    return late->run(late->user);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *),
                          void *user)
{
    if (no_thread)
        return EAGAIN;
    if (!comes_late)
        return __real_pthread_create(thread, how, run, user);
    struct late *late = &lates[late_count++ % (sizeof lates / sizeof *lates)];
    *late = (struct late){run, user};
    return __real_pthread_create(thread, how, run_late, late);
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
    if (join_waits)
        _exit(JOINED_TWICE);
    return __real_pthread_timedjoin_np(thread, result, until);
}

/* ---- forks -------------------------------------------------------------------------------- */

static const char *socket_of(const char *place, pid_t pid)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%d.sock", place, (int)pid);
    return path;
}

static bool comes_to_be(const char *path)
{
    for (int i = 0; i < 20000 && access(path, F_OK) != 0; i++)
        usleep(1000);
    return access(path, F_OK) == 0;
}

/* A child listens by itself, from its first pool on, where its parent does or was about to. */
static void listen_as_the_parent(void)
{
    bool good = tide_pool_create(NULL) != NULL && comes_to_be(socket_of(folder, getpid()));
    bool ended = false; /* it may be about to have begun */
    for (int i = 0; i < 20000 && good && !ended; i++) {
        ended = tide_listen_end() == TIDE_OK;
        usleep(ended ? 0 : 1000);
    }
    _exit(good && ended ? 0 : 1); /* what the parent's other threads hold is lost here */
}

/* It may call tide_listen, too, for a place of its own. The parent's socket is no longer there. */
static void listen_elsewhere(void)
{
    char own[sizeof folder + 10];
    snprintf(own, sizeof own, "%s/child", folder);
    bool good = tide_listen(own) == TIDE_OK && access(socket_of(own, getpid()), F_OK) == 0 &&
                access(socket_of(folder, getpid()), F_OK) != 0 && tide_pool_create(NULL) != NULL &&
                tide_listen_end() == TIDE_OK && access(socket_of(own, getpid()), F_OK) != 0 &&
                rmdir(own) == 0;
    _exit(good ? 0 : 1);
}

static void *fork_one(void *unused)
{
    forked = fork_child(60);
    if (forked == 0)
        listen_as_the_parent();
    return unused;
}

/* ---- the end of the process ----------------------------------------------------------------- */

static void (*after_exit)(void); /* what is to happen when all handlers have run */
static size_t sleeps;
static bool exit_passed, begin_passed;
static tide_status begun;

int __real_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    __atomic_fetch_add(&sleeps, 1, __ATOMIC_RELAXED);
    return __real_nanosleep(time, left);
}

__attribute__((destructor)) static void run_after_exit(void)
{
    if (after_exit != NULL)
        after_exit();
}

static void *exit_now(void *unused)
{
    (void)unused;
    exit(1);
}

/* Returns when the handlers of this library have run. */
static void exit_elsewhere(void)
{
    pthread_t other;
    exits = false;
    assert_int_equal(__real_pthread_create(&other, NULL, exit_now, NULL), 0);
    while (!__atomic_load_n(&exit_passed, __ATOMIC_ACQUIRE))
        usleep(1000);
}

static void see_that_it_has_not_begun(void)
{
    __atomic_store_n(&exit_passed, true, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&begin_passed, __ATOMIC_ACQUIRE))
        usleep(1000);
    _exit(begun == TIDE_ERROR_STATE && access(socket_of(folder, getpid()), F_OK) != 0 ? 0 : 1);
}

static void begin_while_the_process_ends(void)
{
    after_exit = see_that_it_has_not_begun;
    exits = true;
    begun = tide_listen(folder);
    __atomic_store_n(&begin_passed, true, __ATOMIC_RELEASE);
    while (true)
        pause();
}

static void what_begins_when_the_process_ends_has_not_begun(void **state)
{
    (void)state;
    pid_t child = fork_child(60);
    if (child == 0)
        begin_while_the_process_ends();
    expect_child_ends_well(child);
}

static void begin_after_exit(void)
{
    size_t before = __atomic_load_n(&sleeps, __ATOMIC_RELAXED);
    bool refused = tide_listen(folder) == TIDE_ERROR_STATE;
    _exit(refused && __atomic_load_n(&sleeps, __ATOMIC_RELAXED) == before ? 0 : 1);
}

/* What it would be waited for never comes. */
static void after_the_end_nothing_is_waited_for(void **state)
{
    (void)state;
    pid_t child = fork_child(60);
    if (child == 0) {
        comes_late = true;
        tide_tune_set("listen", 1);
        if (tide_pool_create(NULL) == NULL)
            _exit(2);
        after_exit = begin_after_exit;
        exit(3);
    }
    expect_child_ends_well(child);
}

/* After the socket was made, and before there is a thread for it. */
int __real_pthread_sigmask(int how, const sigset_t *set, sigset_t *before);
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *before);
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    pthread_t other;
    if (forks && before != NULL) {
        forks = false;
        assert_int_equal(__real_pthread_create(&other, NULL, fork_one, NULL), 0);
        assert_int_equal(__real_pthread_join(other, NULL), 0);
    }
    if (exits && before != NULL)
        exit_elsewhere();
    return __real_pthread_sigmask(how, set, before);
}

static void a_fork_while_it_begins_keeps_the_folder(void **state)
{
    (void)state;
    forked = 0;
    forks = true;
    assert_int_equal(tide_listen(folder), TIDE_OK);
    assert_true(forked > 0 && !forks);
    assert_int_equal(access(socket_of(folder, getpid()), F_OK), 0);
    expect_child_ends_well(forked);
    assert_int_equal(access(socket_of(folder, getpid()), F_OK), 0);
    assert_int_equal(tide_listen_end(), TIDE_OK);
}

static void a_child_of_one_that_listens_may_listen_elsewhere(void **state)
{
    (void)state;
    assert_int_equal(tide_listen(folder), TIDE_OK);
    for (int i = 0; i < 2; i++) {
        pid_t child = fork_child(60);
        if (child == 0 && i == 0)
            listen_elsewhere();
        if (child == 0)
            listen_as_the_parent();
        expect_child_ends_well(child);
        assert_int_equal(access(socket_of(folder, getpid()), F_OK), 0);
    }
    assert_int_equal(tide_listen_end(), TIDE_OK);
}

static void begin_while_it_begins_by_itself(void)
{
    char path[sizeof folder + 10];
    comes_late = true;
    tide_tune_set("listen", 1);
    bool good = tide_pool_create(NULL) != NULL && tide_listen(folder) == TIDE_OK;
    snprintf(path, sizeof path, "%s/tidepool", folder);
    good = good && access(socket_of(path, getpid()), F_OK) == 0 && tide_listen_end() == TIDE_OK;
    exit(good && rmdir(path) == 0 ? 0 : 1);
}

/* In a child that has not listened yet. */
static void what_begins_by_itself_is_waited_for(void **state)
{
    (void)state;
    pid_t child = fork_child(60);
    if (child == 0)
        begin_while_it_begins_by_itself();
    expect_child_ends_well(child);
}

/* ---- names -------------------------------------------------------------------------------- */

static const char *taken_anew; /* somebody listens by this name once it was found dead */
static int taker = -1;

static int bind_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_int_equal(bind(made, (struct sockaddr *)&address, sizeof address), 0);
    return made;
}

int __real_connect(int number, const struct sockaddr *address, socklen_t size);
int __wrap_connect(int number, const struct sockaddr *address, socklen_t size);
int __wrap_connect(int number, const struct sockaddr *address, socklen_t size)
{
    const char *path = taken_anew;
    int connected = __real_connect(number, address, size), failed = errno;
    if (connected != 0 && path != NULL) {
        taken_anew = NULL;
        assert_int_equal(unlink(path), 0);
        taker = bind_to(path);
        assert_int_equal(listen(taker, 1), 0);
    }
    errno = failed;
    return connected;
}

/* By a process that executes another program, while this one removes names of the dead. */
static void a_name_that_is_taken_anew_stays(void **state)
{
    char path[sizeof folder + 10];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)state;
    snprintf(path, sizeof path, "%s/1.sock", folder);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    for (int anew = 0; anew < 2; anew++) {
        close(bind_to(path));
        taken_anew = anew == 1 ? path : NULL;
        assert_int_equal(tide_listen(folder), TIDE_OK);
        assert_true(taken_anew == NULL && (access(path, F_OK) == 0) == (anew == 1));
        assert_int_equal(tide_listen_end(), TIDE_OK);
    }
    int caller = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(__real_connect(caller, (struct sockaddr *)&address, sizeof address), 0);
    close(caller);
    close(taker);
    assert_int_equal(unlink(path), 0);
}

/* ---- its turn ----------------------------------------------------------------------------- */

/* The thread of that name in this process; 0: none. */
static pid_t find_thread(const char *name)
{
    DIR *list = opendir("/proc/self/task");
    pid_t found = 0;
    assert_non_null(list);
    for (struct dirent *entry; found == 0 && (entry = readdir(list)) != NULL;) {
        char path[300], called[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *in = fopen(path, "re");
        if (in != NULL && fgets(called, sizeof called, in) != NULL)
            called[strcspn(called, "\n")] = '\0';
        if (in != NULL)
            fclose(in);
        if (strcmp(called, name) == 0)
            found = atoi(entry->d_name);
    }
    closedir(list);
    return found;
}

/* Whoever has it made is bound to one processor. */
static void it_takes_no_processor_from_its_creator(void **state)
{
    (void)state;
    cpu_set_t before, one, its;
    pid_t thread = 0;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (size_t i = 0; CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &before))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(tide_listen(folder), TIDE_OK);
    for (int i = 0; i < 20000 && (thread == 0 || sched_getscheduler(thread) != SCHED_BATCH); i++) {
        usleep(1000);
        thread = find_thread("tide-listen");
    }
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(sched_getscheduler(thread), SCHED_BATCH);
    assert_int_equal(sched_getaffinity(thread, sizeof its, &its), 0);
    assert_true(CPU_COUNT(&its) >= CPU_COUNT(&before)); /* more, where the test itself was bound */
    assert_int_equal(tide_listen_end(), TIDE_OK);
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

/* The scene that follows leaves a thread behind, as it should; and children get threads. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "report_thread_leaks=0:die_after_fork=0";
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

/* ---- cancellation ---- */

static unsigned came_through;

__attribute__((no_sanitize_address)) static void *listen_cancelled(void *unused)
{
    (void)unused;
    pthread_cancel(pthread_self());
    tide_status listens = tide_listen(folder);
    came_through += listens == TIDE_OK;
    tide_status ended = tide_listen_end();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    came_through += ended == TIDE_OK;
    return NULL;
}

/* Or others would find it beginning, or ending, for ever. */
static void who_begins_or_ends_it_is_not_cancelled(void **state)
{
    pthread_t thread;
    (void)state;
    assert_int_equal(__real_pthread_create(&thread, NULL, listen_cancelled, NULL), 0);
    assert_int_equal(__real_pthread_join(thread, NULL), 0);
    assert_int_equal(came_through, 2);
    assert_int_equal(tide_listen(folder), TIDE_OK);
    assert_int_equal(tide_listen_end(), TIDE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_is_joined_once),
        cmocka_unit_test(what_begins_by_itself_is_waited_for),
        cmocka_unit_test(what_begins_when_the_process_ends_has_not_begun),
        cmocka_unit_test(after_the_end_nothing_is_waited_for),
        cmocka_unit_test(a_fork_while_it_begins_keeps_the_folder), /* it had none before */
        cmocka_unit_test(a_name_that_is_taken_anew_stays),
        cmocka_unit_test(it_takes_no_processor_from_its_creator),
        cmocka_unit_test(without_a_thread_nobody_hears_of_events),
        cmocka_unit_test(a_child_of_one_that_listens_may_listen_elsewhere),
        cmocka_unit_test(who_begins_or_ends_it_is_not_cancelled),
    };
    tide_tune_set("background", 0);
    if (mkdtemp(folder) == NULL || setenv("XDG_RUNTIME_DIR", folder, 1) != 0)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)rmdir(folder);
    return failed;
}
