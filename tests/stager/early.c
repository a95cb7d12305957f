/* SPDX-License-Identifier: MIT */
/* A fork that is under way while another thread takes a lock of the library, or starts a stager,
 * for the first time in the process: the child finds no lock taken, and no stager that it believes
 * to be its own. Each scene is played in a process that has used nothing yet. */
#define _GNU_SOURCE
#include "tests/stager/support.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <tidepool/tidepool.h>

#include "jit/learn/round.h"
#include "runtime/base/hooks.h"
#include "runtime/base/registry.h"

/* Long enough for a thread to come to a lock. Too short, the scene shows nothing and fails
 * nothing. */
static void let_others_come(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
}

/* ---- the thread that forks ---- */

typedef struct forking {
    void (*scene)(void); /* in the child */
    pthread_t thread;
    int status;
} forking;

static void *fork_and_wait(void *state)
{
    forking *f = state;
    pid_t child = fork_child(100);
    if (child == 0) {
        f->scene();
        _exit(0);
    }
    f->status = wait_for_child(child);
    return NULL;
}

/* When this returns the thread waits for a lock that the caller holds. */
static void begin_fork(forking *f)
{
    CHILD_MUST(pthread_create(&f->thread, NULL, fork_and_wait, f) == 0);
    let_others_come();
}

static void end_fork(forking *f)
{
    CHILD_MUST(pthread_join(f->thread, NULL) == 0);
    CHILD_MUST(f->status == 0);
}

/* ---- a first round ---- */

static bool round_may_end; /* atomic */

static void *hold_the_round(void *unused)
{
    tide_round_lock();
    while (!__atomic_load_n(&round_may_end, __ATOMIC_ACQUIRE))
        usleep(1000);
    tide_round_unlock();
    return unused;
}

static void step(void)
{
    CHILD_MUST(tide_step() == TIDE_OK);
}

static void a_round_begins(void)
{
    forking f = {.scene = step};
    pthread_t other;
    tide_attach();
    tide_registry_lock();
    begin_fork(&f); /* it is past the rank of the round, and waits for the registry */
    CHILD_MUST(pthread_create(&other, NULL, hold_the_round, NULL) == 0);
    let_others_come();
    tide_registry_unlock();
    end_fork(&f);
    __atomic_store_n(&round_may_end, true, __ATOMIC_RELEASE);
    CHILD_MUST(pthread_join(other, NULL) == 0);
}

/* ---- a first stager ---- */

static void have_no_stager(void)
{
    CHILD_MUST(tide_stager_process() == 0);
    CHILD_MUST(tide_stager_pending() == 0);
}

static void a_stager_starts(void)
{
    forking f = {.scene = have_no_stager};
    use_fake("good");
    tide_attach();
    tide_round_lock();
    begin_fork(&f); /* it is past the rank of the workers, and waits for the round */
    order(1, "text");
    CHILD_MUST(tide_stager_process() > 0);
    tide_round_unlock();
    end_fork(&f);
    tide_stager_answer answer;
    CHILD_MUST(tide_stager_poll(&answer, PATIENCE) && answer.result == TIDE_STAGER_OK);
    tide_stager_stop(true);
}

static void a_fork_meets_the_first_round(void **state)
{
    (void)state;
    play(a_round_begins);
}

static void a_fork_meets_the_first_stager(void **state)
{
    (void)state;
    play(a_stager_starts);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fork_meets_the_first_round),
        cmocka_unit_test(a_fork_meets_the_first_stager),
    };
    return support_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
