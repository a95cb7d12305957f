/* SPDX-License-Identifier: MIT */
/* Kernels of layers.inc on some device. Tidepool says where arrays live and when they are used
 * again; compiling and launching is the program's own business, here in the device's own interface.
 */
#ifndef INFERENCE_KERNELS_H
#define INFERENCE_KERNELS_H

#include <tidepool/device.h>
#include <tidepool/tidepool.h>

/* The last one is not there on a device whose kernels cannot allocate (tidepool/device_bump.h). */
typedef enum kernel_name {
    MOMENTS,
    NORMALISE,
    SPREAD,
    MULTIPLY,
    GATE,
    LISTED,
    KERNEL_COUNT
} kernel_name;

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
    const char *library; /* that multiplies; NULL: none was found, the kernel does */
    void *handle;        /* the library's own */
} kernels;

/* What differs between devices. Both say on stderr why they fail. */
typedef struct kernel_methods {
    const char *device; /* how its names begin */
    bool (*build)(kernels *k, const tide_device *device, const char *text);
    bool (*launch)(const kernels *k, kernel_name name, size_t threads, const argument *arguments,
                   size_t count);
    /* The name of a library of matrix products, loaded if it is there; NULL: none is. Its product
     * is queued on the stream: out += in × weights, rows × width times width × width. */
    const char *(*open_library)(kernels *k);
    bool (*move_library)(kernels *k); /* to k->stream; NULL: it is told at each product */
    bool (*multiply)(const kernels *k, float *out, float *in, float *weights, int rows, int width);
    /* The driver's memory without a pool, and its end once the work on the stream is over. NULL,
     * both: a disabled pool shows what that costs. */
    void *(*take)(size_t bytes);
    bool (*give)(const kernels *k, void *array);
    /* One more stream of the device, and its end. NULL, both: the device has no streams. */
    void *(*open_stream)(const tide_device *device);
    void (*close_stream)(void *stream);
    /* What is launched between these two is recorded into a graph, and run whenever that is
     * launched. NULL, all: the device has no graphs. */
    bool (*record)(const kernels *k);
    void *(*recorded)(const kernels *k);
    bool (*replay)(const kernels *k, void *graph);
    void (*forget)(void *graph);
} kernel_methods;

extern const kernel_methods host_methods, opencl_methods, cuda_methods;

/* Of the device with this name; NULL with a word on stderr. */
const kernel_methods *kernels_for(const char *device_name);

/* Has the library, if there is one, work on another stream. False with a word on stderr. */
bool kernels_move(kernels *k, tide_pool *pool, void *stream);

/* Builds them for the device, for arrays of the pool; with `libraries`, products are a library's
 * where there is one. A copy with another pool of the device and the stream is one for that pool's
 * arrays. */
bool kernels_open(kernels *k, const char *device_name, const tide_device *device, tide_pool *pool,
                  bool libraries);

/* out += in × weights. */
bool kernels_multiply(const kernels *k, float *out, float *in, float *weights, int rows, int width);

/* Queues so many threads on the pool's stream. */
#define LAUNCH(k, name, threads, ...)                                        \
    ((k)->methods->launch((k), (name), (threads), (argument[]){__VA_ARGS__}, \
                          sizeof((argument[]){__VA_ARGS__}) / sizeof(argument)))

#endif
