/* SPDX-License-Identifier: MIT */
/* The network: blocks of normalise → dense → gate, each added to what goes in. */
#ifndef INFERENCE_NETWORK_H
#define INFERENCE_NETWORK_H

#include "kernels.h"

typedef struct sizes {
    int batch, width, blocks;
} sizes;

enum { BLOCKS_MAX = 64 };

typedef struct network {
    sizes shape;
    kernels kernels;
    tide_pool *pool;
    float *weights[BLOCKS_MAX], *bias[BLOCKS_MAX]; /* acquired at the pool's root: they stay */
} network;

/* Numbers that look random, the same everywhere. */
void numbers(float *out, size_t count, uint32_t seed, float scale);

/* Weights for the pool; the kernels must be open. False with a word on stderr. */
bool network_open(network *n, sizes shape, tide_pool *pool);

/* One step: `in` and `out` are the host's, batch × width each. */
bool network_step(network *n, const float *in, float *out);

#endif
