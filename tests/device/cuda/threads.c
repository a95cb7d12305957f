/* SPDX-License-Identifier: MIT */
/* Several threads, each with a pool and a stream of its own, on one device. */
#include <pthread.h>

#include "support.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_of_several_threads_share_a_device),
        cmocka_unit_test(devices_are_opened_and_closed_by_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
