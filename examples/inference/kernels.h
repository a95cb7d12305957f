/* SPDX-License-Identifier: MIT */
/* Kernels of layers.inc on some device. Tidepool says where arrays live and when they are used
 * again; compiling and launching is the program's own business, here in the device's own interface.
 */
#ifndef INFERENCE_KERNELS_H
#define INFERENCE_KERNELS_H

#include <tidepool/device.h>
#include <tidepool/tidepool.h>

typedef enum kernel_name { MOMENTS, NORMALISE, DENSE, GATE, KERNEL_COUNT } kernel_name;

extern const char *const kernel_names[KERNEL_COUNT];

/* One argument: an array of a pool, or a number. */
typedef struct argument {
    void *array; /* NULL: the number counts */
    int number;
} argument;

#define ARRAY(pointer) ((argument){.array = (pointer)})
#define NUMBER(value)  ((argument){.number = (value)})

enum { ARGUMENTS_MAX = 8, GROUP = 64 };

typedef struct kernels {
    const struct kernel_methods *methods;
    void *of[KERNEL_COUNT]; /* the device's own handles */
    tide_pool *pool;
    void *stream;
} kernels;

/* What differs between devices. Both say on stderr why they fail. */
typedef struct kernel_methods {
    const char *device; /* how its names begin */
    bool (*build)(kernels *k, const tide_device *device, const char *text);
    bool (*launch)(kernels *k, kernel_name name, size_t threads, const argument *arguments,
                   size_t count);
} kernel_methods;

extern const kernel_methods host_methods, opencl_methods, cuda_methods;

/* Builds them for the device, for arrays of the pool. */
bool kernels_open(kernels *k, const char *device_name, const tide_device *device, tide_pool *pool);

/* Queues so many threads on the pool's stream. */
#define LAUNCH(k, name, threads, ...)                                        \
    ((k)->methods->launch((k), (name), (threads), (argument[]){__VA_ARGS__}, \
                          sizeof((argument[]){__VA_ARGS__}) / sizeof(argument)))

#endif
