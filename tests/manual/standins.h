/* SPDX-License-Identifier: MIT */
/* Stands in for what the guide's pieces of code name without declaring it (tests/manual/code). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/device_bump.h>
#include <tidepool/generic.h>
#include <tidepool/tidepool.h>

typedef void *guide_handle, *cl_context, *cl_command_queue, *cl_device_id;
#define CL_CONTEXT_DEVICES            0
#define CU_STREAM_CAPTURE_MODE_GLOBAL 0
enum { VALUES = 12 };
static tide_pool *pool;
static tide_device *gpu;
static tide_buffers *all;
static guide_handle queue, stream, graph, kernel;
static tide_generic *norm;
static tide_array *array;
static double *found, image[VALUES], x[VALUES];
static float input[VALUES], output[VALUES];
static size_t used = 4, room = 4, count = VALUES, n = VALUES, rows = 3, columns = 4, width = 4;
static int arguments, called;

static void filter(tide_pool *of, double *line, const double *from, size_t values)
{
    if (of != NULL)
        memcpy(line, from, values * sizeof *line);
}

static void launch(guide_handle on, guide_handle what, float *y, const float *from, size_t values)
{
    (void)on, (void)what, (void)y, (void)from, (void)values;
}

static bool has(const char *device)
{
    return tide_device_open(device) != NULL;
}

static void step(tide_pool *of, guide_handle on)
{
    (void)of, (void)on;
}

static int cuStreamBeginCapture(guide_handle of, int mode)
{
    return of == NULL && mode != 0;
}

static int cuStreamEndCapture(guide_handle of, guide_handle *into)
{
    *into = of;
    return 0;
}

static int clGetContextInfo(cl_context of, int what, size_t bytes, void *into, size_t *size)
{
    memset(into, 0, bytes);
    return of == NULL && what != 0 && size != NULL;
}

static cl_command_queue clCreateCommandQueueWithProperties(cl_context of, cl_device_id on,
                                                           const void *properties, int *error)
{
    return of == NULL && on == NULL && properties == NULL && error == NULL ? of : NULL;
}

static void norm_f64(void *given)
{
    called += given != NULL;
}

static void norm_any(void *given)
{
    called += given != NULL;
}

static void begin(void)
{
    const int64_t shape[] = {3, 4};
    pool = tide_pool_local();
    norm = tide_generic_create("norm of the page");
    array = tide_array_acquire(pool, TIDE_F64, 2, shape);
    found = tide_acquire(pool, double, room);
    tide_generic_add(norm, TIDE_F64, norm_f64);
}
