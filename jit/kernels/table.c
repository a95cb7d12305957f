/* SPDX-License-Identifier: MIT */
/* Turns a frame into the tables of its launches: segments, patterns, and the groups of each. */
#include "jit/kernels/table.h"

#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/type.h"

enum { PATTERN = 16 };

_Static_assert(PATTERN == sizeof(((tide_segment *)0)->low) + sizeof(((tide_segment *)0)->high),
               "a segment holds a pattern");

static size_t table_part_bytes(const tide_part *part)
{
    size_t bytes = 0;
    bool fits = tide_type_bytes(tide_type_facts_of(part->type), part->count, &bytes);
    tide_assert(fits);
    (void)fits;
    return bytes;
}

/* ---- patterns ------------------------------------------------------------------------------- */

/* The bytes to be written, from the start of an element on. */
typedef struct pattern {
    unsigned char bytes[PATTERN];
} pattern;

/* The pattern of a part's value. False: 16 bytes are no whole number of elements, and
 * it is not zero. */
static bool table_pattern_of(const tide_part *part, pattern *out)
{
    size_t size = part->type == TIDE_BIT ? 1 : tide_type_facts_of(part->type)->size;
    const unsigned char *value = part->host, truth = UINT8_MAX;
    tide_assert(size != 0);
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

bool tide_table_possible(const tide_frame_work *work)
{
    pattern unused;
    for (size_t i = 0; i < work->count && work->kind == TIDE_FRAME_FILL_PARTS; i++)
        if (work->parts[i].count != 0 && !table_pattern_of(&work->parts[i], &unused))
            return false;
    return true;
}

/* Turns the pattern to what stands at addresses that 16 divides; elements start `shift` bytes after
 * such an address. */
static void table_rotate(const pattern *from, uint32_t shift, tide_segment *out)
{
    unsigned char turned[PATTERN];
    tide_assert(shift < PATTERN);
    for (size_t k = 0; k < PATTERN; k++)
        turned[k] = from->bytes[(k - shift) % PATTERN];
    memcpy(&out->low, turned, sizeof out->low);
    memcpy(&out->high, turned + sizeof out->low, sizeof out->high);
}

/* ---- segments ------------------------------------------------------------------------------- */

/* How many groups of threads deal with the segment. A fill counts from an address that 16 divides. */
static uint32_t table_groups_of(const tide_segment *segment, tide_frame_work_kind kind)
{
    uint64_t bytes = segment->bytes + (kind == TIDE_FRAME_FILL_PARTS ? segment->shift : 0);
    tide_assert(segment->bytes != 0 && segment->bytes / TIDE_CHUNK < INT32_MAX);
    return (uint32_t)((bytes + TIDE_CHUNK - 1) / TIDE_CHUNK);
}

typedef struct builder {
    const tide_frame_work *work;
    tide_segments *out;
    uint32_t groups; /* of the segments so far: no device has memory for more than a launch has */
} builder;

/* One more segment, of these bytes. */
static tide_segment *table_add_segment(builder *b, const void *data, size_t bytes)
{
    tide_assert(b->out->count < TIDE_SEGMENTS);
    tide_segment *made = &b->out->segment[b->out->count++];
    *made = (tide_segment){.data = (uintptr_t)data,
                           .bytes = bytes,
                           .first = b->groups,
                           .shift = (uintptr_t)data % PATTERN};
    b->groups += table_groups_of(made, b->work->kind);
    tide_assert(b->groups <= INT32_MAX);
    return made;
}

static void table_add_pattern(builder *b, const void *data, size_t bytes, const pattern *value)
{
    tide_segment *made = table_add_segment(b, data, bytes);
    table_rotate(value, made->shift, made);
}

/* Bits are filled in two segments: the whole words, then the last word, in which bits beyond the
 * end are 0. */
static void table_add_filled(builder *b, const tide_part *part)
{
    pattern value;
    bool possible = table_pattern_of(part, &value);
    size_t bytes = table_part_bytes(part),
           tail = part->type == TIDE_BIT && part->count % 64 != 0 ? 8 : 0;
    tide_assert(possible);
    (void)possible;
    if (bytes > tail)
        table_add_pattern(b, part->data, bytes - tail, &value);
    if (tail == 0)
        return;
    uint64_t words[2], mask = ((uint64_t)1 << part->count % 64) - 1;
    memcpy(words, value.bytes, sizeof words);
    words[0] &= mask;
    words[1] &= mask;
    memcpy(value.bytes, words, sizeof words);
    table_add_pattern(b, (char *)part->data + bytes - tail, tail, &value);
}

static void table_add_part(builder *b, size_t index)
{
    const tide_part *part = &b->work->parts[index];
    if (b->work->kind == TIDE_FRAME_FILL_PARTS)
        table_add_filled(b, part);
    else
        table_add_segment(b, part->data, table_part_bytes(part))->low = b->work->pieces[index].at;
}

uint32_t tide_table_next(const tide_frame_work *work, size_t *place, tide_segments *out)
{
    enum { MOST = 2 }; /* segments of a part */
    builder b = {.work = work, .out = out};
    tide_assert(work->kind < TIDE_FRAME_KINDS);
    out->count =
        0; /* only what is used is written: a small frame shall not pay for a large table */
    for (; *place < work->count && out->count + MOST <= TIDE_SEGMENTS; ++*place)
        if (work->parts[*place].count != 0)
            table_add_part(&b, *place);
    return b.groups;
}
