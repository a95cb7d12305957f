/* SPDX-License-Identifier: MIT */
/* A hook is the program's: it may take the program's locks, also one that another thread has while
 * it calls the library, and it may allocate. */
#define _GNU_SOURCE
#include "bed.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/learn.h>
#include <tidepool/site.h>
#include <tidepool/upkeep.h>

#include "tests/hooks.h"
#include "tests/watchdog.h"

enum { CACHED = 5, SIZE = 4096 };

static pthread_mutex_t hooks_lock = PTHREAD_MUTEX_INITIALIZER; /* the program's own */
static unsigned hooks_entered;                                 /* atomic: calls of the hook */
static bool hooks_locked;       /* atomic: the program has its lock */
static unsigned hooks_heard[4]; /* events, by what happened */

static void hooks_listen(const tide_buffer_event *event, void *user)
{
    (void)user;
    if (event->happening != TIDE_BUFFER_FREED)
        return;
    __atomic_fetch_add(&hooks_entered, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&hooks_lock);
    hooks_heard[event->happening]++;
    pthread_mutex_unlock(&hooks_lock);
    tide_pool *pool = tide_pool_create(NULL);
    CHILD_MUST(pool != NULL && tide_acquire(pool, double, 100) != NULL);
    CHILD_MUST(tide_pool_destroy(pool) == TIDE_OK);
}

/* With the lock held it calls what wants the registry, once another thread is in the hook. */
static void *hooks_hold_lock(void *unused)
{
    pthread_mutex_lock(&hooks_lock);
    __atomic_store_n(&hooks_locked, true, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&hooks_entered, __ATOMIC_SEQ_CST) == 0)
        sched_yield();
    CHILD_MUST(tide_type_register("made while a hook waits", 24, 8) != TIDE_NO_TYPE);
    CHILD_MUST(tide_site_register("made while a hook waits") != NULL);
    pthread_mutex_unlock(&hooks_lock);
    return unused;
}

static size_t hooks_faults;

static bool hooks_refuse_once(size_t bytes)
{
    return bytes >= 64 * SIZE && hooks_faults != 0 && hooks_faults-- != 0;
}

/* The ways in which what is cached is given back. */
static void hooks_trim(tide_buffers *buffers)
{
    CHILD_MUST(tide_buffers_trim(buffers, 0).slots == CACHED);
}

static void hooks_age(tide_buffers *buffers)
{
    while (stats_of(buffers).cached != 0)
        CHILD_MUST(tide_step() == TIDE_OK);
}

static void hooks_press(tide_buffers *buffers)
{
    hooks_faults = 1;
    set_memory_fault(hooks_refuse_once);
    tide_buffer large = tide_buffer_acquire(buffers, 64 * SIZE);
    set_memory_fault(NULL);
    CHILD_MUST(large.generation != 0 && stats_of(buffers).pressed == 1);
    CHILD_MUST(tide_buffer_release(buffers, large) == TIDE_OK);
}

static void hooks_leave_to_destroy(tide_buffers *buffers)
{
    (void)buffers;
}

static void hooks_play(void (*give_back)(tide_buffers *buffers), unsigned freed)
{
    tide_buffers *buffers =
        tide_buffers_create(NULL, &(tide_buffers_options){.hook = hooks_listen, .age_max = 1});
    tide_buffer held[CACHED];
    pthread_t thread;
    for (unsigned i = 0; i < CACHED; i++)
        held[i] = tide_buffer_acquire(buffers, SIZE);
    for (unsigned i = 0; i < CACHED; i++)
        CHILD_MUST(tide_buffer_release(buffers, held[i]) == TIDE_OK);
    CHILD_MUST(stats_of(buffers).cached == CACHED);
    CHILD_MUST(pthread_create(&thread, NULL, hooks_hold_lock, NULL) == 0);
    while (!__atomic_load_n(&hooks_locked, __ATOMIC_SEQ_CST))
        sched_yield();
    give_back(buffers);
    CHILD_MUST(tide_buffers_destroy(buffers) == TIDE_OK);
    CHILD_MUST(pthread_join(thread, NULL) == 0);
    CHILD_MUST(hooks_heard[TIDE_BUFFER_FREED] == freed);
    exit(0);
}

static void hooks_in_a_child(void (*give_back)(tide_buffers *buffers), unsigned freed)
{
    pid_t child = fork_child(100); /* one that hangs ends */
    if (child == 0)
        hooks_play(give_back, freed);
    expect_child_ends_well(child);
}

static void a_hook_takes_the_programs_lock_whenever_memory_goes(void **state)
{
    (void)state;
    hooks_in_a_child(hooks_trim, CACHED);
    hooks_in_a_child(hooks_age, CACHED);
    hooks_in_a_child(hooks_press, CACHED + 1);
    hooks_in_a_child(hooks_leave_to_destroy, CACHED);
}

/* ---- the pool that draws from them ---------------------------------------------------------- */

static struct {
    tide_pool *pool;
    unsigned calls, acquired, reset, shaped;
} hooks_drawing;

static void hooks_use_pool(const tide_buffer_event *event, void *user)
{
    (void)user, (void)event;
    if (hooks_drawing.pool == NULL)
        return;
    hooks_drawing.calls++;
    hooks_drawing.acquired += tide_acquire(hooks_drawing.pool, double, 3) != NULL;
    assert_int_equal(tide_error_status(), TIDE_ERROR_STATE);
    hooks_drawing.reset += tide_pool_reset(hooks_drawing.pool) == TIDE_OK;
    hooks_drawing.shaped +=
        tide_array_acquire(hooks_drawing.pool, TIDE_F64, 1, (int64_t[]){30000}) != NULL;
}

/* It stands half-way: a slot that is being given memory would be handed out twice. */
static void a_hook_may_not_use_the_pool_that_draws_just_then(void **state)
{
    (void)state;
    static const int64_t shape[] = {30000}, larger[] = {90000};
    tide_buffers *buffers =
        tide_buffers_create(NULL, &(tide_buffers_options){.hook = hooks_use_pool});
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.buffers = buffers});
    assert_non_null(pool);
    for (unsigned i = 0; i < 3; i++) {
        TIDE_SCOPE(pool);
        hooks_drawing.pool = pool;
        assert_non_null(tide_array_acquire(pool, TIDE_F64, 1, i == 1 ? larger : shape));
        hooks_drawing.pool = NULL;
        assert_non_null(tide_acquire(pool, double, 40000));
    }
    unsigned acquires = hooks_drawing.calls;
    assert_true(acquires > 0);
    hooks_drawing.pool = pool;
    assert_true(tide_pool_trim(pool, TIDE_ALL_TYPES).slots > 0);
    hooks_drawing.pool = NULL;
    assert_true(hooks_drawing.calls > acquires);
    assert_int_equal(hooks_drawing.acquired + hooks_drawing.reset + hooks_drawing.shaped, 0);
    assert_int_equal(tide_pool_check(pool), TIDE_OK);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
    assert_int_equal(tide_buffers_destroy(buffers), TIDE_OK);
}

/* ---- instances that end while others look at all of them ------------------------------------ */

static bool hooks_stop; /* atomic */

static void *hooks_step(void *unused)
{
    while (!__atomic_load_n(&hooks_stop, __ATOMIC_RELAXED))
        if (tide_step() != TIDE_OK)
            return &hooks_stop;
    return unused;
}

static void hooks_count(const tide_buffer_event *event, void *user)
{
    unsigned *counts = user;
    __atomic_fetch_add(&counts[event->happening], 1, __ATOMIC_RELAXED);
}

/* Each memory is told of once when it comes and once when it goes, and nothing after the end. */
static void instances_end_while_others_age_them(void **state)
{
    (void)state;
    pthread_t threads[2];
    hooks_stop = false;
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hooks_step, NULL), 0);
    for (size_t i = 0, most = scaled(1000, 50); i < most; i++) {
        unsigned *counts = calloc(4, sizeof *counts);
        tide_buffers *buffers = made(&(tide_buffers_options){
            .hook = hooks_count, .user = counts, .age_max = 1 + (uint32_t)i % 3});
        for (unsigned j = 0; j < CACHED; j++)
            expect_ok(tide_buffer_release(buffers, acquired(buffers, SIZE << j)));
        expect_ok(tide_buffers_destroy(buffers));
        assert_int_equal(counts[TIDE_BUFFER_ALLOCATED], CACHED);
        assert_int_equal(counts[TIDE_BUFFER_FREED], CACHED);
        free(counts); /* whoever told of something now would use it */
    }
    __atomic_store_n(&hooks_stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < 2; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hook_may_not_use_the_pool_that_draws_just_then),
        cmocka_unit_test(a_hook_takes_the_programs_lock_whenever_memory_goes),
        cmocka_unit_test(instances_end_while_others_age_them),
    };
    return cmocka_run_group_tests_name("hooks of buffers", tests, NULL, NULL);
}
