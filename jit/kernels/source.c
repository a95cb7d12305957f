/* SPDX-License-Identifier: MIT */
/* Writes the source of the kernels. The work on one chunk stands here once, in words that the
 * prelude of each language defines (GLOBAL, U64, ITEM …). Each kernel has an entry of its own,
 * because in OpenCL each buffer must be a parameter.
 *
 * The kernels' functions are short: a compiler's time grows faster than their length. */
#include "jit/kernels/source.h"

#include <stdio.h>

#include "jit/spec/text.h"
#include "runtime/base/assert.h"

_Static_assert(TIDE_KERNEL_COUNT == 6, "each kernel has a name, and all but the last an action");

const char *const tide_kernel_names[TIDE_KERNEL_COUNT] = {"fill",   "check", "pack",
                                                          "unpack", "hash",  "finish"};

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
    "#endif\n"
    "#define SUMS\n"
    "/* One addition for each warp. */\n"
    "#define ADD(to, value) add(to, value)\n"
    "INLINE void add(U64 *to, U64 value)\n"
    "{\n"
    "    for (int lane = 16; lane > 0; lane /= 2)\n"
    "        value += __shfl_xor_sync(0xFFFFFFFFu, value, lane);\n"
    "    if (ITEM % 32 == 0 && value != 0)\n"
    "        atomicAdd(to, value);\n"
    "}\n";

/* Additions of 64 bits are an extension; two of 32 with the carry between them are not. (Each
 * addition that wraps the lower half adds one to the upper; when all are done, the sum is
 * right.) */
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
    "#define TABLE const\n"
    "#define SUMS __local U64 sums[GROUP];\n"
    "/* One addition for each group. */\n"
    "#define ADD(to, value) add(to, value, sums)\n"
    "INLINE void add_halves(__global U64 *to, U64 value)\n"
    "{\n"
    "    volatile __global uint *halves = (volatile __global uint *)to;\n"
    "    uint low = (uint)value, high = (uint)(value >> 32);\n"
    "    uint before = atomic_add(&halves[0], low);\n"
    "    atomic_add(&halves[1], high + (before + low < before ? 1u : 0u));\n"
    "}\n"
    "INLINE void add(__global U64 *to, U64 value, __local U64 *sums)\n"
    "{\n"
    "    sums[ITEM] = value;\n"
    "    for (U32 half_ = GROUP / 2; half_ > 0; half_ /= 2) {\n"
    "        barrier(CLK_LOCAL_MEM_FENCE);\n"
    "        if (ITEM < half_)\n"
    "            sums[ITEM] += sums[ITEM + half_];\n"
    "    }\n"
    "    if (ITEM == 0 && sums[0] != 0)\n"
    "        add_halves(to, sums[0]);\n"
    "}\n";

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
    "    U64 end = shift + bytes, at = chunk * CHUNK_MOVE + ITEM * 16;\n"
    "    V16 value;\n"
    "    value.x = low;\n"
    "    value.y = high;\n"
    "    for (U32 i = 0; i < CHUNK_MOVE / 16 / GROUP; i++, at += 16 * GROUP)\n"
    "        if (at >= shift && at + 16 <= end)\n"
    "            *(GLOBAL V16 *)(start + at) = value;\n"
    "        else\n"
    "            fill_edge(start, at, shift, end, low, high);\n"
    "}\n";

static const char check[] =
    "INLINE U32 check_edge(GLOBAL const U8 *start, U64 at, U64 from, U64 end, U64 low, U64 high)\n"
    "{\n"
    "    U32 wrong = 0;\n"
    "    for (U32 k = 0; k < 16; k++)\n"
    "        if (at + k >= from && at + k < end)\n"
    "            wrong += start[at + k] != pattern_byte(low, high, k);\n"
    "    return wrong;\n"
    "}\n"
    "INLINE U64 check_chunk(GLOBAL const U8 *data, U64 bytes, U32 shift, U64 low, U64 high, U64 "
    "chunk)\n"
    "{\n"
    "    GLOBAL const U8 *start = data - shift;\n"
    "    U64 end = shift + bytes, at = chunk * CHUNK_READ + ITEM * 16, wrong = 0;\n"
    "    for (U32 i = 0; i < CHUNK_READ / 16 / GROUP; i++, at += 16 * GROUP) {\n"
    "        if (at >= shift && at + 16 <= end) {\n"
    "            V16 found = *(GLOBAL const V16 *)(start + at);\n"
    "            if (found.x == low && found.y == high)\n"
    "                continue;\n"
    "        }\n"
    "        wrong += check_edge(start, at, shift, end, low, high);\n"
    "    }\n"
    "    return wrong;\n"
    "}\n";

/* Written once for each unit in which both addresses may be aligned. */
static const char copy[] =
    "INLINE void copy_%s(GLOBAL const U8 *from, GLOBAL U8 *to, U64 bytes, U64 chunk)\n"
    "{\n"
    "    U64 at = chunk * CHUNK_MOVE + ITEM * sizeof(%s);\n"
    "    for (U32 i = 0; i < CHUNK_MOVE / sizeof(%s) / GROUP; i++, at += sizeof(%s) * GROUP)\n"
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

static const char hash[] =
    "INLINE U64 mix(U64 x)\n"
    "{\n"
    "    x ^= x >> 33;\n"
    "    x *= (U64)0xFF51AFD7ED558CCD;\n"
    "    x ^= x >> 33;\n"
    "    x *= (U64)0xC4CEB9FE1A85EC53;\n"
    "    return x ^ x >> 33;\n"
    "}\n"
    "INLINE U64 word(GLOBAL const U8 *data, U64 bytes, U32 shift, U64 at)\n"
    "{\n"
    "    if (shift % 8 == 0 && at + 8 <= bytes)\n"
    "        return *(GLOBAL const U64 *)(data + at);\n"
    "    U64 made = 0;\n"
    "    for (U32 k = 0; k < 8; k++)\n"
    "        if (at + k < bytes)\n"
    "            made |= (U64)data[at + k] << 8 * k;\n"
    "    return made;\n"
    "}\n"
    "INLINE U64 hash_chunk(GLOBAL const U8 *data, U64 bytes, U32 shift, U64 mask, U64 chunk)\n"
    "{\n"
    "    U64 at = chunk * CHUNK_READ + ITEM * 8, sum = 0;\n"
    "    for (U32 i = 0; i < CHUNK_READ / 8 / GROUP; i++, at += 8 * GROUP)\n"
    "        if (at < bytes) {\n"
    "            U64 found = word(data, bytes, shift, at) & (at + 8 >= bytes ? mask : ~(U64)0);\n"
    "            sum += mix(found + (at / 8 + 1) * HASH_STEP);\n"
    "        }\n"
    "    return sum;\n"
    "}\n";

/* ---- entries -------------------------------------------------------------------------------- */

/* What an entry does once segment and chunk are known. DATA is the segment's start. */
static const char *const actions[TIDE_KERNEL_COUNT] = {
    [TIDE_KERNEL_FILL] = "    fill_chunk(DATA, s.bytes, s.shift, s.low, s.high, chunk);\n",
    [TIDE_KERNEL_CHECK] = "    ADD((GLOBAL U64 *)block + table.base + i,\n"
                          "        check_chunk(DATA, s.bytes, s.shift, s.low, s.high, chunk));\n",
    [TIDE_KERNEL_PACK] = "    copy_chunk(DATA, block + s.low, s.bytes, s.shift, chunk);\n",
    [TIDE_KERNEL_UNPACK] = "    copy_chunk(block + s.low, DATA, s.bytes, s.shift, chunk);\n",
    [TIDE_KERNEL_HASH] = "    ADD((GLOBAL U64 *)block + table.base + i,\n"
                         "        hash_chunk(DATA, s.bytes, s.shift, s.low, chunk));\n",
};

/* The table, the block, and in OpenCL as many buffers as the table has segments. */
static void source_put_parameters(tide_text *t, tide_kernels_language language, tide_kernel kernel,
                                  size_t size)
{
    tide_assert(kernel < TIDE_KERNEL_COUNT && size <= TIDE_SEGMENTS_MANY);
    tide_text_put(t, "(TABLE segments table");
    if (kernel != TIDE_KERNEL_FILL)
        tide_text_put(t, ", GLOBAL U8 *block");
    for (size_t i = 0; i < size && language == TIDE_KERNELS_OPENCL && kernel != TIDE_KERNEL_FINISH;
         i++)
        tide_text_put(t, ", GLOBAL U8 *p%zu", i);
    tide_text_put(t, ")\n{\n");
}

/* OpenCL: a segment's buffer is the parameter of its number. */
static void source_put_data(tide_text *t, tide_kernels_language language, size_t size)
{
    tide_assert(size != 0);
    if (language == TIDE_KERNELS_CUDA) {
        tide_text_put(t, "    U8 *DATA = (U8 *)s.data;\n");
        return;
    }
    tide_text_put(t, "    __global U8 *DATA = s.data + (");
    for (size_t i = 0; i + 1 < size; i++)
        tide_text_put(t, "i == %zu ? p%zu : ", i, i);
    tide_text_put(t, "p%zu);\n", size - 1);
}

static void source_put_entry(tide_text *t, tide_kernels_language language, tide_kernel kernel,
                             size_t size)
{
    tide_text_put(t, "ENTRY tide_%s", tide_kernel_names[kernel]);
    source_put_parameters(t, language, kernel, size);
    if (kernel == TIDE_KERNEL_FINISH) {
        tide_text_put(t, "    GLOBAL U64 *sums = (GLOBAL U64 *)block + table.base;\n"
                         "    for (U32 i = ITEM; i < table.count; i += GROUP)\n"
                         "        sums[i] = mix(sums[i] + table.all[i].bytes * HASH_STEP);\n}\n");
        return;
    }
    tide_assert(actions[kernel] != NULL);
    if (kernel == TIDE_KERNEL_CHECK || kernel == TIDE_KERNEL_HASH)
        tide_text_put(t, "    SUMS\n");
    tide_text_put(t, "    U32 i = find(table.all, table.count, CHUNK_INDEX);\n"
                     "    const segment s = table.all[i];\n"
                     "    U64 chunk = CHUNK_INDEX - s.first;\n");
    source_put_data(t, language, size);
    tide_text_put(t, "%s}\n", actions[kernel]);
}

static void source_put_table(tide_text *t, tide_kernels_language language, size_t size)
{
    tide_text_put(
        t, "typedef struct segments {\n    U32 count, base;\n    segment all[%zu];\n} segments;\n",
        size);
    for (tide_kernel kernel = 0; kernel < TIDE_KERNEL_COUNT; kernel++)
        source_put_entry(t, language, kernel, size);
}

static void source_put_common(tide_text *t)
{
    static const char *const units[] = {"V16", "U32", "U8"};
    tide_text_put(t, "%s%s%s", segment_text, fill, check);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const char *u = units[i];
        tide_text_put(t, copy, u, u, u, u, u, u, u);
    }
    tide_text_put(t, "%s%s", copy_any, hash);
}

void tide_kernels_name(tide_kernel kernel, char *out, size_t room)
{
    int wrote = snprintf(out, room, "tide_%s", tide_kernel_names[kernel]);
    tide_assert(wrote > 0 && (size_t)wrote < room);
    (void)wrote;
}

size_t tide_kernels_source(tide_kernels_language language, char *out, size_t room)
{
    bool cuda = language == TIDE_KERNELS_CUDA;
    tide_text t = {out, room, 0};
    tide_text_put(&t, "/* Tidepool: kernels for frames, interface %d. */\n", TIDE_KERNELS_ABI);
    tide_text_put(&t, "#define GROUP %d\n#define CHUNK_MOVE %d\n#define CHUNK_READ %d\n",
                  cuda ? TIDE_GROUP_CUDA : TIDE_GROUP_OPENCL, TIDE_CHUNK_MOVE, TIDE_CHUNK_READ);
    tide_text_put(&t, "#define HASH_STEP ((U64)0x9E3779B97F4A7C15)\n%s",
                  cuda ? prelude_cuda : prelude_opencl);
    source_put_common(&t);
    source_put_table(&t, language, cuda ? TIDE_SEGMENTS_MANY : TIDE_SEGMENTS_OPENCL);
    tide_assert(t.used < TIDE_KERNELS_SOURCE_BYTES);
    return t.used;
}
