/* SPDX-License-Identifier: MIT */
/* Device memory for other libraries, in the form that they call: a pointer and no handle. */
#include <tidepool/adaptors.h>

#include <sched.h>
#include <stdio.h>

#include <tidepool/buffers.h>
#include <tidepool/device.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/device/device.h"

enum { DEVICES = 64, YIELDS_MAX = 10000 };

/* A device, opened once, and a share of its buffers. They stay, unless the device is lost and all
 * that was handed out has come back: then whoever wants memory next ends them and opens anew.
 *
 * Who uses the instance counts itself first (`inside`), then looks; who ends it takes it away
 * first, then waits until nobody else is inside. All is sequentially consistent, so one of the two
 * sees the other. Who wants memory meanwhile (`renewing`) fails, and opens none. Who gives some
 * back has none: it is looked at first, and a lost device hands out no more. */
typedef struct adaptor {
    tide_device *device; /* set before the buffers; as long as it is open the only one */
    tide_buffers *buffers;
    uint32_t inside;
    bool renewing;
    bool opened; /* once more than there are shares: others are on the lost device */
} adaptor;

static adaptor adaptors[DEVICES]; /* all atomic */

/* ---- the instance ---------------------------------------------------------------------------- */

/* One opening of the device less; or, while others keep it from being closed, later. */
static void adaptor_close(adaptor *of, tide_device *device)
{
    if (tide_device_close(device) != TIDE_OK)
        __atomic_store_n(&of->opened, true, __ATOMIC_SEQ_CST);
}

/* One share of the buffers, and the opening that belongs to it. */
static tide_status adaptor_end(adaptor *of, tide_device *device, tide_buffers *buffers)
{
    TIDE_FORWARD(tide_buffers_destroy(buffers));
    adaptor_close(of, device);
    return TIDE_OK;
}

/* Becomes the instance of all. Another thread may have been first: with the same one. */
static tide_buffers *adaptor_put(adaptor *of, tide_device *device, tide_buffers *buffers)
{
    tide_buffers *other = NULL;
    __atomic_store_n(&of->device, device, __ATOMIC_SEQ_CST);
    if (__atomic_compare_exchange_n(&of->buffers, &other, buffers, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST))
        return buffers;
    (void)adaptor_end(of, device, buffers);
    return other;
}

static tide_buffers *adaptor_open(adaptor *of)
{
    char name[16];
    snprintf(name, sizeof name, "cuda:%d", (int)(of - adaptors));
    if (__atomic_exchange_n(&of->opened, false, __ATOMIC_SEQ_CST))
        adaptor_close(of, __atomic_load_n(&of->device, __ATOMIC_SEQ_CST));
    tide_device *opened = tide_device_open(name);
    tide_buffers *buffers = opened != NULL ? tide_buffers_shared(opened, TIDE_BUFFER_DEVICE) : NULL;
    if (buffers != NULL)
        return adaptor_put(of, opened, buffers);
    (void)tide_device_close(opened);
    return NULL;
}

static void adaptor_leave(adaptor *of)
{
    uint32_t before = __atomic_fetch_sub(&of->inside, 1, __ATOMIC_SEQ_CST);
    tide_assert(before > 0);
    (void)before;
}

/* The instance there is now, or NULL; in either case inside. */
static tide_buffers *adaptor_enter(adaptor *of)
{
    __atomic_fetch_add(&of->inside, 1, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&of->buffers, __ATOMIC_SEQ_CST);
}

/* Calls on a lost device are short. Not for ever, though: functions of the program may run in one.
 */
static bool adaptor_is_alone(const adaptor *of)
{
    for (int i = 0; i < YIELDS_MAX; i++) {
        if (__atomic_load_n(&of->inside, __ATOMIC_SEQ_CST) == 1)
            return true;
        sched_yield();
    }
    return false;
}

static bool adaptor_is_unused(tide_buffers *buffers)
{
    tide_buffers_statistics now;
    return tide_buffers_stats(buffers, &now, NULL, 0) == TIDE_OK && now.live == 0;
}

/* The device is opened anew if nothing of the old instance is held any more; else that stays. */
static tide_buffers *adaptor_exchange(adaptor *of, tide_buffers *lost)
{
    tide_buffers *now = lost;
    if (!adaptor_is_unused(lost))
        return NULL;
    tide_device *device = __atomic_load_n(&of->device, __ATOMIC_SEQ_CST);
    if (!__atomic_compare_exchange_n(&of->buffers, &now, NULL, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST))
        return NULL; /* another thread has done it */
    if (adaptor_is_alone(of) && adaptor_end(of, device, lost) == TIDE_OK)
        return adaptor_open(of);
    (void)adaptor_put(of, device, lost);
    return NULL;
}

/* By one thread at a time. NULL: not done. */
static tide_buffers *adaptor_renew(adaptor *of, tide_buffers *lost)
{
    if (__atomic_exchange_n(&of->renewing, true, __ATOMIC_SEQ_CST))
        return NULL;
    tide_buffers *now = adaptor_exchange(of, lost);
    __atomic_store_n(&of->renewing, false, __ATOMIC_SEQ_CST);
    return now;
}

/* NULL with a message: there is no such device. */
static adaptor *adaptor_of(int device, const char *call)
{
    if (device >= 0 && device < DEVICES)
        return &adaptors[device];
    tide_fail(TIDE_ERROR_ARGUMENT, call, "device %d; there are 0 to %d", device, DEVICES - 1);
    return NULL;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void *adaptor_acquire(tide_buffers *buffers, size_t size, void *stream)
{
    tide_buffer buffer = tide_buffer_acquire_on(buffers, size, TIDE_BUFFER_DEVICE, stream);
    return buffer.generation != 0 ? tide_buffer_pointer(buffers, buffer) : NULL;
}

static bool adaptor_is_lost(const adaptor *of)
{
    return tide_device_lost(__atomic_load_n(&of->device, __ATOMIC_SEQ_CST));
}

static void *adaptor_acquire_anew(adaptor *of, tide_buffers *lost, size_t size, void *stream,
                                  const char *call)
{
    tide_buffers *buffers = lost != NULL ? adaptor_renew(of, lost) : NULL;
    if (buffers != NULL)
        return adaptor_acquire(buffers, size, stream);
    tide_fail(TIDE_ERROR_DEVICE, call,
              "device %d is lost: it can be opened anew when all its memory has come back",
              (int)(of - adaptors));
    return NULL;
}

/* Who is refused at the door is not inside: however many ask again and again, they keep nobody from
 * being alone. */
static void *adaptor_malloc(size_t size, int device, void *stream, const char *call)
{
    adaptor *of = size != 0 ? adaptor_of(device, call) : NULL;
    void *data = NULL;
    if (of == NULL)
        return NULL;
    if (TIDE_UNLIKELY(__atomic_load_n(&of->renewing, __ATOMIC_SEQ_CST)))
        return adaptor_acquire_anew(of, NULL, size, stream, call);
    tide_buffers *buffers = adaptor_enter(of);
    bool renewing = __atomic_load_n(&of->renewing, __ATOMIC_SEQ_CST);
    if (TIDE_UNLIKELY(buffers == NULL) && !renewing)
        buffers = adaptor_open(of);
    if (buffers != NULL)
        data = adaptor_acquire(buffers, size, stream);
    if (TIDE_UNLIKELY(data == NULL) && (renewing || (buffers != NULL && adaptor_is_lost(of))))
        data = adaptor_acquire_anew(of, buffers, size, stream, call);
    adaptor_leave(of);
    return data;
}

/* Other libraries begin captures without a word: what they give back inside of one may be used by
 * each of its launches. */
static bool adaptor_is_captured(const adaptor *of, void *stream)
{
    tide_device *device = __atomic_load_n(&of->device, __ATOMIC_SEQ_CST);
    return !tide_device_lost(device) && device->methods->capturing(device, stream);
}

static void adaptor_free(void *data, int device, void *stream, const char *call)
{
    adaptor *of = data != NULL ? adaptor_of(device, call) : NULL;
    if (of == NULL)
        return;
    tide_buffers *buffers = adaptor_enter(of);
    tide_buffer buffer =
        buffers != NULL ? tide_buffer_of(buffers, data) : (tide_buffer){.generation = 0};
    if (buffer.generation == 0)
        tide_fail(TIDE_ERROR_ARGUMENT, call, "%p is no memory of device %d that is held", data,
                  device);
    else if (adaptor_is_captured(of, stream))
        tide_fail(TIDE_ERROR_STATE, call, "a graph is captured on the stream: %p stays its own",
                  data);
    else
        (void)tide_buffer_release_on(buffers, buffer, stream);
    adaptor_leave(of);
}

/* ---- the functions --------------------------------------------------------------------------- */

void *tide_torch_malloc(ssize_t size, int device, void *stream)
{
    const char *call = "tide_torch_malloc";
    if (size >= 0)
        return adaptor_malloc((size_t)size, device, stream, call);
    tide_fail(TIDE_ERROR_ARGUMENT, call, "%zd bytes", size);
    return NULL;
}

void tide_torch_free(void *data, ssize_t size, int device, void *stream)
{
    (void)size;
    adaptor_free(data, device, stream, "tide_torch_free");
}

void *tide_cupy_malloc(void *stream, size_t size, int device)
{
    return adaptor_malloc(size, device, stream, "tide_cupy_malloc");
}

void tide_cupy_free(void *stream, void *data, int device)
{
    adaptor_free(data, device, stream, "tide_cupy_free");
}
