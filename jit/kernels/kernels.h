/* SPDX-License-Identifier: MIT */
/* Frames as kernels see them, and the kernels: one text for the library and for NVRTC, which gets this
 * file as it is.
 *
 * A frame is a table of segments. The table is a parameter of the launch, so nothing must be
 * allocated or copied for it. The types of a frame are in the table, too, as patterns of 16 bytes: one
 * module serves every frame. Memory limits these kernels, and constants would not make them faster.
 *
 *   segment   one part of a frame
 *   chunk     as many bytes of a segment as one group of threads deals with
 *   shift     bytes by which a segment's start lies beyond an address that 16 divides */
#ifndef TIDEPOOL_JIT_KERNELS_KERNELS_H
#define TIDEPOOL_JIT_KERNELS_KERNELS_H

#define TIDE_SEGMENTS    102 /* of a table, which fills 4 KiB of parameters: 101 parts, or fewer */
#define TIDE_GROUP       256 /* threads */
#define TIDE_CHUNK       (16 << 10)
#define TIDE_PIECE_ALIGN 64 /* bytes: parts start at multiples of it in a block */

typedef struct tide_segment {
    unsigned long long data; /* its address */
    unsigned long long bytes;
    unsigned long long low, high; /* fills: the pattern as it stands at addresses that 16 divides,
                                     little-endian; else low: the offset in the block */
    unsigned first;               /* the first group that deals with it */
    unsigned shift;
} tide_segment;

typedef struct tide_segments {
    unsigned count;
    tide_segment segment[TIDE_SEGMENTS];
} tide_segments;

#ifndef __CUDACC__

#include "runtime/transfer/frame_help.h"

/* The kernel of each kind of work. Fills: (table), each segment with its pattern. Pack: (table,
 * block), each segment to block + low. Unpack: the other way round. */
#define TIDE_KERNEL_NAMES                       \
    {                                           \
        "tide_fill", "tide_pack", "tide_unpack" \
    }

_Static_assert(sizeof(tide_segment) == 40 && offsetof(tide_segments, segment) == 8,
               "as the kernels see it");
_Static_assert((int)TIDE_PIECE_ALIGN == TIDE_PACK_ALIGN && (int)TIDE_PIECE_ALIGN <= TIDE_GROUP,
               "each thread of a group pads a byte");
_Static_assert(TIDE_CHUNK % (16 * TIDE_GROUP) == 0,
               "each thread of a group takes as many words of a chunk");
_Static_assert(sizeof(tide_segments) + sizeof(uint64_t) <= 4096, "the classic limit of CUDA");

#else

/* With __grid_constant__ the compiler makes no copy when an address of the table is taken. */
#if __CUDA_ARCH__ >= 700
#define TABLE const __grid_constant__ tide_segments
#else
#define TABLE const tide_segments
#endif
#define INLINE static __device__ __forceinline__
#define ENTRY  extern "C" __global__ void __launch_bounds__(TIDE_GROUP)

typedef unsigned char byte;
typedef unsigned long long u64;
struct __align__(16) word
{
    u64 low, high;
};

/* The segment that a group deals with. The kernels' functions are short: a compiler's time grows
 * faster than their length. */
INLINE tide_segment segment_of(const tide_segments &table, unsigned group)
{
    unsigned low = 0, high = table.count;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (table.segment[middle].first <= group)
            low = middle;
        else
            high = middle;
    }
    return table.segment[low];
}

/* Writes words of 16 bytes from an aligned address on. The first and the last may be only partly
 * the segment's. */
INLINE void fill_chunk(const tide_segment &s, u64 chunk)
{
    byte *start = (byte *)s.data - s.shift;
    u64 end = s.shift + s.bytes, at = chunk * TIDE_CHUNK + threadIdx.x * sizeof(word);
    const word value = {s.low, s.high};
    for (unsigned i = 0; i < TIDE_CHUNK / sizeof(word) / TIDE_GROUP;
         i++, at += sizeof(word) * TIDE_GROUP)
        if (at >= s.shift && at + sizeof(word) <= end)
            *(word *)(start + at) = value;
        else
            for (unsigned k = 0; k < sizeof(word); k++)
                if (at + k >= s.shift && at + k < end)
                    start[at + k] = (byte)((k < 8 ? s.low : s.high) >> (k % 8 * 8));
}

template <typename unit> INLINE void copy_units(const byte *from, byte *to, u64 bytes, u64 chunk)
{
    u64 at = chunk * TIDE_CHUNK + threadIdx.x * sizeof(unit);
    for (unsigned i = 0; i < TIDE_CHUNK / sizeof(unit) / TIDE_GROUP;
         i++, at += sizeof(unit) * TIDE_GROUP)
        if (at + sizeof(unit) <= bytes)
            *(unit *)(to + at) = *(const unit *)(from + at);
        else
            for (u64 k = at; k < bytes; k++)
                to[k] = from[k];
}

/* By the widest unit for which both addresses are aligned. */
INLINE void copy_chunk(const byte *from, byte *to, const tide_segment &s, u64 chunk)
{
    if (s.shift == 0)
        copy_units<word>(from, to, s.bytes, chunk);
    else if (s.shift % 4 == 0)
        copy_units<unsigned>(from, to, s.bytes, chunk);
    else
        copy_units<byte>(from, to, s.bytes, chunk);
}

ENTRY tide_fill(TABLE table)
{
    const tide_segment s = segment_of(table, blockIdx.x);
    fill_chunk(s, blockIdx.x - s.first);
}

/* The host gets the block whole, so what is between the parts is written, too: zeros. */
INLINE void pad(byte *to, const tide_segment &s, u64 chunk)
{
    const u64 at = s.bytes + threadIdx.x, end = (s.bytes + TIDE_PIECE_ALIGN - 1) / TIDE_PIECE_ALIGN;
    if (chunk == (s.bytes - 1) / TIDE_CHUNK && at < end * TIDE_PIECE_ALIGN)
        to[at] = 0;
}

ENTRY tide_pack(TABLE table, byte *block)
{
    const tide_segment s = segment_of(table, blockIdx.x);
    copy_chunk((const byte *)s.data, block + s.low, s, blockIdx.x - s.first);
    pad(block + s.low, s, blockIdx.x - s.first);
}

ENTRY tide_unpack(TABLE table, byte *block)
{
    const tide_segment s = segment_of(table, blockIdx.x);
    copy_chunk(block + s.low, (byte *)s.data, s, blockIdx.x - s.first);
}

#endif
#endif
