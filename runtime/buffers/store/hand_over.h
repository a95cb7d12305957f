/* SPDX-License-Identifier: MIT */
/* A buffer passes from one stream to the next. Released memory stays with its stream, without a call
 * of the driver; an event is recorded when somebody else wants it:
 *
 *   the same stream    runs its work in order: nothing to do
 *   another stream     comes after all that is queued on the first one now, by one event
 *   pinned, managed    the host itself will write it: its release leaves a mark, and it is not
 *                      handed out before that was passed
 *   given back         on the stream of its release, or when its mark has been passed
 *
 * A mark is left, too, where no event can be recorded later: on a thread's own default stream, and
 * on OpenCL's queues. Plain keys need none of this: the host's own memory, and devices that do at
 * once what is queued (tide_buffer_plain). */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_STORE_HAND_OVER_H
#define TIDEPOOL_RUNTIME_BUFFERS_STORE_HAND_OVER_H

#include "runtime/buffers/store/handle.h"

/* The stream of a call, and its number. */
typedef struct tide_hand_over {
    void *stream;
    uint64_t number;
} tide_hand_over;

/* Refuses a stream that the device does not have. */
tide_status tide_hand_over_find(const tide_buffers *buffers, unsigned key, void *stream,
                                tide_hand_over *out, const char *call);

/* Marks where the last use of a buffer of the key ends, before its handle does, if that must be now.
 * TIDE_ERROR_STATE, with a message, and nothing has been done: the stream is captured, and the
 * library was told so (tide_capture_begin). */
tide_status tide_hand_over_mark(const tide_buffers *buffers, unsigned key,
                                const tide_hand_over *passing, const char *call, void **mark);

/* May the buffer be kept? Not if its last use has an end that nobody could find. */
bool tide_hand_over_keeps(const tide_buffers *buffers, unsigned key, const tide_hand_over *passing,
                          const void *mark);

/* May the buffer be used by what will be queued on the stream? Orders the stream, if need be.
 * True: the mark is gone. */
bool tide_hand_over_ready(const tide_buffers *buffers, tide_buffer_record *record,
                          const tide_hand_over *passing);

/* Is all over that was queued before its release? True: the mark is gone. */
bool tide_hand_over_over(const tide_buffers *buffers, tide_buffer_record *record);

/* ---- memory ---- */

/* Whose memory buffers of the key are. */
tide_device *tide_hand_over_device_of(const tide_buffers *buffers, unsigned key);

/* Which memory of that device: TIDE_MEMORY_…. */
int tide_hand_over_memory_of(const tide_buffers *buffers, unsigned key);

/* Can a stream give such memory back? Other memory goes when work on it is over. */
bool tide_hand_over_goes_by_stream(const tide_buffers *buffers, unsigned key);

/* TIDE_ERROR_DEVICE where the device has no memory of that kind. */
tide_status tide_hand_over_has(const tide_device *device, uint32_t flags, const char *call);

/* TIDE_ERROR_MEMORY or TIDE_ERROR_LIMIT, without a message, when there is none. */
tide_status tide_hand_over_allocate(const tide_buffers *buffers, unsigned key, size_t bytes,
                                    const tide_hand_over *passing, const char *call, void **data);

/* Gives back the memory of a buffer that nobody else can see, on the stream of its release, which
 * is the caller's (`passing`) or the one it was kept for (NULL). The host does not wait. */
void tide_hand_over_free(const tide_buffers *buffers, tide_buffer_record *record,
                         const tide_hand_over *passing);

#endif
