/* SPDX-License-Identifier: MIT */
/* gpu_storm SECONDS STEPS [sound | paged | planted | possible]: threads use pools, declared streams, buffers of several
 * kinds, fills, graphs and PyTorch's pair at random, on the machine's driver or the fake one, and check what is
 * written and read. Half of it is written and all is checked by kernels, with others that spin in between; where there
 * is no NVRTC the driver's fills and copies do it. A line of JSON tells what was done. It ends after so many seconds,
 * or steps of a thread if that is earlier. 1: a wrong byte, or TIDEPOOL_CUDA_MEMORY=1 and nothing was mapped; 77: no
 * device, or, which it says, no kernels or not one step. `sound` and `paged` are names of its tests. `planted` has
 * declared streams alone, and leaves the declarations out: 1 if that is not found. `possible` asks for nothing that the
 * driver refuses, which compute-sanitizer reports. The fake driver remembers 4096 pieces of work: 100 steps are enough there. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tidepool/adaptors.h>
#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/device_memory.h>
#include <tidepool/dynamic.h>
#include <tidepool/tidepool.h>
#include <tidepool/tune.h>

#include "beside.h"
#include "jit/kernels/modules.h"
#include "runtime/device/cuda/cuda.h"
#include "tests/random.h"

enum { THREADS = 4, RESULT = 64, BYTES_MAX = 1 << 20 };

static struct {
    tide_device *device;
    tide_device_information info;
    tide_type odd, large; /* of 3 bytes, of 44 */
    tide_buffers *buffers;
    beside_driver driver;
    unsigned long steps;
    time_t until;
    size_t most; /* bytes at most of one step in eight: enough for memory by the page */
    bool planted, possible;
    void *write, *check, *spin;  /* kernels, or NULL */
    tide_cu_address wrong_words; /* of the device: what `check` has found */
    unsigned long done, wrong;   /* atomic */
} storm;

typedef struct runner {
    rng random;
    tide_cu_stream own, other;
    tide_pool *pool;
    uint8_t *result; /* what a step has seen */
} runner;

/* ---- kernels ------------------------------------------------------------------------------------ */

/* All words of an array have one value. `spin` writes nothing, which no compiler knows. */
static const char kernels[] =
    "typedef unsigned long long word;\n"
    "static __device__ word place() { return blockIdx.x * (word)blockDim.x + threadIdx.x; }\n"
    "extern \"C\" __global__ void storm_write(word *x, word n, word value)\n"
    "{ if (place() < n) x[place()] = value; }\n"
    "extern \"C\" __global__ void storm_check(const word *x, word n, word value, word *wrong)\n"
    "{ if (place() < n && x[place()] != value) atomicAdd(wrong, 1ull); }\n"
    "extern \"C\" __global__ void storm_spin(word rounds, word value, word *to)\n"
    "{ while (rounds-- > 0) value = value * 25214903917ull + 11; if (value == 1) *to = value; }\n";

static void load_kernels(void)
{
    void *module = tide_modules_compile(storm.device, kernels);
    if (module == NULL) {
        printf("storm: no kernels: %s\n", tide_error_message());
        return;
    }
    storm.write = tide_cuda_kernel(storm.device, module, "storm_write");
    storm.check = tide_cuda_kernel(storm.device, module, "storm_check");
    storm.spin = tide_cuda_kernel(storm.device, module, "storm_spin");
    must(storm.write != NULL && storm.check != NULL && storm.spin != NULL, "kernels");
}

static void launch(void *kernel, tide_cu_stream stream, size_t threads, void **arguments)
{
    enum { GROUP = 256 };
    must_cu(tide_cu.cuLaunchKernel(kernel, (unsigned)((threads + GROUP - 1) / GROUP), 1, 1,
                                   threads < GROUP ? (unsigned)threads : GROUP, 1, 1, 0, stream,
                                   arguments, NULL));
}

/* ---- work ------------------------------------------------------------------------------------- */

static const uint64_t every_byte = 0x0101010101010101;

static void put(tide_cu_stream stream, void *data, uint8_t value, size_t bytes)
{
    uint64_t words = bytes / sizeof(uint64_t), word = value * every_byte;
    const size_t whole = storm.write != NULL && value % 2 != 0 ? words * sizeof word : 0;
    if (whole != 0)
        launch(storm.write, stream, words, (void *[]){&data, &words, &word});
    if (whole < bytes)
        must_cu(tide_cu.cuMemsetD8Async((tide_cu_address)(uintptr_t)data + whole, value,
                                        bytes - whole, stream));
}

/* All is checked, and the last bytes of it go to the result. */
static void see(const runner *r, tide_cu_stream stream, uint8_t *data, uint8_t value, size_t bytes)
{
    uint64_t words = bytes / sizeof(uint64_t), word = value * every_byte, rounds = 20000, two = 2;
    if (storm.check != NULL) {
        launch(storm.spin, stream, 1, (void *[]){&rounds, &two, &storm.wrong_words});
        launch(storm.check, stream, words, (void *[]){&data, &words, &word, &storm.wrong_words});
    }
    must_cu(tide_cu.cuMemcpyAsync((tide_cu_address)(uintptr_t)r->result,
                                  (tide_cu_address)(uintptr_t)(data + bytes - RESULT), RESULT,
                                  stream));
}

/* By the program itself, which a capture of another thread would forbid, and end. */
static void wait_for(tide_cu_stream stream)
{
    const int mode = tide_cuda_relax();
    must_cu(tide_cu.cuStreamSynchronize(stream));
    tide_cuda_relax_end(mode);
}

static void compare(const uint8_t *got, uint8_t value, size_t bytes, const char *step)
{
    for (size_t i = 0; i < bytes; i++)
        if (got[i] != value) {
            fprintf(stderr, "%s: byte %zu is %u and not %u\n", step, i, got[i], value);
            __atomic_fetch_add(&storm.wrong, 1, __ATOMIC_RELAXED);
            return;
        }
}

static void look(const runner *r, uint8_t value, const char *step)
{
    uint8_t got[RESULT];
    wait_for(r->other);
    must(tide_download(r->pool, got, r->result, RESULT) == TIDE_OK, "tide_download");
    compare(got, value, RESULT, step);
}

static size_t size_of(runner *r)
{
    return 256 + rng_next(&r->random) % (rng_below(&r->random, 8) == 0 ? storm.most : BYTES_MAX);
}

/* ---- steps ------------------------------------------------------------------------------------ */

static void arrays(runner *r, uint8_t value)
{
    size_t bytes = size_of(r);
    {
        TIDE_SCOPE(r->pool);
        uint8_t *x = tide_acquire(r->pool, uint8_t, bytes),
                *y = tide_fill(r->pool, uint8_t, 999, 1);
        must(x != NULL && y != NULL, "arrays");
        put(r->own, x, value, bytes);
        see(r, r->own, x, value, bytes);
    }
    look(r, value, "arrays");
}

/* Work on the declared stream, and at once on the pool's with the same memory. */
static void declared(runner *r, uint8_t value)
{
    size_t bytes = size_of(r);
    for (int i = 0; i < 2; i++) {
        TIDE_SCOPE(r->pool);
        uint8_t *x = tide_acquire(r->pool, uint8_t, bytes);
        must(x != NULL, "declared");
        if (i == 0 && !storm.planted)
            must(tide_pool_use_on(r->pool, r->other) == TIDE_OK, "tide_pool_use_on");
        put(i == 0 ? r->other : r->own, x, (uint8_t)(value + i), bytes);
        if (i == 0)
            see(r, r->other, x, value, bytes);
    }
    look(r, value, "declared");
}

static void buffers(runner *r, uint8_t value)
{
    size_t bytes = size_of(r);
    for (int i = 0; i < 2; i++) {
        tide_cu_stream stream = i == 0 ? r->own : r->other;
        tide_buffer b = tide_buffer_acquire_on(storm.buffers, bytes, TIDE_BUFFER_DEVICE, stream);
        uint8_t *x = tide_buffer_pointer(storm.buffers, b);
        must(x != NULL, "buffers");
        put(stream, x, (uint8_t)(value + i), bytes);
        if (i == 0)
            see(r, stream, x, value, bytes);
        must(tide_buffer_release_on(storm.buffers, b, stream) == TIDE_OK, "release");
    }
    look(r, value, "buffers");
}

static void pair(runner *r, uint8_t value)
{
    size_t bytes = size_of(r);
    uint8_t *x = tide_torch_malloc((ssize_t)bytes, 0, r->own);
    must(x != NULL, "tide_torch_malloc");
    put(r->own, x, value, bytes);
    see(r, r->own, x, value, bytes);
    tide_torch_free(x, (ssize_t)bytes, 0, r->own);
    uint8_t *y = tide_torch_malloc((ssize_t)bytes, 0, r->other);
    must(y != NULL, "tide_torch_malloc");
    put(r->other, y, (uint8_t)(value + 1), bytes);
    tide_torch_free(y, (ssize_t)bytes, 0, r->other);
    look(r, value, "pair");
}

/* Values of every size, by the driver's fills. */
static void filled(runner *r, uint8_t value)
{
    enum { LARGEST = 44, COUNT = 200 };
    uint8_t pattern[LARGEST], got[LARGEST * COUNT];
    const tide_type types[] = {TIDE_U8, TIDE_F16, TIDE_F64, TIDE_C128, storm.odd, storm.large};
    tide_type type = types[rng_below(&r->random, sizeof types / sizeof *types)];
    size_t size = tide_type_size(type), n = 1 + rng_below(&r->random, COUNT);
    for (size_t i = 0; i < LARGEST; i++)
        pattern[i] = (uint8_t)(value + i);
    TIDE_SCOPE(r->pool);
    const void *x = tide_fill_type(r->pool, type, n, pattern);
    must(x != NULL && tide_download(r->pool, got, x, n * size) == TIDE_OK, "filled");
    for (size_t i = 0; i < n * size; i++)
        compare(&got[i], pattern[i % size], 1, "filled");
}

/* Frames go up and come down, packed, with holes between their parts. */
static void framed(runner *r, uint8_t value)
{
    uint8_t there[3][RESULT], back[3][RESULT];
    tide_part parts[3];
    memset(there, value, sizeof there);
    memset(back, ~value, sizeof back);
    TIDE_SCOPE(r->pool);
    for (size_t i = 0; i < 3; i++) {
        size_t n = 1 + rng_below(&r->random, RESULT);
        parts[i] = (tide_part){tide_acquire(r->pool, uint8_t, n), there[i], TIDE_U8, n};
    }
    must(tide_upload_frame(r->pool, parts, 3) == TIDE_OK, "tide_upload_frame");
    for (size_t i = 0; i < 3; i++)
        parts[i].host = back[i];
    must(tide_download_frame(r->pool, parts, 3) == TIDE_OK, "tide_download_frame");
    for (size_t i = 0; i < 3; i++)
        compare(back[i], value, parts[i].count, "framed");
}

/* What there is not, and nothing suffers. */
static void refused(runner *r, uint8_t value)
{
    {
        TIDE_SCOPE(r->pool);
        uint8_t *x = tide_acquire(r->pool, uint8_t, 1000);
        put(r->own, x, value, 1000);
        must(tide_acquire(r->pool, uint8_t, (size_t)1 << 46) == NULL, "64 TiB were had");
        must(tide_error_status() == TIDE_ERROR_MEMORY, "a refusal");
        see(r, r->own, x, value, 1000);
    }
    look(r, value, "refused");
}

/* The host and the device use the same bytes. */
static void managed(runner *r, uint8_t value)
{
    if (!storm.info.concurrent)
        return;
    tide_buffer b = tide_buffer_acquire_on(storm.buffers, 10000, TIDE_BUFFER_MANAGED, r->own);
    uint8_t *x = tide_buffer_pointer(storm.buffers, b);
    must(x != NULL, "managed");
    wait_for(r->own);
    memset(x, value, 5000);
    put(r->own, x + 5000, (uint8_t)~value, 5000);
    wait_for(r->own);
    compare(x, value, 5000, "managed");
    compare(x + 5000, (uint8_t)~value, 5000, "managed");
    must(tide_buffer_release_on(storm.buffers, b, r->own) == TIDE_OK, "release");
}

/* One of two sizes, which share memory, in any mode; the second works on a declared stream. */
static beside_exec capture(runner *r, size_t i, size_t bytes, uint8_t value, beside_graph *made)
{
    beside_exec exec;
    const int in = (int)rng_below(&r->random, TIDE_CU_CAPTURE_RELAXED + 1);
    must_cu(storm.driver.cuStreamBeginCapture(r->own, in));
    {
        TIDE_SCOPE(r->pool);
        tide_cu_stream stream = i == 0 ? r->own : r->other;
        uint8_t *x = tide_acquire(r->pool, uint8_t, bytes);
        must(x != NULL && tide_pool_use_on(r->pool, stream) == TIDE_OK, "graph");
        put(stream, x, value, bytes);
        see(r, stream, x, value, bytes);
    }
    must_cu(storm.driver.cuStreamEndCapture(r->own, made));
    const int mode = tide_cuda_relax();
    must_cu(storm.driver.cuGraphInstantiateWithFlags(&exec, *made, 0));
    tide_cuda_relax_end(mode);
    return exec;
}

static void graph(runner *r, uint8_t value)
{
    size_t bytes = size_of(r);
    beside_graph made[2];
    beside_exec execs[2];
    if (r->own == NULL) /* the legacy stream is not captured */
        return;
    must(tide_capture_begin(r->pool) == TIDE_OK, "tide_capture_begin");
    for (size_t i = 0; i < 2; i++)
        execs[i] = capture(r, i, bytes / (i + 1), (uint8_t)(value + i), &made[i]);
    tide_capture *capture = tide_capture_end(r->pool);
    must(capture != NULL, "tide_capture_end");
    for (size_t i = 0; i < 4; i++) { /* the result is the graphs' now, too */
        tide_cu_stream stream = i < 2 ? r->own : r->other;
        must(tide_capture_use_on(capture, stream) == TIDE_OK, "tide_capture_use_on");
        put(stream, r->result, (uint8_t)~value, RESULT);
        must_cu(storm.driver.cuGraphLaunch(execs[i % 2], stream));
        look(r, (uint8_t)(value + i % 2), "graph");
    }
    must(tide_capture_drop(capture, r->own) == TIDE_OK, "tide_capture_drop");
    must(tide_pool_wait(r->pool) == TIDE_OK, "tide_pool_wait");
    const int mode = tide_cuda_relax();
    for (size_t i = 0; i < 2; i++) {
        (void)storm.driver.cuGraphExecDestroy(execs[i]);
        (void)storm.driver.cuGraphDestroy(made[i]);
    }
    tide_cuda_relax_end(mode);
    must(tide_pool_reset(r->pool) == TIDE_OK, "tide_pool_reset");
    r->result = tide_acquire(r->pool, uint8_t, RESULT);
    must(r->result != NULL, "the result");
}

/* ---- threads ---------------------------------------------------------------------------------- */

/* The first thread's pool is on the legacy stream. */
static void begin(runner *r, bool first)
{
    must_cu(tide_cu.cuCtxPushCurrent(tide_device_context(storm.device)));
    if (!first)
        must_cu(tide_cu.cuStreamCreate(&r->own, TIDE_CU_STREAM_NON_BLOCKING));
    must_cu(tide_cu.cuStreamCreate(&r->other, TIDE_CU_STREAM_NON_BLOCKING));
    r->pool = tide_pool_create(&(tide_pool_options){.device = storm.device, .stream = r->own});
    must(r->pool != NULL, "tide_pool_create");
    r->result = tide_acquire(r->pool, uint8_t, RESULT);
    must(r->result != NULL, "the result");
}

static void *run(void *user)
{
    static void (*const steps[])(runner *, uint8_t) = {arrays, declared, buffers, pair, filled,
                                                       framed, refused,  managed, graph};
    static const char *const names[] = {"arrays", "declared", "buffers", "pair", "filled",
                                        "framed", "refused",  "managed", "graph"};
    runner r = {.random = {(uintptr_t)user + 1}};
    begin(&r, user == NULL);
    for (unsigned long i = 0; i < storm.steps && time(NULL) < storm.until; i++) {
        uint64_t which = storm.planted ? 1 : rng_below(&r.random, 17); /* graphs are dear */
        which = which == 16 ? 8 : which % 8;
        must_at = names[which];
        if (!storm.possible || steps[which] != refused)
            steps[which](&r, (uint8_t)rng_next(&r.random));
        __atomic_fetch_add(&storm.done, 1, __ATOMIC_RELAXED);
    }
    must_at = "the end";
    must(tide_pool_wait(r.pool) == TIDE_OK, "tide_pool_wait");
    must(tide_pool_reset(r.pool) == TIDE_OK && tide_pool_destroy(r.pool) == TIDE_OK, "the end");
    return NULL;
}

/* What is mapped by the page while there is an array as large as the largest: the rest is the driver's
 * pool's. */
static size_t mapped(void)
{
    tide_device_memory memory;
    uint64_t pool = 0;
    tide_pool *holder = tide_pool_create(&(tide_pool_options){.device = storm.device});
    must(holder != NULL && tide_acquire(holder, uint8_t, storm.most) != NULL, "the largest");
    must(tide_device_memory_stats(storm.device, &memory) == TIDE_OK, "tide_device_memory_stats");
    if (memory.driver_pool != NULL) /* a device may have none */
        must_cu(tide_cu.cuMemPoolGetAttribute(memory.driver_pool, TIDE_CU_POOL_RESERVED, &pool));
    must(tide_pool_destroy(holder) == TIDE_OK, "the end");
    return memory.driver_reserved - pool;
}

/* Before the threads: the kernels, and what they count. After them the count. */
static void begin_count(void)
{
    must_cu(tide_cu.cuCtxPushCurrent(tide_device_context(storm.device)));
    must_cu(tide_cu.cuMemAlloc(&storm.wrong_words, sizeof(uint64_t)));
    must_cu(tide_cu.cuMemsetD8Async(storm.wrong_words, 0, sizeof(uint64_t), NULL));
    must_cu(tide_cu.cuStreamSynchronize(NULL));
    load_kernels();
}

static void end_count(void)
{
    uint64_t words = 0;
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.device = storm.device});
    must(tide_download(pool, &words, (void *)(uintptr_t)storm.wrong_words, sizeof words) == TIDE_OK,
         "what the kernels found");
    must(tide_pool_destroy(pool) == TIDE_OK, "the end");
    storm.wrong += words;
}

/* A storm in which nothing was done, or which no kernel saw, has shown nothing. */
static int end_storm(const char *way)
{
    const char *lacks = storm.done == 0 ? "steps" : storm.check == NULL ? "kernels" : NULL;
    printf("{\"storm\":\"%s\",\"steps\":%lu,\"threads\":%d,\"wrong\":%lu,\"kernels\":%s}\n", way,
           storm.done, THREADS, storm.wrong, storm.check != NULL ? "true" : "false");
    if (storm.done != 0 && (storm.wrong == 0) == storm.planted)
        return EXIT_FAILURE;
    if (lacks == NULL)
        return EXIT_SUCCESS;
    printf("storm: no %s\n", lacks);
    return 77;
}

int main(int count, char **arguments)
{
    enum { LARGE_MAX = 64 << 20 };
    pthread_t threads[THREADS];
    if (count < 3 || !beside_load(&storm.driver) ||
        (storm.device = tide_device_open("cuda:0")) == NULL)
        return count < 3 ? 2 : 77;
    storm.steps = strtoul(arguments[2], NULL, 10);
    storm.planted = count > 3 && strcmp(arguments[3], "planted") == 0;
    storm.possible = count > 3 && strcmp(arguments[3], "possible") == 0;
    must(tide_device_info(storm.device, &storm.info) == TIDE_OK, "tide_device_info");
    storm.most = storm.info.bytes / 64 < LARGE_MAX ? storm.info.bytes / 64 : LARGE_MAX;
    storm.odd = tide_type_register("odd", 3, 1);
    storm.large = tide_type_register("large", 44, 4);
    begin_count();
    storm.until = time(NULL) + (time_t)strtoul(arguments[1], NULL, 10); /* once all is compiled */
    storm.buffers = tide_buffers_create(storm.device, NULL);
    must(storm.buffers != NULL, "tide_buffers_create");
    for (uintptr_t i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, run, (void *)i) == 0, "pthread_create");
    for (int i = 0; i < THREADS; i++)
        must(pthread_join(threads[i], NULL) == 0, "pthread_join");
    must(tide_buffers_destroy(storm.buffers) == TIDE_OK, "tide_buffers_destroy");
    end_count();
    double paged = 0;
    must(tide_tune_get("cuda_memory", &paged) == TIDE_OK, "tide_tune_get");
    must(paged == 0 || mapped() >= storm.most, "nothing is mapped by the page");
    return end_storm(count > 3 ? arguments[3] : "sound");
}
