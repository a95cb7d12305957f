/* SPDX-License-Identifier: MIT */
/* The process ends with live device pools. The fake driver ends it with 99 if anything calls it
 * after it was torn down.
 *
 *   live    main returns: the pool was never destroyed
 *   atexit  a handler destroys it when the driver is gone
 *   thread  another thread is in the middle of things, and goes on when the driver is gone
 *   forked  a child ends that was forked while the parent has a pool */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

#include <tidepool/device.h>
#include <tidepool/upkeep.h>

static tide_pool *pool;
static tide_device *device;

static void destroy_late(void)
{
    bool right = tide_pool_reset(pool) == TIDE_OK && tide_pool_destroy(pool) == TIDE_OK &&
                 tide_device_close(device) == TIDE_OK;
    if (!right)
        _exit(3);
}

static bool work_and_end(void *stream)
{
    TIDE_SCOPE(pool);
    put(stream, tide_zeros(pool, float, 1000), 4000, 1);
    exit(unexpected() == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

static pthread_t thread;
static pthread_barrier_t both; /* main and the thread */

static void do_rounds(tide_pool *own, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        TIDE_SCOPE_TYPES(own, float); /* no site: the program's own go with its module, now */
        (void)tide_zeros(own, float, 1000);
        (void)tide_pool_wait(own);
        tide_pool_empty(own);
    }
}

static void *go_on(void *stream)
{
    tide_pool *own = tide_pool_create(&(tide_pool_options){.device = device, .stream = stream});
    do_rounds(own, 1000);
    pthread_barrier_wait(&both); /* exit begins */
    pthread_barrier_wait(&both); /* the driver is gone */
    do_rounds(own, 1000);
    if (tide_pool_wait(own) != TIDE_ERROR_DEVICE)
        _exit(4);
    return NULL;
}

static void let_go_on(void)
{
    pthread_barrier_wait(&both);
    if (pthread_join(thread, NULL) != 0)
        _exit(6);
}

static bool end_beside_thread(void *stream)
{
    if (pthread_barrier_init(&both, NULL, 2) != 0 ||
        pthread_create(&thread, NULL, go_on, fake_stream_create(0)) != 0)
        return false;
    TIDE_SCOPE(pool);
    put(stream, tide_zeros(pool, float, 1000), 4000, 1);
    pthread_barrier_wait(&both);
    return unexpected() == 0;
}

static bool said_forked(void)
{
    return strstr(tide_error_message(), "before this process was forked") != NULL;
}

static bool child_is_told(void)
{
    return tide_pool_wait(pool) == TIDE_ERROR_DEVICE && said_forked() &&
           tide_device_open("cuda:0") == NULL && said_forked() &&
           tide_device_open("cuda:1") == NULL && said_forked() &&
           tide_pool_local_on(device, NULL) == NULL && said_forked() &&
           tide_pool_wait(pool) == TIDE_ERROR_DEVICE && said_forked() &&
           tide_pool_destroy(pool) == TIDE_OK && tide_device_close(device) == TIDE_OK &&
           tide_device_open("cuda:0") == NULL && said_forked();
}

static bool fork_and_end(void *stream)
{
    (void)stream;
    int status = 1;
    pid_t child = fork();
    if (child == 0)
        exit(child_is_told() ? EXIT_SUCCESS : 5);
    return waitpid(child, &status, 0) == child && status == 0;
}

static const struct way {
    const char *name;
    bool (*run)(void *stream);
    void (*handler)(void); /* registered before the device is opened: runs after its driver's */
} ways[] = {{"live", work_and_end, NULL},
            {"atexit", work_and_end, destroy_late},
            {"thread", end_beside_thread, let_go_on},
            {"forked", fork_and_end, NULL}};

static bool run(const struct way *way)
{
    if (way->handler != NULL && atexit(way->handler) != 0)
        return false;
    bench b = bench_start(70);
    pool = b.pool;
    device = b.device;
    return way->run(b.stream);
}

int main(int count, char **arguments)
{
    for (size_t i = 0; count > 1 && i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, arguments[1]) == 0)
            return run(&ways[i]) ? EXIT_SUCCESS : EXIT_FAILURE;
    return EXIT_FAILURE;
}
