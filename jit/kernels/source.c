/* SPDX-License-Identifier: MIT */
/* Writes the source of the kernels. The work on one chunk stands here once, in words that the
 * prelude of each language defines (GLOBAL, U64, ITEM …). Each kernel has an entry of its own,
 * because in OpenCL each buffer must be a parameter.
 *
 * The kernels' functions are short: a compiler's time grows faster than their length. */
#include "jit/kernels/source.h"

#include "jit/spec/text.h"
#include "runtime/base/assert.h"

const char *const tide_kernel_names[TIDE_FRAME_KINDS] = {"tide_fill", "tide_pack", "tide_unpack"};

/* ---- preludes ------------------------------------------------------------------------------- */

/* Tables are parameters in constant memory. With __grid_constant__ the compiler makes no copy when
 * an address of one is taken. */
static const char prelude_cuda[] =
    "typedef unsigned char U8;\n"
    "typedef unsigned int U32;\n"
    "typedef unsigned long long U64;\n"
    "typedef struct __align__(16) V16 { U64 x, y; } V16;\n"
    "#define GLOBAL\n"
    "#define INLINE static __device__ __forceinline__\n"
    "#define ENTRY extern \"C\" __global__ void __launch_bounds__(GROUP)\n"
    "#define ITEM threadIdx.x\n"
    "#define CHUNK_INDEX blockIdx.x\n"
    "#if __CUDACC_VER_MAJOR__ >= 12 && (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700)\n"
    "#define TABLE const __grid_constant__\n"
    "#else\n"
    "#define TABLE const\n"
    "#endif\n";

static const char prelude_opencl[] =
    "typedef uchar U8;\n"
    "typedef uint U32;\n"
    "typedef ulong U64;\n"
    "typedef ulong2 V16;\n"
    "#define GLOBAL __global\n"
    "#define INLINE static inline\n"
    "#define ENTRY __kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void\n"
    "#define ITEM ((U32)get_local_id(0))\n"
    "#define CHUNK_INDEX ((U32)get_group_id(0))\n"
    "#define TABLE const\n";

/* ---- what is the same ----------------------------------------------------------------------- */

static const char segment_text[] = "typedef struct segment {\n"
                                   "    U64 data, bytes, low, high;\n"
                                   "    U32 first, shift;\n"
                                   "} segment;\n"
                                   "INLINE U32 find(const segment *all, U32 count, U32 group)\n"
                                   "{\n"
                                   "    U32 low = 0, high = count;\n"
                                   "    while (high - low > 1) {\n"
                                   "        U32 middle = (low + high) / 2;\n"
                                   "        if (all[middle].first <= group)\n"
                                   "            low = middle;\n"
                                   "        else\n"
                                   "            high = middle;\n"
                                   "    }\n"
                                   "    return low;\n"
                                   "}\n"
                                   "INLINE U8 pattern_byte(U64 low, U64 high, U32 k)\n"
                                   "{\n"
                                   "    return (U8)((k < 8 ? low : high) >> (k % 8 * 8));\n"
                                   "}\n";

/* Writes words of 16 bytes from an aligned address on. The first and the last may be only partly
 * the segment's. */
static const char fill[] =
    "INLINE void fill_edge(GLOBAL U8 *start, U64 at, U64 from, U64 end, U64 low, U64 high)\n"
    "{\n"
    "    for (U32 k = 0; k < 16; k++)\n"
    "        if (at + k >= from && at + k < end)\n"
    "            start[at + k] = pattern_byte(low, high, k);\n"
    "}\n"
    "INLINE void fill_chunk(GLOBAL U8 *data, U64 bytes, U32 shift, U64 low, U64 high, U64 chunk)\n"
    "{\n"
    "    GLOBAL U8 *start = data - shift;\n"
    "    U64 end = shift + bytes, at = chunk * CHUNK + ITEM * 16;\n"
    "    V16 value;\n"
    "    value.x = low;\n"
    "    value.y = high;\n"
    "    for (U32 i = 0; i < CHUNK / 16 / GROUP; i++, at += 16 * GROUP)\n"
    "        if (at >= shift && at + 16 <= end)\n"
    "            *(GLOBAL V16 *)(start + at) = value;\n"
    "        else\n"
    "            fill_edge(start, at, shift, end, low, high);\n"
    "}\n";

/* Written once for each unit in which both addresses may be aligned. */
static const char copy[] =
    "INLINE void copy_%s(GLOBAL const U8 *from, GLOBAL U8 *to, U64 bytes, U64 chunk)\n"
    "{\n"
    "    U64 at = chunk * CHUNK + ITEM * sizeof(%s);\n"
    "    for (U32 i = 0; i < CHUNK / sizeof(%s) / GROUP; i++, at += sizeof(%s) * GROUP)\n"
    "        if (at + sizeof(%s) <= bytes)\n"
    "            *(GLOBAL %s *)(to + at) = *(GLOBAL const %s *)(from + at);\n"
    "        else\n"
    "            for (U64 k = at; k < bytes; k++)\n"
    "                to[k] = from[k];\n"
    "}\n";

static const char copy_any[] = "INLINE void copy_chunk(GLOBAL const U8 *from, GLOBAL U8 *to, U64 "
                               "bytes, U32 shift, U64 chunk)\n"
                               "{\n"
                               "    if (shift == 0)\n"
                               "        copy_V16(from, to, bytes, chunk);\n"
                               "    else if (shift % 4 == 0)\n"
                               "        copy_U32(from, to, bytes, chunk);\n"
                               "    else\n"
                               "        copy_U8(from, to, bytes, chunk);\n"
                               "}\n";

/* ---- entries -------------------------------------------------------------------------------- */

/* What an entry does once segment and chunk are known. DATA is the segment's start. */
static const char *const actions[TIDE_FRAME_KINDS] = {
    [TIDE_FRAME_FILL_PARTS] = "    fill_chunk(DATA, s.bytes, s.shift, s.low, s.high, chunk);\n",
    [TIDE_FRAME_PACK] = "    copy_chunk(DATA, block + s.low, s.bytes, s.shift, chunk);\n",
    [TIDE_FRAME_UNPACK] = "    copy_chunk(block + s.low, DATA, s.bytes, s.shift, chunk);\n",
};

/* The table, the block, and in OpenCL as many buffers as the table has segments. */
static void source_put_parameters(tide_text *t, bool cuda, tide_frame_work_kind kind)
{
    tide_text_put(t, "(TABLE segments table");
    if (kind != TIDE_FRAME_FILL_PARTS)
        tide_text_put(t, ", GLOBAL U8 *block");
    for (size_t i = 0; i < TIDE_SEGMENTS_OPENCL && !cuda; i++)
        tide_text_put(t, ", GLOBAL U8 *p%zu", i);
    tide_text_put(t, ")\n{\n");
}

/* OpenCL: a segment's buffer is the parameter of its number. */
static void source_put_data(tide_text *t, bool cuda)
{
    if (cuda) {
        tide_text_put(t, "    U8 *DATA = (U8 *)s.data;\n");
        return;
    }
    tide_text_put(t, "    __global U8 *DATA = s.data + (");
    for (size_t i = 0; i + 1 < TIDE_SEGMENTS_OPENCL; i++)
        tide_text_put(t, "i == %zu ? p%zu : ", i, i);
    tide_text_put(t, "p%d);\n", TIDE_SEGMENTS_OPENCL - 1);
}

static void source_put_entry(tide_text *t, bool cuda, tide_frame_work_kind kind)
{
    tide_assert(actions[kind] != NULL && tide_kernel_names[kind] != NULL);
    tide_text_put(t, "ENTRY %s", tide_kernel_names[kind]);
    source_put_parameters(t, cuda, kind);
    tide_text_put(t, "    U32 i = find(table.all, table.count, CHUNK_INDEX);\n"
                     "    const segment s = table.all[i];\n"
                     "    U64 chunk = CHUNK_INDEX - s.first;\n");
    source_put_data(t, cuda);
    tide_text_put(t, "%s}\n", actions[kind]);
}

size_t tide_kernels_source(tide_kernels_language language, char *out, size_t room)
{
    static const char *const units[] = {"V16", "U32", "U8"};
    bool cuda = language == TIDE_KERNELS_CUDA;
    tide_text t = {out, room, 0};
    tide_text_put(&t, "#define GROUP %d\n#define CHUNK %d\n%s%s%s",
                  cuda ? TIDE_GROUP_CUDA : TIDE_GROUP_OPENCL, TIDE_CHUNK,
                  cuda ? prelude_cuda : prelude_opencl, segment_text, fill);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const char *u = units[i];
        tide_text_put(&t, copy, u, u, u, u, u, u, u);
    }
    tide_text_put(
        &t, "%stypedef struct segments {\n    U32 count;\n    segment all[%d];\n} segments;\n",
        copy_any, cuda ? TIDE_SEGMENTS_MANY : TIDE_SEGMENTS_OPENCL);
    for (tide_frame_work_kind kind = 0; kind < TIDE_FRAME_KINDS; kind++)
        source_put_entry(&t, cuda, kind);
    tide_assert(t.used < TIDE_KERNELS_SOURCE_BYTES);
    return t.used;
}
