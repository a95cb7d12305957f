/* SPDX-License-Identifier: MIT */
/* Queues of OpenCL devices: their numbers, their order, waiting for them and marks in them. Events
 * are polled: a callback would come on another thread, where little may be called. */
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/device/opencl/opencl.h"

/* ---- numbers -------------------------------------------------------------------------------- */

/* Returns the driver's error. */
static int32_t opencl_ask_queue(tide_cl_queue queue, uint32_t what, void *out, size_t bytes)
{
    return tide_opencl.clGetCommandQueueInfo(queue, what, bytes, out, NULL);
}

enum { STREAMS_KEPT = 256 };

/* We hold every queue that has a number, so its handle cannot come to name another queue. This
 * releases those that nobody else holds and nothing of ours uses: nobody can use them again. Device
 * locked. */
static void opencl_sweep_queues(tide_opencl_device *device)
{
    for (size_t i = device->stream_count; i-- > 0;) {
        tide_assert(i < device->stream_count);
        uint32_t references = 2;
        tide_cl_queue queue = device->streams[i].queue;
        if (device->streams[i].uses != 0 ||
            opencl_ask_queue(queue, TIDE_CL_QUEUE_REFERENCE_COUNT, &references,
                             sizeof references) != TIDE_CL_SUCCESS ||
            references > 1)
            continue;
        (void)tide_opencl.clReleaseCommandQueue(queue);
        device->streams[i] = device->streams[--device->stream_count];
    }
}

/* Only this error says that it is none: with any other the driver does not tell. */
static tide_status opencl_check_known(const tide_opencl_device *device, tide_cl_queue queue,
                                      int32_t error)
{
    if (error == TIDE_CL_INVALID_QUEUE)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_device", "%p is no command queue",
                         (void *)queue);
    return tide_opencl_check(device, error, "clGetCommandQueueInfo");
}

/* It must be an in-order queue of this device. */
static tide_status opencl_check_queue(const tide_opencl_device *device, tide_cl_queue queue)
{
    tide_cl_context context = NULL;
    tide_cl_device on = NULL;
    uint64_t properties = 0;
    const char *name = device->base->name;
    int32_t error = opencl_ask_queue(queue, TIDE_CL_QUEUE_CONTEXT, &context, sizeof context);
    if (error == TIDE_CL_SUCCESS)
        error = opencl_ask_queue(queue, TIDE_CL_QUEUE_DEVICE, &on, sizeof on);
    if (error == TIDE_CL_SUCCESS)
        error = opencl_ask_queue(queue, TIDE_CL_QUEUE_PROPERTIES, &properties, sizeof properties);
    TIDE_FORWARD(opencl_check_known(device, queue, error));
    if (context != device->context || on != device->device)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_device",
                         "the command queue %p is not of the context of device %s "
                         "(tide_device_context)",
                         (void *)queue, name);
    if ((properties & TIDE_CL_QUEUE_OUT_OF_ORDER) != 0)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_device",
                         "the command queue %p is not in order: nothing orders the re-use of slots",
                         (void *)queue);
    return TIDE_OK;
}

/* Holds the queue and gives it its number; 0 with a message. Device locked. */
static uint64_t opencl_remember_queue(tide_opencl_device *device, tide_cl_queue queue)
{
    static uint64_t last; /* atomic */
    if (device->stream_count == device->stream_room) {
        size_t room = device->stream_room == 0 ? 8 : device->stream_room * 2;
        tide_opencl_stream *streams = tide_os_resize(device->streams, room * sizeof *streams);
        if (streams == NULL) {
            tide_fail(TIDE_ERROR_MEMORY, "tide_device", "no memory for command queue %zu", room);
            return 0;
        }
        device->streams = streams;
        device->stream_room = room;
    }
    if (tide_opencl_check(device, tide_opencl.clRetainCommandQueue(queue),
                          "clRetainCommandQueue") != TIDE_OK)
        return 0;
    uint64_t number = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    tide_assert(number != 0 && device->stream_count < device->stream_room);
    device->streams[device->stream_count++] = (tide_opencl_stream){queue, number, 0};
    return number;
}

static uint64_t opencl_known_number(const tide_opencl_device *device, tide_cl_queue queue)
{
    for (size_t i = 0; i < device->stream_count; i++)
        if (device->streams[i].queue == queue)
            return device->streams[i].number;
    return 0;
}

static uint64_t opencl_number_queue(tide_opencl_device *device, tide_cl_queue queue)
{
    tide_assert(device->stream_count <= device->stream_room);
    uint64_t known = opencl_known_number(device, queue);
    if (known != 0)
        return known;
    if (device->stream_count >= STREAMS_KEPT)
        opencl_sweep_queues(device);
    return opencl_check_queue(device, queue) == TIDE_OK ? opencl_remember_queue(device, queue) : 0;
}

static uint64_t opencl_number_within(tide_opencl_device *device, void *stream)
{
    tide_lock_take(&device->lock);
    uint64_t number = opencl_number_queue(device, tide_opencl_queue(device, stream));
    tide_lock_let_go(&device->lock);
    return number;
}

/* A queue keeps its number when the device is lost: calls that use the queue then fail. In a child
 * no lock is taken, because a thread of the parent may hold it; nothing changes there any more. Nor
 * is one taken at exit, where no number is told: a thread that stays in the driver may hold it. */
uint64_t tide_opencl_stream_number(tide_device *base, void *stream)
{
    TIDE_OPENCL_INSIDE;
    tide_opencl_device *device = tide_opencl_of(base);
    if (tide_opencl_usable(device, "tide_device") == TIDE_OK)
        return opencl_number_within(device, stream);
    return tide_driver_exiting(TIDE_DRIVER_OPENCL)
               ? 0
               : opencl_known_number(device, tide_opencl_queue(device, stream));
}

/* In a child nothing is released any more. */
void tide_opencl_stream_keep(tide_device *base, uint64_t number, bool keep)
{
    tide_opencl_device *device = tide_opencl_of(base);
    if (!tide_driver_alive(TIDE_DRIVER_OPENCL))
        return;
    tide_lock_take(&device->lock);
    for (size_t i = 0; i < device->stream_count; i++) {
        tide_opencl_stream *stream = &device->streams[i];
        tide_assert(stream->number != number || keep || stream->uses > 0);
        if (stream->number == number)
            stream->uses += keep ? 1 : UINT32_MAX;
    }
    tide_lock_let_go(&device->lock);
}

void tide_opencl_streams_end(tide_opencl_device *device)
{
    tide_assert(device->base->opened == 0);
    for (size_t i = 0; i < device->stream_count; i++)
        (void)tide_opencl.clReleaseCommandQueue(device->streams[i].queue);
    device->stream_count = 0;
}

/* ---- order ---------------------------------------------------------------------------------- */

/* Flushes the queue, because another queue may wait for the mark and nobody else would start it. */
static void *opencl_mark_within(tide_opencl_device *device, void *stream)
{
    tide_cl_queue queue = tide_opencl_queue(device, stream);
    tide_cl_event event = NULL;
    if (tide_opencl_check(device, tide_opencl.clEnqueueMarkerWithWaitList(queue, 0, NULL, &event),
                          "clEnqueueMarkerWithWaitList") != TIDE_OK)
        return NULL;
    tide_device_count(&device->base->events);
    if (tide_opencl_check(device, tide_opencl.clFlush(queue), "clFlush") == TIDE_OK)
        return event;
    (void)tide_opencl.clReleaseEvent(event);
    return NULL;
}

void *tide_opencl_mark(tide_device *base, void *stream)
{
    TIDE_OPENCL_INSIDE;
    tide_opencl_device *device = tide_opencl_of(base);
    return tide_opencl_usable(device, "tide_device") == TIDE_OK ? opencl_mark_within(device, stream)
                                                                : NULL;
}

tide_status tide_opencl_order(tide_device *base, void *before, void *after)
{
    TIDE_OPENCL_INSIDE;
    tide_opencl_device *device = tide_opencl_of(base);
    tide_cl_queue queue = tide_opencl_queue(device, after);
    if (queue == tide_opencl_queue(device, before))
        return TIDE_OK;
    TIDE_FORWARD(tide_opencl_usable(device, "tide_device"));
    tide_cl_event event = opencl_mark_within(device, before);
    if (event == NULL)
        return tide_error_status();
    int32_t error = tide_opencl.clEnqueueBarrierWithWaitList(queue, 1, &event, NULL);
    (void)tide_opencl.clReleaseEvent(event); /* the barrier keeps it */
    return tide_opencl_check(device, error, "clEnqueueBarrierWithWaitList");
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* For whoever cannot fail: an error may pass. */
void tide_opencl_finish_within(tide_cl_queue queue)
{
    if (tide_opencl.clFinish(queue) != TIDE_CL_SUCCESS)
        (void)tide_opencl.clFinish(queue);
}

tide_status tide_opencl_wait(tide_device *base, void *stream)
{
    TIDE_OPENCL_INSIDE;
    tide_opencl_device *device = tide_opencl_of(base);
    TIDE_FORWARD(tide_opencl_usable(device, "tide_device"));
    tide_device_count(&base->waits);
    return tide_opencl_check(device, tide_opencl.clFinish(tide_opencl_queue(device, stream)),
                             "clFinish");
}

/* The last queue before the place, which is moved to it. It is held for the caller, who waits for
 * it without the lock. NULL: there are no more. */
static tide_cl_queue opencl_hold_queue_before(tide_opencl_device *device, size_t *place)
{
    tide_cl_queue queue = NULL;
    tide_lock_take(&device->lock);
    if (*place > device->stream_count)
        *place = device->stream_count;
    if (*place > 0) {
        queue = device->streams[--*place].queue;
        (void)tide_opencl.clRetainCommandQueue(queue);
    }
    tide_lock_let_go(&device->lock);
    return queue;
}

/* OpenCL has no call for a whole device: the host waits for each queue that has a number. From the
 * last to the first: a sweep meanwhile moves the last one to an earlier place, so that it is met
 * twice, and not never. One that fails keeps it from no other. */
tide_status tide_opencl_wait_all(tide_device *base)
{
    TIDE_OPENCL_INSIDE;
    tide_opencl_device *device = tide_opencl_of(base);
    tide_status failed = tide_opencl_wait(base, NULL);
    tide_cl_queue queue;
    for (size_t place = SIZE_MAX; tide_opencl_usable(device, "tide_device") == TIDE_OK &&
                                  (queue = opencl_hold_queue_before(device, &place)) != NULL;) {
        tide_status status = tide_opencl_wait(base, queue);
        (void)tide_opencl.clReleaseCommandQueue(queue);
        failed = status != TIDE_OK ? status : failed;
    }
    TIDE_FORWARD(tide_opencl_usable(device, "tide_device"));
    return failed;
}

/* ---- marks ---------------------------------------------------------------------------------- */

/* An event that failed has passed as well. Once exit has begun nothing has: the background thread asks, which
 * gives old buffers back, and must not call the driver then. */
bool tide_opencl_mark_done(tide_device *base, void *mark)
{
    TIDE_OPENCL_INSIDE;
    tide_opencl_device *device = tide_opencl_of(base);
    int32_t status = TIDE_CL_COMPLETE;
    tide_assert(mark != NULL);
    if (tide_opencl_usable(device, "tide_device") != TIDE_OK)
        return false;
    int32_t error =
        tide_opencl.clGetEventInfo(mark, TIDE_CL_EVENT_STATUS, sizeof status, &status, NULL);
    return error == TIDE_CL_SUCCESS && status <= TIDE_CL_COMPLETE;
}

tide_status tide_opencl_mark_wait(tide_device *base, void *mark)
{
    TIDE_OPENCL_INSIDE;
    tide_opencl_device *device = tide_opencl_of(base);
    tide_cl_event event = mark;
    tide_assert(mark != NULL);
    TIDE_FORWARD(tide_opencl_usable(device, "tide_device"));
    tide_device_count(&base->waits);
    return tide_opencl_check(device, tide_opencl.clWaitForEvents(1, &event), "clWaitForEvents");
}

tide_status tide_opencl_mark_follow(tide_device *base, void *mark, void *stream)
{
    TIDE_OPENCL_INSIDE;
    tide_opencl_device *device = tide_opencl_of(base);
    tide_cl_event event = mark;
    tide_assert(mark != NULL);
    TIDE_FORWARD(tide_opencl_usable(device, "tide_device"));
    return tide_opencl_check(device,
                             tide_opencl.clEnqueueBarrierWithWaitList(
                                 tide_opencl_queue(device, stream), 1, &event, NULL),
                             "clEnqueueBarrierWithWaitList");
}

void tide_opencl_mark_drop(tide_device *base, void *mark)
{
    TIDE_OPENCL_INSIDE;
    (void)base;
    tide_assert(mark != NULL);
    if (tide_driver_alive(TIDE_DRIVER_OPENCL))
        (void)tide_opencl.clReleaseEvent(mark);
}
