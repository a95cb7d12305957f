/* SPDX-License-Identifier: MIT */
/* Writes the kernels' source, for tests that compile it: text cuda|opencl. */
#include <stdio.h>
#include <string.h>

#include "jit/kernels/source.h"

int main(int count, char **args)
{
    static char text[TIDE_KERNELS_SOURCE_BYTES];
    if (count != 2)
        return 2;
    tide_kernels_source(strcmp(args[1], "cuda") == 0 ? TIDE_KERNELS_CUDA : TIDE_KERNELS_OPENCL,
                        text, sizeof text);
    return fputs(text, stdout) == EOF;
}
