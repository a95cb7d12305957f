/* SPDX-License-Identifier: MIT */
/* The process ends with live device pools. The fake driver ends it with 99 if
 * anything calls it after it was torn down.
 *
 *   live    main returns: the pool was never destroyed
 *   atexit  a handler destroys it when the driver is gone
 *   thread  another thread is in the middle of things
 *   forked  a child ends that was forked while another thread was in the driver */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
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

/* ---- forked ------------------------------------------------------------------------------- */

static unsigned sleeps; /* atomic */
static bool is_child;

/* In place of the C library's: whoever waits at the end is counted. */
int usleep(useconds_t microseconds)
{
    __atomic_fetch_add(&sleeps, 1, __ATOMIC_RELAXED);
    struct timespec time = {microseconds / 1000000, (long)(microseconds % 1000000) * 1000};
    return nanosleep(&time, NULL);
}

static void *wait_in_driver(void *unused)
{
    (void)tide_pool_wait(pool);
    return unused;
}

static bool child_is_told(void)
{
    return tide_pool_wait(pool) == TIDE_ERROR_DEVICE &&
           strstr(tide_error_message(), "lost") != NULL && tide_device_open("cuda:1") == NULL &&
           strstr(tide_error_message(), "forked") != NULL && tide_pool_destroy(pool) == TIDE_OK &&
           tide_device_close(device) == TIDE_OK;
}

/* After the handlers of exit: a child that waited at its end has another status. */
__attribute__((destructor)) static void expect_no_sleep(void)
{
    if (is_child && __atomic_load_n(&sleeps, __ATOMIC_RELAXED) != 0)
        _exit(4);
}

/* While a thread waits in the driver. The child has neither that thread nor the driver. */
static int fork_and_end(void)
{
    pthread_t thread;
    int status = 1;
    fake_hold_up("cuStreamSynchronize");
    if (pthread_create(&thread, NULL, wait_in_driver, NULL) != 0)
        return EXIT_FAILURE;
    while (fake_held_up() == 0)
        sched_yield();
    pid_t child = fork();
    if (child == 0) {
        is_child = true;
        __atomic_store_n(&sleeps, 0, __ATOMIC_RELAXED); /* the parent's */
        exit(child_is_told() ? EXIT_SUCCESS : 5);
    }
    if (waitpid(child, &status, 0) != child || status != 0)
        return EXIT_FAILURE;
    fake_hold_up(NULL);
    pthread_join(thread, NULL);
    return EXIT_SUCCESS;
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
    if (strcmp(way, "forked") == 0)
        return fork_and_end();
    TIDE_SCOPE(pool);
    put(b.stream, tide_zeros(pool, float, 1000), 4000, 1);
    if (strcmp(way, "thread") == 0)
        usleep(20000);
    exit(unexpected() == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}
