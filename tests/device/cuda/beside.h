/* SPDX-License-Identifier: MIT */
/* What a program uses of the CUDA driver beside the library, in tests that run on a real driver as
 * on the fake one: TIDE_BESIDE(name, CUDA version of these parameters, arguments). */
#ifndef CUDA_BESIDE_H
#define CUDA_BESIDE_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <tidepool/status.h>

#include "runtime/device/cuda/api.h"

typedef struct CUgraph_st *beside_graph;
typedef struct CUgraphExec_st *beside_exec;

enum { BESIDE_CAPTURE_GLOBAL = 0 };

#define BESIDE_ENTRIES(BESIDE)                                                                    \
    BESIDE(cuStreamBeginCapture, 10010, (tide_cu_stream, int))                                    \
    BESIDE(cuStreamEndCapture, 10000, (tide_cu_stream, beside_graph *))                           \
    BESIDE(cuGraphInstantiateWithFlags, 11040, (beside_exec *, beside_graph, unsigned long long)) \
    BESIDE(cuGraphLaunch, 10000, (beside_exec, tide_cu_stream))                                   \
    BESIDE(cuGraphExecDestroy, 10000, (beside_exec))                                              \
    BESIDE(cuGraphDestroy, 10000, (beside_graph))                                                 \
    BESIDE(cuCtxSetCurrent, 4000, (tide_cu_context))                                              \
    BESIDE(cuCtxGetDevice, 2000, (tide_cu_device *))

typedef struct beside_driver {
#define X(name, version, arguments) tide_cu_result(*name) arguments;
    BESIDE_ENTRIES(X)
#undef X
    tide_cu_driver cu; /* what the library uses, too */
} beside_driver;

/* Of the driver that the environment names, or the machine's. False: it is not there, or too old. */
static inline bool beside_load(beside_driver *out)
{
    const char *path = getenv("TIDEPOOL_CUDA_DRIVER");
    void *library = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW);
    void *symbol = library != NULL ? dlsym(library, "cuGetProcAddress_v2") : NULL;
    tide_cu_get_proc *get_proc = (tide_cu_get_proc *)symbol;
    int status, failed = symbol == NULL;
#define X(name, version, arguments)                                          \
    failed = failed || get_proc(#name, (void **)(void *)&out->name, version, \
                                TIDE_CU_PROC_LEGACY_STREAM, &status) != TIDE_CU_SUCCESS;
    BESIDE_ENTRIES(X)
#undef X
#define X(name, version, arguments)                                             \
    failed = failed || get_proc(#name, (void **)(void *)&out->cu.name, version, \
                                TIDE_CU_PROC_LEGACY_STREAM, &status) != TIDE_CU_SUCCESS;
    TIDE_CU_ENTRIES(X)
#undef X
    return !failed;
}

/* What this thread is at, a row of a table or a step: where it ends if what must succeed does not. */
static _Thread_local const char *must_at = "the start";

static inline void must_be(int result, const char *what)
{
    if (result == 0)
        return;
    fprintf(stderr, "%s: %s: %d, %s\n", must_at, what, result, tide_error_message());
    exit(EXIT_FAILURE);
}

/* Of the library; and a call of the driver, whose result is told. */
#define must(good, what) must_be((good) ? 0 : -1, what)
#define must_cu(call)    must_be((int)(call), #call)

#endif
