/* SPDX-License-Identifier: MIT */
/* Where no thread and no process can be had (a limit, a filter of system calls) sites are
 * specialised all the same, as far as that goes without: they get their tables. */
#define _GNU_SOURCE
#include "learning.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <tidepool/learn.h>
#include <tidepool/site.h>

enum { NO_FILTERS = 77 };

static void *threadless_nothing(void *unused)
{
    return unused;
}

/* For the rest of this process, as when RLIMIT_NPROC is reached (which does not hold for root). */
static void threadless_forbid(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    pthread_t thread;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        _exit(NO_FILTERS);
    CHILD_MUST(pthread_create(&thread, NULL, threadless_nothing, NULL) == EAGAIN);
}

static void threadless_run(void (*play)(void))
{
    pid_t child = fork_child(100);
    if (child == 0) {
        threadless_forbid();
        play();
        _exit(0);
    }
    int status = wait_for_child(child);
    if (status == NO_FILTERS) {
        print_message("no filters of system calls here\n");
        skip();
    }
    assert_int_equal(status, 0);
}

static use threadless_use(const char *name)
{
    use u = {.site = tide_site_register(name), .pool = learning_pool, .count = 2};
    u.types[0] = TIDE_F64;
    u.types[1] = TIDE_I32;
    CHILD_MUST(u.site != NULL && tier_of(u.site) == TIDE_TIER_FULL);
    return u;
}

static void threadless_expect_table(const use *u)
{
    tide_site_information info;
    CHILD_MUST(tide_site_info(u->site, &info) == TIDE_OK);
    CHILD_MUST(info.tier == TIDE_TIER_TABLE && info.type_count == 2);
    uint64_t misses = info.misses;
    for (unsigned i = 0; i < 100; i++)
        CHILD_MUST(use_once(u));
    CHILD_MUST(misses_of(u->site) == misses);
    CHILD_MUST(!tide_background_running());
}

/* Nothing but uses. */
static void threadless_by_use(void)
{
    use first = threadless_use("threadless: first"), second = threadless_use("threadless: second");
    set("background", 1);
    for (unsigned i = 0; i < 1000; i++)
        CHILD_MUST(use_once(&first) && use_once(&second));
    threadless_expect_table(&first);
    threadless_expect_table(&second);
    CHILD_MUST(!info_of(first.site).observed); /* both windows that a new site gets were full */
    CHILD_MUST(tide_background_start() == TIDE_ERROR_MEMORY);
    CHILD_MUST(strstr(tide_error_message(), "no thread") != NULL);
}

/* Rounds by hand ask for a stager too, which cannot be had either. */
static void threadless_by_steps(void)
{
    use u = threadless_use("threadless: stepped");
    for (unsigned i = 0; i < 10; i++) {
        for (unsigned j = 0; j < 100; j++)
            CHILD_MUST(use_once(&u));
        CHILD_MUST(tide_step() == TIDE_OK);
    }
    CHILD_MUST(tide_settle(PATIENCE_MS) == TIDE_OK);
    threadless_expect_table(&u);
}

/* The setting says that the program does the rounds: then no use does any. */
static void threadless_unasked(void)
{
    use u = threadless_use("threadless: unasked");
    for (unsigned i = 0; i < 1000; i++)
        CHILD_MUST(use_once(&u));
    CHILD_MUST(tier_of(u.site) == TIDE_TIER_FULL && learned().rounds == 0);
}

static void uses_alone_bring_a_table(void **state)
{
    (void)state;
    threadless_run(threadless_by_use);
}

static void steps_bring_a_table(void **state)
{
    (void)state;
    threadless_run(threadless_by_steps);
}

static void uses_do_no_round_that_nobody_wants(void **state)
{
    (void)state;
    threadless_run(threadless_unasked);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        /* in a process that has done no round yet */
        cmocka_unit_test_setup(uses_do_no_round_that_nobody_wants, learning_setup),
        LEARNING_TEST(uses_alone_bring_a_table),
        LEARNING_TEST(steps_bring_a_table),
    };
    return cmocka_run_group_tests_name("learning: threadless", tests, learning_make_pool,
                                       learning_drop_pool);
}
