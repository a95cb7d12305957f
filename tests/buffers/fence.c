/* SPDX-License-Identifier: MIT */
/* The fence that one side pays for, on its own: two threads each write a word and read the other's.
 * At least one of them must see what the other wrote, in every round; with the heavy side's fence
 * taken away this fails on any processor that delays stores. */
#define _GNU_SOURCE
#include "bed.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "runtime/buffers/store/fence.h"

typedef struct words {
    uint32_t often __attribute__((aligned(64)));  /* written by the frequent side */
    uint32_t seldom __attribute__((aligned(64))); /* by the other                 */
    uint32_t arrived __attribute__((aligned(64)));
    uint32_t seen_often, seen_seldom; /* what each saw of the other's */
    unsigned long rounds, blind;
    bool over; /* atomic: this is no round any more */
} words;

/* Both go on from here at about the same time. */
static void meet(words *w, uint32_t target)
{
    __atomic_fetch_add(&w->arrived, 1, __ATOMIC_ACQ_REL);
    for (unsigned spins = 0; __atomic_load_n(&w->arrived, __ATOMIC_ACQUIRE) < target; spins++)
        if (spins > 200)
            sched_yield();
}

static void *be_frequent(void *argument)
{
    words *w = argument;
    for (uint32_t i = 0;; i++) {
        meet(w, 4 * i + 2);
        if (__atomic_load_n(&w->over, __ATOMIC_RELAXED))
            return NULL;
        tide_fence_light_store(&w->often, 1);
        w->seen_seldom = __atomic_load_n(&w->seldom, __ATOMIC_ACQUIRE);
        meet(w, 4 * i + 4);
    }
}

/* Where others want the processors, to meet takes as long as their turns: then fewer rounds do. */
static bool is_enough(const words *w, unsigned long round, time_t begun)
{
    enum { SECONDS = 20 };
    return round == w->rounds || (round > w->rounds / 50 + 10 && time(NULL) > begun + SECONDS);
}

/* In how many of the rounds did neither see the other? In the middle `turn` is called. */
static unsigned long blind_rounds(unsigned long rounds, void (*turn)(void))
{
    words w = {.rounds = rounds};
    pthread_t thread;
    time_t begun = time(NULL);
    assert_int_equal(pthread_create(&thread, NULL, be_frequent, &w), 0);
    for (uint32_t i = 0;; i++) {
        bool over = is_enough(&w, i, begun);
        if (turn != NULL && i == w.rounds / 100)
            turn();
        __atomic_store_n(&w.often, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&w.seldom, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&w.over, over, __ATOMIC_RELAXED);
        meet(&w, 4 * i + 2);
        if (over)
            break;
        __atomic_store_n(&w.seldom, 1, __ATOMIC_RELAXED);
        tide_fence_heavy();
        w.seen_often = __atomic_load_n(&w.often, __ATOMIC_ACQUIRE);
        meet(&w, 4 * i + 4);
        w.blind += w.seen_often == 0 && w.seen_seldom == 0;
    }
    pthread_join(thread, NULL);
    return w.blind;
}

static void one_of_two_always_sees_the_other(void **state)
{
    (void)state;
    assert_int_equal(blind_rounds(scaled(20000, 1), NULL), 0);
}

/* As a program does that gives up what it needs no more, once it has started. */
static void forbid_membarrier(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        _exit(77);
    if (syscall(SYS_membarrier, 0, 0, 0) != -1)
        _exit(3); /* it is not forbidden */
}

/* In a child: nobody gets such a call back. */
static void it_is_the_same_once_the_call_is_forbidden(void **state)
{
    (void)state;
    pid_t child = fork_child(100);
    if (child == 0) {
        unsigned long blind = blind_rounds(scaled(5000, 100), forbid_membarrier);
        _exit(blind != 0 ? 1 : 0);
    }
    int status = wait_for_child(child);
    if (status == 77) {
        print_message("no filters of system calls here\n");
        skip();
    }
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_two_always_sees_the_other),
        cmocka_unit_test(it_is_the_same_once_the_call_is_forbidden),
    };
    return cmocka_run_group_tests_name("the fence", tests, NULL, NULL);
}
