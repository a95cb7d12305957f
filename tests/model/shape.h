/* SPDX-License-Identifier: MIT */
/* Shapes, strides and views, computed in the most naive way. */
#ifndef MODEL_SHAPE_H
#define MODEL_SHAPE_H

#include <tidepool/array.h>

struct shape {
    int ndim;
    tide_order order;
    int64_t extent[TIDE_NDIM_MAX], stride[TIDE_NDIM_MAX];
};

/* Fills in the strides of a shape without gaps. */
void shape_stride(struct shape *shape);

size_t shape_length(const struct shape *shape);
bool shape_same(const struct shape *left, const struct shape *right);
bool shape_dense(const struct shape *shape);

/* What a byte of a program means: ranks 0 to 8, a few extents, so that shapes come back; at most
 * 2 MiB of elements of so many bits. */
struct shape shape_operand(uint8_t b, tide_order order, size_t bits);

/* The same number of elements in another shape; `b` chooses which. */
struct shape shape_refolded(const struct shape *of, uint8_t b);

/* A part of a shape: from where, how many, how far apart in each dimension. */
struct part {
    int64_t start[TIDE_NDIM_MAX], extent[TIDE_NDIM_MAX], step[TIDE_NDIM_MAX];
};

struct part part_operand(const struct shape *of, uint8_t b, uint8_t c);

/* False when an element of the part lies outside. */
bool part_inside(const struct shape *of, const struct part *part);

/* The part as a shape, and where its first element is. */
struct shape part_shape(const struct shape *of, const struct part *part, int64_t *offset);

/* Where element `number`, the last index running fastest, lies from element 0. */
int64_t shape_offset(const struct shape *shape, size_t number);

#endif
