/* SPDX-License-Identifier: MIT */
/* fork, in every state of a pool and while other threads hold the library's locks: the child
 * works, the parent is unharmed. */
#define _GNU_SOURCE
#include "forms.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

/* ---- the child uses what it inherited, and what is new ---- */

static void touch_in_child(tide_pool *pool, void *state)
{
    double *reals = tide_acquire(pool, double, 100);
    float *floats = tide_fill(pool, float, 100, 1.5f);
    CHILD_MUST(reals != NULL && floats != NULL && floats[99] == 1.5f);
    reals[99] = 1;
    CHILD_MUST(tide_pool_check(pool) == TIDE_OK);
    ++*(size_t *)state;
}

static void work_in_child(const form *f, tide_pool *pool)
{
    size_t times = 0, live = tide_pool_active(pool, TIDE_F64);
    CHILD_MUST(tide_pool_check(pool) == TIDE_OK);
    CHILD_MUST(f->run(pool, touch_in_child, &times) == TIDE_OK);
    CHILD_MUST(tide_pool_active(pool, TIDE_F64) == live);
    CHILD_MUST(f->run(tide_pool_local(), touch_in_child, &times) == TIDE_OK);
    CHILD_MUST(times == 2);
    CHILD_MUST(tide_type_register("born in a child", 16, 8) != TIDE_NO_TYPE);
    CHILD_MUST(tide_site_register("born in a child") != NULL);
    CHILD_MUST(tide_site_count() > 0);
    CHILD_MUST(tide_pool_check(pool) == TIDE_OK);
}

static void *work_in_a_new_thread(void *f)
{
    tide_pool *pool = tide_pool_local();
    CHILD_MUST(pool != NULL);
    work_in_child(f, pool);
    return NULL;
}

static void work_in_a_thread_of_the_child(const form *f)
{
    pthread_t thread;
    CHILD_MUST(pthread_create(&thread, NULL, work_in_a_new_thread, (void *)(uintptr_t)f) == 0);
    CHILD_MUST(pthread_join(thread, NULL) == 0);
}

static void a_child_of_an_idle_pool_works_on(const scene *s)
{
    double *kept = take(s->pool, TIDE_F64, 10, 1);
    counts before = counts_of(s->pool);
    pid_t child = fork_child(60);
    if (child == 0) {
        work_in_child(s->form, s->pool);
        work_in_a_thread_of_the_child(s->form);
        CHILD_MUST(tide_pool_reset(s->pool) == TIDE_OK);
        CHILD_MUST(tide_pool_destroy(s->pool) == TIDE_OK);
        _exit(0);
    }
    expect_child_ends_well(child);
    counts_same(before, s->pool);
    expect_bytes(kept, 10 * sizeof *kept, 1);
    expect_ok(tide_pool_reset(s->pool));
}

/* ---- in the middle of a scope: both processes leave it ---- */

struct split {
    const form *form;
    pid_t child;
};

static void fork_inside(tide_pool *pool, void *state)
{
    struct split *split = state;
    uint8_t *before = take(pool, TIDE_F64, 10, 1);
    split->child = fork_child(60);
    if (split->child == 0) {
        fill_bytes(before, 10 * sizeof(double), 99); /* the parent must not see this */
        work_in_child(split->form, pool);
        return;
    }
    take(pool, TIDE_I32, 10, 2);
    expect_bytes(before, 10 * sizeof(double), 1);
    expect_child_ends_well(split->child);
    expect_bytes(before, 10 * sizeof(double), 1);
    CHECK_POOL(pool);
}

static void parent_and_child_both_leave_the_scope(const scene *s)
{
    counts before = counts_of(s->pool);
    struct split split = {s->form, 0};
    tide_status status = s->form->run(s->pool, fork_inside, &split);
    if (split.child == 0) {
        CHILD_MUST(status == TIDE_OK);
        CHILD_MUST(tide_pool_check(s->pool) == TIDE_OK);
        CHILD_MUST(tide_pool_depth(s->pool) == 0);
        CHILD_MUST(tide_pool_active(s->pool, TIDE_F64) == 0);
        work_in_child(s->form, s->pool);
        _exit(0);
    }
    expect_ok(status);
    counts_same(before, s->pool);
}

/* ---- from another thread, and while others are busy ---- */

static void *fork_from_a_thread(void *state)
{
    tide_pool *pool = tide_pool_local();
    tide_mark mark = tide_checkpoint(pool);
    pid_t child = fork_child(60);
    if (child == 0) {
        size_t times = 0;
        CHILD_MUST(tide_pool_local() == pool);
        CHILD_MUST(tide_rewind(pool, mark) == TIDE_OK);
        touch_in_child(pool, &times);
        if (under_sanitizer() || under_valgrind()) /* what main's stack points to seems leaked */
            _exit(0);
        pthread_exit(NULL); /* the last thread: its pool is given back, then the process ends */
    }
    *(pid_t *)state = child;
    tide_rewind(pool, mark);
    return NULL;
}

static void a_thread_that_forks_keeps_its_pool_in_the_child(void **state)
{
    (void)state;
    pthread_t thread;
    pid_t child = 0;
    assert_int_equal(pthread_create(&thread, NULL, fork_from_a_thread, &child), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect_child_ends_well(child);
}

static bool stop_hammering;

/* Registers, pins, lists, makes pools: so that a fork is likely to meet a lock held. */
static void *hammer(void *state)
{
    tide_site *site = tide_site_register("hammered");
    (void)state;
    for (size_t i = 0; !__atomic_load_n(&stop_hammering, __ATOMIC_RELAXED); i++) {
        char name[32];
        snprintf(name, sizeof name, "hammered %zu", i % 100);
        tide_type type = tide_type_register(name, 8, 8);
        tide_site_register(name);
        tide_site_declare(site, &type, 1);
        tide_site_pin(site, TIDE_TIER_FULL);
        tide_pool_destroy(tide_pool_create(NULL));
        double value;
        tide_tune_get("check", &value);
    }
    return NULL;
}

static void forks_while_another_thread_holds_locks(void **state)
{
    (void)state;
    pthread_t thread;
    tide_pool *pool = pool_of(TIDE_CHECK_POISON);
    stop_hammering = false;
    assert_int_equal(pthread_create(&thread, NULL, hammer, NULL), 0);
    for (size_t i = 0; i < scaled(100, 10); i++) {
        pid_t child = fork_child(60);
        if (child == 0) {
            work_in_child(form_at(i % form_count()), pool);
            _exit(0);
        }
        expect_child_ends_well(child);
        CHECK_POOL(pool);
    }
    __atomic_store_n(&stop_hammering, true, __ATOMIC_RELAXED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect_ok(tide_pool_destroy(pool));
}

static const form_case cases[] = {
    CASE(a_child_of_an_idle_pool_works_on),
    CASE(parent_and_child_both_leave_the_scope),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(a_thread_that_forks_keeps_its_pool_in_the_child),
    cmocka_unit_test(forks_while_another_thread_holds_locks),
};

int main(void)
{
    return FORMS_MAIN("fork", cases, others);
}
