/* SPDX-License-Identifier: MIT */
/* The kernels on the host: the same text, compiled here; a launch is a loop. */
#include "kernels.h"

#include <math.h>

#define KERNEL static inline
#define GLOBAL
#define INDEX index_
#define sqrt  sqrtf
#define exp   expf
/* The index is one more parameter, by a macro for each name. */
#define moments(...)   moments(int index_, __VA_ARGS__)
#define normalise(...) normalise(int index_, __VA_ARGS__)
#define dense(...)     dense(int index_, __VA_ARGS__)
#define gate(...)      gate(int index_, __VA_ARGS__)
#include "layers.inc"
#undef moments
#undef normalise
#undef dense
#undef gate

static bool build(kernels *k, const tide_device *device, const char *text)
{
    (void)k, (void)device, (void)text;
    return true;
}

static void run(kernel_name name, int i, const argument *a)
{
    switch (name) {
    case MOMENTS: moments(i, a[0].array, a[1].array, a[2].number, a[3].number); break;
    case NORMALISE:
        normalise(i, a[0].array, a[1].array, a[2].array, a[3].number, a[4].number);
        break;
    case DENSE:
        dense(i, a[0].array, a[1].array, a[2].array, a[3].array, a[4].number, a[5].number);
        break;
    default: gate(i, a[0].array, a[1].array, a[2].array, a[3].number); break;
    }
}

static bool launch(kernels *k, kernel_name name, size_t threads, const argument *arguments,
                   size_t count)
{
    (void)k, (void)count;
    for (size_t i = 0; i < threads; i++)
        run(name, (int)i, arguments);
    return true;
}

const kernel_methods host_methods = {"host", build, launch};
