/* SPDX-License-Identifier: MIT */
/* Random programs of many threads against an oracle: each thread knows what it holds, stamps what
 * it gets, passes some of it to others, releases some of it twice, and counts. In the end, and at
 * moments in between, the counters of the library must add up to what the threads know; under
 * ThreadSanitizer the stamps, plain words, show a buffer that is in two hands. */
#define _GNU_SOURCE
#include "bed.h"
#include "tests/random.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidepool/buffers.h>
#include <tidepool/tune.h>

#include "runtime/buffers/store/magazine.h"

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
    unsigned how = (unsigned)(draw(w) % 4);
    if (how == 0)
        expect_ok(tide_buffer_acquire_many(w->buffers, bytes, 1, &h->buffer));
    else if (how == 1)
        h->buffer = tide_buffer_acquire_zeroed(w->buffers, bytes);
    else
        h->buffer = tide_buffer_acquire_on(w->buffers, bytes, flags, NULL);
    assert_true(h->buffer.generation != 0);
    h->memory = tide_buffer_pointer(w->buffers, h->buffer);
    assert_non_null(h->memory);
    assert_true(tide_buffer_bytes(w->buffers, h->buffer) >= bytes);
    h->words = bytes / 8;
    if (how == 1 && h->words > 0)
        assert_true(h->memory[0] == 0 && h->memory[h->words - 1] == 0);
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
    tide_buffer found = tide_buffer_of(w->buffers, h->memory);
    assert_true(found.slot == h->buffer.slot && found.generation == h->buffer.generation);
    tide_status status = draw(w) % 2 == 0 ? tide_buffer_release(w->buffers, found)
                                          : tide_buffer_release_many(w->buffers, &found, 1);
    assert_int_equal(status, TIDE_OK);
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

/* Several at once, of one size, from whatever cells and lists there are. One of
 * them is released twice. */
static void exchange_many(worker *w)
{
    enum { MANY = 40 };
    tide_buffer many[MANY + 1];
    size_t count = 1 + draw(w) % MANY, bytes = 64u << draw(w) % 5;
    expect_ok(tide_buffer_acquire_many(w->buffers, bytes, count, many));
    many[count] = many[draw(w) % count]; /* released twice */
    assert_int_equal(tide_buffer_release_many(w->buffers, many, count + 1), TIDE_ERROR_STALE);
    w->acquires += count;
    w->releases += count;
    w->refused++;
    w->asked += count * bytes;
}

static void step(worker *w)
{
    held *h = &w->own[draw(w) % HELD];
    unsigned what = (unsigned)(draw(w) % 16);
    if (what == 0)
        release_again(w);
    else if (what == 4 && draw(w) % 8 == 0)
        exchange_many(w);
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

/* ---- threads that end, processes that fork
 * -------------------------------------------------------- */

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
        cmocka_unit_test(of_many_releases_at_once_one_wins),
        cmocka_unit_test(what_a_thread_cached_outlives_it),
        cmocka_unit_test(instances_come_and_go_under_a_thread),
        cmocka_unit_test(handles_are_stale_while_their_slots_are_used_again),
        cmocka_unit_test(nobody_goes_by_while_all_are_stopped),
        cmocka_unit_test(a_forked_child_goes_on),
    };
    return cmocka_run_group_tests_name("buffers in threads", tests, NULL, NULL);
}
