/* SPDX-License-Identifier: MIT */
/* sites-N: a loop over N different functions, each with a scope of its own. What does a scope cost
 * in a program that has many, where neither the processor nor the library meets the same one each
 * time? An operation is one call: two acquires of each of one to four types, of eight in all.
 *
 * The functions are made by a macro: eight sets of types, 25 functions for each. Each function
 * always asks for the same sizes, no two of them for the same. All variants call them through a
 * table. The call sites of one tier lie in an array, so that they are known to the library only in
 * the process that measures them: hundreds of static sites would be in the way of other cases. */
#include <tidepool/site.h>

#include "sites.h"
#include "work.h"

enum { SITES_SETS = 8, SITES_ROWS = BENCH_CALL_SITES / SITES_SETS, SITES_TWINS = 8 };

static const bench_work_row sites_types[SITES_SETS] = {
    {TIDE_F64, TIDE_I32},
    {TIDE_F32},
    {TIDE_I64, TIDE_I32, TIDE_F32},
    {TIDE_F64, TIDE_U8, TIDE_I16, TIDE_I8},
    {TIDE_I64},
    {TIDE_U16, TIDE_F32},
    {TIDE_F64, TIDE_I32, TIDE_I16},
    {TIDE_I8, TIDE_U8, TIDE_U16, TIDE_I64},
};

typedef uint64_t sites_function(const void *context, tide_site *sites, const bench_sizes *n);

/* --- the functions ------------------------------------------------------------------------ */

#define SITES_TWO(T, a, b)           (T, a, n->count[0]), (T, b, n->count[1])
#define SITES_ALSO(T, a, b)          (T, a, n->count[2]), (T, b, n->count[3])
#define SITES_NUMBER(row, set)       (SITES_SETS * (row) + (set))
#define SITES_NAME(form, mode, r, s) sites_##form##_##mode##_##r##_##s

#define SITES_FUNCTION(form, mode, row, set, types, names, ...)                 \
    static __attribute__((noinline)) uint64_t SITES_NAME(form, mode, row, set)( \
        const void *context, tide_site *sites, const bench_sizes *n)            \
    {                                                                           \
        FORM_CONTEXT(form) c = (FORM_CONTEXT(form))(uintptr_t)context;          \
        tide_site *const site = &sites[SITES_NUMBER(row, set)];                 \
        uint64_t sum = 0;                                                       \
        (void)site;                                                             \
        FORM_BEGIN(form, c, site, types, __VA_ARGS__);                          \
        BENCH_WORK_WRITE(mode, 0, __VA_ARGS__);                                 \
        BENCH_WORK_READ(mode, 0, __VA_ARGS__);                                  \
        FORM_END(form, c, FORM_BARE names);                                     \
        return sum;                                                             \
    }

/* clang-format off */
#define SITES_SET_0(form, mode, row)                                                    \
    SITES_FUNCTION(form, mode, row, 0, (double, int32_t), (d, c_, b, a),                \
                   SITES_TWO(double, a, b), SITES_ALSO(int32_t, c_, d))
#define SITES_SET_1(form, mode, row)                                                    \
    SITES_FUNCTION(form, mode, row, 1, (float), (b, a), SITES_TWO(float, a, b))
#define SITES_SET_2(form, mode, row)                                                    \
    SITES_FUNCTION(form, mode, row, 2, (int64_t, int32_t, float), (f, e, d, c_, b, a),  \
                   SITES_TWO(int64_t, a, b), SITES_ALSO(int32_t, c_, d),                \
                   SITES_TWO(float, e, f))
#define SITES_SET_3(form, mode, row)                                                    \
    SITES_FUNCTION(form, mode, row, 3, (double, uint8_t, int16_t, int8_t),              \
                   (h, g, f, e, d, c_, b, a),                                           \
                   SITES_TWO(double, a, b), SITES_ALSO(uint8_t, c_, d),                 \
                   SITES_TWO(int16_t, e, f), SITES_ALSO(int8_t, g, h))
#define SITES_SET_4(form, mode, row)                                                    \
    SITES_FUNCTION(form, mode, row, 4, (int64_t), (b, a), SITES_ALSO(int64_t, a, b))
#define SITES_SET_5(form, mode, row)                                                    \
    SITES_FUNCTION(form, mode, row, 5, (uint16_t, float), (d, c_, b, a),                \
                   SITES_TWO(uint16_t, a, b), SITES_ALSO(float, c_, d))
#define SITES_SET_6(form, mode, row)                                                    \
    SITES_FUNCTION(form, mode, row, 6, (double, int32_t, int16_t),                      \
                   (f, e, d, c_, b, a),                                                 \
                   SITES_TWO(double, a, b), SITES_ALSO(int32_t, c_, d),                 \
                   SITES_TWO(int16_t, e, f))
#define SITES_SET_7(form, mode, row)                                                    \
    SITES_FUNCTION(form, mode, row, 7, (int8_t, uint8_t, uint16_t, int64_t),            \
                   (h, g, f, e, d, c_, b, a),                                           \
                   SITES_TWO(int8_t, a, b), SITES_ALSO(uint8_t, c_, d),                 \
                   SITES_TWO(uint16_t, e, f), SITES_ALSO(int64_t, g, h))

#define SITES_ROW(form, mode, row)                                                      \
    SITES_SET_0(form, mode, row) SITES_SET_1(form, mode, row)                           \
    SITES_SET_2(form, mode, row) SITES_SET_3(form, mode, row)                           \
    SITES_SET_4(form, mode, row) SITES_SET_5(form, mode, row)                           \
    SITES_SET_6(form, mode, row) SITES_SET_7(form, mode, row)
#define SITES_ENTRIES(form, mode, row)                                                  \
    SITES_NAME(form, mode, row, 0), SITES_NAME(form, mode, row, 1),                     \
    SITES_NAME(form, mode, row, 2), SITES_NAME(form, mode, row, 3),                     \
    SITES_NAME(form, mode, row, 4), SITES_NAME(form, mode, row, 5),                     \
    SITES_NAME(form, mode, row, 6), SITES_NAME(form, mode, row, 7),

#define SITES_FIRST_ROW(X, form, mode) X(form, mode, 0)
#if BENCH_SANITIZED
#define SITES_EACH_ROW SITES_FIRST_ROW
#else
#define SITES_EACH_ROW(X, form, mode)                                                   \
    X(form, mode, 0) X(form, mode, 1) X(form, mode, 2) X(form, mode, 3)                 \
    X(form, mode, 4) X(form, mode, 5) X(form, mode, 6) X(form, mode, 7)                 \
    X(form, mode, 8) X(form, mode, 9) X(form, mode, 10) X(form, mode, 11)               \
    X(form, mode, 12) X(form, mode, 13) X(form, mode, 14) X(form, mode, 15)             \
    X(form, mode, 16) X(form, mode, 17) X(form, mode, 18) X(form, mode, 19)             \
    X(form, mode, 20) X(form, mode, 21) X(form, mode, 22) X(form, mode, 23)             \
    X(form, mode, 24)
#endif
/* clang-format on */

/* The functions that also fill and check exist once for each set of types: the rest is the same
 * text. */
static uint64_t sites_loop(bench_work *s, uint64_t operations, sites_function *const *functions,
                           uint32_t known)
{
    const bench_sizes *const sizes = s->sizes;
    const void *const context = s->context;
    static tide_site unused[BENCH_CALL_SITES]; /* forms without sites only compute an address */
    tide_site *const sites = s->sites != NULL ? s->sites : unused;
    uint32_t count = s->job->sites, at = 0;
    uint64_t done = 0, sum = 0;
    if (known < count)
        count = known;
    for (; done < operations; done++) {
        sum += functions[at](context, sites, &sizes[at]);
        at = at + 1 == count ? 0 : at + 1;
    }
    s->sum += sum;
    return done;
}

#define SITES_LOOP(form, mode, known, each)                                                       \
    each(SITES_ROW, form, mode) static sites_function *const form##_##mode##_functions[known] = { \
        each(SITES_ENTRIES, form, mode)};                                                         \
    static uint64_t form##_##mode(void *state, uint64_t operations)                               \
    {                                                                                             \
        return sites_loop(state, operations, form##_##mode##_functions, known);                   \
    }
#define SITES_FORM(form)                                    \
    SITES_LOOP(form, run, BENCH_CALL_SITES, SITES_EACH_ROW) \
    SITES_LOOP(form, prove, SITES_SETS, SITES_FIRST_ROW)

SITES_FORM(types)
SITES_FORM(site)
SITES_FORM(bump)
SITES_FORM(heap)

/* --- their sites -------------------------------------------------------------------------- */

/* As TIDE_SCOPE defines its own, but in no list of the module's: the library finds each of them
 * when it is first used. */
typedef struct sites_array {
    tide_site site[BENCH_CALL_SITES];
    const char *name;
} sites_array;

static tide_site *sites_of(sites_array *a, const char *name)
{
    if (a->name != NULL)
        return a->site;
    a->name = name;
    for (uint32_t i = 0; i < BENCH_CALL_SITES; i++) {
        tide_site site = {&tide_plans_arriving[TIDE_KIND_SCOPE],
                          NULL,
                          {__FILE__, name, i + 1},
                          0,
                          TIDE_KIND_SCOPE,
                          NULL};
        a->site[i] = site;
    }
    return a->site;
}

static void *full_setup(const bench_case *job)
{
    static sites_array full;
    bench_work *s = bench_work_pool(job);
    bench_work_pin(s, sites_of(&full, "sites_full"), job->sites, TIDE_TIER_FULL, sites_types,
                   SITES_SETS);
    return s;
}

static void *table_setup(const bench_case *job)
{
    static sites_array table;
    bench_work *s = bench_work_pool(job);
    bench_work_pin(s, sites_of(&table, "sites_table"), job->sites, TIDE_TIER_TABLE, sites_types,
                   SITES_SETS);
    return s;
}

/* A table of no types: each is saved when it is touched. */
static void *unknown_setup(const bench_case *job)
{
    static sites_array unknown;
    bench_work *s = bench_work_pool(job);
    bench_work_pin(s, sites_of(&unknown, "sites_unknown"), job->sites, TIDE_TIER_TABLE, NULL, 1);
    return s;
}

/* --- compiled ----------------------------------------------------------------------------- */

/* Each of them so often. */
static void sites_use(void *state, uint64_t operations)
{
    bench_work *s = state;
    operations *= s->job->sites;
    if (site_run(s, operations) != operations)
        bench_die("sites lost operations");
}

/* Has the first `count` sites of an array compiled for their types. */
static bench_compiled sites_compile(bench_work *s, tide_site *sites, uint32_t count, bool counting)
{
    bench_compiled compiled = {.count = count};
    for (uint32_t i = 0; i < count; i++) {
        tide_site_information info;
        compiled.sites[i] = &sites[i];
        const tide_type *row = sites_types[i % SITES_SETS];
        size_t types = 0;
        while (types < BENCH_WORK_TYPES && row[types] != TIDE_NO_TYPE)
            types++;
        if (tide_site_info(&sites[i], &info) == TIDE_OK && info.tier == TIDE_TIER_COMPILED)
            continue;
        if (tide_site_declare(&sites[i], row, types) != TIDE_OK)
            bench_die("%s", tide_error_message());
    }
    s->sites = sites;
    bench_compile(&compiled, sites_use, s, BENCH_CALL_SITES, counting);
    return compiled;
}

/* Of the first eight sites, one for each set of types, there are twins that count. */
static void *compiled_setup(const bench_case *job)
{
    static sites_array timed, counted;
    bench_case few = *job;
    bench_work *s = bench_work_pool(&few);
    uint32_t twins = few.sites = job->sites < SITES_TWINS ? job->sites : SITES_TWINS;
    bench_compiled twin = sites_compile(s, sites_of(&counted, "sites_counted"), twins, true);
    bench_prove_executed(&twin, sites_use, s, BENCH_CALL_SITES, 0);
    s->job = job;
    s->tide->compiled = sites_compile(s, sites_of(&timed, "sites_compiled"), job->sites, false);
    s->site_count = job->sites;
    s->tier = TIDE_TIER_COMPILED;
    return s;
}

BENCH_WORK_VARIANT(bump, "bump", bench_work_bump)
BENCH_WORK_VARIANT(heap, "glibc", bench_work_glibc)
BENCH_WORK_VARIANT(types, "tide-types", bench_work_pool)
BENCH_WORK_VARIANT_IF(NULL, site, "tide-full", full_setup, _full)
BENCH_WORK_VARIANT_IF(NULL, site, "tide-table", table_setup, _table)
BENCH_WORK_VARIANT_IF(NULL, site, "tide-nothing-known", unknown_setup, _unknown)
BENCH_WORK_VARIANT_IF(BENCH_MISSING_STAGER, site, "tide-compiled", compiled_setup, _compiled)

const bench_variant *const bench_sites_variants[] = {
    &variant_bump,       &variant_heap,         &variant_types,         &variant_site_full,
    &variant_site_table, &variant_site_unknown, &variant_site_compiled, NULL,
};
