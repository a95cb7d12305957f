/* SPDX-License-Identifier: MIT */
/* Four ways to hold film.c's temporaries. Each program has one: FILM_FRAMES, FILM_SITES, FILM_MALLOC or
 * FILM_CUT is defined. Two are Tidepool's own words, two take their place:
 *
 *   FRAME((T, name, n), …);        one, two or four arrays until the block ends: all of them, or NULLs
 *   SCOPE;                         what is acquired from here on is given back when the block ends
 *   ACQUIRE(T, n), ACQUIRE_TYPE(type, n)       an array; of a type that is known at run time */
#ifndef FILM_WAYS_H
#define FILM_WAYS_H

#include <tidepool/buffers.h>
#include <tidepool/device.h>

#include "pixels.h"

#if defined(FILM_FRAMES) || defined(FILM_SITES)

static _Thread_local tide_pool *film_pool;

#define SCOPE                 TIDE_SCOPE(film_pool)
#define ACQUIRE(T, n)         tide_acquire(film_pool, T, n)
#define ACQUIRE_TYPE(type, n) tide_acquire_type(film_pool, type, n)

/* Before a thread's first frame. A device's images lie in memory that the host may use as well. */
static bool way_begin(const char *device, size_t pixels)
{
    (void)pixels;
    if (device == NULL)
        return (film_pool = tide_pool_local()) != NULL;
    tide_pool_options of = {.device = tide_device_open(device)};
    if (of.device != NULL)
        of.buffers =
            tide_buffers_create(of.device, &(tide_buffers_options){.flags = TIDE_BUFFER_MANAGED});
    film_pool = of.buffers == NULL ? NULL : tide_pool_create(&of);
    return film_pool != NULL;
}

#else

static _Thread_local struct calls {
    char *top; /* of the block that is cut; NULL: malloc is called */
    int count; /* of what malloc has given and the end of a scope will free */
} calls;
static _Thread_local void *taken[64];

static void *take(size_t bytes)
{
    char *here = calls.top;
    if (here == NULL)
        return taken[calls.count++] = film_have(malloc(bytes));
    calls.top += (bytes + 63) / 64 * 64;
    return here;
}

static void scope_end(struct calls *before)
{
    while (calls.count > before->count)
        free(taken[--calls.count]);
    calls.top = before->top;
}

/* clang-format off */
#define JOIN_(a, b)           a##b
#define JOIN(a, b)            JOIN_(a, b)
#define SCOPE                 __attribute__((cleanup(scope_end), unused)) struct calls JOIN(scope_, __COUNTER__) = calls
#define ACQUIRE(T, n)         take((n) * sizeof(T))
#define ACQUIRE_TYPE(type, n) take((n) * tide_type_size(type))
/* clang-format on */

static bool way_begin(const char *device, size_t pixels)
{
    (void)pixels;
#ifdef FILM_CUT /* by an author who knows: at most 10.6 images of the whole size are live at once */
    calls.top = film_have(malloc(12 * (pixels * sizeof(float) + 4096)));
#endif
    return device == NULL;
}

#endif

#ifdef FILM_FRAMES
#define FRAME(...) TIDE_FRAME(film_pool, __VA_ARGS__)
#else
/* clang-format off */
#define ARRAY(T, name, n)           T *name = ACQUIRE(T, n)
#define FRAME1(a)                   ARRAY a
#define FRAME2(a, b)                ARRAY a; ARRAY b
#define FRAME4(a, b, c, d)          FRAME2(a, b); FRAME2(c, d)
#define PICK(a, b, c, d, each, ...) each
#define FRAME(...)                  SCOPE; PICK(__VA_ARGS__, FRAME4, , FRAME2, FRAME1, )(__VA_ARGS__)
/* clang-format on */
#endif

#endif
