/* SPDX-License-Identifier: MIT */
/* Buffers and threads: handles that are stale, released in a race, or used while all threads are
 * stopped; threads that end, processes that fork. (Random programs: storm.c.) */
#define _GNU_SOURCE
#include "bed.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <tidepool/buffers.h>
#include <tidepool/tune.h>

#include "runtime/buffers/store/magazine.h"

/* ---- one handle, many releases -------------------------------------------------------------- */

typedef struct race {
    tide_buffers *buffers;
    pthread_barrier_t barrier;
    tide_buffer handle;
    unsigned long rounds;
    uint64_t won; /* atomic */
} race;

static void *release_in_a_race(void *argument)
{
    race *r = argument;
    for (unsigned long i = 0; i < r->rounds; i++) {
        if (pthread_barrier_wait(&r->barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            r->handle = tide_buffer_acquire(r->buffers, 100);
        pthread_barrier_wait(&r->barrier);
        if (tide_buffer_release(r->buffers, r->handle) == TIDE_OK)
            __atomic_fetch_add(&r->won, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* With checks: without them it is the program's race. */
static void of_many_releases_at_once_one_wins(void **state)
{
    (void)state;
    enum { RACERS = 4 };
    expect_ok(tide_tune_set("check", 1));
    race r = {.buffers = made(NULL), .rounds = scaled(5000, 1)};
    expect_ok(tide_tune_set("check", 0));
    pthread_t threads[RACERS];
    pthread_barrier_init(&r.barrier, NULL, RACERS);
    for (size_t i = 0; i < RACERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, release_in_a_race, &r), 0);
    for (size_t i = 0; i < RACERS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&r.barrier);
    assert_int_equal(r.won, r.rounds);
    assert_int_equal(stats_of(r.buffers).refused, (RACERS - 1) * r.rounds);
    assert_int_equal(stats_of(r.buffers).misses, 1);
    assert_int_equal(stats_of(r.buffers).dropped, 0);
    expect_ok(tide_buffers_destroy(r.buffers));
}

/* ---- threads that end ------------------------------------------------------------------------ */

static void *use_once(void *buffers)
{
    void *memory = tide_buffer_pointer(buffers, acquired(buffers, 1000));
    expect_ok(tide_buffer_release(buffers, tide_buffer_of(buffers, memory)));
    return NULL;
}

static void what_a_thread_cached_outlives_it(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    for (unsigned i = 0; i < 100; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, use_once, buffers), 0);
        pthread_join(thread, NULL);
    }
    tide_buffers_statistics s = stats_of(buffers);
    assert_int_equal(s.misses, 1);
    assert_int_equal(s.hits, 99);
    assert_int_equal(s.cached, 1);
    expect_ok(tide_buffers_destroy(buffers));
}

/* A thread that has used an instance that is gone, and one at the same address. */
static void instances_come_and_go_under_a_thread(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        tide_buffers *a = made(NULL), *b = made(NULL);
        use_once(a);
        use_once(b);
        use_once(a);
        assert_int_equal(stats_of(a).hits, 1);
        assert_int_equal(stats_of(b).misses, 1);
        expect_ok(tide_buffers_destroy(a));
        use_once(b);
        expect_ok(tide_buffers_destroy(b));
    }
}

/* Those beyond TIDE_MAGAZINE_WAYS do all in the depot; the next one has what an ended one had. */
static void so_many_instances_have_caches_in_threads(void **state)
{
    (void)state;
    enum { COUNT = TIDE_MAGAZINE_WAYS + 1 };
    tide_buffers *all[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        all[i] = made(NULL);
    for (size_t i = 0; i < COUNT; i++) {
        for (unsigned k = 0; k < 3; k++)
            expect_ok(tide_buffer_release(all[i], acquired(all[i], 256)));
        tide_buffers_statistics s = stats_of(all[i]);
        assert_true(s.hits == 2 && s.misses == 1 && s.releases == 3 && s.cached == 1);
        assert_int_equal(all[i]->magazines != NULL, i < TIDE_MAGAZINE_WAYS);
    }
    expect_ok(tide_buffers_destroy(all[7]));
    all[7] = made(NULL);
    expect_ok(tide_buffer_release(all[7], acquired(all[7], 256)));
    assert_non_null(all[7]->magazines);
    assert_int_equal(stats_of(all[7]).hits, 0);
    for (size_t i = 0; i < COUNT; i++)
        expect_ok(tide_buffers_destroy(all[i]));
}

/* ---- stale handles -------------------------------------------------------------------------- */

static tide_buffer stale_handle; /* its parts are atomic; whoever wins it has released it */
static bool stale_over;          /* atomic */

/* Tries what it sees, each once: it is released at any moment. (Being refused takes a lock, which
 * would hide from ThreadSanitizer what is not ordered.) */
static void *use_stale_handles(void *buffers)
{
    size_t won = 0;
    uint64_t last = 0;
    while (!__atomic_load_n(&stale_over, __ATOMIC_RELAXED)) {
        tide_buffer seen = {__atomic_load_n(&stale_handle.slot, __ATOMIC_RELAXED),
                            __atomic_load_n(&stale_handle.generation, __ATOMIC_RELAXED)};
        if (seen.generation == last)
            continue;
        last = seen.generation;
        (void)tide_buffer_bytes(buffers, seen);
        (void)tide_buffer_pointer(buffers, seen);
        won += tide_buffer_release_on(buffers, seen, NULL) == TIDE_OK;
        tide_buffer none = {1u << 19, seen.generation};
        if (tide_buffer_release(buffers, none) != TIDE_ERROR_STALE)
            return NULL;
    }
    return (void *)(uintptr_t)(won + 1);
}

/* The records of stale handles serve buffers of other kinds and sizes meanwhile. */
static void handles_are_stale_while_their_slots_are_used_again(void **state)
{
    (void)state;
    enum { OTHERS = 2 };
    tide_buffers *buffers = made(NULL);
    pthread_t threads[OTHERS];
    size_t own = 0, most = scaled(10000, 1000);
    tide_buffer *kept = calloc(most, sizeof *kept);
    assert_non_null(kept);
    stale_over = false;
    for (size_t i = 0; i < OTHERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_stale_handles, buffers), 0);
    for (size_t i = 0; i < most; i++) {
        uint32_t flags = TIDE_BUFFER_DEVICE | TIDE_BUFFER_TAG(i % 3);
        tide_buffer b = tide_buffer_acquire_on(buffers, (size_t)1000 << i % 5, flags, NULL);
        assert_int_not_equal(b.generation, 0);
        __atomic_store_n(&stale_handle.slot, b.slot, __ATOMIC_RELAXED);
        __atomic_store_n(&stale_handle.generation, b.generation, __ATOMIC_RELAXED);
        own += tide_buffer_release_on(buffers, b, NULL) == TIDE_OK;
        tide_buffers_trim(buffers, 0);   /* so that records serve other kinds */
        kept[i] = acquired(buffers, 64); /* and there are more of them */
    }
    for (size_t i = 0; i < most; i++)
        expect_ok(tide_buffer_release(buffers, kept[i]));
    free(kept);
    __atomic_store_n(&stale_over, true, __ATOMIC_RELEASE);
    for (size_t i = 0; i < OTHERS; i++) {
        void *won = NULL;
        assert_int_equal(pthread_join(threads[i], &won), 0);
        assert_non_null(won);
        own += (size_t)(uintptr_t)won - 1;
    }
    assert_int_equal(own, most); /* each was released once */
    expect_ok(tide_buffers_destroy(buffers));
}

/* ---- stopped -------------------------------------------------------------------------------- */

typedef struct visitor {
    tide_buffers *buffers;
    bool releases;
    bool ready, goes, done; /* atomic */
} visitor;

static void wait_for(const bool *said)
{
    while (!__atomic_load_n(said, __ATOMIC_ACQUIRE))
        sched_yield();
}

/* Its cell has a buffer, and room for another. */
static void *come_by_a_cell(void *argument)
{
    visitor *v = argument;
    tide_buffer buffers[2] = {acquired(v->buffers, 1000), acquired(v->buffers, 1000)};
    for (size_t i = 0; i < 2; i++)
        expect_ok(tide_buffer_release(v->buffers, buffers[i]));
    buffers[0] = acquired(v->buffers, 1000);
    __atomic_store_n(&v->ready, true, __ATOMIC_RELEASE);
    wait_for(&v->goes);
    if (!v->releases)
        buffers[1] = acquired(v->buffers, 1000);
    else
        expect_ok(tide_buffer_release(v->buffers, buffers[0]));
    __atomic_store_n(&v->done, true, __ATOMIC_RELEASE);
    for (size_t i = 0; i < 2 && !v->releases; i++)
        expect_ok(tide_buffer_release(v->buffers, buffers[i]));
    return NULL;
}

static void nobody_goes_by_while_all_are_stopped(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    for (int releases = 0; releases < 2; releases++) {
        visitor v = {.buffers = buffers, .releases = releases != 0};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, come_by_a_cell, &v), 0);
        wait_for(&v.ready);
        tide_lock_take(&buffers->mutex);
        tide_magazines_stop(buffers);
        __atomic_store_n(&v.goes, true, __ATOMIC_RELEASE);
        bool done = false;
        for (size_t looks = 0; looks < 500; looks++, sched_yield())
            done = done || __atomic_load_n(&v.done, __ATOMIC_ACQUIRE);
        tide_magazines_resume(buffers);
        tide_lock_let_go(&buffers->mutex);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_false(done);
    }
    assert_int_equal(stats_of(buffers).live, 0);
    expect_ok(tide_buffers_destroy(buffers));
}

/* ---- forks ---------------------------------------------------------------------------------- */

static bool stop_forking;    /* atomic */
static unsigned users_ready; /* atomic: threads that allocate nothing any more */

/* The locks of AddressSanitizer's allocator do not survive a fork while another thread allocates. */
static void *use_until_told(void *buffers)
{
    use_once(buffers);
    __atomic_fetch_add(&users_ready, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&stop_forking, __ATOMIC_RELAXED))
        use_once(buffers);
    return NULL;
}

static void a_forked_child_goes_on(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_until_told, buffers), 0);
    while (__atomic_load_n(&users_ready, __ATOMIC_ACQUIRE) < 2)
        sched_yield();
    for (unsigned i = 0; i < 20; i++) {
        pid_t child = fork_child(0);
        if (child == 0) {
            use_once(buffers);
            tide_buffers_trim(buffers, 0);
            _exit(stats_of(buffers).cached == 0 ? 0 : 1);
        }
        expect_child_ends_well(child);
    }
    __atomic_store_n(&stop_forking, true, __ATOMIC_RELAXED);
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    expect_ok(tide_buffers_destroy(buffers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_many_releases_at_once_one_wins),
        cmocka_unit_test(what_a_thread_cached_outlives_it),
        cmocka_unit_test(instances_come_and_go_under_a_thread),
        cmocka_unit_test(so_many_instances_have_caches_in_threads),
        cmocka_unit_test(handles_are_stale_while_their_slots_are_used_again),
        cmocka_unit_test(nobody_goes_by_while_all_are_stopped),
        cmocka_unit_test(a_forked_child_goes_on),
    };
    return cmocka_run_group_tests_name("buffers in threads", tests, NULL, NULL);
}
