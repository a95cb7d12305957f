/* SPDX-License-Identifier: MIT */
/* What the ways to acquire and release have in common (buffer.c, zeroed.c, release.c). */
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

/* tide_buffer_acquire_on. It fails where more would have to go for it than may. */
tide_buffer tide_buffer_acquire_yielding(tide_buffers *buffers, size_t bytes, uint32_t flags,
                                         void *stream, tide_yield yield);

/* ---- release ---- */

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
