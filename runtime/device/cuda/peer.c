/* SPDX-License-Identifier: MIT */
/* Two CUDA devices: copies between their memories. */
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/device/cuda/cuda.h"

/* A stream of `after` waits for a mark of another device: events are waited for across contexts,
 * and in a capture that both are part of. */
static tide_status peer_follow(tide_device *before, void *stream_before, tide_device *after,
                               void *stream_after)
{
    void *mark = tide_cuda_mark_record(before, stream_before);
    if (mark == NULL)
        return tide_error_status();
    tide_status status = tide_cuda_mark_follow(after, mark, stream_after);
    tide_cuda_mark_drop(before, mark);
    return status;
}

static tide_status peer_copy(tide_device *device, void *stream, void *to, tide_device *other,
                             const void *from, size_t bytes)
{
    tide_cuda_entered entered;
    TIDE_FORWARD(tide_cuda_enter_for(device, stream, &entered));
    tide_device_count(&device->copies);
    __atomic_fetch_add(&device->bytes_copied, bytes, __ATOMIC_RELAXED);
    tide_status status = TIDE_CUDA_CALL(
        device, cuMemcpyPeerAsync, (tide_cu_address)(uintptr_t)to, tide_cuda_of(device)->context,
        (tide_cu_address)(uintptr_t)from, tide_cuda_of(other)->context, bytes, stream);
    return tide_cuda_left(entered, status);
}

tide_status tide_cuda_copy_between(tide_device *device, void *stream, void *to, tide_device *other,
                                   void *other_stream, const void *from, size_t bytes)
{
    tide_assert(device != other && bytes != 0); /* captured alike: the caller has looked */
    TIDE_FORWARD(peer_follow(other, other_stream, device, stream));
    TIDE_FORWARD(peer_copy(device, stream, to, other, from, bytes));
    return tide_device_drain_failed(device, stream,
                                    peer_follow(device, stream, other, other_stream));
}
