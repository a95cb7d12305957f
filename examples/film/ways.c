/* SPDX-License-Identifier: MIT */
/* Three ways to hold the temporaries of denoise.inc. */
#include "film.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void *film_have(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "film: no memory for an image: %s\n", tide_error_message());
        exit(1);
    }
    return memory;
}

/* ---- Tidepool ends a scope by itself: nothing is to be done where a block ends --------------- */

#define DONE1(a)
#define DONE2(a, b)
#define DONE4(a, b, c, d)
#define POOL tide_pool_local()
#define PIXELS(a, type, n) \
    TIDE_SCOPE(POOL);      \
    void *a = film_have(tide_acquire_type(POOL, type, n))

#define WAY(name) name##_by_frames
#define IMAGES1(a, n)                \
    TIDE_FRAME(POOL, (float, a, n)); \
    film_have(a)
#define IMAGES2(a, n, b, m)                         \
    TIDE_FRAME(POOL, (float, a, n), (float, b, m)); \
    film_have(a)
#define IMAGES4(a, b, c, d, n)                                                    \
    TIDE_FRAME(POOL, (float, a, n), (float, b, n), (float, c, n), (float, d, n)); \
    film_have(a)
#include "denoise.inc"

static const float *dangle_take(size_t n)
{
    IMAGES1(taken, n);
    taken[0] = 1;
    return taken; /* the bug: the frame ends here, and its image with it */
}

float film_dangle(size_t n)
{
    return *dangle_take(n);
}

#undef WAY
#undef IMAGES1
#undef IMAGES2
#undef IMAGES4
#define WAY(name)   name##_by_sites
#define IMAGE(a, n) float *a = film_have(tide_acquire(POOL, float, n))
#define IMAGES1(a, n) \
    TIDE_SCOPE(POOL); \
    IMAGE(a, n)
#define IMAGES2(a, n, b, m) \
    IMAGES1(a, n);          \
    IMAGE(b, m)
#define IMAGES4(a, b, c, d, n) \
    IMAGES2(a, n, b, n);       \
    IMAGE(c, n);               \
    IMAGE(d, n)
#include "denoise.inc"

/* ---- calls in pairs: malloc and free, or a block cut by hand --------------------------------- */

static _Thread_local char *cut_top; /* NULL: malloc is called */

void film_cut(size_t pixels)
{
    enum { IMAGES = 12 }; /* of the whole size, live at once at most: 10.6 */
    cut_top = film_have(malloc(IMAGES * (pixels * sizeof(float) + 4096)));
}

static void *take(size_t bytes)
{
    char *taken = cut_top;
    if (taken == NULL)
        return film_have(malloc(bytes));
    cut_top += (bytes + 63) / 64 * 64;
    return taken;
}

/* Of the block, all from here on. */
static void give(void *first)
{
    if (cut_top == NULL)
        free(first);
    else
        cut_top = first;
}

#undef WAY
#undef IMAGE
#undef IMAGES1
#undef PIXELS
#undef DONE1
#undef DONE2
#undef DONE4
#define WAY(name)          name##_by_calls
#define IMAGE(a, n)        float *a = take((n) * sizeof(float))
#define IMAGES1(a, n)      IMAGE(a, n)
#define PIXELS(a, type, n) void *a = take((n)*pixel_bytes(type))
#define DONE1(a)           give(a)
#define DONE2(a, b)        give(b), give(a)
#define DONE4(a, b, c, d)  DONE2(c, d), DONE2(a, b)
#include "denoise.inc"
