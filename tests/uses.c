/* SPDX-License-Identifier: MIT */
/* How often a site was used is counted, not guessed: what tide_site_info tells is compared with the
 * truth, by every form of scope that has a site, at each tier. */
#define _GNU_SOURCE
#include "forms.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <tidepool/dynamic.h>
#include <tidepool/generic.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>

static uint64_t uses_of(const tide_site *site)
{
    tide_site_information info;
    expect_ok(tide_site_info(site, &info));
    assert_true(info.uses_counted && info.uses >= info.samples);
    return info.uses;
}

static void empty_body(tide_pool *pool, void *state)
{
    (void)pool, (void)state;
}

/* ---- each form, at each tier ---------------------------------------------------------------- */

/* A few uses, none for a while, many at once, none again: between any two of them as many as there
 * were. */
static void every_form_counts_its_uses(void **state)
{
    (void)state;
    static const size_t bursts[] = {1, 30, 0, 4000, 2};
    unsigned counted = 0;
    EACH_FORM(f)
    {
        if (f->site == NULL)
            continue;
        tide_pool *pool = pool_of(TIDE_CHECK_NONE);
        for (size_t i = 0; i < sizeof bursts / sizeof *bursts; i++) {
            uint64_t before = uses_of(form_site(f));
            if (bursts[i] != 0)
                form_repeat(f, pool, bursts[i], empty_body, NULL);
            else
                usleep(20000);
            assert_int_equal(uses_of(form_site(f)) - before, bursts[i]);
        }
        expect_ok(tide_pool_destroy(pool));
        counted++;
    }
    assert_true(counted >= 4);
}

static void a_site_that_is_hot_counts_every_use(void **state)
{
    (void)state;
    size_t times = scaled(100000000, 100000);
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    tide_site *site = tide_site_register("uses: hot");
    tide_scope scope;
    for (size_t i = 0; i < times; i++) {
        tide_site_enter(&scope, pool, site);
        tide_site_leave(&scope);
    }
    assert_int_equal(uses_of(site), times);
    expect_ok(tide_pool_destroy(pool));
}

/* ---- other kinds ---------------------------------------------------------------------------- */

static void method_of_nothing(void *args)
{
    (void)args;
}

static void a_dispatch_tells_the_least_there_were(void **state)
{
    (void)state;
    enum { TIMES = 1000 };
    tide_generic *generic = tide_generic_create("uses");
    tide_site *site = tide_site_register_kind("uses: dispatch", TIDE_KIND_DISPATCH);
    tide_site_information info;
    expect_ok(tide_generic_add(generic, TIDE_F64, method_of_nothing));
    for (int i = 0; i < TIMES; i++)
        tide_site_dispatch(site, generic, TIDE_F64, NULL);
    expect_ok(tide_site_info(site, &info));
    assert_false(info.uses_counted);
    assert_in_range(info.uses, 1, TIMES);
    assert_true(info.uses >= info.samples && info.uses >= info.misses);
}

/* ---- threads and pools ---------------------------------------------------------------------- */

enum { CREW = 12 };

typedef struct worker {
    pthread_t thread;
    tide_site *site;
    size_t times;
} worker;

/* In the thread's own pool, which ends with it, and in one that it makes and destroys. */
static void *worker_uses(void *user)
{
    const worker *w = user;
    tide_pool *made = tide_pool_create(NULL);
    tide_scope scope;
    for (size_t i = 0; i < w->times; i++) {
        tide_site_enter(&scope, i % 2 == 0 ? tide_pool_local() : made, w->site);
        tide_site_leave(&scope);
    }
    return (void *)(uintptr_t)(tide_pool_destroy(made) == TIDE_OK);
}

static void threads_that_go_on_and_that_have_ended_are_counted(void **state)
{
    (void)state;
    worker crew[CREW];
    tide_site *site = tide_site_register("uses: crew");
    size_t truth = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < CREW; i++) {
            crew[i] = (worker){.site = site, .times = (size_t)(1000 * i + 7)};
            assert_int_equal(pthread_create(&crew[i].thread, NULL, worker_uses, &crew[i]), 0);
        }
        for (int i = 0; i < CREW; i++) {
            void *ended;
            assert_true(uses_of(site) <= 3 * CREW * (CREW * 1000 + 7)); /* while they go on */
            assert_int_equal(pthread_join(crew[i].thread, &ended), 0);
            assert_non_null(ended);
            truth += crew[i].times;
        }
        assert_int_equal(uses_of(site), truth);
    }
}

/* ---- begun anew, and too many --------------------------------------------------------------- */

static void a_site_that_is_reset_counts_anew(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    tide_site *site = tide_site_register("uses: reset");
    tide_scope scope;
    for (int i = 0; i < 100; i++) {
        tide_site_enter(&scope, pool, site);
        tide_site_leave(&scope);
        if (i == 69)
            expect_ok(tide_site_reset(site));
    }
    assert_int_equal(uses_of(site), 30);
    expect_ok(tide_pool_destroy(pool));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_counts_its_uses),
        cmocka_unit_test(a_site_that_is_hot_counts_every_use),
        cmocka_unit_test(a_dispatch_tells_the_least_there_were),
        cmocka_unit_test(threads_that_go_on_and_that_have_ended_are_counted),
        cmocka_unit_test(a_site_that_is_reset_counts_anew),
    };
    forms_prepare_all();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
