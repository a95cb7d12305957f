/* SPDX-License-Identifier: MIT */
/* What the kernels and the library agree on: a frame is a table of segments. The table is a
 * parameter of the launch, so nothing must be allocated or copied for it.
 *
 * The types of a frame are in the table, too, as patterns of 16 bytes. So one module serves every
 * frame; memory limits these kernels, and constants would not make them faster. Only the size of
 * the table is fixed in code.
 *
 *   segment   one part of a frame
 *   chunk     as many bytes of a segment as one group of threads deals with
 *   shift     bytes by which a segment's start lies beyond an address that 16 divides */
#ifndef TIDEPOOL_JIT_KERNELS_KERNELS_H
#define TIDEPOOL_JIT_KERNELS_KERNELS_H

#include "runtime/transfer/frame_help.h"

typedef enum tide_kernels_language {
    TIDE_KERNELS_CUDA,
    TIDE_KERNELS_OPENCL /* 1.2 and above */
} tide_kernels_language;

/* There is one kernel for each kind of work. Fills: (table), each segment with its pattern. Pack:
 * (table, block), each segment to block + low. Unpack: the other way round. */
extern const char *const tide_kernel_names[TIDE_FRAME_KINDS];

typedef struct tide_segment {
    uint64_t data; /* CUDA: its address; OpenCL: its offset in the buffer that is passed for it */
    uint64_t bytes;
    uint64_t low, high; /* the pattern as it stands at addresses that 16 divides, little-endian */
    uint32_t first;     /* the first group that deals with it */
    uint32_t shift;
} tide_segment;

/* Tables: of CUDA one that fills the classic 4 KiB of parameters (a smaller one beside it would
 * double the time to compile, to save the copy of what is unused); of OpenCL one that leaves room
 * for as many buffers in the 1 KiB that every device has. */
enum {
    TIDE_SEGMENTS_MANY = 100,
    TIDE_SEGMENTS_OPENCL = 16,
    TIDE_GROUP_CUDA = 256,
    TIDE_GROUP_OPENCL = 64,
    TIDE_CHUNK = 16 << 10
};

/* What a launch is given is a table's first so many segments. */
typedef struct tide_segments {
    uint32_t count;
    tide_segment segment[TIDE_SEGMENTS_MANY];
} tide_segments;

static inline size_t tide_segments_bytes(size_t segments)
{
    return offsetof(tide_segments, segment) + segments * sizeof(tide_segment);
}

_Static_assert(sizeof(tide_segment) == 40, "as the kernels see it");
_Static_assert(offsetof(tide_segments, segment) == 8, "as the kernels see it");
_Static_assert(TIDE_CHUNK % (16 * TIDE_GROUP_CUDA) == 0 &&
                   TIDE_CHUNK % (16 * TIDE_GROUP_OPENCL) == 0,
               "each thread of a group takes as many words of a chunk");
_Static_assert(sizeof(tide_segments) + sizeof(uint64_t) <= 4096, "the classic limit of CUDA");
_Static_assert(offsetof(tide_segments, segment) +
                       TIDE_SEGMENTS_OPENCL * (sizeof(tide_segment) + 8) + sizeof(uint64_t) <=
                   1024,
               "the least limit of OpenCL");

#endif
