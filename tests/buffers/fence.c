/* SPDX-License-Identifier: MIT */
/* The fence that one side pays for, on its own: two threads each write a word and read the other's. At
 * least one of them must see what the other wrote, in every round; with the heavy side's fence taken away
 * this fails on any processor that delays stores. */
#define _GNU_SOURCE
#include "bed.h"

#include <pthread.h>
#include <sched.h>

#include "runtime/buffers/fence.h"

typedef struct words {
    uint32_t often __attribute__((aligned(64)));  /* written by the frequent side */
    uint32_t seldom __attribute__((aligned(64))); /* by the other                 */
    uint32_t arrived __attribute__((aligned(64)));
    uint32_t seen_often, seen_seldom; /* what each saw of the other's */
    unsigned long rounds, blind;
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
    for (uint32_t i = 0; i < w->rounds; i++) {
        meet(w, 4 * i + 2);
        tide_fence_light_store(&w->often, 1);
        w->seen_seldom = __atomic_load_n(&w->seldom, __ATOMIC_ACQUIRE);
        meet(w, 4 * i + 4);
    }
    return NULL;
}

static void one_of_two_always_sees_the_other(void **state)
{
    (void)state;
    words w = {.rounds = scaled(20000, 1)};
    pthread_t thread;
    tide_fence_prepare();
    assert_int_equal(pthread_create(&thread, NULL, be_frequent, &w), 0);
    for (uint32_t i = 0; i < w.rounds; i++) {
        __atomic_store_n(&w.often, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&w.seldom, 0, __ATOMIC_RELAXED);
        meet(&w, 4 * i + 2);
        __atomic_store_n(&w.seldom, 1, __ATOMIC_RELAXED);
        tide_fence_heavy();
        w.seen_often = __atomic_load_n(&w.often, __ATOMIC_ACQUIRE);
        meet(&w, 4 * i + 4);
        w.blind += w.seen_often == 0 && w.seen_seldom == 0;
    }
    pthread_join(thread, NULL);
    assert_int_equal(w.blind, 0);
}

static void it_is_the_same_where_the_system_has_no_such_call(void **state)
{
    bool before = tide_fence_asymmetric;
    tide_fence_asymmetric = false;
    one_of_two_always_sees_the_other(state);
    tide_fence_asymmetric = before;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_two_always_sees_the_other),
        cmocka_unit_test(it_is_the_same_where_the_system_has_no_such_call),
    };
    tide_fence_prepare();
    return cmocka_run_group_tests_name("the fence", tests, NULL, NULL);
}
