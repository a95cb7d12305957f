/* SPDX-License-Identifier: MIT */
/* The process ends with live device pools. The fake driver ends it with 99 if
 * anything calls it after it was torn down.
 *
 *   live    main returns: the pool was never destroyed atexit  a handler destroys it when the
 *   driver is gone thread  another thread is in the middle of things */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support.h"

static tide_pool *pool;
static tide_device *device;

static void destroy_late(void)
{
    bool right = tide_pool_reset(pool) == TIDE_OK && tide_pool_destroy(pool) == TIDE_OK &&
                 tide_device_close(device) == TIDE_OK;
    if (!right)
        _exit(3);
}

static void *go_on(void *stream)
{
    tide_pool *own = tide_pool_create(&(tide_pool_options){.device = device, .stream = stream});
    for (;;) {
        TIDE_SCOPE_TYPES(own, float); /* no site: the program's own go with its module, now */
        (void)tide_zeros(own, float, 1000);
        (void)tide_pool_wait(own);
        tide_pool_empty(own);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    const char *way = count > 1 ? arguments[1] : "live";
    if (strcmp(way, "atexit") == 0)
        atexit(destroy_late); /* the first to be registered is the last to run */
    bench b = bench_start(70);
    pool = b.pool;
    device = b.device;
    pthread_t thread;
    if (strcmp(way, "thread") == 0 &&
        pthread_create(&thread, NULL, go_on, fake_stream_create(0)) != 0)
        return EXIT_FAILURE;
    TIDE_SCOPE(pool);
    put(b.stream, tide_zeros(pool, float, 1000), 4000, 1);
    if (strcmp(way, "thread") == 0)
        usleep(20000);
    exit(unexpected() == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}
