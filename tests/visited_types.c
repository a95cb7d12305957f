/* SPDX-License-Identifier: MIT */
/* Types that a visitor of sites registers. It has the registry, so which numbers other copies of the
 * library have is asked before. */
#define _GNU_SOURCE
#include "forms.h"

#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

enum { CHUNK = 1024 }; /* numbers that a copy takes at once */

static void enter(tide_pool *pool)
{
    TIDE_SCOPE(pool); /* a site to visit */
}

/* A type that nobody has registered before. Any thread. */
static tide_type fresh(void)
{
    static unsigned count;
    char name[30];
    snprintf(name, sizeof name, "visited %u", __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED));
    return tide_type_register(name, 4, 4);
}

typedef struct visit {
    unsigned wanted, got;
    tide_status status; /* of the first that was refused */
    bool says;
} visit;

static bool register_some(tide_site *site, void *user)
{
    visit *v = user;
    (void)site;
    while (v->got < v->wanted && fresh() != TIDE_NO_TYPE)
        v->got++;
    if (v->got == v->wanted)
        return false;
    v->status = tide_error_status();
    v->says = strstr(tide_error_message(), "in a visitor of sites") != NULL;
    return false;
}

static visit register_in_visit(unsigned wanted)
{
    visit v = {.wanted = wanted};
    tide_site_each(register_some, &v);
    return v;
}

/* ---- a child -------------------------------------------------------------------------------- */

static sem_t inside, leave;

static int stay_in_the_list(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)info;
    (void)size;
    (void)unused;
    sem_post(&inside);
    while (sem_wait(&leave) != 0)
        continue;
    return 1;
}

static void *visit_list(void *unused)
{
    dl_iterate_phdr(stay_in_the_list, NULL);
    return unused;
}

static bool count_site(tide_site *site, void *count)
{
    (void)site;
    ++*(unsigned *)count;
    return true;
}

/* glibc leaves its list locked there, so it must not be visited. The first test: later ones leave
 * numbers. */
static void a_child_that_cannot_ask_visits_sites_all_the_same(void **state)
{
    (void)state;
    pthread_t thread;
    tide_pool *pool = tide_pool_create(NULL);
    enter(pool);
    assert_int_equal(tide_type_count(), TIDE_BUILTIN_COUNT);
    assert_int_equal(sem_init(&inside, 0, 0) | sem_init(&leave, 0, 0), 0);
    assert_int_equal(pthread_create(&thread, NULL, visit_list, NULL), 0);
    assert_int_equal(sem_wait(&inside), 0);
    pid_t child = fork_child(30);
    if (child == 0) {
        unsigned count = 0;
        tide_site_each(count_site, &count);
        CHILD_MUST(count > 0);
        visit v = register_in_visit(1);
        CHILD_MUST(v.got == 0 && v.status == TIDE_ERROR_STATE && v.says);
        _exit(0);
    }
    sem_post(&leave);
    expect_child_ends_well(child);
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect_ok(tide_pool_destroy(pool));
}

/* ---- how many ------------------------------------------------------------------------------- */

static void a_visitor_registers_types_where_few_numbers_are_left(void **state)
{
    (void)state;
    while (fresh() % CHUNK != CHUNK - 2)
        assert_int_not_equal(tide_type_count(), TIDE_TYPE_LIMIT - 1);
    assert_int_equal(register_in_visit(5).got, 5);
    assert_int_equal(register_in_visit(512).got, 512);
}

/* Of an acquire, too. */
static bool acquire_new(tide_site *site, void *pool)
{
    static tide_type cell;
    visit v = {.wanted = 3 * CHUNK};
    register_some(site, &v);
    CHILD_MUST(v.got < v.wanted);
    tide_type none = tide_type_learn(&cell, "one more", 4, 4);
    CHILD_MUST(none == TIDE_NO_TYPE && tide_acquire_type(pool, none, 1) == NULL);
    CHILD_MUST(tide_error_status() == TIDE_ERROR_STATE);
    CHILD_MUST(strstr(tide_error_message(), "in a visitor of sites") != NULL);
    return false;
}

static void a_visitor_that_registers_very_many_is_told(void **state)
{
    (void)state;
    visit v = register_in_visit(3 * CHUNK);
    assert_in_range(v.got, 512, 3 * CHUNK - 1);
    assert_int_equal(v.status, TIDE_ERROR_STATE);
    assert_true(v.says);
    assert_int_not_equal(fresh(), TIDE_NO_TYPE);
    tide_pool *pool = tide_pool_create(NULL);
    tide_site_each(acquire_new, pool);
    expect_ok(tide_pool_destroy(pool));
}

/* ---- threads -------------------------------------------------------------------------------- */

enum { VISITS = 300, AHEAD = 100 }; /* types that the thread registers for each visit */

static unsigned visits; /* atomic */

static void *register_on(void *unused)
{
    for (unsigned done = 0; done < VISITS * AHEAD;)
        if (done < (__atomic_load_n(&visits, __ATOMIC_RELAXED) + 1) * AHEAD)
            done += fresh() != TIDE_NO_TYPE;
        else
            sched_yield();
    return unused;
}

/* What it needs is seen to with the registry locked, so no thread takes it away meanwhile. */
static void a_visitor_registers_types_beside_a_thread(void **state)
{
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, register_on, NULL), 0);
    for (unsigned i = 0; i < VISITS; i++) {
        assert_int_equal(register_in_visit(1).got, 1);
        __atomic_store_n(&visits, i + 1, __ATOMIC_RELAXED);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(tide_type_count() < TIDE_TYPE_LIMIT - CHUNK); /* no shortage */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_that_cannot_ask_visits_sites_all_the_same),
        cmocka_unit_test(a_visitor_registers_types_where_few_numbers_are_left),
        cmocka_unit_test(a_visitor_that_registers_very_many_is_told),
        cmocka_unit_test(a_visitor_registers_types_beside_a_thread),
    };
    return cmocka_run_group_tests_name("visited_types", tests, NULL, NULL);
}
