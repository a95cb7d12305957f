/* SPDX-License-Identifier: MIT */
/* device-cuda-…: a CUDA device, cuda:0, on its legacy default stream.
 *
 *   plain      no pool: cuMemAlloc and cuMemFree for each array
 *   driver     cuMemAllocFromPoolAsync and cuMemFreeAsync for each array; the pool keeps all it has
 *   tide       a loop scope or a rewind of a pool on the device
 *   declared   the same with a second stream declared, which does nothing: each rewind asks
 *   worked     each scope fills its first array on the pool's stream
 *   busy       the same on a second stream, which is declared: each rewind orders the two
 *
 * Fills, by the driver one by one but for `fused`, and waited for:
 *
 *   each       arrays that are there already
 *   fused      the same in one launch
 *   plain, async, scope   the arrays are taken before and given back after each round: as `plain`, as
 *              `driver`, and by a scope of the pool
 *   copy       the driver's copy within the device of half as many bytes, which moves as many */
#include "cases.h"

#include "runtime/base/settings.h"
#include "runtime/device/cuda/cuda.h"

#include <string.h>
#include <sys/wait.h>
#include <tidepool/device.h>
#include <tidepool/device_bump.h>
#include <tidepool/learn.h>
#include <tidepool/tidepool.h>
#include <tidepool/upkeep.h>
#include <unistd.h>

enum { ARRAYS_MAX = 100, MIB = 1 << 20, PAGE = 4096 };

typedef struct cuda_state {
    tide_device *device;
    tide_pool *pool;
    size_t bytes, count;
    bool fused;
    bool plain;  /* the driver's memory without a pool */
    void *works; /* the stream that fills the first array of each scope */
    tide_part parts[ARRAYS_MAX];
    uint64_t allocations; /* of the pool, after the last proof; 0: it may allocate */
} cuda_state;

static const uint32_t pattern = 0x01020304;

static void must(bool good, const char *what)
{
    if (!good)
        bench_die("device-cuda: %s failed: %s", what, tide_error_message());
}

/* ---- begin and end -------------------------------------------------------------------------- */

/* Only in a copy: a driver that has been used does not survive the forks that are to come. */
static bool is_there(void)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0)
        _exit(tide_device_open("cuda:0") != NULL ? 0 : 1);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static void choose_size(cuda_state *s, const char *name)
{
    bool large = strcmp(name, "device-cuda-large") == 0;
    s->bytes = large ? 16 * MIB : PAGE;
    s->count = strstr(name, "32") != NULL ? 32 : 100;
    if (strcmp(name, "device-cuda-acquire") == 0) {
        s->bytes = MIB;
        s->count = 1;
    }
}

static void *setup(const bench_case *job)
{
    cuda_state *s = bench_state_make(sizeof *s);
    s->device = tide_device_open("cuda:0");
    if (s->device == NULL) {
        bench_complain("%s", tide_error_message());
        return NULL;
    }
    choose_size(s, job->name);
    s->pool = tide_pool_create(&(tide_pool_options){.device = s->device});
    must(s->pool != NULL, "tide_pool_create");
    return s;
}

static void acquire_parts(cuda_state *s)
{
    for (size_t i = 0; i < s->count; i++) {
        void *data = tide_acquire(s->pool, uint8_t, s->bytes);
        must(data != NULL, "tide_acquire");
        s->parts[i] =
            (tide_part){data, (void *)(uintptr_t)&pattern, TIDE_U32, s->bytes / sizeof pattern};
    }
}

/* Variants take turns in one process, and the setting is the process's. */
static void fill_parts(cuda_state *s)
{
    tide_setting_set(TIDE_SETTING_frame_kernels, s->fused);
    must(tide_fill_frame(s->pool, s->parts, s->count) == TIDE_OK, "tide_fill_frame");
}

/* The arrays are there from the beginning. */
static void *each_setup(const bench_case *job)
{
    cuda_state *s = setup(job);
    if (s == NULL)
        return NULL;
    acquire_parts(s);
    fill_parts(s);
    return s;
}

static void *fused_setup(const bench_case *job)
{
    tide_device_information before, after;
    cuda_state *s = each_setup(job);
    if (s == NULL)
        return NULL;
    s->fused = true;
    must(tide_device_info(s->device, &before) == TIDE_OK, "tide_device_info");
    fill_parts(s);
    must(tide_device_info(s->device, &after) == TIDE_OK, "tide_device_info");
    if (after.launches != before.launches)
        return s;
    bench_complain("no kernels for cuda:0");
    return NULL;
}

/* The device's own count has those of the other variants, too: they take turns. */
static uint64_t pool_allocations(const cuda_state *s)
{
    tide_pool_statistics stats;
    must(tide_pool_stats(s->pool, &stats) == TIDE_OK, "tide_pool_stats");
    return stats.allocations;
}

static bool verify(void *state, uint64_t operations)
{
    cuda_state *s = state;
    (void)operations;
    return tide_pool_check(s->pool) == TIDE_OK &&
           (s->allocations == 0 || pool_allocations(s) == s->allocations);
}

static void teardown(void *state)
{
    cuda_state *s = state;
    tide_pool_reset(s->pool);
    tide_pool_destroy(s->pool);
    tide_device_close(s->device);
    bench_state_free(s, sizeof *s);
}

/* After the warm-up pools allocate nothing. */
static void expect_no_allocation(cuda_state *s)
{
    s->allocations = pool_allocations(s);
}

static void finish(cuda_state *s)
{
    must(tide_pool_wait(s->pool) == TIDE_OK, "tide_pool_wait");
}

/* ---- acquiring ------------------------------------------------------------------------------ */

static void driver_take(cuda_state *s)
{
    for (size_t k = 0; k < s->count; k++) {
        tide_cu_address data = 0;
        tide_cu_result result =
            s->plain ? tide_cu.cuMemAlloc(&data, s->bytes)
                     : tide_cu.cuMemAllocFromPoolAsync(&data, s->bytes,
                                                       tide_cuda_of(s->device)->pool, NULL);
        must(result == TIDE_CU_SUCCESS, "the driver's allocation");
        s->parts[k].data = (void *)(uintptr_t)data;
    }
}

static void driver_give(cuda_state *s)
{
    for (size_t k = 0; k < s->count; k++) {
        tide_cu_address data = (tide_cu_address)(uintptr_t)s->parts[k].data;
        tide_cu_result result =
            s->plain ? tide_cu.cuMemFree(data) : tide_cu.cuMemFreeAsync(data, NULL);
        must(result == TIDE_CU_SUCCESS, "the driver's release");
    }
}

/* Nothing of the pool's is live, and nothing was the pool's. */
static uint64_t driver_run(void *state, uint64_t operations)
{
    cuda_state *s = state;
    tide_cuda_entered entered;
    must(tide_cuda_enter(s->device, &entered) == TIDE_OK, "the context");
    for (uint64_t i = 0; i < operations; i++) {
        driver_take(s);
        driver_give(s);
    }
    tide_cuda_leave(entered);
    return operations;
}

static void *plain_setup(const bench_case *job)
{
    cuda_state *s = setup(job);
    if (s != NULL)
        s->plain = true;
    return s;
}

static uint64_t tide_run(void *state, uint64_t operations)
{
    cuda_state *s = state;
    uint64_t done = 0;
    TIDE_LOOP(s->pool, i, operations)
    {
        for (size_t k = 0; k < s->count; k++) {
            void *data = tide_acquire(s->pool, uint8_t, s->bytes);
            __asm__ volatile("" : : "r"(data) : "memory");
        }
        done++;
    }
    return done;
}

/* CU_STREAM_PER_THREAD: a second stream that is always there. */
static void *second_stream(void)
{
    return (void *)(uintptr_t)2;
}

static void *declared_setup(const bench_case *job)
{
    cuda_state *s = setup(job);
    tide_mark mark = s != NULL ? tide_checkpoint(s->pool) : (tide_mark){0};
    if (s == NULL || tide_pool_use_on(s->pool, second_stream()) == TIDE_OK) {
        must(s == NULL || tide_rewind(s->pool, mark) == TIDE_OK, "tide_rewind");
        return s;
    }
    bench_complain("%s", tide_error_message());
    return NULL;
}

static void *busy_setup(const bench_case *job)
{
    cuda_state *s = declared_setup(job);
    if (s != NULL)
        s->works = second_stream();
    return s;
}

static uint64_t worked_run(void *state, uint64_t operations)
{
    cuda_state *s = state;
    uint64_t done = 0;
    tide_cuda_entered entered;
    must(tide_cuda_enter(s->device, &entered) == TIDE_OK, "the context");
    TIDE_LOOP(s->pool, i, operations)
    {
        tide_cu_address first =
            (tide_cu_address)(uintptr_t)tide_acquire(s->pool, uint8_t, s->bytes);
        must(tide_cu.cuMemsetD8Async(first, 1, s->bytes, s->works) == TIDE_CU_SUCCESS, "a fill");
        done++;
    }
    tide_cuda_leave(entered);
    return done;
}

/* Within a level in which the second stream is declared. */
static uint64_t with_declared(cuda_state *s, uint64_t (*run)(void *, uint64_t), uint64_t operations)
{
    tide_mark mark = tide_checkpoint(s->pool);
    must(tide_pool_use_on(s->pool, second_stream()) == TIDE_OK, "tide_pool_use_on");
    uint64_t done = run(s, operations);
    must(tide_rewind(s->pool, mark) == TIDE_OK, "tide_rewind");
    finish(s);
    return done;
}

static uint64_t declared_run(void *state, uint64_t operations)
{
    return with_declared(state, tide_run, operations);
}

static uint64_t busy_run(void *state, uint64_t operations)
{
    return with_declared(state, worked_run, operations);
}

/* ---- the rewind alone ----------------------------------------------------------------------- */

/* With a mark, its arrays and its rewind; the figure is of the rewinds alone. */
static uint64_t rewind_run(void *state, uint64_t operations)
{
    cuda_state *s = state;
    for (uint64_t i = 0; i < operations; i++) {
        tide_mark mark = tide_checkpoint(s->pool);
        for (size_t k = 0; k < s->count; k++) {
            void *data = tide_acquire(s->pool, uint8_t, s->bytes);
            __asm__ volatile("" : : "r"(data) : "memory");
        }
        must(tide_rewind(s->pool, mark) == TIDE_OK, "tide_rewind");
    }
    return operations;
}

static size_t rewind_figures(void *state, uint64_t operations, bench_figure *out, size_t room)
{
    enum { ROUNDS = 2000 };
    cuda_state *s = state;
    double all = 0, clock = 0;
    (void)operations;
    for (int i = 0; i < ROUNDS; i++) {
        tide_mark mark = tide_checkpoint(s->pool);
        for (size_t k = 0; k < s->count; k++)
            must(tide_acquire(s->pool, uint8_t, s->bytes) != NULL, "tide_acquire");
        double before = bench_now();
        must(tide_rewind(s->pool, mark) == TIDE_OK, "tide_rewind");
        double after = bench_now();
        all += after - before;
        clock += bench_now() - after;
    }
    must(room > 0, "the room for figures");
    out[0] = (bench_figure){"rewind_ns", (all - clock) / ROUNDS};
    return 1;
}

/* ---- filling -------------------------------------------------------------------------------- */

static uint64_t fill_run(void *state, uint64_t operations)
{
    cuda_state *s = state;
    for (uint64_t i = 0; i < operations; i++) {
        fill_parts(s);
        finish(s);
    }
    return operations;
}

static void name_parts(cuda_state *s)
{
    for (size_t k = 0; k < s->count; k++)
        s->parts[k] = (tide_part){s->parts[k].data, (void *)(uintptr_t)&pattern, TIDE_U32,
                                  s->bytes / sizeof pattern};
}

/* A round takes its arrays, fills them, waits, and gives them back. */
static uint64_t driver_fill_run(void *state, uint64_t operations)
{
    cuda_state *s = state;
    tide_cuda_entered entered;
    must(tide_cuda_enter(s->device, &entered) == TIDE_OK, "the context");
    for (uint64_t i = 0; i < operations; i++) {
        driver_take(s);
        name_parts(s);
        fill_parts(s);
        finish(s);
        driver_give(s);
    }
    tide_cuda_leave(entered);
    return operations;
}

static uint64_t scope_fill_run(void *state, uint64_t operations)
{
    cuda_state *s = state;
    for (uint64_t i = 0; i < operations; i++) {
        TIDE_SCOPE(s->pool);
        acquire_parts(s);
        fill_parts(s);
        finish(s);
    }
    return operations;
}

/* Until it is queued. */
static double host_part(cuda_state *s)
{
    enum { ROUNDS = 200 };
    double all = 0;
    for (int i = 0; i < ROUNDS; i++) {
        double before = bench_now();
        fill_parts(s);
        all += bench_now() - before;
        finish(s);
    }
    return all / ROUNDS;
}

static uint64_t copy_run(void *state, uint64_t operations)
{
    cuda_state *s = state;
    for (uint64_t i = 0; i < operations; i++) {
        for (size_t k = 0; k + 1 < s->count; k += 2)
            must(tide_copy(s->pool, s->parts[k].data, s->parts[k + 1].data, s->bytes) == TIDE_OK,
                 "tide_copy");
        finish(s);
    }
    return operations;
}

/* Bytes that went to or came from memory, in GB/s. */
static size_t bandwidth(uint64_t (*run)(void *, uint64_t), void *state, bench_figure *out,
                        size_t room)
{
    enum { OPERATIONS = 8 };
    cuda_state *s = state;
    finish(s);
    double before = bench_now();
    must(room > 0 && run(s, OPERATIONS) == OPERATIONS, "measuring bandwidth");
    finish(s);
    out[0] = (bench_figure){"GB_per_s", (double)s->bytes * (double)s->count * OPERATIONS /
                                            (bench_now() - before)};
    return 1;
}

static size_t fill_figures(void *state, uint64_t operations, bench_figure *out, size_t room)
{
    (void)operations;
    must(room > 1, "the room for figures");
    out[1] = (bench_figure){"host_ns", host_part(state)};
    return bandwidth(fill_run, state, out, room) + 1;
}

static size_t copy_figures(void *state, uint64_t operations, bench_figure *out, size_t room)
{
    (void)operations;
    return bandwidth(copy_run, state, out, room);
}

/* ---- proofs --------------------------------------------------------------------------------- */

static void warm(cuda_state *s, uint64_t (*run)(void *, uint64_t), uint64_t operations)
{
    must(run(s, operations < 2 ? 2 : operations) >= 2, "the warm-up");
}

static void prove_driver(void *state, uint64_t operations)
{
    warm(state, driver_run, operations);
}

#define PROVE(run)                                            \
    static void prove_##run(void *state, uint64_t operations) \
    {                                                         \
        warm(state, run, operations);                         \
        expect_no_allocation(state);                          \
    }
PROVE(scope_fill_run)
PROVE(tide_run)
PROVE(declared_run)
PROVE(worked_run)
PROVE(busy_run)
PROVE(rewind_run)

static void prove_fill(void *state, uint64_t operations)
{
    cuda_state *s = state;
    tide_device_information before, after;
    (void)tide_device_info(s->device, &before);
    warm(s, fill_run, operations);
    (void)tide_device_info(s->device, &after);
    must((after.launches > before.launches) == s->fused, "the proof of how arrays are filled");
    for (size_t i = 0; i < s->count; i++) {
        uint32_t got = 0;
        const char *last = (char *)s->parts[i].data + s->bytes - sizeof got;
        must(tide_download(s->pool, &got, last, sizeof got) == TIDE_OK, "tide_download");
        must(got == pattern, "the proof that arrays are filled");
    }
}

static void prove_driver_fill(void *state, uint64_t operations)
{
    warm(state, driver_fill_run, operations);
}

static void prove_copy(void *state, uint64_t operations)
{
    warm(state, copy_run, operations);
}

static bench_variant driver = {"driver",   NULL,   setup,    prove_driver,
                               driver_run, verify, teardown, NULL};
static bench_variant plain = {"plain",    NULL,   plain_setup, prove_driver,
                              driver_run, verify, teardown,    NULL};
static bench_variant tide = {"tide", NULL, setup, prove_tide_run, tide_run, verify, teardown, NULL};
static bench_variant declared = {"declared",   NULL,   declared_setup, prove_declared_run,
                                 declared_run, verify, teardown,       NULL};
static bench_variant worked = {"worked",   NULL,   setup,    prove_worked_run,
                               worked_run, verify, teardown, NULL};
static bench_variant busy = {"busy",   NULL,   busy_setup, prove_busy_run,
                             busy_run, verify, teardown,   NULL};
static bench_variant rewinds = {"tide",     NULL,   setup,    prove_rewind_run,
                                rewind_run, verify, teardown, rewind_figures};
static bench_variant each = {"driver", NULL,   each_setup, prove_fill,
                             fill_run, verify, teardown,   fill_figures};
static bench_variant fused = {"fused",  NULL,   fused_setup, prove_fill,
                              fill_run, verify, teardown,    fill_figures};
static bench_variant fill_plain = {"plain",         NULL,   plain_setup, prove_driver_fill,
                                   driver_fill_run, verify, teardown,    NULL};
static bench_variant fill_async = {"async",         NULL,   setup,    prove_driver_fill,
                                   driver_fill_run, verify, teardown, NULL};
static bench_variant fill_scope = {"scope",        NULL,   setup,    prove_scope_fill_run,
                                   scope_fill_run, verify, teardown, NULL};
static bench_variant copies = {"copy",   NULL,   each_setup, prove_copy,
                               copy_run, verify, teardown,   copy_figures};

const bench_variant *const bench_device_cuda_scope_variants[] = {&plain,  &driver, &tide, &declared,
                                                                 &worked, &busy,   NULL};
const bench_variant *const bench_device_cuda_rewind_variants[] = {&plain, &driver, &rewinds, NULL};
const bench_variant *const bench_device_cuda_fill_variants[] = {
    &each, &fused, &fill_plain, &fill_async, &fill_scope, NULL};
const bench_variant *const bench_device_cuda_large_variants[] = {
    &each, &fused, &copies, &fill_plain, &fill_async, &fill_scope, NULL};

void bench_device_cuda_prepare(void)
{
    bench_variant *const all[] = {&plain,      &driver,     &tide,      &declared, &worked,
                                  &busy,       &rewinds,    &each,      &fused,    &copies,
                                  &fill_plain, &fill_async, &fill_scope};
    if (is_there())
        return;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        all[i]->missing = "no CUDA device";
}
