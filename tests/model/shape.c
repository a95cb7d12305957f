/* SPDX-License-Identifier: MIT */
#include "shape.h"

#include <string.h>

#include "tests/random.h"

static int dimension_inward(const struct shape *shape, int i)
{
    return shape->order == TIDE_ROW_MAJOR ? shape->ndim - 1 - i : i;
}

void shape_stride(struct shape *shape)
{
    for (int i = 0; i < shape->ndim; i++) {
        int64_t stride = 1;
        for (int j = 0; j < i; j++) {
            int64_t extent = shape->extent[dimension_inward(shape, j)];
            stride *= extent > 0 ? extent : 1;
        }
        shape->stride[dimension_inward(shape, i)] = stride;
    }
}

size_t shape_length(const struct shape *shape)
{
    size_t length = 1;
    for (int d = 0; d < shape->ndim; d++)
        length *= (size_t)shape->extent[d];
    return length;
}

bool shape_same(const struct shape *left, const struct shape *right)
{
    size_t bytes = (size_t)left->ndim * sizeof *left->extent;
    return left->ndim == right->ndim && left->order == right->order &&
           memcmp(left->extent, right->extent, bytes) == 0 &&
           memcmp(left->stride, right->stride, bytes) == 0;
}

/* Strides of dimensions that have no second element do not matter. */
bool shape_dense(const struct shape *shape)
{
    struct shape dense = *shape;
    shape_stride(&dense);
    if (shape_length(shape) == 0)
        return true;
    for (int d = 0; d < shape->ndim; d++)
        if (shape->extent[d] > 1 && shape->stride[d] != dense.stride[d])
            return false;
    return true;
}

/* ---- operands --------------------------------------------------------------------------- */

static void fit(struct shape *shape, size_t bits)
{
    enum { MOST_BITS = 8 * (2 << 20) };
    for (int d = 0; d < shape->ndim && shape_length(shape) * bits > MOST_BITS; d++)
        shape->extent[d] = 1;
}

struct shape shape_operand(uint8_t b, tide_order order, size_t bits)
{
    struct shape shape = {.ndim = b % 9, .order = order};
    rng random = {b};
    for (int d = 0; d < shape.ndim; d++) {
        uint64_t r = rng_next(&random);
        shape.extent[d] = (int64_t)(1 + r % (shape.ndim > 3 ? 3 : 9));
        if (r >> 32 < UINT32_MAX / 14)
            shape.extent[d] = 0;
    }
    if (b >= 240 && shape.ndim > 0) /* by bytes: 16 KiB to 256 KiB */
        shape.extent[shape.ndim - 1] = (int64_t)(b - 239) * (1 << 17) / (int64_t)bits + 1;
    fit(&shape, bits);
    shape_stride(&shape);
    return shape;
}

/* Takes small factors out of what is left, dimension by dimension; now and then miscounts. */
struct shape shape_refolded(const struct shape *of, uint8_t b)
{
    static const int64_t factors[] = {1, 2, 3, 4, 5, 7, 8, 9};
    rng random = {b};
    struct shape shape = {.ndim = b % 9, .order = of->order};
    int64_t rest = (int64_t)shape_length(of);
    for (int d = 0; d < shape.ndim; d++) {
        int64_t factor = factors[rng_next(&random) % 8];
        bool last = d == shape.ndim - 1;
        shape.extent[d] = last ? rest : rest % factor == 0 ? factor : 1;
        rest /= shape.extent[d] > 0 ? shape.extent[d] : 1;
    }
    if (b >= 250 && shape.ndim > 0)
        shape.extent[0]++;
    shape_stride(&shape);
    return shape;
}

/* ---- parts ------------------------------------------------------------------------------ */

struct part part_operand(const struct shape *of, uint8_t b, uint8_t c)
{
    struct part part = {0};
    rng random = {(uint64_t)b << 8 | c};
    for (int d = 0; d < of->ndim; d++) {
        int64_t size = of->extent[d], step = (int64_t)(rng_next(&random) % 6) - 2;
        bool back = step < 0;
        int64_t start = size > 0 ? (int64_t)(rng_next(&random) % (uint64_t)size) : 0;
        int64_t ahead = back ? start : size - 1 - start;
        int64_t room = size == 0 ? 0 : step == 0 ? 3 : ahead / (back ? -step : step) + 1;
        part.start[d] = start;
        part.step[d] = step;
        part.extent[d] = room > 0 ? 1 + (int64_t)(rng_next(&random) % (uint64_t)room) : 0;
    }
    if (c % 16 == 15 && of->ndim > 0) /* often outside */
        part.extent[b % of->ndim] += (int64_t)(b % 5) - 2;
    if (c % 64 == 31 && of->ndim > 0)
        part.start[b % of->ndim] -= 1 + b % 3;
    return part;
}

static bool dimension_inside(int64_t size, int64_t start, int64_t extent, int64_t step)
{
    if (extent < 0 || (extent == 0 && (start < 0 || start > size)))
        return false;
    for (int64_t i = 0; i < extent; i++)
        if (start + i * step < 0 || start + i * step >= size)
            return false;
    return true;
}

bool part_inside(const struct shape *of, const struct part *part)
{
    for (int d = 0; d < of->ndim; d++)
        if (!dimension_inside(of->extent[d], part->start[d], part->extent[d], part->step[d]))
            return false;
    return true;
}

struct shape part_shape(const struct shape *of, const struct part *part, int64_t *offset)
{
    struct shape shape = {.ndim = of->ndim, .order = of->order};
    for (int d = 0; d < of->ndim; d++) {
        shape.extent[d] = part->extent[d];
        shape.stride[d] = of->stride[d] * part->step[d];
        *offset += part->extent[d] > 0 ? part->start[d] * of->stride[d] : 0;
    }
    return shape;
}

int64_t shape_offset(const struct shape *shape, size_t number)
{
    int64_t offset = 0;
    for (int d = shape->ndim; d-- > 0;) {
        offset += (int64_t)(number % (size_t)shape->extent[d]) * shape->stride[d];
        number /= (size_t)shape->extent[d];
    }
    return offset;
}
