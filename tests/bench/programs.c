/* SPDX-License-Identifier: MIT */
/* program-codec, program-fft: functions in the shape of real code, which compute something between
 * their acquires. An operation is one plane encoded, one transform of 512 numbers; four inputs in
 * turn. The results are compared: all variants must compute the same ones. */
#include "cases.h"
#include "work.h"

#include <stdlib.h>

enum { CODEC_SIDE = 64, CODEC_TILE = 16, CODEC_LEVELS = 3 };
enum {
    CODEC_LIFT,
    CODEC_LINE,
    CODEC_TRANSFORM,
    CODEC_RUNS,
    CODEC_ENTROPY,
    CODEC_TILES,
    CODEC_ENCODE,
    CODEC_SITES
};

enum { FFT_COUNT = 512, FFT_LEAST = 4 };
enum { FFT_TRANSFORM, FFT_ENCODE, FFT_SITES };
#define FFT_PRIME 998244353u
#define FFT_ROOT  166035806u /* of order 512 modulo that */

static const bench_work_row codec_types[CODEC_SITES] = {
    [CODEC_LIFT] = {TIDE_I32},
    [CODEC_LINE] = {TIDE_I32},
    [CODEC_TRANSFORM] = {TIDE_U16, TIDE_I64},
    [CODEC_RUNS] = {TIDE_U16, TIDE_I8},
    [CODEC_ENTROPY] = {TIDE_U32, TIDE_F32},
    [CODEC_TILES] = {TIDE_I16, TIDE_U8},
    [CODEC_ENCODE] = {TIDE_I32, TIDE_U64},
};

static const bench_work_row fft_types[FFT_SITES] = {
    [FFT_TRANSFORM] = {TIDE_U32, TIDE_U64},
    [FFT_ENCODE] = {TIDE_U32},
};

/* The definition itself, for the few numbers at the end of the recursion. */
static void fft_direct(uint32_t *data, size_t count, uint32_t root)
{
    uint32_t in[FFT_LEAST];
    uint64_t step = 1;
    for (size_t i = 0; i < count; i++)
        in[i] = data[i];
    for (size_t i = 0; i < count; i++, step = step * root % FFT_PRIME) {
        uint64_t sum = 0, power = 1;
        for (size_t j = 0; j < count; j++, power = power * step % FFT_PRIME)
            sum = (sum + power * in[j]) % FFT_PRIME;
        data[i] = (uint32_t)sum;
    }
}

/* --- the programs, once for each form ----------------------------------------------------- */

#define FORM frame
#include "program_codec.h"
#include "program_fft.h"
#undef FORM
#define FORM types
#include "program_codec.h"
#include "program_fft.h"
#undef FORM
#define FORM site
#include "program_codec.h"
#include "program_fft.h"
#undef FORM
#define FORM bump
#include "program_codec.h"
#include "program_fft.h"
#undef FORM
#define FORM heap
#include "program_codec.h"
#include "program_fft.h"
#undef FORM
#define FORM alloca
#include "program_codec.h"
#include "program_fft.h"
#undef FORM

/* --- the variants ------------------------------------------------------------------------- */

#define PROGRAM(program, form)                                                             \
    static uint64_t program##_##form##_run(void *state, uint64_t operations)               \
    {                                                                                      \
        bench_work *s = state;                                                             \
        FORM_CONTEXT(form) c = (FORM_CONTEXT(form))(uintptr_t)s->context;                  \
        uint64_t done = 0;                                                                 \
        for (; done < operations; done++)                                                  \
            s->sum += program##_##form##_encode(c, s->sites, done % BENCH_PROGRAM_INPUTS); \
        return done;                                                                       \
    }                                                                                      \
    static void program##_##form##_proof(void *state, uint64_t operations)                 \
    {                                                                                      \
        if (program##_##form##_run(state, operations) != operations)                       \
            bench_die(#program " lost operations");                                        \
        bench_work_proved(state, program##_##form##_run);                                  \
    }
#define PROGRAM_VARIANT(program, form, name, label, setup)                             \
    static const bench_variant variant_##program##_##name = {label,                    \
                                                             NULL,                     \
                                                             setup,                    \
                                                             program##_##form##_proof, \
                                                             program##_##form##_run,   \
                                                             bench_work_verify,        \
                                                             bench_work_free,          \
                                                             NULL};

#define PROGRAM_SETUP(program, name, tier, count)                                    \
    static void *program##_##name##_setup(const bench_case *job)                     \
    {                                                                                \
        return program_setup(job, #program "_" #name, tier, program##_types, count); \
    }

/* Static sites as TIDE_SCOPE defines them, but in an array that belongs to the state. */
static void *program_setup(const bench_case *job, const char *name, tide_tier tier,
                           const bench_work_row *types, size_t count)
{
    enum { SETS = 4 };
    static tide_site sites[SETS][CODEC_SITES];
    static size_t sets;
    bench_work *s = bench_work_pool(job);
    if (sets == SETS)
        bench_die("%s is set up once more", name);
    for (size_t i = 0; i < count; i++) {
        tide_site site = {&tide_plans_arriving[TIDE_KIND_SCOPE],
                          NULL,
                          {__FILE__, name, (uint32_t)i + 1},
                          0,
                          TIDE_KIND_SCOPE,
                          NULL};
        sites[sets][i] = site;
    }
    bench_work_pin(s, sites[sets++], count, tier, types);
    return s;
}

#define PROGRAM_CASE(program, sites)                                           \
    PROGRAM(program, bump)                                                     \
    PROGRAM(program, heap)                                                     \
    PROGRAM(program, alloca)                                                   \
    PROGRAM(program, site)                                                     \
    PROGRAM(program, types)                                                    \
    PROGRAM(program, frame)                                                    \
    PROGRAM_SETUP(program, full, TIDE_TIER_FULL, sites)                        \
    PROGRAM_SETUP(program, table, TIDE_TIER_TABLE, sites)                      \
    PROGRAM_VARIANT(program, bump, bump, "bump", bench_work_bump)              \
    PROGRAM_VARIANT(program, heap, heap, "glibc", bench_work_glibc)            \
    PROGRAM_VARIANT(program, alloca, stack, "alloca", bench_work_stack)        \
    PROGRAM_VARIANT(program, site, full, "tide-full", program##_full_setup)    \
    PROGRAM_VARIANT(program, site, table, "tide-table", program##_table_setup) \
    PROGRAM_VARIANT(program, types, types, "tide-types", bench_work_pool)      \
    PROGRAM_VARIANT(program, frame, frame, "tide-frame", bench_work_pool)      \
    const bench_variant *const bench_##program##_variants[] = {                \
        &variant_##program##_bump,  &variant_##program##_stack,                \
        &variant_##program##_heap,  &variant_##program##_full,                 \
        &variant_##program##_table, &variant_##program##_types,                \
        &variant_##program##_frame, NULL,                                      \
    };

PROGRAM_CASE(codec, CODEC_SITES)
PROGRAM_CASE(fft, FFT_SITES)
