/* SPDX-License-Identifier: MIT */
#include "kernels.h"

#include <stdio.h>
#include <string.h>

const char *const kernel_names[KERNEL_COUNT] = {"moments", "normalise", "dense", "gate"};

/* The text, as it is in the file. */
__asm__(".section .rodata\n"
        "layers_text: .incbin \"" INFERENCE_LAYERS "\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char layers_text[] __attribute__((visibility("hidden")));

bool kernels_open(kernels *k, const char *device_name, const tide_device *device, tide_pool *pool)
{
    static const kernel_methods *const all[] = {&host_methods, &opencl_methods, &cuda_methods};
    k->pool = pool;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strncmp(device_name, all[i]->device, strlen(all[i]->device)) == 0) {
            k->methods = all[i];
            return all[i]->build(k, device, layers_text);
        }
    fprintf(stderr, "inference: no kernels for %s\n", device_name);
    return false;
}
