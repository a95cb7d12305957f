/* SPDX-License-Identifier: MIT */
/* Random programs of many threads against an oracle: each thread knows what it holds, stamps what
 * it gets, passes some of it to others, releases some of it twice, and counts. In the end, and at
 * moments in between, the counters of the library must add up to what the threads know; under
 * ThreadSanitizer the stamps, plain words, show a buffer that is in two hands. */
#define _GNU_SOURCE
#include "bed.h"
#include "tests/random.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, HELD = 24, BOARD = 16, OLD = 8, SIZES = 12, ROUNDS = 1000000 };

typedef struct held {
    tide_buffer buffer;
    uint64_t *memory; /* NULL: none */
    size_t words;
    uint64_t stamp;
} held;

/* What any thread may take over. */
typedef struct board {
    pthread_mutex_t lock;
    held slots[BOARD];
} board;

typedef struct worker {
    tide_buffers *buffers;
    board *board;
    rng random;
    unsigned long rounds;
    held own[HELD];
    tide_buffer old[OLD];
    uint64_t acquires, releases, refused, asked, live;
    pthread_t thread;
} worker;

static uint64_t draw(worker *w)
{
    return rng_next(&w->random);
}

/* ---- what a thread does -----------------------------------------------------------------------
 */

static void check_stamps(const held *h)
{
    if (h->words > 0)
        assert_true(h->memory[0] == h->stamp && h->memory[h->words - 1] == h->stamp);
}

static void acquire(worker *w, held *h)
{
    static const size_t sizes[SIZES] = {0,    8,    64,   65,   200,  256,
                                        1000, 1024, 1500, 4096, 5000, 20000};
    size_t bytes = sizes[draw(w) % SIZES];
    uint32_t flags = draw(w) % 8 == 0 ? TIDE_BUFFER_TAG(draw(w) % 3) : 0;
    h->buffer = tide_buffer_acquire_on(w->buffers, bytes, flags, NULL);
    assert_true(h->buffer.generation != 0);
    h->memory = tide_buffer_pointer(w->buffers, h->buffer);
    assert_non_null(h->memory);
    assert_true(tide_buffer_bytes(w->buffers, h->buffer) >= bytes);
    h->words = bytes / 8;
    h->stamp = draw(w);
    if (h->words > 0)
        h->memory[0] = h->memory[h->words - 1] = h->stamp;
    w->acquires++;
    w->asked += bytes;
}

static void release(worker *w, held *h)
{
    check_stamps(h);
    if (h->words > 0)
        h->memory[0] = h->memory[h->words - 1] = 0;
    assert_int_equal(tide_buffer_release(w->buffers, h->buffer), TIDE_OK);
    w->old[draw(w) % OLD] = h->buffer;
    h->memory = NULL;
    w->releases++;
}

static void release_again(worker *w)
{
    tide_buffer old = w->old[draw(w) % OLD];
    assert_int_equal(tide_buffer_release(w->buffers, old), TIDE_ERROR_STALE);
    w->refused++;
}

static void exchange(worker *w, held *h)
{
    held *place = &w->board->slots[draw(w) % BOARD];
    pthread_mutex_lock(&w->board->lock);
    held other = *place;
    *place = *h;
    *h = other;
    pthread_mutex_unlock(&w->board->lock);
    if (h->memory != NULL)
        check_stamps(h);
}

static void step(worker *w)
{
    held *h = &w->own[draw(w) % HELD];
    unsigned what = (unsigned)(draw(w) % 16);
    if (what == 0)
        release_again(w);
    else if (what < 4)
        exchange(w, h);
    else if (h->memory == NULL)
        acquire(w, h);
    else
        release(w, h);
}

static unsigned finished; /* workers; atomic */

static void *work(void *argument)
{
    worker *w = argument;
    for (unsigned long i = 0; i < w->rounds; i++)
        step(w);
    for (size_t i = 0; i < HELD; i++)
        w->live += w->own[i].memory != NULL;
    __atomic_fetch_add(&finished, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* ---- what the library says ----------------------------------------------------------------------
 */

static void check_moment(tide_buffers *buffers)
{
    enum { ROOM = 128 };
    tide_buffers_statistics s;
    tide_bucket_statistics b[ROOM];
    expect_ok(tide_buffers_stats(buffers, &s, b, ROOM));
    assert_true(s.buckets <= ROOM);
    assert_true(s.hits + s.misses == s.releases + s.live);
    assert_true(s.bytes_cached <= s.bytes_max);
    assert_true(s.bytes_live + s.bytes_cached <= s.bytes_high);
    for (size_t i = 0; i < s.buckets; i++) {
        assert_true(b[i].cached <= s.count_max);
        assert_true(b[i].hits + b[i].misses == b[i].releases + b[i].live);
    }
}

static void expect_sum(tide_buffers *buffers, const worker *workers, board *all)
{
    tide_buffers_statistics s = stats_of(buffers);
    uint64_t acquires = 0, releases = 0, refused = 0, asked = 0, live = 0;
    for (size_t i = 0; i < THREADS; i++) {
        acquires += workers[i].acquires;
        releases += workers[i].releases;
        refused += workers[i].refused;
        asked += workers[i].asked;
        live += workers[i].live;
    }
    for (size_t i = 0; i < BOARD; i++)
        live += all->slots[i].memory != NULL;
    assert_int_equal(s.hits + s.misses, acquires);
    assert_int_equal(s.releases, releases);
    assert_int_equal(s.refused, refused);
    assert_int_equal(s.bytes_asked, asked);
    assert_int_equal(s.live, live);
    assert_int_equal(s.misses, s.live + s.cached + s.dropped + s.trimmed); /* each is somewhere */
    assert_int_equal(s.failed, 0);
}

static void give_rest_back(worker *w, board *all)
{
    for (size_t i = 0; i < HELD; i++)
        if (w->own[i].memory != NULL)
            release(w, &w->own[i]);
    for (size_t i = 0; i < BOARD; i++)
        if (all->slots[i].memory != NULL)
            release(w, &all->slots[i]);
}

/* A watcher trims and looks on; some bounds are so tight that they are met all the time. */
static void run(tide_buffers_options options, uint64_t seed)
{
    tide_buffers *buffers = made(&options);
    board all = {.lock = PTHREAD_MUTEX_INITIALIZER};
    static worker workers[THREADS];
    memset(workers, 0, sizeof workers);
    __atomic_store_n(&finished, 0, __ATOMIC_RELAXED);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (worker){.buffers = buffers,
                              .board = &all,
                              .random = {seed * THREADS + i},
                              .rounds = scaled(ROUNDS, 1) / THREADS};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; __atomic_load_n(&finished, __ATOMIC_RELAXED) < THREADS; i++) {
        check_moment(buffers); /* as often as can be: each stops everybody, somewhere */
        if (i % 16 == 0)
            tide_buffers_trim(buffers, 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    expect_sum(buffers, workers, &all);
    for (size_t i = 0; i < THREADS; i++)
        give_rest_back(&workers[i], &all);
    assert_int_equal(stats_of(buffers).live, 0);
    check_moment(buffers);
    expect_ok(tide_buffers_destroy(buffers));
}

static void counters_add_up_and_no_buffer_is_in_two_hands(void **state)
{
    (void)state;
    run((tide_buffers_options){0}, 1);
}

static void the_same_when_the_cache_is_small(void **state)
{
    (void)state;
    run((tide_buffers_options){.count_max = 3, .bytes_max = 64 * KIB}, 2);
}

static void the_same_for_the_other_policies(void **state)
{
    (void)state;
    run((tide_buffers_options){.policy = TIDE_BUFFERS_POWERS, .count_max = 64}, 3);
    run((tide_buffers_options){.policy = TIDE_BUFFERS_LIST}, 4);
}

/* ---- one handle, many releases ------------------------------------------------------------------
 */

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

static void of_many_releases_at_once_one_wins(void **state)
{
    (void)state;
    enum { RACERS = 4 };
    race r = {.buffers = made(NULL), .rounds = scaled(5000, 1)};
    pthread_t threads[RACERS];
    pthread_barrier_init(&r.barrier, NULL, RACERS);
    for (size_t i = 0; i < RACERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, release_in_a_race, &r), 0);
    for (size_t i = 0; i < RACERS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&r.barrier);
    assert_int_equal(r.won, r.rounds);
    assert_int_equal(stats_of(r.buffers).refused, (RACERS - 1) * r.rounds);
    assert_int_equal(stats_of(r.buffers).misses, 1); /* in whatever magazine it was */
    expect_ok(tide_buffers_destroy(r.buffers));
}

/* ---- threads that end, processes that fork
 * -------------------------------------------------------- */

static void *use_once(void *buffers)
{
    tide_buffer b = acquired(buffers, 1000);
    expect_ok(tide_buffer_release(buffers, b));
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

static bool stop_forking; /* atomic */

static void *use_until_told(void *buffers)
{
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
        cmocka_unit_test(counters_add_up_and_no_buffer_is_in_two_hands),
        cmocka_unit_test(the_same_when_the_cache_is_small),
        cmocka_unit_test(the_same_for_the_other_policies),
        cmocka_unit_test(of_many_releases_at_once_one_wins),
        cmocka_unit_test(what_a_thread_cached_outlives_it),
        cmocka_unit_test(instances_come_and_go_under_a_thread),
        cmocka_unit_test(a_forked_child_goes_on),
    };
    return cmocka_run_group_tests_name("buffers in threads", tests, NULL, NULL);
}
