/* SPDX-License-Identifier: MIT */
/* Batches of buffers go from thread to thread, so that they take the way over the depot, while
 * memory is refused at random and others trim, age and fork. At moments in between the depot's
 * books must be what stands in its arrays and the cells; in the end, what the threads know. */
#include "bed.h"
#include "tests/random.h"

#include <pthread.h>
#include <unistd.h>

#include <tidepool/buffers.h>

#include "runtime/base/test_hooks.h"
#include "runtime/buffers/buffers.h"
#include "runtime/buffers/store/depot.h"

enum { THREADS = 4, BATCH = 96, BOARD = 8, SIZES = 10, ROUNDS = 40000, FORKS = 10 };

typedef struct batch {
    tide_buffer buffers[BATCH];
    size_t count, words; /* words: of each, that were asked for */
    uint64_t stamp;
} batch;

typedef struct board {
    pthread_mutex_t lock;
    batch places[BOARD];
} board;

typedef struct worker {
    tide_buffers *buffers;
    board *board;
    rng random;
    size_t rounds;
    batch own;
    uint64_t failed, refused, asked;
    pthread_t thread;
} worker;

/* In threads and in children, from where cmocka cannot go back to its test. */
#define MUST(condition)                                                                       \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, tide_error_message()); \
            abort();                                                                          \
        }                                                                                     \
    } while (0)

/* ---- the depot's books; mutex held, magazines stopped ---------------------------------------- */

static void check_cached(const tide_buffers *buffers, uint32_t slot, unsigned key, unsigned bucket)
{
    const tide_buffer_record *record = tide_handle_at(buffers, slot);
    MUST(!tide_handle_live(record) && record->data != NULL);
    MUST(record->key == key && tide_handle_bucket(record) == bucket);
}

static void check_cells(const tide_buffers *buffers, unsigned bucket)
{
    for (const tide_magazine *m = buffers->magazines; m != NULL; m = m->next) {
        const tide_cell *cell = &m->cells[bucket];
        MUST(cell->held <= cell->room && cell->room <= TIDE_CELL_SLOTS);
        for (unsigned i = 0; i < cell->held; i++)
            check_cached(buffers, cell->slots[i], buffers->key, bucket);
    }
}

/* Returns the bytes that the depot has cached. */
static size_t check_bucket(const tide_buffers *buffers, unsigned key, unsigned bucket)
{
    const tide_depot_bucket *depot = tide_depot_at(buffers, key, bucket);
    MUST(depot->cached <= depot->room && depot->cached <= buffers->count_max);
    for (uint32_t i = 0; i < depot->cached; i++)
        check_cached(buffers, depot->slots[i], key, bucket);
    return depot->cached * tide_bucket_bytes(bucket);
}

static void check_books(tide_buffers *buffers)
{
    size_t cached = 0;
    tide_lock_take(&buffers->mutex);
    tide_magazines_stop(buffers);
    for (unsigned b = 0; b < TIDE_BUCKETS; b++)
        check_cells(buffers, b);
    for (unsigned key = 0; key < TIDE_BUFFER_KEYS; key++)
        for (unsigned b = 0; buffers->depot[key] != NULL && b < TIDE_BUCKETS; b++)
            cached += check_bucket(buffers, key, b);
    MUST(cached == buffers->bytes_cached && cached <= buffers->bytes_max);
    tide_magazines_resume(buffers);
    tide_lock_let_go(&buffers->mutex);
}

/* The counters of all threads are added up at one moment: else a release might be in it whose acquire
 * is not, or a buffer be live and cached. */
static void check_moment(tide_buffers *buffers)
{
    enum { ROOM = 128 };
    tide_buffers_statistics s;
    tide_bucket_statistics b[ROOM];
    MUST(tide_buffers_stats(buffers, &s, b, ROOM) == TIDE_OK && s.buckets <= ROOM);
    MUST(s.releases <= s.hits + s.misses && s.live <= (THREADS + BOARD) * BATCH);
    MUST(s.bytes_live + s.bytes_cached <= s.bytes_high);
    MUST(s.bytes_cached <= s.bytes_max + (THREADS + 1) * s.buckets * (s.bytes_max / 64));
    for (size_t i = 0; i < s.buckets; i++) {
        MUST(b[i].releases <= b[i].hits + b[i].misses && b[i].live <= s.live);
        MUST(b[i].dropped <= b[i].releases);
        MUST(b[i].cached <= s.count_max + (THREADS + 1) * ((size_t)s.count_max / 64));
    }
}

/* ---- what a thread does ---------------------------------------------------------------------- */

static uint64_t draw(worker *w, uint64_t limit)
{
    return rng_below(&w->random, limit);
}

static bool stormy;                       /* atomic: memory is refused at random */
static _Thread_local rng refusals = {17}; /* each thread's own                   */

static bool refuse_at_random(size_t bytes)
{
    (void)bytes;
    return __atomic_load_n(&stormy, __ATOMIC_RELAXED) && rng_below(&refusals, 8) == 0;
}

static tide_buffer acquire_one(worker *w, size_t bytes, unsigned how, uint64_t **memory)
{
    const uint32_t flags[] = {TIDE_BUFFER_TAG(1), TIDE_BUFFER_HOST};
    void *pointer = NULL;
    tide_buffer b;
    if (how < 2)
        b = tide_buffer_acquire_on(w->buffers, bytes, flags[how], NULL);
    else if (how == 2)
        b = tide_buffer_acquire_zeroed(w->buffers, bytes);
    else
        b = tide_buffer_acquire_pointer(w->buffers, bytes, &pointer);
    if (b.generation != 0 && how <= 2)
        pointer = tide_buffer_pointer(w->buffers, b);
    MUST((b.generation != 0) == (pointer != NULL));
    *memory = pointer;
    return b;
}

/* Stamped at both ends. */
static void stamp(const batch *all, size_t at, uint64_t *memory)
{
    memory[0] = memory[all->words - 1] = all->stamp + at;
}

static void acquire_each(worker *w, batch *all, size_t wanted, size_t bytes)
{
    unsigned how = (unsigned)draw(w, 6);
    for (size_t i = 0; i < wanted; i++) {
        uint64_t *memory;
        tide_buffer b = acquire_one(w, bytes, how, &memory);
        w->failed += b.generation == 0;
        if (b.generation == 0)
            continue;
        if (how == 2)
            MUST(memory[0] == 0 && memory[all->words - 1] == 0);
        w->asked += bytes;
        stamp(all, all->count, memory);
        all->buffers[all->count++] = b;
    }
}

/* What was asked of those that come before one fails is counted, too, and no thread knows how many
 * these were. */
static bool any_failed; /* atomic */

static void acquire_many(worker *w, batch *all, size_t wanted, size_t bytes)
{
    if (tide_buffer_acquire_many(w->buffers, bytes, wanted, all->buffers) != TIDE_OK) {
        MUST(tide_error_status() == TIDE_ERROR_MEMORY);
        __atomic_store_n(&any_failed, true, __ATOMIC_RELAXED);
        w->failed++;
        return;
    }
    all->count = wanted;
    w->asked += wanted * bytes;
    for (size_t i = 0; i < wanted; i++)
        stamp(all, i, tide_buffer_pointer(w->buffers, all->buffers[i]));
}

/* Of large ones a few. */
static void acquire(worker *w)
{
    static const size_t sizes[SIZES] = {16,       64,        100,       1000,      1024,
                                        5 * 1000, 16 * 1024, 64 * 1024, 160 << 10, 192 << 10};
    size_t bytes = sizes[draw(w, SIZES)];
    size_t wanted = 1 + draw(w, bytes > 64 * KIB ? 24 : BATCH);
    w->own.words = bytes / 8;
    w->own.stamp = rng_next(&w->random);
    if (draw(w, 3) == 0)
        acquire_many(w, &w->own, wanted, bytes);
    else
        acquire_each(w, &w->own, wanted, bytes);
}

static void check_stamps(worker *w, const batch *all)
{
    for (size_t i = 0; i < all->count; i++) {
        uint64_t *memory = tide_buffer_pointer(w->buffers, all->buffers[i]);
        MUST(memory != NULL && tide_buffer_bytes(w->buffers, all->buffers[i]) >= all->words * 8);
        tide_buffer found = tide_buffer_of(w->buffers, memory);
        MUST(memcmp(&found, &all->buffers[i], sizeof found) == 0);
        MUST(memory[0] == all->stamp + i && memory[all->words - 1] == all->stamp + i);
        memory[0] = memory[all->words - 1] = 0;
    }
}

static void release(worker *w, batch *all)
{
    check_stamps(w, all);
    unsigned how = (unsigned)draw(w, 3);
    if (how == 0)
        MUST(tide_buffer_release_many(w->buffers, all->buffers, all->count) == TIDE_OK);
    for (size_t i = 0; how != 0 && i < all->count; i++)
        MUST((how == 1 ? tide_buffer_release(w->buffers, all->buffers[i])
                       : tide_buffer_release_on(w->buffers, all->buffers[i], NULL)) == TIDE_OK);
    if (all->count > 0) {
        tide_buffer again = all->buffers[draw(w, all->count)];
        MUST(tide_buffer_release(w->buffers, again) == TIDE_ERROR_STALE);
        w->refused++;
    }
    all->count = 0;
}

static void exchange(worker *w)
{
    batch *place = &w->board->places[draw(w, BOARD)];
    pthread_mutex_lock(&w->board->lock);
    batch other = *place;
    *place = w->own;
    w->own = other;
    pthread_mutex_unlock(&w->board->lock);
}

static void disturb(worker *w)
{
    switch (draw(w, 4)) {
    case 0: (void)tide_buffers_age(1 + draw(w, 2), false); break;
    case 1: (void)tide_buffers_trim(w->buffers, (uint32_t)draw(w, 4)); break;
    case 2: check_books(w->buffers); break;
    default: check_moment(w->buffers); break;
    }
}

static unsigned finished; /* workers; atomic */

static void *work(void *argument)
{
    worker *w = argument;
    refusals.state = rng_next(&w->random);
    for (size_t i = 0; i < w->rounds; i++) {
        if (draw(w, 64) == 0)
            disturb(w);
        if (draw(w, 3) == 0)
            exchange(w);
        else if (w->own.count == 0)
            acquire(w);
        else
            release(w, &w->own);
    }
    __atomic_fetch_add(&finished, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* ---- the whole ------------------------------------------------------------------------------- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ALLOCATOR_FORKS false
#elif defined(__has_feature)
#define ALLOCATOR_FORKS (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define ALLOCATOR_FORKS true
#endif

/* The sanitizers' allocators do not make their locks anew at a fork: a child whose parent's thread
 * was in there waits for ever as it allocates or frees (seen in LLVM 14). And who looks for leaks
 * finds in a child what threads that it does not have were just making. */
static bool forks_are_for_all(void)
{
    return ALLOCATOR_FORKS && getenv("TIDE_TEST_LEAKS") == NULL;
}

/* The child has whatever was cached, and can use and give it back. Its exit status; threads are at
 * work, so nothing is asserted here. */
static int fork_in_the_storm(tide_buffers *buffers)
{
    pid_t child = fork_child(120);
    if (child == 0) {
        tide_buffer some[BATCH];
        __atomic_store_n(&stormy, false, __ATOMIC_RELAXED);
        check_books(buffers);
        MUST(tide_buffer_acquire_many(buffers, 1000, BATCH, some) == TIDE_OK);
        MUST(tide_buffer_release_many(buffers, some, BATCH) == TIDE_OK);
        check_books(buffers);
        (void)tide_buffers_trim(buffers, 0);
        MUST(stats_of(buffers).cached == 0);
        _exit(0);
    }
    return wait_for_child(child);
}

static void expect_sum(tide_buffers *buffers, const worker *workers, const board *all)
{
    tide_buffers_statistics s = stats_of(buffers);
    uint64_t live = 0, failed = 0, refused = 0, asked = 0;
    for (size_t i = 0; i < THREADS; i++) {
        live += workers[i].own.count;
        failed += workers[i].failed;
        refused += workers[i].refused;
        asked += workers[i].asked;
    }
    for (size_t i = 0; i < BOARD; i++)
        live += all->places[i].count;
    assert_int_equal(s.live, live);
    assert_int_equal(s.failed, failed);
    assert_int_equal(s.refused, refused);
    if (!any_failed)
        assert_int_equal(s.bytes_asked, asked);
    assert_true(s.bytes_live + s.bytes_cached <= s.bytes_high);
    assert_int_equal(s.hits + s.misses, s.releases + s.live);
    assert_int_equal(s.misses, s.live + s.cached + s.dropped + s.trimmed); /* each is somewhere */
}

static void run(tide_buffers_options options, bool refuse, uint64_t seed)
{
    static worker workers[THREADS];
    static board all;
    tide_buffers *buffers = made(&options);
    all = (board){.lock = PTHREAD_MUTEX_INITIALIZER};
    __atomic_store_n(&finished, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&stormy, refuse, __ATOMIC_RELAXED);
    any_failed = false;
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (worker){.buffers = buffers,
                              .board = &all,
                              .random = {seed * THREADS + i},
                              .rounds = scaled(ROUNDS, THREADS) / THREADS};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    int failed = 0;
    for (size_t i = 0; forks_are_for_all() && i < FORKS && failed == 0; i++)
        failed = fork_in_the_storm(buffers);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    __atomic_store_n(&stormy, false, __ATOMIC_RELAXED);
    assert_int_equal(failed, 0);
    check_books(buffers);
    expect_sum(buffers, workers, &all);
    for (size_t i = 0; i < THREADS; i++)
        release(&workers[i], &workers[i].own);
    for (size_t i = 0; i < BOARD; i++)
        release(&workers[0], &all.places[i]);
    check_books(buffers);
    assert_int_equal(stats_of(buffers).live, 0);
    (void)tide_buffers_trim(buffers, 0);
    assert_int_equal(stats_of(buffers).cached, 0);
    expect_ok(tide_buffers_destroy(buffers));
}

static void the_books_are_right_in_a_storm(void **state)
{
    (void)state;
    run((tide_buffers_options){.age_max = 8}, false, 1);
}

static void the_same_at_the_bounds(void **state)
{
    (void)state;
    run((tide_buffers_options){.age_max = 3, .count_max = 40, .bytes_max = 2 * MIB}, false, 2);
}

static void the_same_while_memory_is_refused(void **state)
{
    (void)state;
    run((tide_buffers_options){.age_max = 3000}, true, 3);
}

static void the_same_at_the_bounds_while_memory_is_refused(void **state)
{
    (void)state;
    run((tide_buffers_options){.count_max = 99}, true, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_books_are_right_in_a_storm),
        cmocka_unit_test(the_same_at_the_bounds),
        cmocka_unit_test(the_same_while_memory_is_refused),
        cmocka_unit_test(the_same_at_the_bounds_while_memory_is_refused),
    };
    tide_os_fault = refuse_at_random;
    return cmocka_run_group_tests_name("buffers in a storm", tests, NULL, NULL);
}
