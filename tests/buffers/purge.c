/* SPDX-License-Identifier: MIT */
/* Pages of buffers that wait in the cache: offered, then gone; the buffers stay. */
#define _GNU_SOURCE
#include "bed.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tidepool/buffers.h>

#include "runtime/base/lock.h"
#include "runtime/buffers/buffers.h"
#include "runtime/buffers/store/depot.h"

enum { AGE = 64, PAGE = 4096, LARGE = 4 * MIB, MEDIUM = 256 * KIB, SMALL = 16 * KIB };

/* In place of the C library's: what the library tells the system of ranges in the one that is
 * watched. */
static uintptr_t watched, watched_end;
static size_t offers, gifts; /* atomic: bytes */
static size_t locked;        /* atomic: calls with the lock of buffers held */

/* What else is done during the next such call. */
static void (*during)(void *start);

int madvise(void *start, size_t bytes, int advice)
{
    if ((uintptr_t)start >= watched && (uintptr_t)start < watched_end) {
        if (advice == MADV_FREE)
            __atomic_fetch_add(&offers, bytes, __ATOMIC_RELAXED);
        if (advice == MADV_DONTNEED)
            __atomic_fetch_add(&gifts, bytes, __ATOMIC_RELAXED);
        if (tide_lock_held(TIDE_FORK_BUFFERS))
            __atomic_fetch_add(&locked, 1, __ATOMIC_RELAXED);
        void (*now)(void *) = __atomic_exchange_n(&during, NULL, __ATOMIC_RELAXED);
        if (now != NULL)
            now(start);
    }
    return (int)syscall(SYS_madvise, start, bytes, advice);
}

static void watch(void *start, size_t bytes)
{
    watched = (uintptr_t)start;
    watched_end = watched + bytes;
    offers = gifts = locked = 0;
}

/* How many pages of the buffer, its first and last left out, are in memory. */
static size_t pages_of(void *data, size_t bytes)
{
    static unsigned char in[LARGE / PAGE + 2];
    char *start = (char *)data + PAGE - (uintptr_t)data % PAGE;
    size_t count = bytes / PAGE - 2, there = 0;
    assert_int_equal(mincore(start, count * PAGE, in), 0);
    for (size_t i = 0; i < count; i++)
        there += in[i] & 1;
    return there;
}

static void *written(tide_buffers *buffers, size_t bytes)
{
    tide_buffer buffer = acquired(buffers, bytes);
    void *data = tide_buffer_pointer(buffers, buffer);
    memset(data, 7, bytes);
    expect_ok(tide_buffer_release(buffers, buffer));
    return data;
}

/* As if so many rounds had been made; the walk comes eight times in the longest age. */
static void pass(unsigned ticks)
{
    for (unsigned i = 0; i < ticks; i++)
        tide_buffers_tick(1);
}

static void acquire_again(tide_buffers *buffers, void *data, size_t bytes)
{
    tide_buffer buffer = acquired(buffers, bytes);
    assert_ptr_equal(tide_buffer_pointer(buffers, buffer), data);
    memset(data, 1, bytes);
    expect_ok(tide_buffer_release(buffers, buffer));
}

/* All whole pages of it, once. */
static void expect_advised(size_t advised, size_t bytes)
{
    assert_in_range(advised, bytes - 2 * PAGE + 1, bytes);
}

static void pages_go_in_steps_and_buffers_stay(void **state)
{
    (void)state;
    static const size_t sizes[] = {LARGE, MEDIUM};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tide_buffers *buffers = made(&(tide_buffers_options){.age_max = AGE});
        void *data = written(buffers, sizes[i]);
        size_t all = pages_of(data, sizes[i]);
        watch(data, sizes[i]);
        pass(AGE / 4 - 1);
        assert_int_equal(offers + gifts, 0);
        pass(AGE / 8 + 1);
        expect_advised(offers, sizes[i]);
        assert_int_equal(gifts, 0);
        pass(AGE / 4);
        expect_advised(offers, sizes[i]);
        expect_advised(gifts, sizes[i]);
        assert_int_equal(pages_of(data, sizes[i]), 0);
        assert_int_equal(stats_of(buffers).cached, 1);
        assert_int_equal(stats_of(buffers).trimmed, 0);
        acquire_again(buffers, data, sizes[i]); /* then all begins anew */
        assert_int_equal(pages_of(data, sizes[i]), all);
        watch(data, sizes[i]);
        pass(AGE / 2 + AGE / 8 + 1);
        expect_advised(offers, sizes[i]);
        expect_advised(gifts, sizes[i]);
        pass(AGE / 2);
        assert_int_equal(stats_of(buffers).cached, 0);
        expect_ok(tide_buffers_destroy(buffers));
    }
}

static void small_buffers_keep_their_pages(void **state)
{
    (void)state;
    tide_buffers *buffers = made(&(tide_buffers_options){.age_max = AGE});
    void *data = written(buffers, SMALL);
    watch(data, SMALL);
    pass(AGE - 1);
    assert_int_equal(offers + gifts, 0);
    expect_ok(tide_buffers_destroy(buffers));
}

/* Each has its turn, and once, and each walk looks at it once. */
static void many_buffers_all_have_their_turn(void **state)
{
    (void)state;
    enum { COUNT = 5000, BYTES = 64 * KIB }; /* more than a walk looks at in one go */
    static tide_buffer held[COUNT];
    tide_buffers *buffers = made(&(tide_buffers_options){.age_max = AGE});
    for (unsigned i = 0; i < COUNT; i++)
        held[i] = acquired(buffers, BYTES);
    for (unsigned i = 0; i < COUNT; i++)
        expect_ok(tide_buffer_release(buffers, held[i]));
    watch(NULL, UINTPTR_MAX);
    pass(AGE / 4 + AGE / 8 + 1);
    assert_in_range(offers, (size_t)COUNT * (BYTES - 2 * PAGE + 1), (size_t)COUNT * BYTES);
    assert_int_equal(locked, 0);
    assert_int_equal(buffers->purge_visited, 2 * COUNT); /* by two walks */
    size_t once = offers;
    pass(AGE / 8);
    assert_int_equal(offers, once);
    pass(AGE / 8);
    assert_in_range(gifts, (size_t)COUNT * (BYTES - 2 * PAGE + 1), (size_t)COUNT * BYTES);
    watch(NULL, 0);
    expect_ok(tide_buffers_destroy(buffers));
}

static void what_is_used_keeps_its_pages(void **state)
{
    (void)state;
    tide_buffers *buffers = made(&(tide_buffers_options){.age_max = AGE});
    void *data = written(buffers, LARGE);
    for (unsigned i = 0; i < 2 * AGE; i++) {
        pass(1);
        acquire_again(buffers, data, LARGE);
        assert_in_range(pages_of(data, LARGE), LARGE / PAGE - 2, LARGE / PAGE);
    }
    tide_buffer live = acquired(buffers, LARGE);
    memset(tide_buffer_pointer(buffers, live), 9, LARGE);
    pass(2 * AGE);
    assert_int_equal(((char *)tide_buffer_pointer(buffers, live))[LARGE - 1], 9);
    expect_ok(tide_buffer_release(buffers, live));
    expect_ok(tide_buffers_destroy(buffers));
}

static void an_instance_has_its_own_way(void **state)
{
    (void)state;
    for (tide_buffers_purge purge = TIDE_BUFFERS_PURGE_NEVER; purge <= TIDE_BUFFERS_PURGE_OFFER;
         purge++) {
        tide_buffers *buffers = made(&(tide_buffers_options){.age_max = AGE, .purge = purge});
        void *data = written(buffers, LARGE);
        watch(data, LARGE);
        pass(AGE - 8);
        assert_int_equal(gifts, 0);
        if (purge == TIDE_BUFFERS_PURGE_OFFER)
            expect_advised(offers, LARGE);
        else
            assert_int_equal(offers, 0);
        assert_int_equal(stats_of(buffers).cached, 1);
        expect_ok(tide_buffers_destroy(buffers));
    }
    assert_null(tide_buffers_create(NULL, &(tide_buffers_options){.purge = 4}));
    assert_non_null(strstr(tide_error_message(), "purge is 4, most is 3"));
}

/* ---- while pages go ------------------------------------------------------------------------- */

enum { MANY = 10 };

static tide_buffers *purged;
static size_t trimmed;

/* With so many buffers, all live. */
static void make_purged(tide_buffer *held)
{
    purged = made(&(tide_buffers_options){.age_max = AGE});
    for (unsigned i = 0; i < MANY; i++)
        held[i] = acquired(purged, MEDIUM);
}

/* All but the one whose pages go just now are older. */
static void trim_the_older(void *start)
{
    (void)start;
    trimmed = tide_buffers_trim(purged, AGE / 2).slots;
}

/* Also the one where the purge would have gone on. */
static void what_is_trimmed_meanwhile_is_not_looked_for(void **state)
{
    (void)state;
    tide_buffer held[MANY];
    make_purged(held);
    expect_ok(tide_buffer_release_many(purged, held, MANY - 1));
    uint64_t now = tide_buffers_advance(AGE / 4); /* nothing is trimmed or purged by that */
    expect_ok(tide_buffer_release(purged, held[MANY - 1]));
    now = tide_buffers_advance(AGE / 4);
    watch(NULL, UINTPTR_MAX);
    during = trim_the_older;
    tide_depot_purge(purged, now);
    expect_advised(offers, MEDIUM);
    watch(NULL, 0);
    assert_int_equal(trimmed, MANY - 1);
    assert_int_equal(purged->purge_visited, 1);
    assert_int_equal(stats_of(purged).cached, 1);
    expect_ok(tide_buffers_destroy(purged));
}

static void *going; /* the buffer whose pages go */
static void *taken; /* atomic: where the buffer lies that the other thread got */

static void *take_one(void *bytes)
{
    tide_buffer buffer = acquired(purged, *(const size_t *)bytes);
    void *data = tide_buffer_pointer(purged, buffer);
    memset(data, 5, *(const size_t *)bytes);
    __atomic_store_n(&taken, data, __ATOMIC_RELEASE);
    return NULL;
}

static const size_t medium = MEDIUM, large = LARGE;
static pthread_t other;

/* Another buffer can be had meanwhile, and so can the statistics; not this one. */
static void let_others_take(void *start)
{
    pthread_t one;
    (void)start;
    assert_int_equal(stats_of(purged).cached, 2);
    assert_int_equal(pthread_create(&one, NULL, take_one, (void *)(uintptr_t)&large), 0);
    assert_int_equal(pthread_join(one, NULL), 0);
    assert_non_null(taken);
    assert_ptr_not_equal(taken, going);
    taken = NULL;
    assert_int_equal(pthread_create(&other, NULL, take_one, (void *)(uintptr_t)&medium), 0);
    for (unsigned i = 0; i < 20; i++) {
        usleep(1000);
        assert_null(__atomic_load_n(&taken, __ATOMIC_ACQUIRE));
    }
}

static void who_wants_that_very_buffer_waits(void **state)
{
    (void)state;
    purged = made(&(tide_buffers_options){.age_max = AGE});
    going = written(purged, MEDIUM);
    (void)written(purged, LARGE);
    uint64_t now = tide_buffers_advance(AGE / 2);
    watch(going, MEDIUM);
    during = let_others_take;
    alarm(60);
    tide_depot_purge(purged, now);
    assert_int_equal(pthread_join(other, NULL), 0);
    alarm(0);
    assert_null(during);
    assert_ptr_equal(taken, going);
    assert_int_equal(((char *)going)[MEDIUM / 2], 5); /* written after its pages went */
    watch(NULL, 0);
    assert_int_equal(stats_of(purged).live, 2);
    assert_int_equal(stats_of(purged).misses, 2);
}

/* Who gives pages back is not there, and what it had in hand can be had. */
static void fork_meanwhile(void *start)
{
    (void)start;
    pid_t child = fork_child(60);
    if (child == 0) {
        void *data = NULL;
        tide_buffer buffer = tide_buffer_acquire_pointer(purged, MEDIUM, &data);
        CHILD_MUST(buffer.generation != 0 && data == going && !purged->purging);
        _exit(0);
    }
    expect_child_ends_well(child);
}

static void a_child_can_have_what_was_in_hand(void **state)
{
    (void)state;
    purged = made(&(tide_buffers_options){.age_max = AGE});
    going = written(purged, MEDIUM);
    uint64_t now = tide_buffers_advance(AGE / 2);
    watch(going, MEDIUM);
    during = fork_meanwhile;
    tide_depot_purge(purged, now);
    assert_null(during);
    watch(NULL, 0);
    expect_ok(tide_buffers_destroy(purged));
}

static void *destroy_purged(void *unused)
{
    (void)unused;
    expect_ok(tide_buffers_destroy(purged));
    return NULL;
}

static void destroy_meanwhile(void *start)
{
    (void)start;
    assert_int_equal(pthread_create(&other, NULL, destroy_purged, NULL), 0);
    while (!__atomic_load_n(&purged->ending, __ATOMIC_RELAXED))
        usleep(1000);
}

/* It waits for one call of the system at most. */
static void who_destroys_the_instance_does_not_wait_for_all(void **state)
{
    (void)state;
    tide_buffer held[MANY];
    make_purged(held);
    expect_ok(tide_buffer_release_many(purged, held, MANY));
    (void)tide_buffers_advance(AGE / 4);
    watch(NULL, UINTPTR_MAX);
    during = destroy_meanwhile;
    alarm(60);
    tide_buffers_tick(AGE / 8);
    assert_int_equal(pthread_join(other, NULL), 0);
    alarm(0);
    assert_null(during);
    expect_advised(offers, MEDIUM);
    watch(NULL, 0);
}

/* ---- while others acquire and release -------------------------------------------------------- */

enum { THREADS = 4, USES = 3000 };

static tide_buffers *shared;

static void *use_shared(void *ticks)
{
    for (unsigned i = 0; i < scaled(USES, 100); i++) {
        size_t bytes = MEDIUM << (i % 3);
        tide_buffer buffer = acquired(shared, bytes);
        unsigned char *data = tide_buffer_pointer(shared, buffer);
        data[0] = data[bytes - 1] = (unsigned char)i;
        if (ticks != NULL)
            tide_buffers_tick(AGE / 8);
        else if (i % 64 == 0)
            tide_buffers_trim(shared, AGE / 2);
        assert_int_equal(data[0], (unsigned char)i);
        assert_int_equal(data[bytes - 1], (unsigned char)i);
        expect_ok(tide_buffer_release(shared, buffer));
    }
    return NULL;
}

static void pages_go_while_threads_work(void **state)
{
    (void)state;
    shared = made(&(tide_buffers_options){.age_max = AGE});
    tide_buffer many[3 * THREADS];
    for (unsigned i = 0; i < 3 * THREADS; i++)
        many[i] = acquired(shared, MEDIUM << (i % 3));
    for (unsigned i = 0; i < 3 * THREADS; i++)
        expect_ok(tide_buffer_release(shared, many[i]));
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_shared, i == 0 ? &shared : NULL), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    tide_buffers_statistics s = stats_of(shared);
    assert_int_equal(s.hits + s.misses, s.releases);
    assert_int_equal(s.live, 0);
    expect_ok(tide_buffers_destroy(shared));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_go_in_steps_and_buffers_stay),
        cmocka_unit_test(small_buffers_keep_their_pages),
        cmocka_unit_test(many_buffers_all_have_their_turn),
        cmocka_unit_test(what_is_used_keeps_its_pages),
        cmocka_unit_test(an_instance_has_its_own_way),
        cmocka_unit_test(what_is_trimmed_meanwhile_is_not_looked_for),
        cmocka_unit_test(who_wants_that_very_buffer_waits),
        cmocka_unit_test(a_child_can_have_what_was_in_hand),
        cmocka_unit_test(who_destroys_the_instance_does_not_wait_for_all),
        cmocka_unit_test(pages_go_while_threads_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
