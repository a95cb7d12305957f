/* SPDX-License-Identifier: MIT */
#include "kernels.h"

#include <stdio.h>
#include <string.h>

const char *const kernel_names[KERNEL_COUNT] = {"moments",  "normalise", "spread",
                                                "multiply", "gate",      "listed"};

/* The text, as it is in the file. */
__asm__(".section .rodata\n"
        "layers_text: .incbin \"" INFERENCE_LAYERS "\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char layers_text[] __attribute__((visibility("hidden")));

bool kernels_multiply(const kernels *k, float *out, float *in, float *weights, int rows, int width)
{
    if (k->library != NULL)
        return k->methods->multiply(k, out, in, weights, rows, width);
    return LAUNCH(k, MULTIPLY, (size_t)rows * (size_t)width, ARRAY(out), ARRAY(in), ARRAY(weights),
                  NUMBER(rows), NUMBER(width));
}

const kernel_methods *kernels_for(const char *device_name)
{
    static const kernel_methods *const all[] = {&host_methods, &opencl_methods, &cuda_methods};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strncmp(device_name, all[i]->device, strlen(all[i]->device)) == 0)
            return all[i];
    fprintf(stderr, "inference: no kernels for %s\n", device_name);
    return NULL;
}

bool kernels_open(kernels *k, const char *device_name, const tide_device *device, tide_pool *pool,
                  bool libraries)
{
    *k = (kernels){.pool = pool, .methods = kernels_for(device_name)};
    if (k->methods == NULL || !k->methods->build(k, device, layers_text))
        return false;
    if (libraries && k->methods->open_library != NULL)
        k->library = k->methods->open_library(k);
    return true;
}

bool kernels_move(kernels *k, tide_pool *pool, void *stream)
{
    k->pool = pool;
    k->stream = stream;
    return k->library == NULL || k->methods->move_library == NULL || k->methods->move_library(k);
}
