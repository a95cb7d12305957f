/* SPDX-License-Identifier: MIT */
/* What the ways to acquire and release have in common: one buffer (buffer.c, release.c), many at
 * once (many.c), zeroed (zeroed.c). */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_BUFFER_H
#define TIDEPOOL_RUNTIME_BUFFERS_BUFFER_H

#include "runtime/base/error.h"
#include "runtime/buffers/store/depot.h"

static const tide_buffer tide_buffer_none;

/* ---- acquire ---- */

/* With the instance's own flags, on its stream. False, with a message: that is refused. */
bool tide_buffer_want_own(tide_buffers *buffers, size_t bytes, const char *call, tide_want *want);

/* From the thread's cell, the depot or the device. A zero handle with a message: there is none. */
tide_buffer tide_buffer_acquire_wanted(tide_buffers *buffers, const tide_want *want, bool *hit);

/* The buffer is this thread's alone, and becomes live. */
tide_buffer tide_buffer_hand_out(tide_buffers *buffers, uint32_t slot, const tide_want *want,
                                 bool hit);

/* ---- release ---- */

/* As many of the handles, from the first on, as go into the thread's cells without a lock. */
size_t tide_buffer_release_run(tide_buffers *buffers, const tide_buffer *handles, size_t count);

/* Into a cell, to the depot, or refused. */
tide_status tide_buffer_release_any(tide_buffers *buffers, tide_buffer buffer, const char *call);

/* Gives back a buffer that was acquired just now and is not handed out after all. Unlike a release
 * it cannot be refused, and nothing is kept. */
void tide_buffer_give_up(tide_buffers *buffers, tide_buffer handle);

/* A release on the stream, for whoever holds the buffer and ends: where it is refused, since the
 * device does not tell the stream's number or the process exits, nothing is kept. Nothing to do for
 * a buffer that somebody has released already. */
void tide_buffer_give_back(tide_buffers *buffers, tide_buffer handle, void *stream);

/* Says what is wrong with the handle, and counts it: who releases twice seldom looks at the
 * status. */
tide_status tide_buffer_refuse_handle(tide_buffers *buffers, tide_buffer handle, const char *call);

/* ---- both ---- */

/* The record of a handle, checked before anything is asked of a device. NULL with a message when
 * the handle is not good. */
TIDE_INLINE tide_buffer_record *tide_buffer_find_record(tide_buffers *buffers, tide_buffer handle,
                                                        const char *call)
{
    if (TIDE_UNLIKELY(buffers == NULL)) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the buffers are NULL");
        return NULL;
    }
    tide_buffer_record *record = tide_handle_of(buffers, handle);
    if (TIDE_LIKELY(record != NULL && tide_handle_good(record, handle)))
        return record;
    tide_buffer_refuse_handle(buffers, handle, call);
    return NULL;
}

#endif
