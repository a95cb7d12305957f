/* SPDX-License-Identifier: MIT */
/* Queues of OpenCL devices: what they are, their order, waiting for them and marks in them. Events
 * are polled: a callback would come on another thread, where little may be called. */
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/device/opencl/opencl.h"

/* ---- what they are -------------------------------------------------------------------------------- */

/* A queue is numbered by its handle, which names it as long as it is there: it outlives what uses it.
 * What it is only a pool with checks asks. */
uint64_t tide_opencl_stream_number(tide_device *base, void *stream)
{
    return (uintptr_t)tide_opencl_queue(tide_opencl_of(base), stream);
}

static bool opencl_ask_queue(tide_opencl_device *device, tide_cl_queue queue, uint32_t what,
                             void *answer, size_t bytes)
{
    return TIDE_OPENCL_CALL(device, clGetCommandQueueInfo, queue, what, bytes, answer, NULL) ==
           TIDE_OK;
}

/* It is asked once: a handle has no number, and one that is gone cannot be asked. */
uint64_t tide_opencl_stream_check(tide_device *base, void *stream)
{
    tide_opencl_device *device = tide_opencl_of(base);
    tide_cl_queue queue = tide_opencl_queue(device, stream);
    tide_cl_context context = NULL;
    uint64_t properties = 0;
    if (tide_device_answers(base, "tide_device") != TIDE_OK ||
        !opencl_ask_queue(device, queue, TIDE_CL_QUEUE_CONTEXT, &context, sizeof context) ||
        !opencl_ask_queue(device, queue, TIDE_CL_QUEUE_PROPERTIES, &properties, sizeof properties))
        return 0;
    if (context == device->context && (properties & TIDE_CL_QUEUE_OUT_OF_ORDER) == 0)
        return TIDE_STREAM_UNASKED;
    tide_fail(TIDE_ERROR_ARGUMENT, "tide_device", "queue %p %s", stream,
              context != device->context ? "is of another context than tide_device_context gives"
                                         : "is out of order, and a stream runs its work in order");
    return 0;
}

/* ---- order ---------------------------------------------------------------------------------- */

/* Flushes the queue, because another queue may wait for the mark and nobody else would start it. */
static void *opencl_mark_within(tide_opencl_device *device, void *stream)
{
    tide_cl_queue queue = tide_opencl_queue(device, stream);
    tide_cl_event event = NULL;
    if (TIDE_OPENCL_CALL(device, clEnqueueMarkerWithWaitList, queue, 0, NULL, &event) != TIDE_OK)
        return NULL;
    tide_device_count(&device->base->events);
    if (TIDE_OPENCL_CALL(device, clFlush, queue) == TIDE_OK)
        return event;
    (void)tide_opencl.clReleaseEvent(event);
    return NULL;
}

void *tide_opencl_mark(tide_device *base, void *stream)
{
    tide_opencl_device *device = tide_opencl_of(base);
    return tide_device_answers(base, "tide_device") == TIDE_OK ? opencl_mark_within(device, stream)
                                                               : NULL;
}

tide_status tide_opencl_order(tide_device *base, void *before, void *after)
{
    tide_opencl_device *device = tide_opencl_of(base);
    tide_cl_queue queue = tide_opencl_queue(device, after);
    if (queue == tide_opencl_queue(device, before))
        return TIDE_OK;
    TIDE_FORWARD(tide_device_answers(base, "tide_device"));
    tide_cl_event event = opencl_mark_within(device, before);
    if (event == NULL)
        return tide_error_status();
    tide_status status =
        TIDE_OPENCL_CALL(device, clEnqueueBarrierWithWaitList, queue, 1, &event, NULL);
    (void)tide_opencl.clReleaseEvent(event); /* the barrier keeps it */
    return status;
}

/* ---- waiting -------------------------------------------------------------------------------- */

tide_status tide_opencl_wait(tide_device *base, void *stream)
{
    tide_opencl_device *device = tide_opencl_of(base);
    TIDE_FORWARD(tide_device_answers(base, "tide_device"));
    tide_device_count(&base->waits);
    return TIDE_OPENCL_CALL(device, clFinish, tide_opencl_queue(device, stream));
}

/* OpenCL has no call for a whole device: it is the device's own queue that is waited for. */
tide_status tide_opencl_wait_all(tide_device *base)
{
    return tide_opencl_wait(base, NULL);
}

/* ---- marks ---------------------------------------------------------------------------------- */

/* An event that failed has passed as well. Once exit has begun nothing has, for the driver
 * is not called any more. */
bool tide_opencl_mark_done(tide_device *base, void *mark)
{
    int32_t status = TIDE_CL_COMPLETE;
    tide_assert(mark != NULL);
    if (tide_device_answers(base, "tide_device") != TIDE_OK)
        return false;
    int32_t error =
        tide_opencl.clGetEventInfo(mark, TIDE_CL_EVENT_STATUS, sizeof status, &status, NULL);
    return error == TIDE_CL_SUCCESS && status <= TIDE_CL_COMPLETE;
}

tide_status tide_opencl_mark_wait(tide_device *base, void *mark)
{
    tide_opencl_device *device = tide_opencl_of(base);
    tide_cl_event event = mark;
    tide_assert(mark != NULL);
    TIDE_FORWARD(tide_device_answers(base, "tide_device"));
    tide_device_count(&base->waits);
    return TIDE_OPENCL_CALL(device, clWaitForEvents, 1, &event);
}

tide_status tide_opencl_mark_follow(tide_device *base, void *mark, void *stream)
{
    tide_opencl_device *device = tide_opencl_of(base);
    tide_cl_event event = mark;
    tide_assert(mark != NULL);
    TIDE_FORWARD(tide_device_answers(base, "tide_device"));
    return TIDE_OPENCL_CALL(device, clEnqueueBarrierWithWaitList, tide_opencl_queue(device, stream),
                            1, &event, NULL);
}

void tide_opencl_mark_drop(tide_device *base, void *mark)
{
    (void)base;
    tide_assert(mark != NULL);
    if (tide_driver_alive(TIDE_DRIVER_OPENCL))
        (void)tide_opencl.clReleaseEvent(mark);
}
