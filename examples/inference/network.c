/* SPDX-License-Identifier: MIT */
/* The part to copy from: not a word in it depends on the device. Every temporary lives in the scope
 * of whoever needs it; a block's are rewound while its kernels still run, and the next block's
 * kernels find the same memory, in order. */
#include "network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/device_bump.h>

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

/* An array that stays; its numbers go into `values` and along with all others. */
static bool parameters(network *n, tide_part *part, float *values, size_t count, uint32_t seed,
                       float scale)
{
    float *array = tide_acquire(n->pool, float, count);
    numbers(values, count, seed, scale);
    *part = (tide_part){.data = array, .host = values, .type = TIDE_F32, .count = count};
    return array != NULL;
}

bool network_open(network *n, sizes shape, tide_pool *pool)
{
    const size_t width = (size_t)shape.width, of_block = width * width + width;
    tide_part parts[2 * BLOCKS_MAX] = {{0}};
    float *values = malloc((size_t)shape.blocks * of_block * sizeof *values);
    bool good = values != NULL;
    n->shape = shape;
    n->pool = pool;
    for (int i = 0; i < shape.blocks && good; i++) {
        const uint32_t seed = (uint32_t)i;
        float *block = values + (size_t)i * of_block;
        tide_part *weights = &parts[2 * i], *bias = weights + 1;
        good = parameters(n, weights, block, width * width, 2 * seed, 1.7f / (float)width) &&
               parameters(n, bias, block + width * width, width, 2 * seed + 1, 0.1f);
        n->weights[i] = weights->data;
        n->bias[i] = bias->data;
    }
    /* One transfer for all, where a device has one. */
    good = good && tide_upload_frame(pool, parts, 2 * (size_t)shape.blocks) == TIDE_OK;
    free(values);
    if (values == NULL)
        fputs("inference: no memory for the weights\n", stderr);
    return good || (values != NULL && complain());
}

static size_t elements(const network *n)
{
    return (size_t)n->shape.batch * (size_t)n->shape.width;
}

/* ---- a block, its temporaries from the pool -------------------------------------------------- */

static bool normalise(network *n, float *out, float *in, float *moments)
{
    const int rows = n->shape.batch, width = n->shape.width;
    return LAUNCH(&n->kernels, MOMENTS, (size_t)rows, ARRAY(moments), ARRAY(in), NUMBER(rows),
                  NUMBER(width)) &&
           LAUNCH(&n->kernels, NORMALISE, elements(n), ARRAY(out), ARRAY(in), ARRAY(moments),
                  NUMBER(rows), NUMBER(width));
}

static bool gate(network *n, int index, float *out, float *in, float *normal, float *z)
{
    const int rows = n->shape.batch, width = n->shape.width;
    const size_t count = elements(n);
    return LAUNCH(&n->kernels, SPREAD, count, ARRAY(z), ARRAY(n->bias[index]), NUMBER(rows),
                  NUMBER(width)) &&
           kernels_multiply(&n->kernels, z, normal, n->weights[index], rows, width) &&
           LAUNCH(&n->kernels, GATE, count, ARRAY(out), ARRAY(in), ARRAY(z), NUMBER((int)count));
}

static bool normalised(network *n, float *out, float *in)
{
    TIDE_FRAME(n->pool, (float, moments, 2 * (size_t)n->shape.batch));
    return moments != NULL && normalise(n, out, in, moments);
}

static bool block(network *n, int index, float *out, float *in)
{
    TIDE_SCOPE(n->pool);
    float *normal = tide_acquire(n->pool, float, elements(n));
    float *z = tide_acquire(n->pool, float, elements(n));
    return normal != NULL && z != NULL && normalised(n, normal, in) &&
           gate(n, index, out, in, normal, z);
}

/* ---- the same without a pool ----------------------------------------------------------------- */

static float *take(network *n, size_t count)
{
    float *array = n->kernels.methods->take(count * sizeof *array);
    if (array == NULL)
        return NULL;
    n->taken++;
    n->bytes += count * sizeof *array;
    n->bytes_peak = n->bytes > n->bytes_peak ? n->bytes : n->bytes_peak;
    return array;
}

static bool give(network *n, float *array, size_t count)
{
    if (array == NULL)
        return false;
    n->bytes -= count * sizeof *array;
    return n->kernels.methods->give(&n->kernels, array);
}

static bool normalised_alone(network *n, float *out, float *in)
{
    const size_t count = 2 * (size_t)n->shape.batch;
    float *moments = take(n, count);
    bool good = moments != NULL && normalise(n, out, in, moments);
    return give(n, moments, count) && good;
}

/* Each array is the driver's, and the host waits for its last use before that gets it back. */
static bool block_alone(network *n, int index, float *out, float *in)
{
    float *normal = take(n, elements(n)), *z = take(n, elements(n));
    bool good = normal != NULL && z != NULL && normalised_alone(n, normal, in) &&
                gate(n, index, out, in, normal, z);
    good = give(n, z, elements(n)) && good;
    return give(n, normal, elements(n)) && good;
}

void network_join(network *n, const network *other, tide_pool *pool)
{
    n->shape = other->shape;
    n->pool = pool;
    memcpy(n->weights, other->weights, sizeof n->weights);
    memcpy(n->bias, other->bias, sizeof n->bias);
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* What goes in lives from the upload to the download, across scopes: a buffer. A graph has the same
 * ones at each launch. */
static bool take_batch(network *n)
{
    const size_t bytes = elements(n) * sizeof *n->from;
    if (n->alone) {
        n->from = take(n, elements(n));
        n->to = take(n, elements(n));
        return n->from != NULL && n->to != NULL;
    }
    if (n->buffers == NULL) {
        n->mark = tide_checkpoint(n->pool);
        n->from = tide_acquire(n->pool, float, elements(n));
        n->to = tide_acquire(n->pool, float, elements(n));
        return n->from != NULL && n->to != NULL;
    }
    for (int i = 0; i < 2 && n->graph == NULL; i++) {
        n->held[i] = tide_buffer_acquire_on(n->buffers, bytes, 0, n->kernels.stream);
        float *data =
            n->held[i].generation != 0 ? tide_buffer_pointer(n->buffers, n->held[i]) : NULL;
        if (data == NULL)
            return false;
        *(i == 0 ? &n->from : &n->to) = data;
    }
    return true;
}

static bool give_batch(network *n)
{
    if (n->alone)
        return give(n, n->to, elements(n)) && give(n, n->from, elements(n));
    if (n->buffers == NULL)
        return tide_rewind(n->pool, n->mark) == TIDE_OK;
    for (int i = 0; i < 2 && n->graph == NULL; i++)
        if (tide_buffer_release_on(n->buffers, n->held[i], n->kernels.stream) != TIDE_OK)
            return false;
    return true;
}

/* Where the last block's result is. */
static float *result_of(const network *n)
{
    return n->shape.blocks % 2 == 0 ? n->from : n->to;
}

static bool all_blocks(network *n)
{
    float *in = n->from, *out = n->to;
    for (int i = 0; i < n->shape.blocks; i++) {
        if (!(n->alone ? block_alone : block)(n, i, out, in))
            return false;
        float *next = in;
        in = out;
        out = next;
    }
    return true;
}

/* The temporaries of the blocks become the graph's (tide_capture_begin). The pool must be warm, for
 * nothing is allocated while a graph is captured: the first step was done without one. */
static bool capture_blocks(network *n)
{
    const kernels *k = &n->kernels;
    if (tide_capture_begin(n->pool) != TIDE_OK || !k->methods->record(k))
        return complain();
    bool good = all_blocks(n);
    void *graph = k->methods->recorded(k);
    n->capture = tide_capture_end(n->pool);
    n->graph = good && n->capture != NULL ? graph : NULL;
    return n->graph != NULL || complain();
}

static bool run_blocks(network *n, bool warm)
{
    if (n->graphs && warm && n->graph == NULL && !capture_blocks(n))
        return false;
    return n->graph != NULL ? n->kernels.methods->replay(&n->kernels, n->graph) : all_blocks(n);
}

bool network_begin(network *n, const float *in)
{
    const bool warm = n->steps++ > 0;
    if (!take_batch(n) || tide_upload(n->pool, n->from, in, elements(n) * sizeof *in) != TIDE_OK)
        return complain();
    return run_blocks(n, warm) || complain();
}

/* Lists of lengths that only the device knows. What kernels have allocated goes as a whole. */
static bool find_listed(network *n)
{
    const int rows = n->shape.batch, width = n->shape.width;
    const size_t most = (size_t)rows * ((size_t)width * sizeof(int) + TIDE_BUMP_ALIGN);
    tide_bump_scope scope;
    if (tide_bump_enter(n->pool, most, &scope) != TIDE_OK)
        return false;
    int *found = tide_acquire(n->pool, int, 2 * (size_t)rows);
    bool good =
        found != NULL &&
        LAUNCH(&n->kernels, LISTED, (size_t)rows, ARRAY(found), ARRAY(result_of(n)),
               ARRAY(scope.bump), NUMBER(rows), NUMBER(width)) &&
        tide_download(n->pool, n->found, found, 2 * (size_t)rows * sizeof *found) == TIDE_OK;
    return tide_bump_leave(&scope) == TIDE_OK && good;
}

bool network_finish(network *n, float *out)
{
    return (tide_download(n->pool, out, result_of(n), elements(n) * sizeof *out) == TIDE_OK &&
            (n->found == NULL || find_listed(n)) && give_batch(n)) ||
           complain();
}

void network_close(network *n)
{
    if (n->graph == NULL)
        return;
    n->kernels.methods->forget(n->graph);
    n->graph = NULL;
    if (tide_capture_drop(n->capture, n->kernels.stream) != TIDE_OK || !give_batch(n))
        (void)complain();
}
