/* SPDX-License-Identifier: MIT */
/* What the tests on an OpenCL device stand on: the device opened with one kind of memory, pools on
 * it, kernels, and arrays compared with what they should hold. */
#ifndef TIDEPOOL_TESTS_OPENCL_BED_H
#define TIDEPOOL_TESTS_OPENCL_BED_H

#include "tests/forms.h"

#include <tidepool/device.h>

#include "runtime/device/opencl/opencl.h"
#include "tests/device/tests.h"

extern tide_device *gpu; /* whatever it is */

/* Opens the device with the memory that the program was asked for ("shared", "buffers") and
 * runs the tests; 77 where there is none. */
int bed_main(const char *group, int count, char **arguments, const struct CMUnitTest *tests,
             size_t test_count);
#define BED_MAIN(group) bed_main(group, argc, argv, listed_tests.all, listed_tests.count)

int bed_memory(void); /* TIDE_OPENCL_SHARED or BUFFERS */

tide_pool *bed_pool(void *stream);
void bed_pool_end(tide_pool *pool); /* whatever is open */
tide_device_information bed_info(void);

/* A queue of the device's context; one with these properties, 0 for none, of another context. */
void *bed_queue(void);
void *bed_queue_of(void *context, uint64_t properties);
void bed_queue_end(void *queue);

/* n words that depend on seed and place, sent to the array; and whether it holds them. */
void fill_by_upload(tide_pool *pool, void *array, size_t n, uint32_t seed);
void expect_words(tide_pool *pool, const void *array, size_t n, uint32_t seed);
uint32_t *words_made(size_t n, uint32_t seed);

/* What tests call beside the library. */
#define BED_ENTRIES(X)                                                                          \
    X(void *, clCreateProgramWithSource,                                                        \
      (void *, uint32_t, const char **, const size_t *, int32_t *))                             \
    X(int32_t, clBuildProgram, (void *, uint32_t, void *const *, const char *, void *, void *)) \
    X(int32_t, clReleaseProgram, (void *))                                                      \
    X(void *, clCreateKernel, (void *, const char *, int32_t *))                                \
    X(int32_t, clReleaseKernel, (void *))                                                       \
    X(int32_t, clSetKernelArg, (void *, uint32_t, size_t, const void *))                        \
    X(int32_t, clSetKernelArgSVMPointer, (void *, uint32_t, const void *))                      \
    X(int32_t, clEnqueueNDRangeKernel,                                                          \
      (void *, void *, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t,      \
       const void *, void *))                                                                   \
    X(tide_cl_event, clCreateUserEvent, (void *, int32_t *))                                    \
    X(int32_t, clSetUserEventStatus, (tide_cl_event, int32_t))
typedef struct bed_calls {
#define X(result, name, arguments) result(*name) arguments;
    BED_ENTRIES(X)
#undef X
} bed_calls;
extern bed_calls bed_cl;

/* A program of OpenCL C, and a launch of one of its kernels on a stream. */
typedef struct bed_argument {
    const void *value;
    size_t bytes; /* 0: `value` points to a pointer into the device's memory */
} bed_argument;
void *bed_program(const char *text);
void bed_launch(void *stream, void *program, const char *name, size_t threads,
                const bed_argument *arguments, uint32_t count);

/* Launches, on a stream, the test's own kernel: to[i] = from[i] + value, after `rounds` of idle work. */
void launch_add(void *stream, void *to, const void *from, size_t n, uint32_t value,
                uint32_t rounds);

enum { LONG = 300 }; /* rounds of idle work that take long enough to be seen in flight */

#endif
