/* SPDX-License-Identifier: MIT */
/* What a pool calls of the buffers that it draws from, which may not be built. */
#ifndef TIDEPOOL_RUNTIME_DEVICE_LENDER_H
#define TIDEPOOL_RUNTIME_DEVICE_LENDER_H

#include <tidepool/buffers.h>

/* What may go for a request that memory is short for. */
typedef enum tide_yield {
    TIDE_YIELD_ALL,    /* what nobody uses, and the program is asked                        */
    TIDE_YIELD_CACHED, /* what buffers have cached                                          */
    TIDE_YIELD_NOTHING /* the request can be done without, or what it wants beyond its need */
} tide_yield;

/* runtime/buffers/buffers.h and buffer.h say what each does. */
typedef struct tide_lender {
    tide_status (*hold)(tide_buffers *buffers, const char *call);
    void (*hold_again)(tide_buffers *buffers);
    void (*drop)(tide_buffers *buffers);
    size_t (*round_up)(const tide_buffers *buffers, size_t bytes);
    tide_buffer (*acquire)(tide_buffers *buffers, size_t bytes, uint32_t flags, void *stream,
                           tide_yield yield);
    void *(*pointer)(tide_buffers *buffers, tide_buffer buffer);
    void (*give_back)(tide_buffers *buffers, tide_buffer buffer, void *stream);
} tide_lender;

/* NULL: there are no buffers. Set while the library is attached. */
extern const tide_lender *tide_lend;

#endif
