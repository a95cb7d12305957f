/* SPDX-License-Identifier: MIT */
/* The kernels on the host: the same text, compiled here; a launch is a loop. */
#include "kernels.h"

#include <dlfcn.h>
#include <math.h>

#include <tidepool/device_bump.h>

/* What a device's kernels have of that header; here one thread runs after another. */
static void *tide_bump_acquire(tide_bump *bump, size_t bytes)
{
    size_t size = (bytes + TIDE_BUMP_ALIGN - 1) / TIDE_BUMP_ALIGN * TIDE_BUMP_ALIGN;
    size_t at = bump->used;
    bump->used += size;
    if (bump->used <= bump->capacity)
        return (char *)bump + TIDE_BUMP_HEAD + at;
    bump->refused++;
    return NULL;
}

#define BUMP   tide_bump
#define KERNEL static inline
#define GLOBAL
#define INDEX index_
#define sqrt  sqrtf
#define exp   expf
/* The index is one more parameter, by a macro for each name. */
#define moments(...)   moments(int index_, __VA_ARGS__)
#define normalise(...) normalise(int index_, __VA_ARGS__)
#define spread(...)    spread(int index_, __VA_ARGS__)
#define multiply(...)  multiply(int index_, __VA_ARGS__)
#define gate(...)      gate(int index_, __VA_ARGS__)
#define listed(...)    listed(int index_, __VA_ARGS__)
#include "layers.inc"
#undef moments
#undef normalise
#undef spread
#undef multiply
#undef gate
#undef listed

static bool build(kernels *k, const tide_device *device, const char *text)
{
    (void)device, (void)text;
    k->of[LISTED] = k; /* it is there */
    return true;
}

static void run(kernel_name name, int i, const argument *a)
{
    switch (name) {
    case MOMENTS: moments(i, a[0].array, a[1].array, a[2].number, a[3].number); break;
    case NORMALISE:
        normalise(i, a[0].array, a[1].array, a[2].array, a[3].number, a[4].number);
        break;
    case SPREAD: spread(i, a[0].array, a[1].array, a[2].number, a[3].number); break;
    case MULTIPLY: multiply(i, a[0].array, a[1].array, a[2].array, a[3].number, a[4].number); break;
    case LISTED: listed(i, a[0].array, a[1].array, a[2].array, a[3].number, a[4].number); break;
    default: gate(i, a[0].array, a[1].array, a[2].array, a[3].number); break;
    }
}

static bool launch(const kernels *k, kernel_name name, size_t threads, const argument *arguments,
                   size_t count)
{
    (void)k, (void)count;
    for (size_t i = 0; i < threads; i++)
        run(name, (int)i, arguments);
    return true;
}

/* ---- OpenBLAS, as cblas.h has it ------------------------------------------------------------ */

enum { ROWS_FIRST = 101, AS_IT_IS = 111 };

static void (*cblas_sgemm)(int order, int of_a, int of_b, int m, int n, int k, float alpha,
                           const float *a, int lda, const float *b, int ldb, float beta, float *c,
                           int ldc);

static const char *open_library(kernels *k)
{
    static const char name[] = "libopenblas.so.0";
    (void)k;
    void *library = dlopen(name, RTLD_NOW);
    *(void **)(void *)&cblas_sgemm = library != NULL ? dlsym(library, "cblas_sgemm") : NULL;
    return cblas_sgemm != NULL ? name : NULL;
}

static bool multiply_by_blas(const kernels *k, float *out, float *in, float *weights, int rows,
                             int width)
{
    (void)k;
    cblas_sgemm(ROWS_FIRST, AS_IT_IS, AS_IT_IS, rows, width, width, 1, in, width, weights, width, 1,
                out, width);
    return true;
}

const kernel_methods host_methods = {.device = "host",
                                     .build = build,
                                     .launch = launch,
                                     .open_library = open_library,
                                     .multiply = multiply_by_blas};
