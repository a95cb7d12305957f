/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "late.h"

#include <string.h>
#include <unistd.h>

#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/dlpack.h>

#include "runtime/device/device.h"

enum { BYTES = 4096, COUNT = 100 };

static tide_device *device;
static void *other_stream;
static tide_pool *pool;
static tide_buffers *buffers;
static tide_buffer buffer;
static tide_capture *capture;
static float *array;

bool late_is_refused(tide_status status)
{
    return status == TIDE_ERROR_DEVICE && tide_error_status() == status &&
           strstr(tide_error_message(), "the process is exiting") != NULL;
}

static void delete_foreign(tide_dl_managed *managed)
{
    (void)managed;
    _exit(LATE_DELETED);
}

static bool import_foreign(void)
{
    static int64_t shape = BYTES;
    static char foreign[BYTES];
    static tide_dl_managed managed = {.version.major = TIDE_DL_MAJOR, .deleter = delete_foreign};
    managed.tensor = (tide_dl_tensor){.data = foreign,
                                      .device = device->dl,
                                      .ndim = 1,
                                      .dtype = {TIDE_DL_UINT, 8, 1},
                                      .shape = &shape};
    return tide_array_import(pool, &managed) != NULL;
}

/* Of a pool that goes: the capture stays. */
static bool prepare_capture(void)
{
    if (device->methods->capture_number == NULL)
        return true;
    tide_pool *captured = tide_pool_create(&(tide_pool_options){.device = device});
    if (captured == NULL || tide_capture_begin(captured) != TIDE_OK)
        return false;
    capture = tide_capture_end(captured);
    return capture != NULL && tide_pool_destroy(captured) == TIDE_OK;
}

bool late_prepare(tide_device *on, void *other)
{
    device = on;
    other_stream = other;
    buffers = tide_buffers_create(device, NULL);
    pool = tide_pool_create(
        &(tide_pool_options){.device = device, .buffers = buffers, .name = "late"});
    if (pool == NULL || buffers == NULL || !prepare_capture())
        return false;
    (void)tide_checkpoint(pool);
    if (tide_pool_use_on(pool, other) != TIDE_OK)
        return false;
    array = tide_zeros(pool, float, COUNT);
    buffer = tide_buffer_acquire(buffers, BYTES);
    return array != NULL && buffer.generation != 0 && import_foreign();
}

/* ---- calls ---------------------------------------------------------------------------------- */

#define REFUSES(call)             \
    if (!late_is_refused((call))) \
    return #call
#define REFUSES_MAKING(call)                                     \
    if ((call) != NULL || !late_is_refused(tide_error_status())) \
    return #call
#define DOES(call)         \
    if ((call) != TIDE_OK) \
    return #call

static const char *call_transfers(void)
{
    float host[COUNT] = {0};
    uint64_t hash;
    const tide_part part = {.data = array, .host = host, .type = TIDE_F32, .count = COUNT};
    REFUSES(tide_upload(pool, array, host, sizeof host));
    REFUSES(tide_download(pool, host, array, sizeof host));
    REFUSES(tide_copy(pool, array, array + COUNT / 2, COUNT / 2));
    REFUSES(tide_upload_frame(pool, &part, 1));
    REFUSES(tide_download_frame(pool, &part, 1));
    REFUSES(tide_fill_frame(pool, &part, 1));
    REFUSES(tide_hash_frame(pool, &part, 1, &hash));
    return NULL;
}

static const char *call_pools(void)
{
    REFUSES(tide_pool_wait(pool));
    REFUSES(tide_pool_use_on(pool, other_stream));
    if (capture != NULL)
        REFUSES(tide_capture_begin(pool));
    REFUSES_MAKING(tide_zeros(pool, double, COUNT));
    REFUSES_MAKING(tide_acquire(pool, double, COUNT));
    REFUSES_MAKING(tide_pool_create(&(tide_pool_options){.device = device}));
    REFUSES_MAKING(tide_pool_local_on(device, NULL));
    REFUSES_MAKING(
        tide_device_open(device->dl.device_type == TIDE_DL_CUDA ? "cuda:1" : "opencl:1"));
    return NULL;
}

static const char *call_buffers(void)
{
    REFUSES_MAKING(tide_buffers_create(device, NULL));
    REFUSES(tide_buffer_release(buffers, buffer));
    if (tide_buffer_acquire(buffers, BYTES).generation != 0 ||
        !late_is_refused(tide_error_status()))
        return "tide_buffer_acquire";
    if (capture != NULL)
        REFUSES(tide_capture_drop(capture, NULL));
    return NULL;
}

/* The pool goes, after a reset that leaves it as it is; what it cannot know to be over stays, and
 * the device with it. */
static const char *give_up(void)
{
    DOES(tide_pool_reset(pool));
    REFUSES_MAKING(tide_acquire(pool, double, COUNT));
    DOES(tide_pool_destroy(pool));
    tide_buffers_statistics stats;
    DOES(tide_buffers_stats(buffers, &stats, NULL, 0));
    if (stats.live != 1) /* what was refused, and no memory of the pool */
        return "buffers of the pool";
    if (tide_device_close(device) != TIDE_ERROR_STATE)
        return "tide_device_close";
    return tide_device_lost(device) ? "the device is lost" : NULL;
}

const char *late_call_all(void)
{
    const char *(*const steps[])(void) = {call_transfers, call_pools, call_buffers, give_up};
    const char *wrong = NULL;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && wrong == NULL; i++)
        wrong = steps[i]();
    return wrong;
}
