/* SPDX-License-Identifier: MIT */
/* inference: a small network on the device it is told, compared with the host. */
#include "network.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tidepool/buffers.h>
#include <tidepool/device.h>

enum { OK = 0, DIFFERENT = 1, WRONG = 2, NO_DEVICE = 77 };

typedef struct options {
    const char *device;
    sizes shape;
    int steps, streams;
    const char *trace; /* file for what is acquired and released, or NULL */
    bool no_library;
} options;

static const char usage[] =
    "inference [host | opencl:0 | cuda:0] [--steps N] [--batch N] [--width N] [--blocks N]\n"
    "          [--streams N] [--trace FILE] [--no-library]\n"
    "\n"
    "Runs a network of blocks (normalise, dense, gate) on the device, temporaries from a pool "
    "there,\n"
    "and compares the last result with the host's.\n"
    "The rows of the batch are split among N streams of the device (2). Steps alternate with "
    "those\n"
    "of a network that is replayed from a captured graph, where the device has graphs, and of\n"
    "others whose arrays come from the device's own allocators, one by one; a table compares "
    "them.\n"
    "Matrix products are a library's (OpenBLAS, CLBlast, cuBLAS), or with --no-library the\n"
    "example's own kernel's.\n"
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
                 {"--streams", &o->streams},
                 {"--blocks", &o->shape.blocks}};
    enum { KNOWN = sizeof known / sizeof *known };
    for (int i = 1; i < count; i++) {
        size_t k = 0;
        while (k < KNOWN && strcmp(arguments[i], known[k].name) != 0)
            k++;
        if (k == KNOWN && arguments[i][0] != '-')
            o->device = arguments[i];
        else if (strcmp(arguments[i], "--no-library") == 0)
            o->no_library = true;
        else if (strcmp(arguments[i], "--trace") == 0 && i + 1 < count)
            o->trace = arguments[++i];
        else if (k == KNOWN || ++i == count || (*known[k].value = atoi(arguments[i])) < 1 ||
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

/* Sums run in another order in a library, and on another device. */
static const double difference_max = 1e-4;

static double largest_difference(const float *a, const float *b, size_t count)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++) {
        double d = fabs((double)a[i] - b[i]) / (1 + fabs((double)b[i]));
        largest = d > largest || isnan(d) ? d : largest;
    }
    return largest;
}

/* ---- a run --------------------------------------------------------------------------------- */

typedef struct result {
    float *out;
    double median_ms;
    uint64_t allocations_first, allocations; /* of the device: in the first step, in all */
    size_t bytes_peak;
} result;

/* These run side by side: the network on pools, the same replayed from a graph, the same on the
 * device's own allocator, and on its synchronous one where it has two. */
enum { POOL, GRAPH, DRIVER, ALONE, CONTENDERS, STREAMS_MAX = 8 };

/* The streams that all use, in turn. */
typedef struct lanes {
    const kernel_methods *methods;
    int count;
    void *streams[STREAMS_MAX];
} lanes;

typedef struct contender {
    const lanes *lanes; /* NULL: takes no part */
    tide_pool *pools[STREAMS_MAX];
    network networks[STREAMS_MAX];
    tide_buffers *buffers; /* for batches; NULL: arrays of the pools */
    result result;
    double *times;
} contender;

static bool complain(const char *why)
{
    fprintf(stderr, "inference: %s\n", why);
    return false;
}

/* What it has taken from the device: all of its pools, its buffers, and without a pool. */
static bool add_up(const contender *c, uint64_t *allocations, size_t *peak)
{
    tide_pool_statistics pool;
    tide_buffers_statistics buffers = {0};
    *allocations = *peak = 0;
    for (int i = 0; i < c->lanes->count; i++) {
        if (tide_pool_stats(c->pools[i], &pool) != TIDE_OK)
            return complain(tide_error_message());
        *allocations += pool.allocations + c->networks[i].taken;
        *peak += pool.bytes_peak + c->networks[i].bytes_peak;
    }
    if (c->buffers != NULL && tide_buffers_stats(c->buffers, &buffers, NULL, 0) != TIDE_OK)
        return complain(tide_error_message());
    *allocations += buffers.misses;
    *peak += buffers.bytes_high;
    return true;
}

/* All streams get their work before anybody waits for the first. */
static bool step(contender *c, int i, const float *in)
{
    const float *from = in;
    float *to = c->result.out;
    double start = now();
    for (int l = 0; l < c->lanes->count; l++) {
        const sizes *shape = &c->networks[l].shape;
        if (!network_begin(&c->networks[l], from))
            return false;
        from += (size_t)shape->batch * (size_t)shape->width;
    }
    for (int l = 0; l < c->lanes->count; l++) {
        const sizes *shape = &c->networks[l].shape;
        if (!network_finish(&c->networks[l], to))
            return false;
        to += (size_t)shape->batch * (size_t)shape->width;
    }
    c->times[i] = now() - start;
    if (!add_up(c, &c->result.allocations, &c->result.bytes_peak))
        return false;
    if (i == (c->networks->graphs ? 1 : 0)) /* a graph's is made in the second */
        c->result.allocations_first = c->result.allocations;
    return true;
}

/* Step by step in turn, so that what disturbs one disturbs the others. */
static bool run(contender *all, const options *o, int first, int steps, float *in)
{
    for (int i = 0; i < steps; i++) {
        numbers(in, (size_t)o->shape.batch * (size_t)o->shape.width, (uint32_t)(first + i) + 100,
                1);
        for (int c = 0; c < CONTENDERS; c++) {
            contender *next = &all[(i + c) % CONTENDERS];
            if (next->lanes != NULL && !step(next, i, in))
                return false;
        }
    }
    for (int c = 0; c < CONTENDERS; c++) {
        if (all[c].lanes == NULL)
            continue;
        qsort(all[c].times, (size_t)steps, sizeof *all[c].times, by_value);
        all[c].result.median_ms = all[c].times[steps / 2];
    }
    return true;
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
    tide_pool *pool = t->buffers != NULL ? tide_pool_create(&made) : NULL;
    if (pool == NULL)
        (void)complain(tide_error_message());
    return pool;
}

static bool traced_end(traced *t)
{
    bool good = tide_buffers_destroy(t->buffers) == TIDE_OK || complain(tide_error_message());
    if (t->file == NULL)
        return good;
    bool whole = ferror(t->file) == 0;
    whole = fclose(t->file) == 0 && whole;
    return (whole || complain("the trace cannot be written")) && good;
}

static const char *label(int number, const char *device)
{
    if (number == POOL || number == GRAPH)
        return number == POOL ? "Tidepool" : "Tidepool, a captured graph";
    if (number == ALONE)
        return "cuMemAlloc and cuMemFree, array by array";
    return strncmp(device, "cuda:", 5) == 0     ? "the driver's async pool, array by array"
           : strncmp(device, "opencl:", 7) == 0 ? "the driver's buffers, array by array"
                                                : "malloc, array by array";
}

static void show_table(const contender *all, const char *device, int steps)
{
    printf("\n%-42s %12s %20s %14s\n", "memory from", "a step, ms", "allocations a step",
           "most, KiB");
    for (int c = 0; c < CONTENDERS; c++) {
        const result *r = &all[c].result;
        const int later = steps - (c == GRAPH ? 2 : 1);
        if (all[c].lanes == NULL)
            continue;
        printf("%-42s %12.3f %20.1f %14.1f\n", label(c, device), r->median_ms,
               later > 0 ? (double)(r->allocations - r->allocations_first) / later : 0.0,
               (double)r->bytes_peak / 1024);
    }
}

/* ---- opening and closing -------------------------------------------------------------------- */

static bool open_lanes(lanes *l, const tide_device *device, const char *name, int wanted)
{
    *l = (lanes){.methods = kernels_for(name), .count = 1};
    if (l->methods == NULL || l->methods->open_stream == NULL)
        return l->methods != NULL;
    for (l->count = 0; l->count < wanted; l->count++)
        if ((l->streams[l->count] = l->methods->open_stream(device)) == NULL)
            return false;
    return true;
}

static void close_lanes(const lanes *l)
{
    for (int i = 0; i < l->count; i++)
        if (l->streams[i] != NULL)
            l->methods->close_stream(l->streams[i]);
}

/* The first stream's network has the weights; the others begin when these are there. */
static bool open_networks(contender *c, const options *o, const kernels *built)
{
    const int count = c->lanes->count;
    for (int i = 0; i < count; i++) {
        network *n = &c->networks[i];
        n->kernels = *built;
        n->buffers = c->buffers;
        if (!kernels_move(&n->kernels, c->pools[i], c->lanes->streams[i]))
            return false;
        if (i > 0)
            network_join(n, c->networks, c->pools[i]);
        else if (!network_open(n, o->shape, c->pools[0]) || tide_pool_wait(c->pools[0]) != TIDE_OK)
            return complain(tide_error_message());
    }
    for (int i = 0; i < count; i++)
        c->networks[i].shape.batch = o->shape.batch / count + (i < o->shape.batch % count);
    return true;
}

static bool open_contender(contender *c, const lanes *l, const options *o, tide_pool_options made,
                           int steps)
{
    const size_t count = (size_t)o->shape.batch * (size_t)o->shape.width;
    c->lanes = l;
    for (int i = 0; i < l->count; i++) {
        made.stream = l->streams[i];
        if (c->pools[i] == NULL && (c->pools[i] = tide_pool_create(&made)) == NULL)
            return complain(tide_error_message());
    }
    if (!made.disabled && (c->buffers = tide_buffers_create(made.device, NULL)) == NULL)
        return complain(tide_error_message());
    c->times = malloc((size_t)steps * sizeof *c->times);
    c->result.out = malloc(count * sizeof *c->result.out);
    return (c->times != NULL && c->result.out != NULL) || complain("no memory for results");
}

static void close_contender(contender *c)
{
    for (int i = 0; i < STREAMS_MAX; i++)
        network_close(&c->networks[i]);
    for (int i = 0; i < STREAMS_MAX; i++)
        if (c->pools[i] != NULL) {
            tide_pool_reset(c->pools[i]);
            tide_pool_destroy(c->pools[i]);
        }
    tide_buffers_destroy(c->buffers);
    free(c->times);
    free(c->result.out);
}

/* ---- a whole run ---------------------------------------------------------------------------- */

/* Again the last step, and lists that kernels have made of what comes out, compared with the same
 * made here. */
static bool check_lists(contender *c, const options *o, const float *in, const float *out)
{
    const int rows = c->networks->shape.batch, width = o->shape.width;
    int *found = calloc(2 * (size_t)rows, sizeof *found), wrong = 0, all = 0;
    if (c->networks->kernels.of[LISTED] == NULL) {
        free(found);
        printf("lists    none: this device's kernels cannot allocate\n");
        return true;
    }
    c->networks->found = found;
    if (found == NULL || !network_begin(c->networks, in) ||
        !network_finish(c->networks, c->result.out)) {
        free(found);
        return complain("the lists were not made");
    }
    for (int row = 0; row < rows; row++) {
        int count = 0, sum = 0;
        for (int k = 0; k < width; k++)
            if (out[row * width + k] > 1) {
                count++;
                sum += k;
            }
        wrong += found[2 * row] != count || found[2 * row + 1] != sum;
        all += count;
    }
    free(found);
    printf("lists    %d columns of %d rows are above 1, listed in memory that kernels allocated\n",
           all, rows);
    return wrong == 0 || complain("the lists are not the host's");
}

static bool same_results(const contender *all, const float *out, size_t count)
{
    for (int c = 0; c < CONTENDERS; c++)
        if (all[c].lanes != NULL &&
            !(largest_difference(out, all[c].result.out, count) <= difference_max))
            return complain("the networks' results differ");
    return true;
}

static void show(const contender *all, const options *o, const kernels *built,
                 const tide_device_information *info, int steps)
{
    printf("device   %s: %s\n", info->name, info->description);
    printf("products by %s\n",
           built->library != NULL ? built->library : "the example's own kernel, no library");
    tide_pool_print(all[POOL].pools[0], stdout);
    printf("network  %d blocks, batch %d on %d stream%s, width %d; median of %d steps\n",
           o->shape.blocks, o->shape.batch, all[POOL].lanes->count,
           all[POOL].lanes->count == 1 ? "" : "s", o->shape.width, steps);
    show_table(all, info->name, steps);
}

static bool takes_part(int which, const kernel_methods *methods)
{
    return which == GRAPH ? methods->record != NULL : which == ALONE ? methods->take != NULL : true;
}

/* Opens all on the device, runs steps first to first + steps − 1, and copies what came out last. */
static bool run_all(contender *all, const lanes *l, const options *o, int first, int steps,
                    float *in, float *out, tide_pool_options made, bool shown)
{
    const size_t count = (size_t)o->shape.batch * (size_t)o->shape.width;
    tide_device_information info;
    kernels built;
    if (tide_device_info(made.device, &info) != TIDE_OK)
        return complain(tide_error_message());
    for (int c = 0; c < CONTENDERS; c++) {
        tide_pool_options of = made;
        of.disabled = c >= DRIVER || o->trace != NULL;
        if ((c == POOL || (shown && o->trace == NULL && takes_part(c, l->methods))) &&
            !open_contender(&all[c], l, o, of, steps))
            return false;
    }
    if (!kernels_open(&built, info.name, made.device, all[POOL].pools[0], !o->no_library))
        return false;
    for (int c = 0; c < CONTENDERS; c++) {
        if (all[c].lanes != NULL && !open_networks(&all[c], o, &built))
            return false;
        for (int i = 0; i < STREAMS_MAX; i++) {
            all[c].networks[i].graphs = c == GRAPH;
            all[c].networks[i].alone = c == ALONE;
        }
    }
    if (!run(all, o, first, steps, in))
        return false;
    memcpy(out, all[POOL].result.out, count * sizeof *out);
    if (!same_results(all, out, count))
        return false;
    if (shown)
        show(all, o, &built, &info, steps);
    return !shown || o->trace != NULL || check_lists(&all[POOL], o, in, out);
}

static int run_on(const char *name, const options *o, int first, int steps, float *in, float *out,
                  bool shown)
{
    tide_device *device = tide_device_open(name);
    if (device == NULL) {
        fprintf(stderr, "inference: %s\n", tide_error_message());
        return NO_DEVICE;
    }
    traced t = {0};
    lanes l;
    contender all[CONTENDERS] = {0};
    const int wanted = o->trace != NULL              ? 1
                       : o->streams < o->shape.batch ? o->streams
                                                     : o->shape.batch;
    bool ok = open_lanes(&l, device, name, wanted);
    tide_pool_options made = {.name = "network", .device = device, .stream = l.streams[0]};
    if (ok && shown && o->trace != NULL) {
        all[POOL].pools[0] = traced_pool(&t, o->trace, made);
        ok = all[POOL].pools[0] != NULL;
    }
    ok = ok && run_all(all, &l, o, first, steps, in, out, made, shown);
    for (int c = 0; c < CONTENDERS; c++)
        close_contender(&all[c]);
    ok = traced_end(&t) && ok;
    close_lanes(&l);
    tide_device_close(device);
    return ok ? OK : WRONG;
}

/* ---- the comparison ------------------------------------------------------------------------- */

/* The host's own kernels say what is right. */
static int compare(const options *o, float *in, const float *out, float *host)
{
    const size_t count = (size_t)o->shape.batch * (size_t)o->shape.width;
    options plain = *o;
    plain.no_library = true;
    int status = run_on("host", &plain, o->steps - 1, 1, in, host, false);
    if (status == OK) {
        double difference = largest_difference(out, host, count);
        bool same = difference < difference_max;
        printf("\ncompared with the host: largest relative difference %.1e, %s\n", difference,
               same ? "the same" : "DIFFERENT");
        status = same ? OK : DIFFERENT;
    }
    return status;
}

int main(int count, char **arguments)
{
    options o = {.device = "host",
                 .shape = {.batch = 64, .width = 256, .blocks = 4},
                 .steps = 50,
                 .streams = 2};
    if (!read_options(count, arguments, &o) || o.shape.blocks > BLOCKS_MAX ||
        o.streams > STREAMS_MAX) {
        fprintf(stderr, "inference: these arguments are not understood\n%s", usage);
        return WRONG;
    }
    const size_t elements = (size_t)o.shape.batch * (size_t)o.shape.width;
    float *arrays = calloc(3 * elements, sizeof *arrays);
    if (arrays == NULL) {
        (void)complain("no memory for what goes in and comes out");
        return WRONG;
    }
    float *in = arrays, *out = in + elements, *host = out + elements;
    int status = run_on(o.device, &o, 0, o.steps, in, out, true);
    if (status == OK)
        status = compare(&o, in, out, host);
    free(arrays);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == OK) {
        (void)complain("the output cannot be written");
        status = WRONG;
    }
    return status;
}
