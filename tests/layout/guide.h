/* SPDX-License-Identifier: MIT */
/* Stands in for what the guide's pieces of code name without declaring it: layout/readme. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/device_bump.h>
#include <tidepool/device_ipc.h>
#include <tidepool/generic.h>
#include <tidepool/tidepool.h>

typedef void *guide_handle;
#define CU_STREAM_CAPTURE_MODE_GLOBAL 0
extern tide_pool *pool;
extern tide_device *gpu;
extern tide_buffers *all;
extern guide_handle queue, stream, graph, kernel;
extern tide_ipc_memory memory;
extern tide_generic *norm;
extern tide_array *array;
extern double *found, *image, *x;
extern float *input, *output;
extern size_t used, room, count, n, rows, columns, width;
extern int arguments;
extern tide_type *types;
extern void **args;
void filter(tide_pool *pool, double *line, const double *from, size_t width);
void launch(guide_handle queue, guide_handle kernel, float *y, const float *x, size_t n);
void step(tide_pool *pool, guide_handle stream);
int cuStreamBeginCapture(guide_handle stream, int mode);
int cuStreamEndCapture(guide_handle stream, guide_handle *graph);
void norm_f64(void *args);
void norm_any(void *args);
void norms_f64(void *const *args, size_t count);
#define STANDINS void
