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
 *   closed  the device is closed while exit no longer waits for a thread in the driver
 *   late    a handler makes every call that there is on a device
 *   lost    the driver is gone for a thread that it held up, in the end of such a pool
 *   gone    a handler destroys such a pool whose device was lost before
 *   reset   it seems to be reset to a thread that it held up, beside such a pool
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tidepool/array.h>
#include <tidepool/device.h>
#include <tidepool/dlpack.h>
#include <tidepool/upkeep.h>

#include "runtime/base/hooks.h"
#include "runtime/device/cuda/api.h"
#include "runtime/device/device.h"
#include "support.h"
#include "tests/device/late.h"

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
static void (*at_first_sleep)(void), (*at_last_sleep)(void);

/* In place of the C library's. */
int usleep(useconds_t microseconds)
{
    unsigned count = __atomic_add_fetch(&sleeps, 1, __ATOMIC_RELAXED);
    if (count == 1 && at_first_sleep != NULL)
        at_first_sleep();
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

static bool hold_up(void *(*work)(void *), const char *entry)
{
    fake_hold_up(entry);
    if (pthread_create(&waiter, NULL, work, NULL) != 0)
        return false;
    while (fake_held_up() == 0)
        sched_yield();
    return true;
}

static bool hold_up_waiter(void)
{
    return hold_up(wait_in_driver, "cuStreamSynchronize");
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

/* The driver has ended, and says so; no device is lost thereby. */
static void *destroy_beside(void *unused)
{
    if (tide_pool_destroy(pool) != TIDE_OK || tide_device_lost(device))
        _exit(10);
    return unused;
}

static void fail_waiter(void)
{
    fake_fail("cuEventSynchronize", 1, TIDE_CU_DEINITIALIZED, false);
    let_waiter_go();
}

static bool destroy_held_up(void *stream)
{
    static tide_dl_managed managed;
    {
        TIDE_SCOPE(pool);
        if (!import_foreign(&managed))
            return false;
        float *used = tide_zeros(pool, float, 1000);
        for (int i = 0; i < 100; i++)
            put(stream, used, 4000, 1);
    }
    want_sleeps(SLEEPS_MAX);
    at_last_sleep = fail_waiter;
    return hold_up(destroy_beside, "cuEventSynchronize");
}

static bool deleted;

static void note_deleted(tide_dl_managed *managed)
{
    (void)managed;
    deleted = true;
}

/* Nothing runs on a device that was lost. */
static void end_when_gone(void)
{
    bool right =
        tide_pool_destroy(pool) == TIDE_OK && deleted && tide_device_close(device) == TIDE_OK;
    if (!right)
        _exit(13);
}

static bool lose_device(void *stream)
{
    static tide_dl_managed managed;
    if (!import_foreign(&managed))
        return false;
    managed.deleter = note_deleted;
    fake_fail("cuStreamSynchronize", 1, TIDE_CU_ILLEGAL_ADDRESS, false);
    if (tide_pool_wait(pool) != TIDE_ERROR_DEVICE || !tide_device_lost(device))
        return false;
    TIDE_SCOPE(pool); /* the fake still tells numbers */
    return tide_pool_use_on(pool, stream) == TIDE_ERROR_DEVICE;
}

/* Nothing is known to be over. */
static void import_at_last(void)
{
    static tide_dl_managed managed;
    if (!import_foreign(&managed) || tide_device_lost(device))
        _exit(12);
}

static void seem_reset(void)
{
    fake_fail("cuCtxGetId", 1, TIDE_CU_CONTEXT_IS_DESTROYED, false);
    let_waiter_go();
}

static bool wait_held_up(void *stream)
{
    if (!import_two(stream))
        return false;
    want_sleeps(SLEEPS_MAX);
    at_last_sleep = seem_reset;
    return hold_up(wait_in_driver, "cuCtxGetId");
}

/* ---- late --------------------------------------------------------------------------------- */

static void call_late(void)
{
    const char *wrong = late_call_all();
    if (wrong == NULL)
        return;
    fprintf(stderr, "%s: %d: %s\n", wrong, (int)tide_error_status(), tide_error_message());
    _exit(9);
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
static bool fork_and_end(void *stream)
{
    (void)stream;
    int status = 1;
    if (!hold_up_waiter())
        return false;
    pid_t child = fork();
    if (child == 0) {
        want_sleeps(0);
        exit(child_is_told() ? EXIT_SUCCESS : 5);
    }
    if (waitpid(child, &status, 0) != child || status != 0)
        return false;
    let_waiter_go();
    return true;
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

/* ---- ways --------------------------------------------------------------------------------- */

static bool work_and_end(void *stream)
{
    TIDE_SCOPE(pool);
    put(stream, tide_zeros(pool, float, 1000), 4000, 1);
    exit(unexpected() == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

static bool end_beside_thread(void *stream)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, go_on, fake_stream_create(0)) != 0)
        return false;
    {
        TIDE_SCOPE(pool);
        put(stream, tide_zeros(pool, float, 1000), 4000, 1);
        usleep(20000);
    }
    return unexpected() == 0;
}

static bool end_inside(void *stream)
{
    (void)stream;
    fake_call_back("cuStreamSynchronize", exit_now);
    (void)tide_pool_wait(pool);
    return false; /* it did not end there */
}

static bool end_and_close(void *stream)
{
    (void)stream;
    want_sleeps(SLEEPS_MAX);
    at_last_sleep = close_beside;
    return hold_up_waiter();
}

static bool end_with_all(void *stream)
{
    return late_prepare(device, stream);
}

static const struct way {
    const char *name;
    bool (*run)(void *stream);
    void (*handler)(void); /* registered before the device is opened: runs after its driver's */
} ways[] = {
    {"live", work_and_end, NULL},
    {"atexit", work_and_end, destroy_late},
    {"thread", end_beside_thread, NULL},
    {"forked", fork_and_end, NULL},
    {"foreign", import_two, end_beside_foreign},
    {"inside", end_inside, NULL},
    {"closed", end_and_close, NULL},
    {"late", end_with_all, call_late},
    {"reset", wait_held_up, import_at_last},
    {"gone", lose_device, end_when_gone},
    {"lost", destroy_held_up, NULL},
};

static bench b;

static bool start(void (*handler)(void))
{
    if (handler != NULL && atexit(handler) != 0)
        return false;
    b = bench_start(70);
    pool = b.pool;
    device = b.device;
    return true;
}

int main(int count, char **arguments)
{
    const struct way *way = ways;
    while (count > 1 && way < ways + sizeof ways / sizeof *ways &&
           strcmp(way->name, arguments[1]) != 0)
        way++;
    if (way == ways + sizeof ways / sizeof *ways)
        return EXIT_FAILURE;
    return start(way->handler) && way->run(b.stream) ? EXIT_SUCCESS : EXIT_FAILURE;
}
