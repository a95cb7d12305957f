/* SPDX-License-Identifier: MIT */
/* The part to copy from: not a word in it depends on the device. Every temporary lives in the scope
 * of whoever needs it; a block's are rewound while its kernels still run, and the next block's
 * kernels find the same memory, in order. */
#include "network.h"

#include <stdio.h>
#include <stdlib.h>

void numbers(float *out, size_t count, uint32_t seed, float scale)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        out[i] = ((float)(seed >> 8) / (1 << 23) - 1) * scale;
    }
}

static bool complain(void)
{
    fprintf(stderr, "inference: %s\n", tide_error_message());
    return false;
}

/* An array that stays, with numbers in it. */
static float *parameters(network *n, size_t count, uint32_t seed, float scale)
{
    float *array = tide_acquire(n->pool, float, count), *values = malloc(count * sizeof *values);
    bool sent = array != NULL && values != NULL;
    if (sent) {
        numbers(values, count, seed, scale);
        sent = tide_upload(n->pool, array, values, count * sizeof *values) == TIDE_OK;
    }
    free(values);
    return sent ? array : NULL;
}

bool network_open(network *n, sizes shape, tide_pool *pool)
{
    const size_t width = (size_t)shape.width;
    n->shape = shape;
    n->pool = pool;
    for (int i = 0; i < shape.blocks; i++) {
        const uint32_t seed = (uint32_t)i;
        n->weights[i] = parameters(n, width * width, 2 * seed, 1.7f / (float)width);
        n->bias[i] = parameters(n, width, 2 * seed + 1, 0.1f);
        if (n->weights[i] == NULL || n->bias[i] == NULL)
            return complain();
    }
    return true;
}

static bool normalised(network *n, float *out, float *in)
{
    const int rows = n->shape.batch, width = n->shape.width;
    TIDE_FRAME(n->pool, (float, moments, 2 * (size_t)rows));
    return moments != NULL &&
           LAUNCH(&n->kernels, MOMENTS, (size_t)rows, ARRAY(moments), ARRAY(in), NUMBER(rows),
                  NUMBER(width)) &&
           LAUNCH(&n->kernels, NORMALISE, (size_t)rows * (size_t)width, ARRAY(out), ARRAY(in),
                  ARRAY(moments), NUMBER(rows), NUMBER(width));
}

static bool block(network *n, int index, float *out, float *in)
{
    const int rows = n->shape.batch, width = n->shape.width;
    const size_t count = (size_t)rows * (size_t)width;
    TIDE_SCOPE(n->pool);
    float *normal = tide_acquire(n->pool, float, count), *z = tide_acquire(n->pool, float, count);
    return normal != NULL && z != NULL && normalised(n, normal, in) &&
           LAUNCH(&n->kernels, DENSE, count, ARRAY(z), ARRAY(normal), ARRAY(n->weights[index]),
                  ARRAY(n->bias[index]), NUMBER(rows), NUMBER(width)) &&
           LAUNCH(&n->kernels, GATE, count, ARRAY(out), ARRAY(in), ARRAY(z), NUMBER((int)count));
}

bool network_step(network *n, const float *in, float *out)
{
    const size_t count = (size_t)n->shape.batch * (size_t)n->shape.width;
    TIDE_FRAME(n->pool, (float, from, count), (float, to, count));
    if (from == NULL || to == NULL || tide_upload(n->pool, from, in, count * sizeof *in) != TIDE_OK)
        return complain();
    for (int i = 0; i < n->shape.blocks; i++) {
        if (!block(n, i, to, from))
            return complain();
        float *next = from;
        from = to;
        to = next;
    }
    return tide_download(n->pool, out, from, count * sizeof *out) == TIDE_OK || complain();
}
