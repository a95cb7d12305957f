/* SPDX-License-Identifier: MIT */
/* Several threads, each with a pool and a stream of its own, on one device. */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include "support.h"

#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/upkeep.h>

#include "runtime/device/cuda/cuda.h"
#include "runtime/device/device.h"

enum { THREADS = 4, ROUNDS = 60 };

typedef struct worker {
    pthread_t thread;
    tide_device *device;
    void *stream, *other;
    uint8_t number;
    bool right;
} worker;

static void use(tide_pool *pool, const worker *w)
{
    TIDE_SCOPE(pool);
    uint8_t *x = tide_acquire(pool, uint8_t, 500 + w->number);
    float *y = tide_zeros(pool, float, 100);
    if (x == NULL || y == NULL || tide_pool_use_on(pool, w->other) != TIDE_OK)
        return;
    put(w->other, x, 500, w->number);
    expect(w->other, x, 500, w->number);
    expect(w->stream, y, 400, 0);
}

static void *work(void *user)
{
    worker *w = user;
    tide_pool *pool =
        tide_pool_create(&(tide_pool_options){.device = w->device, .stream = w->stream});
    w->right = pool != NULL;
    for (int i = 0; pool != NULL && i < ROUNDS; i++) {
        use(pool, w);
        if (i % 8 == 7)
            tide_pool_empty(pool);
        if (i % 16 == 15)
            w->right = w->right && tide_pool_wait(pool) == TIDE_OK;
    }
    w->right = w->right && tide_pool_destroy(pool) == TIDE_OK;
    return NULL;
}

static void pools_of_several_threads_share_a_device(void **state)
{
    (void)state;
    bench b = bench_start(8);
    worker workers[THREADS] = {0};
    for (uint8_t i = 0; i < THREADS; i++) {
        workers[i] = (worker){.device = b.device, .number = (uint8_t)(i + 1)};
        workers[i].stream = fake_stream_create(0);
        workers[i].other = fake_stream_create(0);
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_true(workers[i].right);
    }
    fake_synchronise_all();
    for (int i = 0; i < THREADS; i++) {
        fake_stream_destroy(workers[i].stream);
        fake_stream_destroy(workers[i].other);
    }
    bench_end(&b);
}

/* ---- devices -------------------------------------------------------------------------------- */

/* The same name gives the same device; who is last closes it. */
static void *open_and_close(void *user)
{
    bool *right = user;
    *right = true;
    for (int i = 0; i < ROUNDS; i++) {
        tide_device *device = tide_device_open("cuda:1");
        *right = *right && device != NULL && tide_device_close(device) == TIDE_OK;
    }
    return NULL;
}

static void devices_are_opened_and_closed_by_many(void **state)
{
    (void)state;
    bench b = bench_start(9);
    pthread_t threads[THREADS];
    bool right[THREADS] = {false};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, &right[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(right[i]);
    }
    bench_end(&b);
}

/* ---- one handle, many releases -------------------------------------------------------------- */

typedef struct race {
    pthread_barrier_t barrier;
    void *stream; /* of the instance */
    tide_buffers *buffers;
    tide_buffer handle;
    unsigned won, stale; /* atomic */
} race;

static void acquire_for_race(race *r, int round)
{
    static const uint32_t kinds[] = {TIDE_BUFFER_DEVICE, TIDE_BUFFER_PINNED};
    r->handle = tide_buffer_acquire_on(r->buffers, 5000, kinds[round % 2], r->stream);
}

/* On a stream of its own, so each has left a mark there before it wins or loses. */
static void *release_in_a_race(void *user)
{
    race *r = user;
    void *stream = fake_stream_create(0);
    for (int i = 0; i < ROUNDS; i++) {
        if (pthread_barrier_wait(&r->barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            acquire_for_race(r, i);
        pthread_barrier_wait(&r->barrier);
        fake_order(r->stream, stream);
        tide_status status = tide_buffer_release_on(r->buffers, r->handle, stream);
        __atomic_fetch_add(&r->won, status == TIDE_OK, __ATOMIC_RELAXED);
        __atomic_fetch_add(&r->stale, status == TIDE_ERROR_STALE, __ATOMIC_RELAXED);
    }
    pthread_barrier_wait(&r->barrier);
    return NULL; /* the stream stays as long as the buffers that it may have released */
}

static void of_many_releases_on_streams_one_wins(void **state)
{
    (void)state;
    bench b = bench_start(10);
    race r = {.stream = b.stream,
              .buffers =
                  tide_buffers_create(b.device, &(tide_buffers_options){.stream = b.stream})};
    pthread_t threads[THREADS];
    assert_non_null(r.buffers);
    pthread_barrier_init(&r.barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, release_in_a_race, &r), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(r.won, ROUNDS);
    assert_int_equal(r.stale, (THREADS - 1) * ROUNDS);
    tide_buffers_statistics now;
    expect_ok(tide_buffers_stats(r.buffers, &now, NULL, 0));
    assert_int_equal(now.releases, ROUNDS);
    assert_int_equal(now.refused, (THREADS - 1) * ROUNDS);
    assert_int_equal(now.live, 0);
    pthread_barrier_destroy(&r.barrier);
    expect_ok(tide_buffers_destroy(r.buffers));
    unsigned marks = fake_calls("cuEventCreate");
    bench_end(&b);
    assert_true(marks > 0);
    assert_int_equal(fake_calls("cuEventDestroy"), marks); /* those of the losers, too */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_of_several_threads_share_a_device),
        cmocka_unit_test(devices_are_opened_and_closed_by_many),
        cmocka_unit_test(of_many_releases_on_streams_one_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
