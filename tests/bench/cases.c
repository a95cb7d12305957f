/* SPDX-License-Identifier: MIT */
/* The table of cases, and which variants each has. A new variant is one line here. */
#include "after_request.h"
#include "bench.h"
#include "buffers.h"
#include "columns.h"
#include "device.h"
#include "device_cuda.h"
#include "dispatch.h"
#include "huge.h"
#include "marks.h"
#include "nd.h"
#include "nested.h"
#include "observe.h"
#include "patterns.h"
#include "peers.h"
#include "phase.h"
#include "plain.h"
#include "programs.h"
#include "request.h"
#include "sites.h"
#include "stage.h"
#include "tide.h"
#include "types.h"
#include "untracked.h"

#include <assert.h>
#include <stdio.h>

/* clang-format off */
static const bench_variant *const scope4_variants[] = {
    &bench_floor,
    &bench_bump_variant,
    &bench_glibc,
    &bench_jemalloc,
    &bench_mimalloc,
    &bench_tcmalloc,
    &bench_obstack,
    &bench_apr,
    &bench_talloc,
    &bench_tbb,
    &bench_pmr,
    &bench_tide_full,
    &bench_tide_table,
    &bench_tide_compiled,
    &bench_tide_types,
    &bench_tide_frame,
    &bench_tide_frame_general,
    &bench_tide_frame_compiled,
    &bench_tide_loop,
    &bench_tide_disabled,
    NULL,
};

static const bench_variant *const thread_variants[] = {
    &bench_bump_variant,
    &bench_glibc,
    &bench_jemalloc,
    &bench_mimalloc,
    &bench_tcmalloc,
    &bench_tbb,
    &bench_tide_full,
    &bench_tide_table,
    &bench_tide_types,
    &bench_tide_loop,
    NULL,
};
/* clang-format on */

enum { CASE_ROOM = 128, NAME_ROOM = 24 };

static bench_case cases[CASE_ROOM];
static char names[CASE_ROOM][NAME_ROOM];
static size_t case_count;

static bench_case *add(const char *name, const char *group, const char *about)
{
    assert(case_count < CASE_ROOM);
    bench_case *job = &cases[case_count];
    snprintf(names[case_count], NAME_ROOM, "%s", name);
    case_count++;
    *job = (bench_case){.name = names[job - cases],
                        .unit = "scope",
                        .about = about,
                        .group = group,
                        .base = "bump",
                        .step = BENCH_SIZES};
    return job;
}

static void add_scope4(const char *name, const char *about, size_t least, size_t most)
{
    bench_case *job = add(name, name, about);
    job->sizes = bench_sizes_make(least, most);
    job->variants = scope4_variants;
}

static void add_types(const bench_sizes *small)
{
    for (uint32_t types = 8; types <= BENCH_TYPES_MAX; types *= 2) {
        char name[NAME_ROOM];
        snprintf(name, sizeof name, "types-%u", types);
        bench_case *job = add(name, "types", "2 of N registered types touched, N shelves in use");
        job->sizes = small;
        job->types = types;
        job->variants = bench_types_variants;
    }
}

/* 1, 2, 4 … and all the cores there are. */
static void add_threads(const bench_sizes *small)
{
    uint32_t cores = bench_cores();
    for (uint32_t threads = 1; threads <= cores;
         threads = threads < cores && 2 * threads > cores ? cores : 2 * threads) {
        char name[NAME_ROOM];
        snprintf(name, sizeof name, "threads-%u", threads);
        bench_case *job = add(name, "threads", "scope4-small in N threads at once");
        job->sizes = small;
        job->threads = threads;
        job->variants = thread_variants;
    }
}

static void add_buffers(void)
{
    enum { KIB = 1024 };
    const bench_sizes *sizes = bench_sizes_make(4 * KIB, 16 * KIB);
    uint32_t cores = bench_cores();
    for (uint32_t threads = 1; threads <= cores;
         threads = threads < cores && 2 * threads > cores ? cores : 2 * threads) {
        char name[NAME_ROOM];
        snprintf(name, sizeof name, "buffers-threads-%u", threads);
        bench_case *job = add(name, "buffers", "a buffer acquired and released, in N threads");
        job->unit = "buffer";
        job->base = "glibc";
        job->sizes = sizes;
        job->threads = threads;
        job->variants = bench_buffers_variants;
    }
}

static void add_patterns(void)
{
    for (const bench_pattern *p = bench_patterns; p->name != NULL; p++) {
        bench_case *job = add(p->name, p->name, p->about);
        job->unit = "buffer";
        job->base = "glibc";
        job->step = p->step;
        job->rounds = 9;
        job->uncounted = true;
        job->variants = bench_patterns_variants;
    }
}

static void add_nd(void)
{
    bench_case *nd = add("nd", "nd", "3 N-D arrays, type and rank known at run time only");
    nd->base = "raw";
    nd->variants = bench_nd_variants;
    nd = add("nd-turns", "nd", "the same, each slot seeing 4 shapes in turn");
    nd->base = "raw";
    nd->variants = bench_nd_turns_variants;
}

static void add_dispatch_case(const char *name, const char *about, uint64_t step,
                              const bench_variant *const *variants)
{
    bench_case *job = add(name, name, about);
    job->unit = "call";
    job->base = "lookup";
    job->step = step;
    job->variants = variants;
}

static void add_dispatch(void)
{
    add_dispatch_case("dispatch-3", "a generic call, 3 types in turn", BENCH_DISPATCH_3,
                      bench_dispatch_3_variants);
    add_dispatch_case("dispatch-actors", "the same, 2 types in turn after 10 others, once each",
                      BENCH_DISPATCH_ACTORS, bench_dispatch_actors_variants);
    add_dispatch_case("dispatch-sweep", "the same, 100 types, the frequent ones moving",
                      BENCH_DISPATCH_SWEEP, bench_dispatch_sweep_variants);
    add_dispatch_case("dispatch-random-2", "the same, 2 types at random", BENCH_DISPATCH_RANDOM,
                      bench_dispatch_random_variants);
    add_dispatch_case("dispatch-random-4", "the same, 4 types at random", BENCH_DISPATCH_RANDOM,
                      bench_dispatch_random_variants);
    add_dispatch_case("dispatch-random-16", "the same, 16 types at random", BENCH_DISPATCH_RANDOM,
                      bench_dispatch_random_variants);
    add_dispatch_case("dispatch-uneven", "the same, 16 types at random, each 1.4 times the next",
                      BENCH_DISPATCH_RANDOM, bench_dispatch_random_variants);
}

static void add_stage_case(const char *name, uint32_t sites)
{
    bench_case *job = add(name, name, "a site decided on, until its code is published");
    job->unit = "site";
    job->base = "warm";
    job->sites = sites;
    job->step = sites;
    job->rounds = 31;
    job->before = bench_stage_before;
    job->after = bench_stage_after;
    job->variants = bench_stage_variants;
}

static void add_stage(const bench_sizes *small)
{
    add_stage_case("stage-1", 1);
    add_stage_case("stage-16", BENCH_STAGE_SITES);
    bench_case *tail = add("stage-tail", "stage-tail", "a scope, while others are compiled");
    tail->sizes = small;
    tail->base = "idle";
    tail->step = BENCH_STAGE_TAIL;
    tail->rounds = 61;
    tail->before = bench_stage_tail_before;
    tail->after = bench_stage_tail_after;
    tail->variants = bench_stage_tail_variants;
}

static void add_observe_case(const char *name, const char *about, uint64_t step,
                             const bench_variant *const *variants)
{
    bench_case *job = add(name, name, about);
    job->base = "off";
    job->step = step;
    job->rounds = 41;
    job->before = bench_observe_before;
    job->after = bench_observe_after;
    job->variants = variants;
}

static void add_observe(const bench_sizes *small)
{
    add_observe_case("observe", "scope4-small, learning on and off", BENCH_OBSERVE_SCOPES,
                     bench_observe_variants);
    cases[case_count - 1].sizes = small;
    if (bench_observe_columns_variants == NULL)
        return;
    add_observe_case("observe-columns", "the columns job, learning on and off", BENCH_OBSERVE_JOBS,
                     bench_observe_columns_variants);
    cases[case_count - 1].unit = "job";
}

static void add_phases(void)
{
    enum { LEAST_STEP = 1 << (16 - BENCH_SHORTER) };
    static const struct {
        const char *name;
        uint64_t length;
    } phases[] = {{"phase-1k", 1 << 10}, {"phase-32k", 1 << 15}, {"phase-1m", 1 << 20}};
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        bench_case *job =
            add(phases[i].name, phases[i].name, "a scope of 2 types, others every K scopes");
        uint64_t length = phases[i].length >> BENCH_SHORTER, turn = length * BENCH_PHASES;
        job->base = "tide-full";
        job->phase = length;
        job->step = turn > LEAST_STEP ? turn : LEAST_STEP;
        job->rounds = 61;
        job->before = bench_phase_before;
        job->after = bench_phase_after;
        job->variants = bench_phase_variants;
    }
}

static void add_huge(void)
{
    static const uint32_t sizes[] = {1, 2, 3, 4, 8, 16, 32, 64};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint32_t mebibytes = sizes[i];
        char name[NAME_ROOM];
        snprintf(name, sizeof name, "huge-touch-%u", mebibytes);
        bench_case *touch = add(name, name, "a slot of N MiB mapped, touched, unmapped");
        snprintf(name, sizeof name, "huge-random-%u", mebibytes);
        bench_case *random = add(name, name, "a write to a random word of a slot of N MiB");
        touch->unit = "slot";
        random->unit = "write";
        touch->step = 1;
        random->step = 4096;
        touch->base = random->base = "plain";
        touch->mebibytes = random->mebibytes = mebibytes;
        touch->variants = bench_huge_touch_variants;
        random->variants = bench_huge_random_variants;
    }
}

static void add_jobs(void)
{
    if (bench_columns_variants == NULL)
        return;
    bench_case *columns = add("columns", "columns", "the example's job on a table of elements");
    columns->base = "static";
    columns->variants = bench_columns_variants;
    bench_case *checks = add("checks", "checks", "the same job at each check level");
    checks->base = "level-0";
    checks->variants = bench_checks_variants;
    columns->unit = checks->unit = "job";
    columns->step = checks->step = 1;
}

static void add_device(const char *name, const char *about, const bench_variant *const *variants)
{
    bench_case *job = add(name, name, about);
    job->base = "buffers";
    job->step = 1;
    job->uncounted = true;
    job->variants = variants;
}

static void add_devices(void)
{
    bench_device_prepare();
    add_device("device-fill4", "4 arrays of 1 MiB on an OpenCL device, filled",
               bench_device_fill_variants);
    add_device("device-fill4sub", "the same where slots are sub-buffers",
               bench_device_fill_variants);
    add_device("device-acquire", "an array of 1 MiB on an OpenCL device",
               bench_device_acquire_variants);
    add_device("device-buffers", "a buffer of 1 MiB on an OpenCL device",
               bench_device_buffers_variants);
    add_device("device-scope32", "32 arrays of 4 KiB on an OpenCL device",
               bench_device_scope_variants);
}

static void add_cuda_case(const char *name, const char *about, const bench_variant *const *variants)
{
    add_device(name, about, variants);
    cases[case_count - 1].base = "driver";
}

static void add_cuda(void)
{
    bench_device_cuda_prepare();
    add_cuda_case("device-cuda-acquire", "an array of 1 MiB on a CUDA device, nothing queued",
                  bench_device_cuda_scope_variants);
    add_cuda_case("device-cuda-scope32", "32 arrays of 4 KiB on a CUDA device, then all gone",
                  bench_device_cuda_scope_variants);
    add_cuda_case("device-cuda-rewind32", "the rewind alone of 32 arrays of 4 KiB",
                  bench_device_cuda_rewind_variants);
    add_cuda_case("device-cuda-fill100", "100 arrays of 4 KiB filled, and waited for",
                  bench_device_cuda_fill_variants);
    add_cuda_case("device-cuda-large", "100 arrays of 16 MiB filled, and waited for",
                  bench_device_cuda_large_variants);
}

static void add_request(void)
{
    bench_case *job =
        add("request", "request", "a request's two arrays: a pool of its own, or one");
    job->unit = "request";
    job->base = "stays";
    job->step = 1;
    job->variants = bench_request_variants;
}

/* An operation is one frame of so many that are open at once. */
static void add_nested_case(const char *name, const char *about, const bench_sizes *small,
                            uint32_t depth, const bench_variant *const *variants)
{
    bench_case *job = add(name, "nested", about);
    job->unit = "frame";
    job->sizes = small;
    job->step = BENCH_SIZES * depth;
    job->variants = variants;
}

static void add_nested(const bench_sizes *small)
{
    static const char *const about = "N functions, each with a frame of 2 arrays, calling the next";
    add_nested_case("nested-frames-2", about, small, 2, bench_nested_2_variants);
    add_nested_case("nested-frames-4", about, small, 4, bench_nested_4_variants);
    add_nested_case("nested-frames-8", about, small, 8, bench_nested_8_variants);
    add_nested_case("nested-mixed-4", "4 of them, no two of the same types", small, BENCH_MIXED,
                    bench_nested_mixed_variants);
    add_nested_case("recursion", "one such function that calls itself, 8 deep", small,
                    BENCH_RECURSION, bench_recursion_variants);
}

static void add_sites(const bench_sizes *small)
{
    static const uint32_t counts[] = {1, 8, 50, 200};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && counts[i] <= BENCH_CALL_SITES; i++) {
        char name[NAME_ROOM];
        snprintf(name, sizeof name, "sites-%u", counts[i]);
        bench_case *job = add(name, "sites", "N functions in turn, each a call site of its own");
        job->sizes = small;
        job->sites = counts[i];
        job->step = BENCH_CALL_SITES;
        job->variants = bench_sites_variants;
    }
}

static void add_small(const char *name, const char *about, const bench_sizes *small,
                      const char *base, const bench_variant *const *variants)
{
    bench_case *job = add(name, name, about);
    job->sizes = small;
    job->base = base;
    job->variants = variants;
}

static void add_levels(const bench_sizes *small)
{
    add_small("types-unused", "2 arrays; the scope names a type that nobody acquires", small,
              "tide-types", bench_unused_variants);
    add_small("marks", "2 arrays between a mark and its rewind", small, "bump",
              bench_marks_variants);
    add_small("ffi", "2 arrays in a scope, all by function", small, "bump", bench_ffi_variants);
    add_small("after-request", "2 arrays, a compact asked for in the scope around", small,
              "tide-types", bench_after_request_variants);
}

static void add_program(const char *name, const char *about, const bench_variant *const *variants)
{
    bench_case *job = add(name, name, about);
    job->unit = "job";
    job->step = BENCH_PROGRAM_INPUTS;
    job->variants = variants;
}

static void add_programs(void)
{
    add_program("program-codec", "a plane of 64 x 64 encoded, 7 functions, 9 types",
                bench_codec_variants);
    add_program("program-fft", "a recursive transform of 512 numbers", bench_fft_variants);
}

static void make_cases(void)
{
    enum { KIB = 1024 };
    add_scope4("scope4-small", "4 arrays of 2 types, 256 to 1016 bytes each", 256, 1016);
    const bench_sizes *small = cases[0].sizes;
    add_scope4("scope4-40k", "the same, 36 to 44 KiB each", 36 * KIB, 44 * KIB);
    add_scope4("scope4-640k", "the same, 576 to 704 KiB each", 576 * KIB, 704 * KIB);
    add_types(small);
    bench_case *untracked =
        add("untracked", "untracked", "a helper touches a type the scope did not save");
    untracked->sizes = small;
    untracked->variants = bench_untracked_variants;
    add_nested(small);
    add_sites(small);
    add_levels(small);
    add_programs();
    add_nd();
    add_dispatch();
    add_phases();
    add_stage(small);
    add_observe(small);
    add_threads(small);
    add_buffers();
    add_patterns();
    add_request();
    add_jobs();
    add_huge();
    add_devices();
    add_cuda();
}

size_t bench_case_count(void)
{
    if (case_count == 0)
        make_cases();
    return case_count;
}

const bench_case *bench_case_at(size_t index)
{
    assert(index < bench_case_count());
    return &cases[index];
}
