/* SPDX-License-Identifier: MIT */
/* gpu_pages: what memory of cuda:0 costs that no pool keeps, whether what is free can be had in one piece,
 * what it costs to grow, whether it can be exported, and what a pair takes that PyTorch makes: lines of JSON, as the
 * benchmark writes them.
 * TIDEPOOL_CUDA_MEMORY=1: by the page; else from the driver's pool. Exits 1 where there is no device. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tidepool/adaptors.h>
#include <tidepool/device.h>
#include <tidepool/device_memory.h>
#include <tidepool/tidepool.h>
#include <tidepool/tune.h>

enum { ROUNDS = 31, PARTS = 60, PIECES = 48, PAIRS = 100000, MIXED = 256 };

static tide_device *device;
static const char *variant;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *name, double *times, int count, const char *unit)
{
    tide_device_memory memory = {0};
    (void)tide_device_memory_stats(device, &memory);
    qsort(times, (size_t)count, sizeof *times, compare);
    printf("{\"case\":\"%s\",\"variant\":\"%s\",\"ns_min\":%.1f,\"ns_median\":%.1f,"
           "\"unit\":\"%s\",\"bytes_reserved_peak\":%zu}\n",
           name, variant, times[0], times[count / 2], unit, memory.driver_reserved_peak);
}

/* A pool with one array of so many bytes. NULL: they cannot be had. */
static tide_pool *take(size_t bytes)
{
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.device = device});
    if (pool != NULL && tide_acquire(pool, uint8_t, bytes) != NULL)
        return pool;
    (void)tide_pool_destroy(pool);
    return NULL;
}

static void measure_pairs(size_t bytes)
{
    double times[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double before = now();
        (void)tide_pool_destroy(take(bytes));
        times[i] = now() - before;
    }
    report("device-memory", times, ROUNDS, "64 MiB or less, taken and given back");
}

static void measure_growth(size_t most)
{
    double times[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        tide_pool *pool = tide_pool_create(&(tide_pool_options){.device = device});
        uint8_t *x = tide_acquire(pool, uint8_t, most / 64);
        double before = now();
        for (size_t n = most / 32; n <= most && x != NULL; n *= 2)
            x = tide_grow(pool, uint8_t, x, n);
        (void)tide_pool_wait(pool);
        times[i] = now() - before;
        (void)tide_pool_destroy(pool);
        (void)tide_device_memory_trim(device, 0);
    }
    report("device-growth", times, ROUNDS, "doubled six times, waited for");
}

/* 80 % is taken in pieces, three of four are given back, and 60 % wanted at once. */
static void measure_fragments(size_t total)
{
    tide_pool *pieces[PIECES];
    for (int i = 0; i < PIECES; i++)
        pieces[i] = take(total / PARTS);
    for (int i = 0; i < PIECES; i++)
        if (i % 4 != 0)
            (void)tide_pool_destroy(pieces[i]);
    double before = now();
    tide_pool *large = take(total / PARTS * (PIECES / 4 * 3));
    double times[] = {now() - before};
    report("device-fragments", times, 1,
           large != NULL ? "60 % in one piece: there" : "60 % in one piece: refused");
    (void)tide_pool_destroy(large);
    for (int i = 0; i < PIECES; i += 4)
        (void)tide_pool_destroy(pieces[i]);
}

/* An allocation and a release, called from C. `held`: so many of several sizes are held, and the oldest goes
 * first. */
static double measure_pair(size_t held)
{
    static void *ring[MIXED];
    double before = now();
    for (size_t i = 0; i < PAIRS; i++) {
        size_t size = held == 1 ? 1 << 20 : 512 + (i * 7919 % 64) * 4096;
        if (ring[i % held] != NULL)
            tide_torch_free(ring[i % held], 0, 0, NULL);
        ring[i % held] = tide_torch_malloc((ssize_t)size, 0, NULL);
        if (ring[i % held] == NULL) {
            fprintf(stderr, "%s\n", tide_error_message());
            exit(EXIT_FAILURE);
        }
    }
    double after = now();
    for (size_t i = 0; i < held; i++) {
        tide_torch_free(ring[i], 0, 0, NULL);
        ring[i] = NULL;
    }
    return (after - before) / PAIRS;
}

static void measure_torch(const char *name, size_t held)
{
    double times[ROUNDS];
    (void)measure_pair(held);
    for (int i = 0; i < ROUNDS; i++)
        times[i] = measure_pair(held);
    report(name, times, ROUNDS, "pair");
}

typedef int retain_function(unsigned long long *handle, void *address);
typedef int export_function(void *out, unsigned long long handle, int type, unsigned long long);

/* By the driver itself, so that its own answers are told: 0 is success. */
static void export_memory(size_t bytes)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (driver == NULL) /* the fake by its own name */
        return;
    retain_function *retain = (retain_function *)dlsym(driver, "cuMemRetainAllocationHandle");
    export_function *export = (export_function *)dlsym(driver, "cuMemExportToShareableHandle");
    if (retain == NULL || export == NULL) /* the fake, which has what the library calls */
        return;
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.device = device});
    unsigned long long handle = 0;
    int file = -1, retained = retain(&handle, tide_acquire(pool, uint8_t, bytes));
    int exported = retained == 0 ? export(&file, handle, 1, 0) : -1;
    printf("{\"case\":\"device-export\",\"variant\":\"%s\",\"retained\":%d,\"exported\":%d,"
           "\"file\":%d}\n",
           variant, retained, exported, file);
    (void)tide_pool_destroy(pool);
}

int main(void)
{
    tide_device_information info;
    device = tide_device_open("cuda:0");
    if (device == NULL || tide_device_info(device, &info) != TIDE_OK) {
        fprintf(stderr, "%s\n", tide_error_message());
        return EXIT_FAILURE;
    }
    double by_page = 0;
    (void)tide_tune_get("cuda_memory", &by_page);
    variant = by_page == 1 ? "pages" : "pool";
    measure_pairs(info.bytes / 16 < (size_t)64 << 20 ? info.bytes / 16 : (size_t)64 << 20);
    measure_growth(info.bytes / 8);
    measure_fragments(info.bytes);
    export_memory((size_t)64 << 20);
    if (strcmp(variant, "pool") == 0) { /* what is so small is the pool's in either case */
        measure_torch("torch-pair-c", 1);
        measure_torch("torch-ring-c", MIXED);
    }
    return EXIT_SUCCESS; /* what PyTorch was given keeps the device */
}
