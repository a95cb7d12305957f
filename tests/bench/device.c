/* SPDX-License-Identifier: MIT */
/* device-…: an OpenCL device. Everything is done through the library's own table of entry points,
 * so that both sides call the driver in the same way; every operation that queues work waits for
 * it.
 *
 *   buffers   clCreateBuffer, its use, clReleaseMemObject, for each array
 *   wide      the same, and fills of 64 bytes at a time, which is what the library does on a CPU
 *   shared    as buffers, with clSVMAlloc and clSVMFree
 *   kept      the arrays were made once, only their use is left: what no allocator can beat
 *   tide      a frame or a loop scope of a pool on the device
 *   cache     a buffer from tide_buffers, released on the queue
 *   declared  the same with a second queue declared: each rewind orders the two */
#include "cases.h"

#include "runtime/base/settings.h"
#include "runtime/device/opencl/opencl.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/tidepool.h>
#include <tidepool/upkeep.h>
#include <unistd.h>

enum { ARRAYS_MAX = 32, MIB = 1 << 20, PAGE = 4096 };

typedef struct device_state {
    tide_device *device;
    tide_opencl_device *cl;
    tide_cl_queue queue, other;
    tide_pool *pool;
    tide_buffers *cache; /* or NULL */
    size_t bytes, count;
    void *kept[ARRAYS_MAX];
    uint64_t allocations; /* of the pool, after the last proof */
    bool driver;          /* the variant allocates by itself     */
    bool declares;
} device_state;

/* ---- begin and end -------------------------------------------------------------------------- */

static const char *missing = "no OpenCL device";

static int probe(void)
{
    return tide_device_open("opencl:0") != NULL ? 0 : 1;
}

/* Only in a copy: a driver that has been used does not survive the forks that are to come. */
static bool is_there(void)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0)
        _exit(probe());
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static device_state *make(const bench_case *job, size_t bytes, size_t count)
{
    bool buffers = strstr(job->name, "sub") != NULL;
    tide_setting_set(TIDE_SETTING_opencl_memory, buffers ? TIDE_OPENCL_BUFFERS : TIDE_OPENCL_BEST);
    device_state *s = bench_state_make(sizeof *s);
    s->device = tide_device_open("opencl:0");
    if (s->device == NULL) {
        bench_complain("%s", tide_error_message());
        return NULL;
    }
    s->cl = tide_opencl_of(s->device);
    s->queue = s->cl->queue;
    s->bytes = bytes;
    s->count = count;
    s->pool = tide_pool_create(&(tide_pool_options){.device = s->device});
    if (s->pool == NULL)
        bench_die("%s", tide_error_message());
    return s;
}

static void *setup(const bench_case *job)
{
    if (strncmp(job->name, "device-fill", 11) == 0)
        return make(job, MIB, 4);
    return strcmp(job->name, "device-scope32") != 0 ? make(job, MIB, 1) : make(job, PAGE, 32);
}

static void *driver_setup(const bench_case *job)
{
    device_state *s = setup(job);
    if (s != NULL)
        s->driver = true;
    return s;
}

static void *kept_setup(const bench_case *job)
{
    device_state *s = setup(job);
    for (size_t i = 0; s != NULL && i < s->count; i++)
        s->kept[i] = tide_acquire_type(s->pool, TIDE_U8, s->bytes);
    return s;
}

static void *cache_setup(const bench_case *job)
{
    device_state *s = setup(job);
    if (s != NULL)
        s->cache = tide_buffers_create(s->device, NULL);
    return s;
}

static void *declared_setup(const bench_case *job)
{
    device_state *s = setup(job);
    int32_t error = 0;
    if (s == NULL)
        return NULL;
    s->declares = true;
    s->other =
        tide_opencl.clCreateCommandQueueWithProperties(s->cl->context, s->cl->device, NULL, &error);
    return s;
}

static uint64_t allocations(const device_state *s)
{
    tide_pool_statistics stats;
    return tide_pool_stats(s->pool, &stats) == TIDE_OK ? stats.allocations : 0;
}

/* After the warm-up pools allocate nothing. */
static bool verify(void *state, uint64_t operations)
{
    device_state *s = state;
    (void)operations;
    return s->driver || (tide_pool_check(s->pool) == TIDE_OK && allocations(s) == s->allocations);
}

static void teardown(void *state)
{
    device_state *s = state;
    if (s->other != NULL)
        tide_opencl.clReleaseCommandQueue(s->other);
    tide_pool_reset(s->pool);
    tide_pool_destroy(s->pool);
    tide_buffers_destroy(s->cache);
    tide_device_close(s->device);
    bench_state_free(s, sizeof *s);
}

static void must(bool good, const char *what)
{
    if (!good)
        bench_die("device: %s failed", what);
}

/* ---- the driver's way ------------------------------------------------------------------------ */

enum { WORDS = 16 };

static const uint32_t pattern = 0x01020304;
static uint32_t wide_pattern[WORDS];

static void finish(const device_state *s)
{
    must(tide_opencl.clFinish(s->queue) == 0, "clFinish");
}

static void buffers_with(device_state *s, bool fills, const void *what, size_t bytes)
{
    tide_cl_mem mems[ARRAYS_MAX];
    int32_t error = 0;
    for (size_t i = 0; i < s->count; i++) {
        mems[i] = tide_opencl.clCreateBuffer(s->cl->context, TIDE_CL_MEM_READ_WRITE, s->bytes, NULL,
                                             &error);
        must(error == 0, "clCreateBuffer");
        if (fills)
            must(tide_opencl.clEnqueueFillBuffer(s->queue, mems[i], what, bytes, 0, s->bytes, 0,
                                                 NULL, NULL) == 0,
                 "clEnqueueFillBuffer");
    }
    if (fills)
        finish(s);
    for (size_t i = 0; i < s->count; i++)
        must(tide_opencl.clReleaseMemObject(mems[i]) == 0, "clReleaseMemObject");
}

static void buffers_once(device_state *s, bool fills)
{
    buffers_with(s, fills, &pattern, sizeof pattern);
}

static void wide_once(device_state *s, bool fills)
{
    for (int i = 0; i < WORDS; i++)
        wide_pattern[i] = pattern;
    buffers_with(s, fills, wide_pattern, sizeof wide_pattern);
}

static void shared_once(device_state *s, bool fills)
{
    void *data[ARRAYS_MAX];
    for (size_t i = 0; i < s->count; i++) {
        data[i] = tide_opencl.clSVMAlloc(s->cl->context, TIDE_CL_MEM_READ_WRITE, s->bytes, 0);
        must(data[i] != NULL, "clSVMAlloc");
        if (fills)
            must(tide_opencl.clEnqueueSVMMemFill(s->queue, data[i], &pattern, 4, s->bytes, 0, NULL,
                                                 NULL) == 0,
                 "clEnqueueSVMMemFill");
    }
    if (fills)
        finish(s);
    for (size_t i = 0; i < s->count; i++)
        tide_opencl.clSVMFree(s->cl->context, data[i]);
}

static void kept_once(device_state *s, bool fills)
{
    for (size_t i = 0; fills && i < s->count; i++)
        must(s->device->methods->fill(s->device, NULL, s->kept[i], &pattern, 4, s->bytes / 4) ==
                 TIDE_OK,
             "fill");
    if (fills)
        finish(s);
}

/* ---- the pool's way -------------------------------------------------------------------------- */

static void tide_fill_once(device_state *s)
{
    size_t n = s->bytes / 4;
    TIDE_FRAME(s->pool, (uint32_t, a, n), (uint32_t, b, n), (uint32_t, c, n), (uint32_t, d, n));
    must(d != NULL, "a frame");
    void *value = (void *)(uintptr_t)&pattern;
    tide_part parts[] = {{a, value, TIDE_U32, n},
                         {b, value, TIDE_U32, n},
                         {c, value, TIDE_U32, n},
                         {d, value, TIDE_U32, n}};
    must(tide_fill_frame(s->pool, parts, 4) == TIDE_OK, "tide_fill_frame");
    finish(s);
}

static uint64_t tide_fill_run(void *state, uint64_t operations)
{
    for (uint64_t i = 0; i < operations; i++)
        tide_fill_once(state);
    return operations;
}

/* Arrays in a scope per iteration; nothing is queued. */
static uint64_t tide_run(void *state, uint64_t operations)
{
    device_state *s = state;
    uint64_t done = 0;
    TIDE_LOOP(s->pool, i, operations)
    {
        for (size_t k = 0; k < s->count; k++) {
            void *data = tide_acquire(s->pool, uint8_t, s->bytes);
            must(data != NULL, "acquire");
            __asm__ volatile("" : : "r"(data) : "memory");
        }
        done++;
    }
    return done;
}

static uint64_t cache_run(void *state, uint64_t operations)
{
    device_state *s = state;
    for (uint64_t i = 0; i < operations; i++) {
        tide_buffer b = tide_buffer_acquire(s->cache, s->bytes);
        must(tide_buffer_pointer(s->cache, b) != NULL, "tide_buffer_acquire");
        must(tide_buffer_release(s->cache, b) == TIDE_OK, "tide_buffer_release");
    }
    return operations;
}

static uint64_t declared_run(void *state, uint64_t operations)
{
    device_state *s = state;
    tide_mark mark = tide_checkpoint(s->pool);
    must(tide_pool_use_on(s->pool, s->other) == TIDE_OK, "tide_pool_use_on");
    uint64_t done = tide_run(state, operations);
    must(tide_rewind(s->pool, mark) == TIDE_OK, "tide_rewind");
    must(tide_opencl.clFinish(s->other) == 0, "clFinish");
    finish(s);
    return done;
}

#define RUN(name, fills)                                             \
    static uint64_t name##_##fills(void *state, uint64_t operations) \
    {                                                                \
        for (uint64_t i = 0; i < operations; i++)                    \
            name##_once(state, fills);                               \
        return operations;                                           \
    }
RUN(buffers, true)
RUN(buffers, false)
RUN(wide, true)
RUN(shared, true)
RUN(shared, false)
RUN(kept, true)

/* ---- proofs -----------------------------------------------------------------------------------
 */

static void warm(device_state *s, uint64_t (*run)(void *, uint64_t), uint64_t operations)
{
    must(run(s, operations < 2 ? 2 : operations) >= 2, "the warm-up");
    s->allocations = allocations(s);
}

/* What a frame of the pool was filled with is there when it is asked for again. */
static void prove_fill(void *state, uint64_t operations)
{
    device_state *s = state;
    warm(s, tide_fill_run, operations);
    tide_mark mark = tide_checkpoint(s->pool);
    for (int k = 0; k < 4; k++) {
        uint32_t got = 0, *array = tide_acquire(s->pool, uint32_t, s->bytes / 4);
        must(tide_download(s->pool, &got, array + s->bytes / 4 - 1, 4) == TIDE_OK, "download");
        must(got == pattern, "the proof that arrays are filled");
    }
    must(tide_rewind(s->pool, mark) == TIDE_OK, "tide_rewind");
    s->allocations = allocations(s);
}

#define PROVE(run)                                            \
    static void prove_##run(void *state, uint64_t operations) \
    {                                                         \
        warm(state, run, operations);                         \
    }
PROVE(buffers_true)
PROVE(buffers_false)
PROVE(wide_true)
PROVE(shared_true)
PROVE(shared_false)
PROVE(kept_true)
PROVE(tide_run)
PROVE(declared_run)
PROVE(cache_run)

/* Page faults of one operation: what memory costs that the C library gives back in between. */
static size_t faults_of(uint64_t (*run)(void *, uint64_t), void *state, bench_figure *out,
                        size_t room)
{
    enum { OPERATIONS = 8 };
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    must(room > 0 && run(state, OPERATIONS) == OPERATIONS, "counting faults");
    getrusage(RUSAGE_SELF, &after);
    out[0] = (bench_figure){"faults", (double)(after.ru_minflt - before.ru_minflt) / OPERATIONS};
    return 1;
}

#define VARIANT(id, text, begin, prove, run)                                                     \
    static size_t id##_figures(void *state, uint64_t operations, bench_figure *out, size_t room) \
    {                                                                                            \
        (void)operations;                                                                        \
        return faults_of(run, state, out, room);                                                 \
    }                                                                                            \
    static bench_variant id = {text, NULL, begin, prove, run, verify, teardown, id##_figures};
VARIANT(fill_buffers, "buffers", driver_setup, prove_buffers_true, buffers_true)
VARIANT(fill_wide, "wide", driver_setup, prove_wide_true, wide_true)
VARIANT(fill_shared, "shared", driver_setup, prove_shared_true, shared_true)
VARIANT(fill_kept, "kept", kept_setup, prove_kept_true, kept_true)
VARIANT(fill_tide, "tide", setup, prove_fill, tide_fill_run)
VARIANT(scope_buffers, "buffers", driver_setup, prove_buffers_false, buffers_false)
VARIANT(scope_shared, "shared", driver_setup, prove_shared_false, shared_false)
VARIANT(scope_tide, "tide", setup, prove_tide_run, tide_run)
VARIANT(buffer_cache, "cache", cache_setup, prove_cache_run, cache_run)
VARIANT(scope_declared, "declared", declared_setup, prove_declared_run, declared_run)

const bench_variant *const bench_device_fill_variants[] = {&fill_buffers, &fill_wide, &fill_shared,
                                                           &fill_kept,    &fill_tide, NULL};
const bench_variant *const bench_device_acquire_variants[] = {&scope_buffers, &scope_shared,
                                                              &scope_tide, NULL};
const bench_variant *const bench_device_buffers_variants[] = {&scope_buffers, &scope_shared,
                                                              &buffer_cache, NULL};
const bench_variant *const bench_device_scope_variants[] = {&scope_buffers, &scope_shared,
                                                            &scope_tide, &scope_declared, NULL};

void bench_device_prepare(void)
{
    bench_variant *const all[] = {&fill_buffers,   &fill_wide,     &fill_shared,  &fill_kept,
                                  &fill_tide,      &scope_buffers, &scope_shared, &scope_tide,
                                  &scope_declared, &buffer_cache};
    if (is_there())
        return;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        all[i]->missing = missing;
}
