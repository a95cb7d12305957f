/* SPDX-License-Identifier: MIT */
/* The network: blocks of normalise → dense → gate, each added to what goes in. */
#ifndef INFERENCE_NETWORK_H
#define INFERENCE_NETWORK_H

#include <tidepool/buffers.h>
#include <tidepool/device.h>

#include "kernels.h"

typedef struct sizes {
    int batch, width, blocks;
} sizes;

enum { BLOCKS_MAX = 64 };

typedef struct network {
    sizes shape; /* batch: the rows of this network's stream */
    kernels kernels;
    tide_pool *pool;
    tide_buffers *buffers; /* of what goes in and out; NULL: arrays of the pool */
    float *from, *to;      /* of the step that is under way */
    tide_buffer held[2];   /* their handles */
    tide_mark mark;        /* without buffers */
    bool alone;            /* without the pool: arrays are the driver's, one by one */
    uint64_t taken;        /* so many of them so far; bytes of them now, and the most */
    size_t bytes, bytes_peak;
    bool graphs; /* the blocks are captured once, and replayed */
    void *graph;
    int steps;  /* so far */
    int *found; /* NULL, or where network_finish puts two numbers for each row (LISTED) */
    tide_capture *capture;                         /* the memory of the graph */
    float *weights[BLOCKS_MAX], *bias[BLOCKS_MAX]; /* acquired at the pool's root: they stay */
} network;

/* Numbers that look random, the same everywhere. */
void numbers(float *out, size_t count, uint32_t seed, float scale);

/* Weights for the pool; the kernels must be open. False with a word on stderr. */
bool network_open(network *n, sizes shape, tide_pool *pool);

/* The same network on another stream: the weights are the other's, and are there already. */
void network_join(network *n, const network *other, tide_pool *pool);

/* A step, in two parts, so that several networks work at once: queues all of it; waits for what
 * comes out. `in` and `out` are the host's, batch × width each. */
bool network_begin(network *n, const float *in);
bool network_finish(network *n, float *out);

/* Lets go of the graph and the buffers. The weights go with their pool. */
void network_close(network *n);

#endif
