/* SPDX-License-Identifier: MIT */
/* Streams of a CUDA device: ordered by events, waited for, marked.
 *
 * Events are kept and used again. An event may be recorded anew as soon as the wait for it is
 * queued: a wait is for the recording that there was at that moment. */
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/device/cuda/cuda.h"

/* ---- events ------------------------------------------------------------------------------- */

/* NULL: none is kept. */
static tide_cuda_mark *cuda_take_kept_mark(tide_cuda *cuda)
{
    tide_lock_take(&cuda->lock);
    tide_cuda_mark *mark = cuda->free_marks;
    if (mark != NULL)
        cuda->free_marks = mark->next;
    tide_lock_let_go(&cuda->lock);
    return mark;
}

/* In a forked child whoever had the lock may not be there. */
static void cuda_keep_mark(tide_cuda *cuda, tide_cuda_mark *mark)
{
    if (tide_driver_forked(TIDE_DRIVER_CUDA))
        return;
    tide_lock_take(&cuda->lock);
    tide_assert(mark != NULL && mark != cuda->free_marks); /* else it was dropped twice */
    mark->next = cuda->free_marks;
    cuda->free_marks = mark;
    tide_lock_let_go(&cuda->lock);
}

/* An event belongs to the context that is current when it is made. */
static tide_status cuda_make_mark(tide_device *device, tide_cuda_mark **made)
{
    tide_cuda_mark *mark = tide_os_resize(NULL, sizeof *mark);
    if (mark == NULL)
        return tide_fail(TIDE_ERROR_MEMORY, device->name, "no memory for an event");
    tide_status status =
        TIDE_CUDA_CALL(device, cuEventCreate, &mark->event, TIDE_CU_EVENT_DISABLE_TIMING);
    if (status == TIDE_OK)
        *made = mark;
    else
        tide_os_free(mark);
    return status;
}

/* A kept or new event, recorded on the stream now. */
static tide_status cuda_record_mark(tide_device *device, void *stream, tide_cuda_mark **out)
{
    tide_cuda *cuda = tide_cuda_of(device);
    tide_cuda_mark *mark = cuda_take_kept_mark(cuda);
    if (mark == NULL)
        TIDE_FORWARD(cuda_make_mark(device, &mark));
    tide_status status = TIDE_CUDA_CALL(device, cuEventRecord, mark->event, stream);
    if (TIDE_UNLIKELY(status != TIDE_OK)) {
        cuda_keep_mark(cuda, mark);
        return status;
    }
    tide_device_count(&device->events);
    *out = mark;
    return TIDE_OK;
}

void tide_cuda_marks_end(tide_device *device, bool reachable)
{
    tide_cuda *cuda = tide_cuda_of(device);
    for (tide_cuda_mark *mark = cuda->free_marks; mark != NULL; mark = cuda->free_marks) {
        cuda->free_marks = mark->next;
        if (reachable)
            (void)tide_cu.cuEventDestroy(mark->event);
        tide_os_free(mark);
    }
}

/* ---- order -------------------------------------------------------------------------------- */

/* Is all over that was queued on the stream? Then nothing has to wait for it, and to ask costs less than
 * an event and its wait. A stream that was found at work is not asked about for a while. */
static bool cuda_is_idle(tide_device *device, void *stream)
{
    enum { ORDERS = 15 };
    tide_cuda *cuda = tide_cuda_of(device);
    uint8_t *busy = &cuda->busy[(uintptr_t)stream / 16 % sizeof cuda->busy];
    int state = TIDE_CU_CAPTURE_NONE;
    uint8_t left = __atomic_load_n(busy, __ATOMIC_RELAXED);
    if (left == 0 && tide_cu.cuStreamIsCapturing(stream, &state) == TIDE_CU_SUCCESS &&
        state == TIDE_CU_CAPTURE_NONE) {
        if (tide_cu.cuStreamQuery(stream) == TIDE_CU_SUCCESS)
            return true;
        left = ORDERS + 1;
    }
    if (left > 0)
        __atomic_store_n(busy, left - 1, __ATOMIC_RELAXED);
    return false;
}

static tide_status cuda_order_streams(tide_device *device, void *before, void *after)
{
    tide_cuda_mark *mark = NULL;
    if (cuda_is_idle(device, before))
        return TIDE_OK;
    TIDE_FORWARD(cuda_record_mark(device, before, &mark));
    tide_status status = TIDE_CUDA_CALL(device, cuStreamWaitEvent, after, mark->event, 0);
    cuda_keep_mark(tide_cuda_of(device), mark);
    return status;
}

tide_status tide_cuda_order(tide_device *device, void *before, void *after)
{
    tide_cuda_entered entered;
    void *legacy = (uintptr_t)before <= TIDE_CU_STREAM_LEGACY ? before : after;
    TIDE_FORWARD(tide_cuda_enter_for(device, legacy, &entered));
    return tide_cuda_left(entered, cuda_order_streams(device, before, after));
}

tide_status tide_cuda_order_both(tide_device *device, void *one, void *other)
{
    tide_cuda_entered entered;
    void *legacy = (uintptr_t)one <= TIDE_CU_STREAM_LEGACY ? one : other;
    TIDE_FORWARD(tide_cuda_enter_for(device, legacy, &entered));
    tide_status first = cuda_order_streams(device, one, other);
    tide_status second = cuda_order_streams(device, other, one);
    return tide_cuda_left(entered, first != TIDE_OK ? first : second);
}

/* ---- wait --------------------------------------------------------------------------------- */

/* A wait for a stream that is being captured would end the capture. */
static tide_status cuda_wait(tide_device *device, void *stream)
{
    TIDE_FORWARD(tide_cuda_check_capture(device, stream));
    tide_device_count(&device->waits);
    return TIDE_CUDA_CALL(device, cuStreamSynchronize, stream);
}

tide_status tide_cuda_wait(tide_device *device, void *stream)
{
    tide_cuda_entered entered;
    TIDE_FORWARD(tide_cuda_enter(device, &entered));
    return tide_cuda_left(entered, cuda_wait(device, stream));
}

tide_status tide_cuda_wait_all(tide_device *device)
{
    tide_cuda_entered entered;
    TIDE_FORWARD(tide_cuda_enter(device, &entered));
    tide_device_count(&device->waits);
    tide_cu_result result = tide_cu.cuCtxSynchronize();
    return tide_cuda_left(entered, tide_cuda_check(device, "cuCtxSynchronize", result));
}

/* ---- marks -------------------------------------------------------------------------------- */

void *tide_cuda_mark_record(tide_device *device, void *stream)
{
    tide_cuda_mark *mark = NULL;
    tide_cuda_entered entered;
    if (tide_cuda_enter_for(device, stream, &entered) != TIDE_OK)
        return NULL;
    (void)cuda_record_mark(device, stream, &mark);
    tide_cuda_leave(entered);
    return mark;
}

/* An event recorded in a capture becomes a part of the graph: nobody could query it. */
void *tide_cuda_mark_make(tide_device *device, void *stream)
{
    return tide_cuda_check_capture(device, stream) == TIDE_OK
               ? tide_cuda_mark_record(device, stream)
               : NULL;
}

/* A mark on a lost device counts as passed: nothing runs there. */
bool tide_cuda_mark_done(tide_device *device, void *mark)
{
    tide_cuda_entered entered;
    tide_assert(mark != NULL);
    if (tide_cuda_enter(device, &entered) != TIDE_OK)
        return tide_device_lost(device);
    tide_cu_result result = tide_cu.cuEventQuery(((tide_cuda_mark *)mark)->event);
    if (result != TIDE_CU_SUCCESS && result != TIDE_CU_NOT_READY)
        (void)tide_cuda_fail(device, "cuEventQuery", result);
    tide_cuda_leave(entered);
    return result == TIDE_CU_SUCCESS || tide_device_lost(device);
}

/* No mark lies in a capture: what is said of one is said of somebody else's, which this wait cannot
 * end. It is a failure like any other. */
tide_status tide_cuda_mark_wait(tide_device *device, void *mark)
{
    tide_cuda_entered entered;
    tide_assert(mark != NULL);
    TIDE_FORWARD(tide_cuda_enter(device, &entered));
    tide_device_count(&device->waits);
    tide_cu_event event = ((tide_cuda_mark *)mark)->event;
    return tide_cuda_left(entered, TIDE_CUDA_CALL(device, cuEventSynchronize, event));
}

tide_status tide_cuda_mark_follow(tide_device *device, void *mark, void *stream)
{
    tide_cuda_entered entered;
    tide_assert(mark != NULL);
    TIDE_FORWARD(tide_cuda_enter_for(device, stream, &entered));
    tide_cu_event event = ((tide_cuda_mark *)mark)->event;
    return tide_cuda_left(entered, TIDE_CUDA_CALL(device, cuStreamWaitEvent, stream, event, 0));
}

void tide_cuda_mark_drop(tide_device *device, void *mark)
{
    cuda_keep_mark(tide_cuda_of(device), mark);
}

/* ---- what a stream is --------------------------------------------------------------------- */

/* A stream that has a handle of its own knows its context, and no mode forbids the question. Where the driver
 * does not tell so it may want a current context. */
bool tide_cuda_capturing(tide_device *device, void *stream)
{
    int state = TIDE_CU_CAPTURE_NONE;
    tide_cuda_entered entered;
    if ((uintptr_t)stream > TIDE_CU_STREAM_PER_THREAD && !tide_device_lost(device) &&
        tide_driver_alive(TIDE_DRIVER_CUDA) &&
        tide_cu.cuStreamIsCapturing(stream, &state) == TIDE_CU_SUCCESS)
        return state != TIDE_CU_CAPTURE_NONE;
    if (tide_cuda_enter(device, &entered) != TIDE_OK)
        return false;
    tide_cu_result result = tide_cu.cuStreamIsCapturing(stream, &state);
    tide_cuda_leave(entered);
    return result == TIDE_CU_CAPTURE_IMPLICIT ||
           (result == TIDE_CU_SUCCESS && state != TIDE_CU_CAPTURE_NONE);
}

tide_status tide_cuda_check_capture(tide_device *device, void *stream)
{
    return tide_cuda_capturing(device, stream)
               ? tide_fail(TIDE_ERROR_STATE, device->name, "a graph is being captured on stream %p",
                           stream)
               : TIDE_OK;
}

/* A handle names its stream as long as that is there. NULL is the legacy stream, and the per-thread
 * handle another stream in each thread; others are addresses. */
uint64_t tide_cuda_stream_number(tide_device *device, void *stream)
{
    (void)device;
    if ((uintptr_t)stream == TIDE_CU_STREAM_PER_THREAD)
        return (uint64_t)tide_os_thread_number() << 3 | TIDE_CU_STREAM_PER_THREAD;
    return stream != NULL ? (uintptr_t)stream : TIDE_CU_STREAM_LEGACY;
}

/* 0 for a stream of another context, too. NULL is a different stream in each context. Numbers are
 * more than the driver's, to be none of ours. */
static uint64_t cuda_number_stream(tide_device *device, void *stream)
{
    unsigned long long id = 0;
    tide_cu_context context = NULL;
    const char *entry = "cuStreamGetCtx";
    tide_cu_result result = tide_cu.cuStreamGetCtx(stream, &context);
    bool ours = result == TIDE_CU_SUCCESS && context == tide_cuda_of(device)->context;
    if (ours) {
        entry = "cuStreamGetId";
        result = tide_cu.cuStreamGetId(stream, &id);
    }
    if (ours && result == TIDE_CU_SUCCESS)
        return (uint64_t)id + TIDE_STREAM_UNASKED + 1;
    if (result == TIDE_CU_SUCCESS || result == TIDE_CU_INVALID_HANDLE)
        tide_fail(TIDE_ERROR_ARGUMENT, "tide_device", "device %s has no stream %p", device->name,
                  stream);
    else
        tide_cuda_fail(device, entry, result);
    return 0;
}

uint64_t tide_cuda_stream_check(tide_device *device, void *stream)
{
    tide_cuda_entered entered;
    if (tide_cuda_enter(device, &entered) != TIDE_OK)
        return 0;
    uint64_t found = tide_cuda_capturing(device, stream) ? TIDE_STREAM_UNASKED
                                                         : cuda_number_stream(device, stream);
    tide_cuda_leave(entered);
    return found;
}
