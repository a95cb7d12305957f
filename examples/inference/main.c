/* SPDX-License-Identifier: MIT */
/* inference: a small network on the device it is told, compared with the host. */
#include "network.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OK = 0, DIFFERENT = 1, WRONG = 2, NO_DEVICE = 77 };

typedef struct options {
    const char *device;
    sizes shape;
    int steps;
    const char *trace; /* file for what is acquired and released, or NULL */
} options;

static const char usage[] =
    "inference [host | opencl:0 | cuda:0] [--steps N] [--batch N] [--width N] [--blocks N]\n"
    "          [--trace FILE]\n"
    "\n"
    "Runs a network of blocks (normalise, dense, gate) on the device, temporaries from a pool "
    "there,\n"
    "and compares the last result with the host's.\n"
    "With --trace each acquire and release is written to FILE, for tidepool-replay.\n"
    "Exit status: 0; 1 if results differ; 2 if something is wrong; 77 if there is no such "
    "device.\n";

static bool read_options(int count, char **arguments, options *o)
{
    const struct {
        const char *name;
        int *value;
    } known[] = {{"--steps", &o->steps},
                 {"--batch", &o->shape.batch},
                 {"--width", &o->shape.width},
                 {"--blocks", &o->shape.blocks}};
    for (int i = 1; i < count; i++) {
        size_t k = 0;
        while (k < 4 && strcmp(arguments[i], known[k].name) != 0)
            k++;
        if (k == 4 && arguments[i][0] != '-')
            o->device = arguments[i];
        else if (strcmp(arguments[i], "--trace") == 0 && i + 1 < count)
            o->trace = arguments[++i];
        else if (k == 4 || ++i == count || (*known[k].value = atoi(arguments[i])) < 1 ||
                 *known[k].value > 4096)
            return false;
    }
    return true;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- a run --------------------------------------------------------------------------------- */

typedef struct result {
    float *out;
    double median_ms;
    uint64_t allocations_first, allocations; /* of the device: in the first step, in all */
} result;

static uint64_t allocations(const tide_pool *pool)
{
    tide_pool_statistics stats;
    return tide_pool_stats(pool, &stats) == TIDE_OK ? stats.allocations : 0;
}

static bool run(network *n, int first, int steps, float *in, result *r)
{
    const size_t count = (size_t)n->shape.batch * (size_t)n->shape.width;
    double *times = malloc((size_t)steps * sizeof *times);
    bool ok = times != NULL;
    for (int i = 0; ok && i < steps; i++) {
        numbers(in, count, (uint32_t)(first + i) + 100, 1);
        double start = now();
        ok = network_step(n, in, r->out);
        times[i] = now() - start;
        r->allocations = allocations(n->pool);
        if (i == 0)
            r->allocations_first = r->allocations;
    }
    if (ok) {
        qsort(times, (size_t)steps, sizeof *times, by_value);
        r->median_ms = times[steps / 2];
    }
    free(times);
    return ok;
}

/* Each acquire of a disabled pool is one of a buffer, each rewind a release: the trace is that of
 * the network's temporaries. */
typedef struct traced {
    FILE *file;
    tide_buffers *buffers;
} traced;

static tide_pool *traced_pool(traced *t, const char *path, tide_pool_options made)
{
    t->file = fopen(path, "w");
    if (t->file == NULL) {
        fprintf(stderr, "inference: %s cannot be written\n", path);
        return NULL;
    }
    t->buffers = tide_buffers_create(
        made.device,
        &(tide_buffers_options){.stream = made.stream, .hook = tide_buffer_trace, .user = t->file});
    made.buffers = t->buffers;
    made.disabled = true;
    return t->buffers != NULL ? tide_pool_create(&made) : NULL;
}

static void traced_end(traced *t)
{
    tide_buffers_destroy(t->buffers);
    if (t->file != NULL)
        fclose(t->file);
}

/* Opens everything on the device, runs steps first to first + steps − 1, closes everything. */
static int run_on(const char *name, const options *o, int first, int steps, float *in, result *r,
                  bool shown)
{
    tide_device *device = tide_device_open(name);
    if (device == NULL) {
        fprintf(stderr, "inference: %s\n", tide_error_message());
        return NO_DEVICE;
    }
    traced t = {0};
    tide_pool_options made = {
        .name = "network", .device = device, .stream = tide_device_stream(device)};
    tide_pool *pool =
        shown && o->trace != NULL ? traced_pool(&t, o->trace, made) : tide_pool_create(&made);
    network n = {0};
    tide_device_information info;
    bool ok = pool != NULL && tide_device_info(device, &info) == TIDE_OK &&
              kernels_open(&n.kernels, name, device, pool) && network_open(&n, o->shape, pool) &&
              run(&n, first, steps, in, r);
    if (ok && shown) {
        printf("device   %s: %s\n", info.name, info.description);
        tide_pool_print(pool, stdout);
    }
    tide_pool_reset(pool);
    tide_pool_destroy(pool);
    traced_end(&t);
    tide_device_close(device);
    return ok ? OK : WRONG;
}

/* ---- the comparison ------------------------------------------------------------------------- */

static double largest_difference(const float *a, const float *b, size_t count)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++) {
        double d = fabs((double)a[i] - b[i]) / (1 + fabs((double)b[i]));
        largest = d > largest || isnan(d) ? d : largest;
    }
    return largest;
}

/* Sums run in another order on another device. */
static int compare(const options *o, float *in, const result *r)
{
    const size_t count = (size_t)o->shape.batch * (size_t)o->shape.width;
    result host = {.out = malloc(count * sizeof *host.out)};
    int status = host.out != NULL ? run_on("host", o, o->steps - 1, 1, in, &host, false) : WRONG;
    if (status == OK) {
        double difference = largest_difference(r->out, host.out, count);
        bool same = difference < 1e-4;
        printf("compared with the host: largest relative difference %.1e, %s\n", difference,
               same ? "the same" : "DIFFERENT");
        status = same ? OK : DIFFERENT;
    }
    free(host.out);
    return status;
}

int main(int count, char **arguments)
{
    options o = {.device = "host", .shape = {.batch = 64, .width = 256, .blocks = 4}, .steps = 50};
    if (!read_options(count, arguments, &o) || o.shape.blocks > BLOCKS_MAX) {
        fputs(usage, stderr);
        return WRONG;
    }
    const size_t elements = (size_t)o.shape.batch * (size_t)o.shape.width;
    float *in = malloc(elements * sizeof *in);
    result r = {.out = malloc(elements * sizeof *r.out)};
    int status =
        in != NULL && r.out != NULL ? run_on(o.device, &o, 0, o.steps, in, &r, true) : WRONG;
    if (status == OK) {
        printf("network  %d blocks, batch %d, width %d\n", o.shape.blocks, o.shape.batch,
               o.shape.width);
        printf("a step   %.3f ms, median of %d\n", r.median_ms, o.steps);
        printf("memory   allocated %" PRIu64 " times in the first step and before, %" PRIu64
               " times after it\n",
               r.allocations_first, r.allocations - r.allocations_first);
        status = compare(&o, in, &r);
    }
    free(in);
    free(r.out);
    return status;
}
