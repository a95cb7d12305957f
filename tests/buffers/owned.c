/* SPDX-License-Identifier: MIT */
/* While each buffer is released by the thread that acquired it, nothing is exchanged: buffers that
 * go through the depot keep that, and the first release by another ends it. */
#define _GNU_SOURCE
#include "bed.h"

#include <pthread.h>
#include <sched.h>

#include <tidepool/buffers.h>

#include "runtime/base/test_hooks.h"
#include "runtime/buffers/buffers.h"
#include "runtime/buffers/store/depot.h"
#include "runtime/buffers/store/fence.h"

enum { BYTES = 1024, MANY = 20 * TIDE_CELL_SLOTS, ROUNDS = 4 };

static tide_buffer held[MANY];

static void acquire_many(tide_buffers *buffers, tide_buffer *into)
{
    for (size_t i = 0; i < MANY; i++)
        into[i] = acquired(buffers, BYTES);
}

static void release_many(tide_buffers *buffers, const tide_buffer *from)
{
    for (size_t i = 0; i < MANY; i++)
        expect_ok(tide_buffer_release(buffers, from[i]));
}

/* More than the thread's cell holds, so that most come from the depot and go there. */
static void *work_alone(void *buffers)
{
    tide_buffer own[MANY];
    for (int round = 0; round < ROUNDS; round++) {
        acquire_many(buffers, own);
        release_many(buffers, own);
    }
    return NULL;
}

static void *release_held(void *buffers)
{
    expect_ok(tide_buffer_release(buffers, held[0]));
    return NULL;
}

static void run_thread(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static tide_status release_either_way(tide_buffers *buffers, tide_buffer handle, bool many)
{
    return many ? tide_buffer_release_many(buffers, &handle, 1)
                : tide_buffer_release(buffers, handle);
}

/* A buffer that the depot gives to another thread is then that one's. */
static void threads_that_keep_to_themselves_own_theirs(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    work_alone(buffers);
    run_thread(work_alone, buffers);
    work_alone(buffers);
    assert_int_equal(stats_of(buffers).misses, MANY);
    assert_true(tide_buffers_owned(buffers));
    held[0] = acquired(buffers, BYTES);
    run_thread(release_held, buffers);
    assert_false(tide_buffers_owned(buffers));
    work_alone(buffers);
    assert_int_equal(stats_of(buffers).live, 0);
    expect_refused(tide_buffer_release(buffers, held[0]), TIDE_ERROR_STALE, "has been released");
    assert_false(tide_buffers_owned(buffers)); /* and never again, though all were stopped since */
    expect_ok(tide_buffers_destroy(buffers));
}

/* Each other bucket leads to another cell, or to none. */
static void a_handle_with_another_bucket_is_refused(void **state)
{
    (void)state;
    for (int owned = 1; owned >= 0; owned--) {
        tide_buffers *buffers = made(NULL);
        tide_buffer good = acquired(buffers, BYTES);
        if (!owned) {
            held[0] = acquired(buffers, BYTES);
            run_thread(release_held, buffers);
        }
        for (unsigned bit = TIDE_HANDLE_BUCKET; bit < 64; bit++) {
            tide_buffer forged = {good.slot ^ (size_t)1 << bit, good.generation};
            assert_int_equal(tide_buffer_release(buffers, forged), TIDE_ERROR_STALE);
        }
        assert_int_equal(tide_buffers_owned(buffers), owned);
        assert_int_equal(stats_of(buffers).refused, 64 - TIDE_HANDLE_BUCKET);
        expect_ok(tide_buffer_release(buffers, good));
        assert_int_equal(tide_buffer_release(buffers, good), TIDE_ERROR_STALE);
        expect_ok(tide_buffers_destroy(buffers));
    }
}

/* One of two threads, each with a live buffer and with cells. (The main thread's may lie further
 * from theirs than any bucket leads.) */
typedef struct neighbour {
    tide_buffers *buffers;
    pthread_barrier_t *barrier;
    tide_buffer its; /* its own buffer                               */
    tide_buffer lie; /* what it releases; a generation of 0: nothing */
    tide_status said;
} neighbour;

static void *be_neighbour(void *argument)
{
    neighbour *n = argument;
    expect_ok(tide_buffer_release(n->buffers, acquired(n->buffers, BYTES)));
    n->its = acquired(n->buffers, BYTES); /* so its cell has an idle credit */
    pthread_barrier_wait(n->barrier);
    pthread_barrier_wait(n->barrier); /* now it may be told to lie */
    if (n->lie.generation != 0)
        n->said = tide_buffer_release(n->buffers, n->lie);
    pthread_barrier_wait(n->barrier);
    expect_ok(tide_buffer_release(n->buffers, n->its));
    return NULL;
}

/* The other's buffer, with a bucket that leads from the liar's cells to the other's cell. False:
 * they lie too far apart for any bucket. */
static bool tell_to_lie(neighbour *liar, const neighbour *other)
{
    const tide_cell *from = tide_handle_at(liar->buffers, (uint32_t)liar->its.slot)->owner;
    const tide_cell *to = tide_handle_at(liar->buffers, (uint32_t)other->its.slot)->owner;
    size_t bucket = (liar->its.slot >> TIDE_HANDLE_BUCKET) + (size_t)(to - from);
    assert_true(to > from);
    if (bucket > UINT32_MAX)
        return false;
    liar->lie = (tide_buffer){(uint32_t)other->its.slot | bucket << TIDE_HANDLE_BUCKET,
                              other->its.generation};
    return true;
}

static void a_handle_with_a_bucket_in_anothers_cells_is_refused(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    pthread_barrier_t barrier;
    pthread_t threads[2];
    neighbour two[2];
    pthread_barrier_init(&barrier, NULL, 3);
    for (int i = 0; i < 2; i++) {
        two[i] = (neighbour){.buffers = buffers, .barrier = &barrier};
        assert_int_equal(pthread_create(&threads[i], NULL, be_neighbour, &two[i]), 0);
    }
    pthread_barrier_wait(&barrier);
    assert_true(tide_buffers_owned(buffers));
    int low = tide_handle_at(buffers, (uint32_t)two[0].its.slot)->owner <
                      tide_handle_at(buffers, (uint32_t)two[1].its.slot)->owner
                  ? 0
                  : 1;
    bool lies = tell_to_lie(&two[low], &two[1 - low]);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    if (lies)
        assert_int_equal(two[low].said, TIDE_ERROR_STALE);
    assert_int_equal(stats_of(buffers).refused, lies);
    assert_int_equal(stats_of(buffers).live, 0);
    assert_true(tide_buffers_owned(buffers)); /* nobody released what is another's */
    pthread_barrier_destroy(&barrier);
    expect_ok(tide_buffers_destroy(buffers));
    if (!lies)
        skip();
}

/* Where a cell lies tells its bucket. So whatever lay there before, as cells of a thread that has
 * ended, what it left live never has the cell of another bucket as its owner. */
static void *look_at_owners(void *buffers)
{
    for (size_t bytes = 1; bytes < 1 << 20; bytes = bytes * 3 + 1) {
        expect_ok(tide_buffer_release(buffers, acquired(buffers, bytes)));
        tide_buffer one = acquired(buffers, bytes);
        const tide_buffer_record *record = tide_handle_at(buffers, (uint32_t)one.slot);
        assert_int_equal((uintptr_t)record->owner % TIDE_CELLS_ALIGN / sizeof(tide_cell),
                         record->bucket);
        expect_ok(tide_buffer_release(buffers, one));
    }
    return NULL;
}

static void the_place_of_a_cell_tells_its_bucket(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    look_at_owners(buffers);
    for (int round = 0; round < ROUNDS; round++)
        run_thread(look_at_owners, buffers);
    assert_true(tide_buffers_owned(buffers));
    expect_ok(tide_buffers_destroy(buffers));
}

/* A handle of what is only cached: nobody was given it. The cell has an idle credit. */
static void a_handle_that_is_not_live_is_refused(void **state)
{
    (void)state;
    for (int owned = 1; owned >= 0; owned--) {
        tide_buffers *buffers = made(NULL);
        for (size_t i = 0; i < 3; i++)
            held[i] = acquired(buffers, BYTES);
        if (!owned)
            run_thread(release_held, buffers);
        else
            release_held(buffers);
        for (size_t i = 1; i < 3; i++)
            expect_ok(tide_buffer_release(buffers, held[i]));
        tide_buffer taken = acquired(buffers, BYTES);
        tide_buffer cached = {held[1].slot, held[1].generation + 1};
        assert_int_not_equal(taken.slot, cached.slot);
        tide_buffers_statistics before = stats_of(buffers);
        for (int many = 0; many < 2; many++)
            assert_int_equal(release_either_way(buffers, cached, many != 0), TIDE_ERROR_STALE);
        expect_unchanged(buffers, &before);
        expect_ok(tide_buffer_release(buffers, taken));
        expect_ok(tide_buffers_destroy(buffers));
    }
}

/* Records of other flags have cells of their own, at which the fast path does not look, and no
 * owner: whoever releases them, the others keep theirs. */
static void buffers_of_other_flags_end_nothing(void **state)
{
    (void)state;
    uint32_t flags = TIDE_BUFFER_HOST | TIDE_BUFFER_TAG(3);
    tide_buffers *buffers = made(NULL);
    work_alone(buffers);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < MANY; i++)
            held[i] = tide_buffer_acquire_on(buffers, BYTES, flags, NULL);
        release_many(buffers, held);
    }
    assert_int_equal(stats_of(buffers).misses, 2 * MANY);
    held[0] = tide_buffer_acquire_on(buffers, BYTES, flags, NULL);
    run_thread(release_held, buffers);
    assert_true(tide_buffers_owned(buffers));
    tide_buffers_statistics before = stats_of(buffers);
    expect_refused(tide_buffer_release(buffers, held[0]), TIDE_ERROR_STALE, "has been released");
    before.refused++;
    expect_unchanged(buffers, &before);
    expect_ok(tide_buffers_destroy(buffers));
}

/* ---- who owns what -------------------------------------------------------------------------- */

/* A thread acquires some, and ends with its cells, which another thread may be given. */
static void *acquire_and_end(void *buffers)
{
    for (size_t i = 0; i < 2; i++)
        held[i] = acquired(buffers, BYTES);
    return NULL;
}

static void *release_first_of_two(void *buffers)
{
    expect_ok(tide_buffer_release(buffers, acquired(buffers, BYTES))); /* it has cells */
    return release_held(buffers);
}

static void what_a_thread_leaves_live_is_released_once(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    run_thread(acquire_and_end, buffers);
    run_thread(release_first_of_two, buffers);
    expect_ok(tide_buffer_release(buffers, held[1]));
    for (size_t i = 0; i < 2; i++)
        expect_refused(tide_buffer_release(buffers, held[i]), TIDE_ERROR_STALE,
                       "has been released");
    assert_int_equal(stats_of(buffers).releases, 3);
    assert_int_equal(stats_of(buffers).live, 0);
    expect_ok(tide_buffers_destroy(buffers));
}

static void *acquire_other_flags_and_end(void *buffers)
{
    held[0] = tide_buffer_acquire_on(buffers, BYTES, TIDE_BUFFER_HOST | TIDE_BUFFER_TAG(3), NULL);
    return NULL;
}

/* So that what comes after finds all but cells. */
static void *use_both_flags(void *buffers)
{
    acquire_other_flags_and_end(buffers);
    expect_ok(tide_buffer_release(buffers, acquired(buffers, BYTES)));
    expect_ok(tide_buffer_release(buffers, held[0]));
    return NULL;
}

static void *release_beside_own(void *buffers)
{
    expect_ok(tide_buffer_release(buffers, acquired(buffers, BYTES)));
    held[1] = acquired(buffers, BYTES); /* the cell has an idle credit */
    expect_ok(tide_buffer_release(buffers, held[0]));
    held[2] = acquired(buffers, BYTES);
    return NULL;
}

/* The cells of a thread may lie where another had those of other flags. */
static void buffers_of_other_flags_never_come_to_own_cells(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        tide_buffers *buffers = made(NULL);
        run_thread(use_both_flags, buffers);
        run_thread(acquire_other_flags_and_end, buffers);
        run_thread(release_beside_own, buffers);
        assert_int_not_equal(held[2].slot, held[0].slot);
        expect_refused(tide_buffer_release(buffers, held[0]), TIDE_ERROR_STALE, "been released");
        for (size_t i = 1; i < 3; i++)
            expect_ok(tide_buffer_release(buffers, held[i]));
        assert_int_equal(stats_of(buffers).live, 0);
        expect_ok(tide_buffers_destroy(buffers));
    }
}

static bool refuse_cells(size_t bytes)
{
    return bytes == TIDE_BUCKETS * sizeof(tide_cell);
}

/* What a thread without cells acquired is nobody's: each exchanges, and all stay owners. Once it
 * has cells, it owns what comes into them. */
static void what_a_thread_without_cells_acquires_is_nobodys(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    tide_os_fault = refuse_cells;
    for (size_t i = 0; i < 3; i++)
        held[i] = acquired(buffers, BYTES);
    expect_ok(tide_buffer_release_many(buffers, &held[1], 1));
    tide_os_fault = NULL;
    run_thread(release_held, buffers);
    assert_true(tide_buffers_owned(buffers));
    work_alone(buffers);
    expect_ok(tide_buffer_release(buffers, held[2]));
    for (size_t i = 0; i < 3; i++)
        expect_refused(tide_buffer_release(buffers, held[i]), TIDE_ERROR_STALE,
                       "has been released");
    assert_true(tide_buffers_owned(buffers));
    held[0] = acquired(buffers, BYTES);
    assert_int_equal(held[0].slot, held[2].slot);
    run_thread(release_held, buffers);
    assert_false(tide_buffers_owned(buffers));
    expect_ok(tide_buffers_destroy(buffers));
}

static void ignore_event(const tide_buffer_event *event, void *user)
{
    (void)event;
    (void)user;
}

static void who_always_exchanges_owns_nothing(void **state)
{
    (void)state;
    tide_buffers *buffers = made(&(tide_buffers_options){.hook = ignore_event});
    assert_false(tide_buffers_owned(buffers));
    work_alone(buffers);
    run_thread(work_alone, buffers);
    assert_int_equal(stats_of(buffers).live, 0);
    expect_ok(tide_buffers_destroy(buffers));
}

/* ---- the moment when ownership ends --------------------------------------------------------- */

enum { DUELS = 100, AFTER = 100 };

/* One acquires and releases again and again; the other releases what it sees of that. */
typedef struct duel {
    tide_buffers *buffers;
    uint64_t slot, generation; /* the latest handle; atomic */
    bool over;                 /* atomic                    */
    size_t won, lost;          /* by the other              */
} duel;

/* Until it has ended the ownership, and a while longer: then all exchange. */
static void *release_of_another(void *argument)
{
    duel *d = argument;
    for (size_t after = 0; after < AFTER;) {
        uint64_t generation = __atomic_load_n(&d->generation, __ATOMIC_ACQUIRE);
        tide_buffer seen = {__atomic_load_n(&d->slot, __ATOMIC_RELAXED), generation};
        if (generation == 0)
            continue;
        after += d->won > 0 || !tide_buffers_owned(d->buffers);
        if (release_either_way(d->buffers, seen, d->lost % 2 != 0) == TIDE_OK)
            d->won++;
        else
            d->lost++;
    }
    __atomic_store_n(&d->over, true, __ATOMIC_RELAXED);
    return NULL;
}

/* Whatever the other does, each handle is released once. It is held for a moment that varies. */
static void fight(bool many)
{
    duel d = {.buffers = made(NULL)};
    pthread_t other;
    size_t acquires = 0, won = 0;
    assert_int_equal(pthread_create(&other, NULL, release_of_another, &d), 0);
    for (bool over = false; !over; acquires++) {
        over = __atomic_load_n(&d.over, __ATOMIC_RELAXED);
        tide_buffer handle = acquired(d.buffers, BYTES);
        __atomic_store_n(&d.slot, handle.slot, __ATOMIC_RELAXED);
        __atomic_store_n(&d.generation, handle.generation, __ATOMIC_RELEASE);
        for (size_t pause = acquires % 64; pause > 0; pause--)
            (void)__atomic_load_n(&d.over, __ATOMIC_RELAXED);
        won += release_either_way(d.buffers, handle, many) == TIDE_OK;
    }
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_false(tide_buffers_owned(d.buffers));
    tide_buffers_statistics s = stats_of(d.buffers);
    assert_int_equal(won + d.won, acquires);
    assert_int_equal(s.refused, acquires - won + d.lost);
    assert_int_equal(s.releases, acquires);
    assert_int_equal(s.live, 0);
    assert_int_equal(s.cached, s.misses);
    expect_ok(tide_buffers_destroy(d.buffers));
}

static void each_handle_is_released_once_as_ownership_ends(void **state)
{
    (void)state;
    for (size_t i = scaled(DUELS, 20); i > 0; i--)
        fight(i % 2 == 0);
}

/* ---- who is kept out ------------------------------------------------------------------------- */

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

/* Its cell has a buffer, and an idle credit. */
static void *come_by_a_cell(void *argument)
{
    visitor *v = argument;
    tide_buffer buffers[2] = {acquired(v->buffers, BYTES), acquired(v->buffers, BYTES)};
    for (size_t i = 0; i < 2; i++)
        expect_ok(tide_buffer_release(v->buffers, buffers[i]));
    buffers[0] = acquired(v->buffers, BYTES);
    __atomic_store_n(&v->ready, true, __ATOMIC_RELEASE);
    wait_for(&v->goes);
    if (!v->releases)
        buffers[1] = acquired(v->buffers, BYTES);
    else
        expect_ok(tide_buffer_release(v->buffers, buffers[0]));
    __atomic_store_n(&v->done, true, __ATOMIC_RELEASE);
    for (size_t i = 0; i < 2 && !v->releases; i++)
        expect_ok(tide_buffer_release(v->buffers, buffers[i]));
    return NULL;
}

/* True: the thread went by while all magazines were stopped. */
static bool goes_by_who_is_stopped(tide_buffers *buffers, bool releases)
{
    visitor v = {.buffers = buffers, .releases = releases};
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
    return done;
}

static void nobody_goes_by_while_all_are_stopped(void **state)
{
    (void)state;
    for (int owned = 1; owned >= 0; owned--) {
        tide_buffers *buffers = made(NULL);
        held[0] = acquired(buffers, BYTES);
        if (!owned)
            run_thread(release_held, buffers);
        for (int releases = 0; releases < 2; releases++)
            assert_false(goes_by_who_is_stopped(buffers, releases != 0));
        assert_int_equal(tide_buffers_owned(buffers), owned);
        assert_int_equal(stats_of(buffers).live, owned);
        if (owned)
            release_held(buffers);
        expect_ok(tide_buffers_destroy(buffers));
    }
}

/* ---- without the fence that one side pays for ----------------------------------------------- */

static void all_of_it_is_the_same_without_a_light_fence(void **state)
{
    bool before = tide_fence_asymmetric;
    tide_fence_asymmetric = false;
    threads_that_keep_to_themselves_own_theirs(state);
    a_handle_with_another_bucket_is_refused(state);
    buffers_of_other_flags_end_nothing(state);
    what_a_thread_leaves_live_is_released_once(state);
    each_handle_is_released_once_as_ownership_ends(state);
    nobody_goes_by_while_all_are_stopped(state);
    tide_fence_asymmetric = before;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_keep_to_themselves_own_theirs),
        cmocka_unit_test(a_handle_with_another_bucket_is_refused),
        cmocka_unit_test(a_handle_with_a_bucket_in_anothers_cells_is_refused),
        cmocka_unit_test(the_place_of_a_cell_tells_its_bucket),
        cmocka_unit_test(a_handle_that_is_not_live_is_refused),
        cmocka_unit_test(buffers_of_other_flags_end_nothing),
        cmocka_unit_test(what_a_thread_leaves_live_is_released_once),
        cmocka_unit_test(buffers_of_other_flags_never_come_to_own_cells),
        cmocka_unit_test(what_a_thread_without_cells_acquires_is_nobodys),
        cmocka_unit_test(who_always_exchanges_owns_nothing),
        cmocka_unit_test(each_handle_is_released_once_as_ownership_ends),
        cmocka_unit_test(nobody_goes_by_while_all_are_stopped),
        cmocka_unit_test(all_of_it_is_the_same_without_a_light_fence),
    };
    return cmocka_run_group_tests_name("owned buffers", tests, NULL, NULL);
}
