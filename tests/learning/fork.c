/* SPDX-License-Identifier: MIT */
/* Children of a process that has learned go on learning, as the workers of a server do that forks
 * them when it is warm: each has its own keeper and stager as soon as it needs them, and what
 * threads were doing that the child does not have holds up nothing. */
#define _GNU_SOURCE
#include "learning.h"

#include <pthread.h>
#include <stdio.h>

#include <tidepool/generic.h>
#include <tidepool/learn.h>
#include <tidepool/site.h>
#include <tidepool/upkeep.h>

enum { WORKERS = 4, THREADS = 3 };

static void fork_set_keeper(double on)
{
    set("background", on);
    set("keeper_period", 1);
    set("window_every", 1e6); /* no window opens by itself once a site has settled */
}

/* Uses the site, and does no round, until its uses are executed by compiled code. */
static void fork_until_executed(const use *u, unsigned times)
{
    for (unsigned i = 0; i < PATIENCE_MS; i++) {
        uint64_t runs = runs_of(u->site), misses = misses_of(u->site);
        for (unsigned j = 0; j < times; j++)
            CHILD_MUST(use_once(u));
        if (tier_of(u->site) == TIDE_TIER_COMPILED && runs_of(u->site) == runs + times &&
            misses_of(u->site) == misses)
            return;
        usleep(1000);
    }
    CHILD_MUST(!"it is compiled");
}

/* ---- workers ------------------------------------------------------------------------------ */

static use fork_old; /* known and compiled when the workers are forked */

/* A site that the parent never used. */
static void fork_learn_new(tide_pool *pool)
{
    use born = {.site = tide_site_register("fork: born in a worker"), .pool = pool, .count = 2};
    born.types[0] = TIDE_F64;
    born.types[1] = TIDE_I32;
    CHILD_MUST(born.site != NULL && runs_of(born.site) == 0);
    fork_until_executed(&born, 100);
}

/* Old code goes on; then the types change, which only a keeper of the worker's own can notice. */
static void fork_restage_old(tide_pool *pool)
{
    use changed = fork_old;
    changed.pool = pool;
    uint64_t compiles = info_of(fork_old.site).compiles;
    fork_until_executed(&changed, 100); /* a use that serves a request is cold code, at any time */
    CHILD_MUST(info_of(fork_old.site).compiles == compiles);
    changed.types[0] = TIDE_F32;
    changed.types[1] = TIDE_I64;
    changed.types[2] = TIDE_U8;
    changed.count = 3;
    fork_until_executed(&changed, 100);
    CHILD_MUST(info_of(fork_old.site).compiles > compiles);
}

static void *fork_restage_in_a_thread(void *unused)
{
    fork_restage_old(tide_pool_local());
    return unused;
}

/* Each in a worker of its own. */
static void fork_work(unsigned which)
{
    pthread_t thread;
    uint64_t stagers = learned().stagers;
    CHILD_MUST(!tide_background_running());
    switch (which) {
    case 0: fork_learn_new(learning_pool); break;
    case 1: fork_restage_old(learning_pool); break;
    case 2:
        CHILD_MUST(pthread_create(&thread, NULL, fork_restage_in_a_thread, NULL) == 0);
        CHILD_MUST(pthread_join(thread, NULL) == 0);
        break;
    default: { /* a worker's worker */
        pid_t child = fork();
        if (child != 0) {
            CHILD_MUST(wait_for_child(child) == 0);
            exit(0);
        }
        alarm(100);
        fork_restage_old(learning_pool);
        fork_learn_new(learning_pool);
    }
    }
    CHILD_MUST(tide_background_running() && learned().stagers > stagers);
    CHILD_MUST(tide_pool_check(learning_pool) == TIDE_OK);
    exit(0);
}

static void workers_of_a_warm_server_go_on_learning(void **state)
{
    (void)state;
    need_stager();
    if (under_thread_sanitizer()) {
        print_message("ThreadSanitizer wants no threads in a child\n");
        skip();
    }
    fork_set_keeper(1);
    fork_old = use_of("fork: old", TIDE_KIND_SCOPE, learning_pool, 2, TIDE_F64, TIDE_I32);
    fork_until_executed(&fork_old, 100);
    while (info_of(fork_old.site).observed)
        use_times(&fork_old, 50);
    assert_true(tide_background_running());
    pid_t workers[WORKERS];
    for (unsigned i = 0; i < WORKERS; i++)
        if ((workers[i] = fork_child(100)) == 0)
            fork_work(i);
    for (unsigned i = 0; i < WORKERS; i++)
        expect_child_ends_well(workers[i]);
    assert_true(tide_background_running());
    fork_until_executed(&fork_old, 100);
    expect_ok(tide_background_stop());
}

/* A program that keeps the keeper away has none in its workers either. */
static void a_worker_gets_no_keeper_that_the_server_refused(void **state)
{
    (void)state;
    fork_set_keeper(1);
    expect_ok(tide_background_start());
    expect_ok(tide_background_stop());
    use u = use_of("fork: alone", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    pid_t child = fork_child(100);
    if (child == 0) {
        for (unsigned i = 0; i < 500; i++)
            CHILD_MUST(use_once(&u));
        CHILD_MUST(!tide_background_running());
        exit(0);
    }
    expect_child_ends_well(child);
}

/* What dispatches share is there in the child, and needs no stager of its own. */
static void a_child_shares_the_code_of_its_parents_dispatches(void **state)
{
    (void)state;
    need_stager();
    use old = use_of("fork: dispatch", TIDE_KIND_DISPATCH, NULL, 1, TIDE_F64);
    use born = use_of("fork: dispatch of the child", TIDE_KIND_DISPATCH, NULL, 1, TIDE_I32);
    until(&old, TIDE_TIER_COMPILED);
    pid_t child = fork_child(100);
    if (child == 0) {
        uint64_t compiled = learned().compiled, stagers = learned().stagers,
                 runs = runs_of(old.site);
        CHILD_MUST(tide_site_declare_dispatch(born.site, born.generic, born.types, 1) == TIDE_OK);
        CHILD_MUST(tide_settle(PATIENCE_MS) == TIDE_OK);
        CHILD_MUST(tier_of(born.site) == TIDE_TIER_COMPILED);
        CHILD_MUST(learned().compiled == compiled && learned().stagers == stagers);
        for (unsigned i = 0; i < 100; i++)
            CHILD_MUST(use_once(&born) && use_once(&old));
        CHILD_MUST(runs_of(born.site) == 100 && runs_of(old.site) == runs + 100);
        exit(0);
    }
    expect_child_ends_well(child);
    expect_executed(&old, 100);
}

/* ---- what other threads were doing ---------------------------------------------------------- */

static use fork_tried, fork_watched;
static bool fork_stop; /* atomic */

static void *fork_use_both(void *unused)
{
    use tried = fork_tried, watched = fork_watched;
    tried.pool = watched.pool = tide_pool_local();
    while (!__atomic_load_n(&fork_stop, __ATOMIC_RELAXED))
        if (!use_once(&tried) || !use_once(&watched))
            return (void *)(uintptr_t)1;
    return unused;
}

/* The trial and the window that were under way come to their ends in the child, though those who
 * were inside them are not there. */
static void fork_end_trial(void)
{
    for (unsigned i = 0; i < 200 && tier_of(fork_tried.site) != TIDE_TIER_COMPILED &&
                         strstr(reason_of(fork_tried.site), "its trial") == NULL;
         i++) {
        for (unsigned j = 0; j < 1000; j++)
            CHILD_MUST(use_once(&fork_tried));
        CHILD_MUST(tide_step() == TIDE_OK);
    }
    CHILD_MUST(tier_of(fork_tried.site) == TIDE_TIER_COMPILED ||
               strstr(reason_of(fork_tried.site), "its trial") != NULL);
    for (unsigned i = 0; i < 200 && info_of(fork_watched.site).observed; i++)
        for (unsigned j = 0; j < 1000; j++)
            CHILD_MUST(use_once(&fork_watched));
    CHILD_MUST(!info_of(fork_watched.site).observed);
    CHILD_MUST(tide_settle(PATIENCE_MS) == TIDE_OK);
    /* AddressSanitizer looks for leaks at exit, and waits for a lock of its own that another thread
     * may have had when the process forked. */
    if (under_sanitizer())
        _exit(0);
    exit(0);
}

static void fork_begin_trial(void)
{
    for (unsigned i = 0; i < 100 && strcmp(reason_of(fork_tried.site), "compiled; on trial") != 0;
         i++) {
        use_times(&fork_tried, 210);
        settle();
    }
    assert_string_equal(reason_of(fork_tried.site), "compiled; on trial");
}

static void a_fork_in_the_middle_of_trials_and_windows(void **state)
{
    (void)state;
    need_stager();
    fork_set_keeper(0);
    set("trial", 1);
    set("trial_calls", 1e4);
    set("trial_burst", 256);
    fork_tried = use_of("fork: tried", TIDE_KIND_SCOPE, learning_pool, 2, TIDE_F64, TIDE_I32);
    fork_begin_trial();
    set("window_calls", 1e5);
    fork_watched = use_of("fork: watched", TIDE_KIND_SCOPE, learning_pool, 2, TIDE_F64, TIDE_I32);
    use_times(&fork_watched, 1);
    assert_true(info_of(fork_watched.site).observed);
    for (size_t i = 0, most = scaled(10, 3); i < most; i++) {
        pthread_t threads[THREADS];
        fork_stop = false;
        for (unsigned j = 0; j < THREADS; j++)
            assert_int_equal(pthread_create(&threads[j], NULL, fork_use_both, NULL), 0);
        usleep(100 + i * 37 % 500);
        pid_t child = fork_child(100);
        if (child == 0)
            fork_end_trial();
        __atomic_store_n(&fork_stop, true, __ATOMIC_RELAXED);
        for (unsigned j = 0; j < THREADS; j++) {
            void *failed;
            assert_int_equal(pthread_join(threads[j], &failed), 0);
            assert_null(failed);
        }
        expect_child_ends_well(child);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        LEARNING_TEST(workers_of_a_warm_server_go_on_learning),
        LEARNING_TEST(a_worker_gets_no_keeper_that_the_server_refused),
        LEARNING_TEST(a_child_shares_the_code_of_its_parents_dispatches),
        LEARNING_TEST(a_fork_in_the_middle_of_trials_and_windows),
    };
    return cmocka_run_group_tests_name("learning: fork", tests, learning_make_pool,
                                       learning_drop_pool);
}
