/* SPDX-License-Identifier: MIT */
/* Kernels as code for this processor (../kernels): loaded, and run thread by thread. */
#ifndef FAKE_HOST_CODE_H
#define FAKE_HOST_CODE_H

#include "../kernels/cuda.h"
#include "model.h"

typedef struct host_kernel {
    fake_thread *run;
    fake_sizes *size;
    fake_cells *cells;
    bool warps; /* lanes of a warp ask for each other */
} host_kernel;

/* Memory that a launch may use. reads, writes: out, a bit for each byte, to be freed; NULL: none was. */
typedef struct extent {
    uint64_t address;
    size_t bytes;
    uint8_t *reads, *writes;
} extent;

typedef struct host_launch {
    const host_kernel *kernel;
    const void *const *values;
    unsigned groups, group;
    extent *extents;
    size_t extent_count;
    char error[160]; /* out: "": none */
} host_launch;

void *host_code_load(const void *image); /* an ELF file; NULL: it is not for this processor */
bool host_code_find(void *library, const char *name, host_kernel *out);
void host_code_run(host_launch *launch);

#endif
