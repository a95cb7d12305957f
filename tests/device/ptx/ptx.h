/* SPDX-License-Identifier: MIT */
/* An interpreter of PTX, for tests: what NVRTC makes of our kernels runs on machines without a GPU.
 * It knows the instructions that our kernels use and their nearest relatives. An instruction that
 * it does not know is refused when the module is loaded, with its name and line: none is ever
 * skipped.
 *
 * Each access to memory is checked: it must lie within one range that the launch was given, or
 * within the kernel's own shared, local or parameter memory, and must be aligned. Instructions with
 * a mask of lanes (shfl, vote, bar.warp) wait for those lanes; a mask without the lane itself, a
 * lane that is asked and does not take part, and lanes that wait for each other are faults.
 *
 * It does not model caches, timing, or the order of memory between threads: instructions of a warp
 * run one by one, groups one after another. */
#ifndef TIDEPOOL_TESTS_PTX_H
#define TIDEPOOL_TESTS_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PTX_ERROR_BYTES = 256, PTX_WARP = 32 };

typedef struct ptx_module ptx_module;
typedef struct ptx_kernel ptx_kernel;

/* Reads the text, which is not needed afterwards. NULL: `error` names what is wrong and its
 * line. */
ptx_module *ptx_load(const char *text, char error[PTX_ERROR_BYTES]);
void ptx_unload(ptx_module *module);

/* The architecture it was made for: 90 for sm_90. */
unsigned ptx_target(const ptx_module *module);

/* A kernel by its name, which lives as long as its module. NULL: there is none. */
const ptx_kernel *ptx_find(const ptx_module *module, const char *name);
const char *ptx_kernel_name(const ptx_kernel *kernel);

/* Bytes of the i-th parameter, and where it begins among all; 0 after the last. */
size_t ptx_parameter(const ptx_kernel *kernel, size_t i, size_t *offset);
size_t ptx_parameter_bytes(const ptx_kernel *kernel); /* of all */

/* Global memory that a launch may use. */
typedef struct ptx_range {
    uint64_t address; /* as kernels see it */
    size_t bytes;
    void *host;              /* the same memory, as the interpreter sees it */
    bool tracked;            /* says what is used: */
    uint8_t *reads, *writes; /* out: a bit for each byte; NULL: none was. The caller's, to free() */
} ptx_range;

typedef enum ptx_fault {
    PTX_NONE,
    PTX_ILLEGAL_ADDRESS,
    PTX_MISALIGNED,
    PTX_BAD_MASK, /* of lanes */
    PTX_STUCK,    /* lanes wait for lanes that never come */
    PTX_ENDLESS,
    PTX_BAD_LAUNCH
} ptx_fault;

typedef struct ptx_launch {
    const ptx_kernel *kernel;
    unsigned groups, group; /* in one dimension */
    const void *parameters; /* ptx_parameter_bytes of them */
    ptx_range *ranges;
    size_t range_count;
    uint32_t seed;         /* not 0: lanes part at random, as they may on a device */
    uint64_t most;         /* instructions of threads; 0: 10^10 */
    uint64_t instructions; /* out: executed, each thread's counted */
    ptx_fault fault;       /* out */
    char error[PTX_ERROR_BYTES];
} ptx_launch;

/* Runs it to its end, or to the first fault: false, `fault` and `error` say which. */
bool ptx_run(ptx_launch *launch);

#endif
