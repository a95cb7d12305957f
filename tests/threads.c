/* SPDX-License-Identifier: MIT */
/* Pools and threads: each thread its own pool, given back when it ends; foreign use refused. */
#define _GNU_SOURCE
#include "forms.h"

#include <pthread.h>
#include <stdio.h>

#include <tidepool/dynamic.h>
#include <tidepool/site.h>
#include <tidepool/upkeep.h>

/* cmocka's asserts jump, so a thread reports and its starter asserts. */
static void run_thread(void *(*body)(void *), void *state)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, body, state), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* ---- a pool for each thread ---- */

struct own_pool {
    tide_pool *pool;
    bool same_again, live_inside, live_after, sound;
};

static void *use_own_pool(void *state)
{
    struct own_pool *own = state;
    tide_pool *pool = own->pool = tide_pool_local();
    {
        TIDE_SCOPE(pool);
        int *numbers = tide_acquire(pool, int, 100);
        if (numbers != NULL)
            numbers[99] = 1;
        own->live_inside = numbers != NULL && tide_pool_active(pool, TIDE_I32) == 1;
    }
    own->live_after = tide_pool_active(pool, TIDE_I32) != 0;
    own->same_again = tide_pool_local() == pool;
    own->sound = tide_pool_check(pool) == TIDE_OK;
    return NULL;
}

static void a_thread_has_a_pool_of_its_own(void **state)
{
    (void)state;
    struct own_pool here, there;
    use_own_pool(&here);
    run_thread(use_own_pool, &there);
    assert_non_null(here.pool);
    assert_non_null(there.pool);
    assert_ptr_not_equal(here.pool, there.pool);
    assert_true(here.same_again && there.same_again);
    assert_true(here.live_inside && there.live_inside);
    assert_false(here.live_after || there.live_after);
    assert_true(here.sound && there.sound);
    assert_ptr_equal(tide_pool_local(), here.pool);
}

/* ---- given back ---- */

static size_t count_mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    size_t lines = 0;
    for (int c; (c = fgetc(maps)) != EOF;)
        lines += c == '\n';
    fclose(maps);
    return lines;
}

/* Pages: all that is mapped, and what is resident. */
static void count_pages(unsigned long *mapped, unsigned long *resident)
{
    FILE *statm = fopen("/proc/self/statm", "r");
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%lu %lu", mapped, resident), 2);
    fclose(statm);
}

static void *fill_own_pool(void *state)
{
    tide_pool *pool = tide_pool_local();
    (void)state;
    TIDE_SCOPE(pool);
    for (tide_type type = 1; type < TIDE_BIT; type++) {
        uint8_t *data = tide_acquire_type(pool, type, 1000);
        if (data != NULL)
            memset(data, 1, 1000);
    }
    tide_acquire(pool, double, 100000);
    return NULL;
}

static pthread_key_t late_key;

static void use_the_pool_late(void *state)
{
    fill_own_pool(state);
}

/* Its pool is used again by a destructor, maybe after the pool was given back. */
static void *end_with_a_late_destructor(void *state)
{
    pthread_setspecific(late_key, "late");
    fill_own_pool(state);
    return NULL;
}

static void expect_no_growth(void *(*body)(void *))
{
    unsigned long mapped[2], resident[2];
    for (size_t i = 0; i < 20; i++)
        run_thread(body, NULL);
    size_t mappings = count_mappings();
    count_pages(&mapped[0], &resident[0]);
    for (size_t i = 0; i < scaled(1000, 50); i++)
        run_thread(body, NULL);
    count_pages(&mapped[1], &resident[1]);
    if (under_sanitizer() || under_valgrind())
        return;
    assert_true(count_mappings() <= mappings + 2);
    assert_true(mapped[1] <= mapped[0] + 256);
    assert_true(resident[1] <= resident[0] + 256);
}

static void a_thousand_threads_leave_nothing_behind(void **state)
{
    (void)state;
    expect_no_growth(fill_own_pool);
}

static void a_pool_used_in_a_late_destructor_leaves_nothing_behind(void **state)
{
    (void)state;
    assert_int_equal(pthread_key_create(&late_key, use_the_pool_late), 0);
    expect_no_growth(end_with_a_late_destructor);
    assert_int_equal(pthread_key_delete(late_key), 0);
}

/* ---- many at once ---- */

enum { THREADS = 6 };

static void nested_work(tide_pool *pool, size_t depth, bool *good)
{
    TIDE_SCOPE(pool);
    uint32_t *mine = tide_fill(pool, uint32_t, 50, (uint32_t)depth);
    TIDE_LOOP(pool, i, 3)
    {
        float *f = tide_fill(pool, float, 20 + i, (float)i);
        *good = *good && f != NULL && f[19] == (float)i;
    }
    if (depth > 0)
        nested_work(pool, depth - 1, good);
    *good = *good && mine != NULL && mine[49] == depth;
}

static void *work_hard(void *state)
{
    bool *good = state;
    *good = true;
    tide_pool *pool = tide_pool_local();
    for (size_t i = 0; i < scaled(200, 10); i++) {
        char name[32];
        snprintf(name, sizeof name, "threads share %zu", i % 17);
        tide_type type = tide_type_register(name, 8, 8);
        tide_site *site = tide_site_register(name);
        tide_scope scope;
        bool entered = tide_scope_enter(pool, site, &scope) == TIDE_OK;
        *good = *good && entered && tide_acquire_type(pool, type, i + 1) != NULL;
        nested_work(pool, 5, good);
        *good = *good && tide_scope_leave(&scope) == TIDE_OK;
        tide_site_declare(site, &type, 1);
        tide_site_pin(site, i % 2 ? TIDE_TIER_TABLE : TIDE_TIER_FULL);
        *good = *good && tide_pool_depth(pool) == 0 && tide_pool_check(pool) == TIDE_OK;
    }
    return NULL;
}

static void threads_work_side_by_side(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    bool good[THREADS];
    uint32_t types = tide_type_count();
    size_t sites = tide_site_count();
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work_hard, &good[i]), 0);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(good[i]);
    }
    assert_true(tide_type_count() <= types + 17); /* each name once, whoever came first */
    assert_true(tide_site_count() <= sites + 17);
}

/* ---- foreign threads ---- */

struct intruder {
    const form *form;
    tide_pool *pool;
    size_t times, refused; /* of the calls below */
    tide_status run;
    char message[512];
};

#define REFUSED(i, call)                                                    \
    do {                                                                    \
        (i)->times++;                                                       \
        (i)->refused += (call) && tide_error_status() == TIDE_ERROR_THREAD; \
    } while (0)

static void acquire_as_an_intruder(tide_pool *pool, void *state)
{
    struct intruder *i = state;
    REFUSED(i, tide_acquire(pool, double, 10) == NULL);
    REFUSED(i, tide_acquire_type(pool, TIDE_I16, 10) == NULL);
    REFUSED(i, tide_zeros(pool, float, 10) == NULL);
}

/* ---- hand-over ---- */

static void *adopt_and_work(void *state)
{
    struct intruder *i = state;
    if (tide_pool_adopt(i->pool) != TIDE_OK || tide_pool_check(i->pool) != TIDE_OK)
        return NULL;
    i->run = tide_pool_reset(i->pool);
    {
        TIDE_SCOPE(i->pool);
        i->times += tide_acquire(i->pool, double, 100) != NULL;
    }
    i->refused = tide_pool_active(i->pool, TIDE_F64);
    return NULL;
}

static void a_pool_can_be_handed_over(const scene *s)
{
    struct intruder i = {.pool = s->pool, .run = TIDE_ERROR_THREAD};
    take(s->pool, TIDE_F64, 10, 1);
    run_thread(adopt_and_work, &i);
    expect_ok(i.run);
    assert_int_equal(i.times, 1);
    assert_int_equal(i.refused, 0);
    if (s->kind->check == TIDE_CHECK_POISON) {
        assert_null(tide_acquire(s->pool, double, 10));
        assert_int_equal(tide_error_status(), TIDE_ERROR_THREAD);
    }
    expect_ok(tide_pool_adopt(s->pool));
    form_run(s->form, s->pool, acquire_as_an_intruder, &i); /* now nothing is refused */
    assert_int_equal(i.refused, 0);
}

static void *fail_here(void *state)
{
    tide_acquire_type(NULL, TIDE_F64, 1);
    strncpy(state, tide_error_message(), 200);
    return NULL;
}

static void an_error_message_belongs_to_its_thread(void **state)
{
    (void)state;
    char there[201] = "";
    expect_status(tide_pool_reset(NULL), TIDE_ERROR_ARGUMENT);
    run_thread(fail_here, there);
    assert_non_null(strstr(there, "tide_acquire"));
    assert_non_null(strstr(tide_error_message(), "tide_pool_reset"));
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
}

static const form_case cases[] = {
    CASE(a_pool_can_be_handed_over),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(a_thread_has_a_pool_of_its_own),
    cmocka_unit_test(a_thousand_threads_leave_nothing_behind),
    cmocka_unit_test(a_pool_used_in_a_late_destructor_leaves_nothing_behind),
    cmocka_unit_test(threads_work_side_by_side),
    cmocka_unit_test(an_error_message_belongs_to_its_thread),
};

int main(void)
{
    return FORMS_MAIN("threads", cases, others);
}
