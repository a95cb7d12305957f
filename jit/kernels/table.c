/* SPDX-License-Identifier: MIT */
#include "jit/kernels/table.h"

#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/hash.h"
#include "runtime/base/type.h"
#include "runtime/device/device.h"

enum { PATTERN = 16 };

static size_t table_part_bytes(const tide_part *part)
{
    size_t bytes = 0;
    bool fits = tide_type_bytes(tide_type_find(part->type), part->count, &bytes);
    tide_assert(fits);
    (void)fits;
    return bytes;
}

/* ---- patterns ------------------------------------------------------------------------------- */

/* What is written, from an element's start on. */
typedef struct pattern {
    unsigned char bytes[PATTERN];
} pattern;

static bool table_has_pattern(tide_kernel kernel)
{
    return kernel == TIDE_KERNEL_FILL || kernel == TIDE_KERNEL_CHECK;
}

/* Has the value a period that 16 is a multiple of? */
static bool table_pattern_of(const tide_part *part, pattern *out)
{
    size_t size = part->type == TIDE_BIT ? 1 : tide_type_find(part->type)->size;
    const unsigned char *value = part->host, truth = UINT8_MAX;
    memset(out, 0, sizeof *out);
    if (value == NULL || (part->type == TIDE_BIT && !*(const bool *)part->host))
        return true;
    if (part->type == TIDE_BIT)
        value = &truth;
    for (size_t i = 0; PATTERN % size == 0 && i < PATTERN; i++)
        out->bytes[i] = value[i % size];
    size_t zeros = 0;
    while (zeros < size && value[zeros] == 0)
        zeros++;
    return PATTERN % size == 0 || zeros == size;
}

bool tide_table_possible(const tide_frame_work *work, tide_kernel kernel)
{
    pattern unused;
    for (size_t i = 0; i < work->count && table_has_pattern(kernel); i++)
        if (work->parts[i].count != 0 && !table_pattern_of(&work->parts[i], &unused))
            return false;
    return true;
}

/* As it stands at addresses that 16 divides, if an element starts `shift` bytes beyond one. */
static void table_rotate(const pattern *from, uint32_t shift, tide_segment *out)
{
    unsigned char turned[PATTERN];
    for (size_t k = 0; k < PATTERN; k++)
        turned[k] = from->bytes[(k - shift) % PATTERN];
    memcpy(&out->low, turned, sizeof out->low);
    memcpy(&out->high, turned + sizeof out->low, sizeof out->high);
}

/* ---- segments ------------------------------------------------------------------------------- */

/* A kernel that reaches its buffers by parameters gets the start of the slot, which is one for
 * sure, or where pointers are what they seem the nearest address that 16 divides: slots start at
 * such. */
static void *table_locate(const tide_device *device, const void *data, uint64_t *offset)
{
    size_t within = 0;
    if (device->methods->buffer((tide_device *)(uintptr_t)device, data, &within) == NULL)
        within = (uintptr_t)data % PATTERN;
    *offset = within;
    return (void *)((uintptr_t)data - within);
}

static uint32_t table_groups_of(const tide_segment *segment, tide_kernel kernel)
{
    uint64_t chunk = tide_kernel_chunk(kernel);
    uint64_t bytes = segment->bytes + (table_has_pattern(kernel) ? segment->shift : 0);
    tide_assert(segment->bytes / chunk < INT32_MAX);
    if (kernel == TIDE_KERNEL_FINISH)
        return 0;
    return segment->bytes == 0 ? 0 : (uint32_t)((bytes + chunk - 1) / chunk);
}

typedef struct builder {
    const tide_frame_work *work;
    tide_kernel kernel;
    tide_kernels_language language;
    size_t most;
    tide_table *out;
} builder;

/* A segment for these bytes, not yet with what belongs to them. */
static tide_segment *table_begin_segment(const builder *b, const void *data, size_t bytes)
{
    tide_segments *all = &b->out->segments;
    tide_segment *made = &all->segment[all->count];
    *made = (tide_segment){.data = (uintptr_t)data, .bytes = bytes, .first = b->out->groups};
    if (b->language == TIDE_KERNELS_OPENCL)
        b->out->buffers[all->count] =
            bytes != 0 ? table_locate(b->work->device, data, &made->data) : NULL;
    made->shift = (uint32_t)(made->data % PATTERN);
    return made;
}

static bool table_end_segment(const builder *b, tide_segment *made)
{
    uint32_t groups = table_groups_of(made, b->kernel);
    if (groups > INT32_MAX - b->out->groups)
        return false; /* the next launch's */
    b->out->groups += groups;
    b->out->segments.count++;
    return true;
}

static bool table_add_pattern(const builder *b, const void *data, size_t bytes,
                              const pattern *value)
{
    tide_segment *made = table_begin_segment(b, data, bytes);
    table_rotate(value, made->shift, made);
    return table_end_segment(b, made);
}

/* Of bits the whole words, then, as a segment of its own, the last one: bits beyond the end are 0.
 */
static bool table_add_filled(const builder *b, const tide_part *part, bool *half)
{
    pattern value;
    bool possible = table_pattern_of(part, &value);
    size_t bytes = table_part_bytes(part),
           tail = part->type == TIDE_BIT && part->count % 64 != 0 ? 8 : 0;
    tide_assert(possible);
    (void)possible;
    if (!*half && bytes > tail && !table_add_pattern(b, part->data, bytes - tail, &value))
        return false;
    if (tail == 0)
        return true;
    *half = true;
    if (b->out->segments.count == b->most)
        return false;
    uint64_t words[2], mask = tide_hash_mask(part->count);
    memcpy(words, value.bytes, sizeof words);
    words[0] &= mask;
    words[1] &= mask;
    memcpy(value.bytes, words, sizeof words);
    return table_add_pattern(b, (char *)part->data + bytes - tail, tail, &value);
}

static bool table_add_plain(const builder *b, size_t index)
{
    const tide_part *part = &b->work->parts[index];
    tide_segment *made = table_begin_segment(b, part->data, table_part_bytes(part));
    if (b->kernel == TIDE_KERNEL_HASH)
        made->low = part->type == TIDE_BIT ? tide_hash_mask(part->count) : UINT64_MAX;
    if (b->kernel == TIDE_KERNEL_PACK || b->kernel == TIDE_KERNEL_UNPACK)
        made->low = b->work->offsets[index];
    return table_end_segment(b, made);
}

/* A check counts by parts, so that a part must be one segment: of bits all words must be alike. */
static bool table_add_checked(const builder *b, size_t index)
{
    pattern value;
    const tide_part *part = &b->work->parts[index];
    bool possible = table_pattern_of(part, &value);
    tide_assert(possible);
    (void)possible;
    return table_add_pattern(b, part->data, table_part_bytes(part), &value);
}

static bool table_add_next(const builder *b, tide_table_place *place)
{
    const tide_part *part = &b->work->parts[place->part];
    if (b->kernel == TIDE_KERNEL_CHECK)
        return table_add_checked(b, place->part);
    if (b->kernel != TIDE_KERNEL_FILL)
        return table_add_plain(b, place->part);
    return part->count == 0 || table_add_filled(b, part, &place->half);
}

bool tide_table_next(const tide_frame_work *work, tide_kernel kernel,
                     tide_kernels_language language, size_t most, tide_table_place *place,
                     tide_table *out)
{
    const builder b = {work, kernel, language, most, out};
    if (place->part == work->count)
        return false;
    /* Only what is used is written: a small frame shall not pay for a large table. */
    out->segments.count = 0;
    out->segments.base = (uint32_t)place->part;
    out->groups = 0;
    while (place->part < work->count && out->segments.count < most && table_add_next(&b, place)) {
        place->part++;
        place->half = false;
    }
    return true;
}
