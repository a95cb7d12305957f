/* SPDX-License-Identifier: MIT */
/* Kernels for frames, which learning has made: they are asked before the plain way. */
#ifndef TIDEPOOL_RUNTIME_TRANSFER_FRAME_HELP_H
#define TIDEPOOL_RUNTIME_TRANSFER_FRAME_HELP_H

#include <tidepool/device.h>

typedef enum tide_frame_work_kind {
    TIDE_FRAME_FILL_PARTS, /* each part with copies of the value at its `host`, NULL: zero */
    TIDE_FRAME_PACK,       /* the parts into the block, each at its offset                 */
    TIDE_FRAME_UNPACK,     /* the other way round                                          */
    TIDE_FRAME_KINDS
} tide_frame_work_kind;

/* Parts begin in a block at multiples of so many bytes; those that pack write all of it. */
enum { TIDE_PACK_ALIGN = 64 };

/* A piece of the host's memory, and where it lies in a block of the device's. Pieces are in order
 * and do not overlap; what is between them has no meaning. */
typedef struct tide_piece {
    char *host;
    size_t at, bytes;
} tide_piece;

typedef struct tide_frame_work {
    tide_frame_work_kind kind;
    tide_device *device;
    void *stream;
    const tide_part *parts;   /* sizes have been checked; parts of no elements may be among them */
    size_t count;             /* at least 1                                                      */
    void *block;              /* device memory, aligned to 64 bytes; fills: NULL                 */
    const tide_piece *pieces; /* each part in the block, at a multiple of 64; fills: NULL */
} tide_frame_work;

typedef enum tide_frame_result {
    TIDE_FRAME_ABSENT, /* there are no kernels for it: nothing was queued, the caller has a plain way */
    TIDE_FRAME_QUEUED, /* one launch on the stream; the host's values have been read              */
    TIDE_FRAME_FAILED  /* the message says why                                                    */
} tide_frame_result;

/* Helps with a frame. The first one of a device has the kernels compiled and loaded, on this thread.
 * Nothing locked. NULL: nobody helps. Set while the library is attached. */
extern tide_frame_result (*tide_frame_help)(const tide_frame_work *work);

#endif
