/* SPDX-License-Identifier: MIT */
/* The table of cases, and which variants each has. A new variant is one line here. */
#include "cases.h"
#include "peers.h"
#include "plain.h"
#include "tide.h"

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
    &bench_pmr,
    &bench_tide_full,
    &bench_tide_table,
    &bench_tide_compiled,
    &bench_tide_types,
    &bench_tide_frame,
    &bench_tide_loop,
    &bench_tide_disabled,
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
    add_dispatch_case("dispatch-random-2", "the same, 2 types at random", BENCH_DISPATCH_RANDOM,
                      bench_dispatch_random_variants);
    add_dispatch_case("dispatch-random-4", "the same, 4 types at random", BENCH_DISPATCH_RANDOM,
                      bench_dispatch_random_variants);
    add_dispatch_case("dispatch-random-16", "the same, 16 types at random", BENCH_DISPATCH_RANDOM,
                      bench_dispatch_random_variants);
}

static void add_device(const char *name, const char *about, const bench_variant *const *variants)
{
    bench_case *job = add(name, name, about);
    job->base = "buffers";
    job->step = 1;
    job->variants = variants;
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
    add_nested_case("nested-frames-8",
                    "8 functions, each with a frame of 2 arrays, calling the next", small,
                    BENCH_NESTED, bench_nested_8_variants);
    add_nested_case("nested-mixed-4", "4 of them, no two of the same types", small, BENCH_MIXED,
                    bench_nested_mixed_variants);
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
    add_nested(small);
    add_programs();
    add_dispatch();
    add_request();
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
