/* SPDX-License-Identifier: MIT */
/* The process ends with live device pools. The fake driver ends it with 99 if
 * anything calls it after it was torn down.
 *
 *   live    main returns: the pool was never destroyed
 *   atexit  a handler destroys it when the driver is gone
 *   thread  another thread is in the middle of things
 *   forked  a child ends that was forked while another thread was in the driver
 *   foreign a handler destroys a pool with an array of somebody else's
 *   inside  the driver calls a function of the program, which ends the process
 *   closed  the device is closed while exit no longer waits for a thread in the driver */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/device/device.h"
#include "support.h"

enum { SLEEPS_MAX = 2000 }; /* of exit, while a thread is in the driver */

static tide_pool *pool;
static tide_device *device;

static void destroy_late(void)
{
    bool right = tide_pool_reset(pool) == TIDE_OK && tide_pool_destroy(pool) == TIDE_OK &&
                 tide_device_close(device) == TIDE_OK;
    if (!right)
        _exit(3);
}

/* ---- who waits at the end ----------------------------------------------------------------- */

static unsigned sleeps;        /* atomic */
static int wanted_sleeps = -1; /* -1: any number, and they take their time */
static void (*at_last_sleep)(void);

/* In place of the C library's. */
int usleep(useconds_t microseconds)
{
    unsigned count = __atomic_add_fetch(&sleeps, 1, __ATOMIC_RELAXED);
    if (count == SLEEPS_MAX && at_last_sleep != NULL)
        at_last_sleep();
    if (wanted_sleeps >= 0)
        return 0;
    struct timespec time = {microseconds / 1000000, (long)(microseconds % 1000000) * 1000};
    return nanosleep(&time, NULL);
}

/* From now on. */
static void want_sleeps(int count)
{
    __atomic_store_n(&sleeps, 0, __ATOMIC_RELAXED);
    wanted_sleeps = count;
}

/* After the handlers of exit. */
__attribute__((destructor)) static void expect_sleeps(void)
{
    if (wanted_sleeps >= 0 && __atomic_load_n(&sleeps, __ATOMIC_RELAXED) != (unsigned)wanted_sleeps)
        _exit(4);
}

/* ---- another thread is in the driver ------------------------------------------------------ */

static pthread_t waiter;

static void *wait_in_driver(void *unused)
{
    (void)device->methods->wait(device, NULL);
    return unused;
}

static bool hold_up_waiter(void)
{
    fake_hold_up("cuStreamSynchronize");
    if (pthread_create(&waiter, NULL, wait_in_driver, NULL) != 0)
        return false;
    while (fake_held_up() == 0)
        sched_yield();
    return true;
}

static void let_waiter_go(void)
{
    fake_hold_up(NULL);
    pthread_join(waiter, NULL);
}

/* ---- closed ------------------------------------------------------------------------------- */

/* The thread comes back to its device. */
static void close_beside(void)
{
    void *own = device->own;
    destroy_late();
    bool right = own != NULL && device->own == own && tide_device_open("cuda:0") == NULL &&
                 tide_error_status() == TIDE_ERROR_DEVICE && device->own == own;
    let_waiter_go();
    if (!right)
        _exit(6);
}

/* ---- foreign ------------------------------------------------------------------------------ */

static char foreign[64];

static void delete_foreign(tide_dl_managed *managed)
{
    (void)managed;
    _exit(7);
}

/* Whether it is over cannot be asked. */
static void end_beside_foreign(void)
{
    bool right = tide_pool_destroy(pool) == TIDE_OK &&
                 tide_device_close(device) == TIDE_ERROR_STATE; /* the array is on it */
    if (!right)
        _exit(8);
}

static bool import_foreign(tide_dl_managed *managed)
{
    static int64_t shape = sizeof foreign;
    *managed = (tide_dl_managed){.version.major = TIDE_DL_MAJOR, .deleter = delete_foreign};
    managed->tensor = (tide_dl_tensor){.data = foreign,
                                       .device = device->dl,
                                       .ndim = 1,
                                       .dtype = {TIDE_DL_UINT, 8, 1},
                                       .shape = &shape};
    return tide_array_import(pool, managed) != NULL;
}

/* One waits for a mark, since its scope has ended, and one for the device. */
static bool import_two(void *stream)
{
    static tide_dl_managed managed[2];
    {
        TIDE_SCOPE(pool);
        if (!import_foreign(&managed[0]))
            return false;
        float *used = tide_zeros(pool, float, 1000);
        for (int i = 0; i < 100; i++) /* the fake works on in each call */
            put(stream, used, 4000, 1);
    }
    return fake_pending() > 0 && import_foreign(&managed[1]);
}

/* ---- inside ------------------------------------------------------------------------------- */

static void exit_now(void)
{
    want_sleeps(0);
    exit(EXIT_SUCCESS);
}

/* ---- forked ------------------------------------------------------------------------------- */

static bool child_is_told(void)
{
    return tide_pool_wait(pool) == TIDE_ERROR_DEVICE &&
           strstr(tide_error_message(), "lost") != NULL && tide_device_open("cuda:1") == NULL &&
           strstr(tide_error_message(), "forked") != NULL && tide_pool_destroy(pool) == TIDE_OK &&
           tide_device_close(device) == TIDE_OK;
}

/* While a thread waits in the driver. The child has neither that thread nor the driver. */
static int fork_and_end(void)
{
    int status = 1;
    if (!hold_up_waiter())
        return EXIT_FAILURE;
    pid_t child = fork();
    if (child == 0) {
        want_sleeps(0);
        exit(child_is_told() ? EXIT_SUCCESS : 5);
    }
    if (waitpid(child, &status, 0) != child || status != 0)
        return EXIT_FAILURE;
    let_waiter_go();
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
    if (strcmp(way, "foreign") == 0)
        atexit(end_beside_foreign);
    bench b = bench_start(70);
    pool = b.pool;
    device = b.device;
    pthread_t thread;
    if (strcmp(way, "thread") == 0 &&
        pthread_create(&thread, NULL, go_on, fake_stream_create(0)) != 0)
        return EXIT_FAILURE;
    if (strcmp(way, "forked") == 0)
        return fork_and_end();
    if (strcmp(way, "foreign") == 0)
        return import_two(b.stream) ? EXIT_SUCCESS : EXIT_FAILURE;
    if (strcmp(way, "inside") == 0) {
        fake_call_back("cuStreamSynchronize", exit_now);
        (void)tide_pool_wait(pool);
        return EXIT_FAILURE; /* it did not end there */
    }
    if (strcmp(way, "closed") == 0) {
        want_sleeps(SLEEPS_MAX);
        at_last_sleep = close_beside;
        return hold_up_waiter() ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    TIDE_SCOPE(pool);
    put(b.stream, tide_zeros(pool, float, 1000), 4000, 1);
    if (strcmp(way, "thread") == 0)
        usleep(20000);
    exit(unexpected() == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}
