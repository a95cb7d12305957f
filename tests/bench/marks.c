/* SPDX-License-Identifier: MIT */
/* Two arrays, double and int32_t, in a level that is not a TIDE_FRAME:
 *
 *   marks          tide_checkpoint, tide_checkpoint_types and tide_rewind around inlined acquires
 *   ffi            tide_scope_enter and tide_scope_leave, and acquires by function: what code
 *                  without macros calls
 *   types-unused   TIDE_SCOPE_TYPES that also names a type which this pool never gets asked for */
#include <tidepool/dynamic.h>
#include <tidepool/site.h>

#include "marks.h"
#include "work.h"

static const tide_type marks_both[] = {TIDE_F64, TIDE_I32};
static const bench_work_row marks_row = {TIDE_F64, TIDE_I32};

/* --- the levels, as forms ----------------------------------------------------------------- */

#define MARKS_ACQUIRED(c, ...) TIDE_MAP_WITH(FORM_ACQUIRE, c, __VA_ARGS__)((void)0)

#define FORM_CONTEXT_mark tide_pool *
#define FORM_BEGIN_mark(c, site, types, ...)   \
    const tide_mark mark = tide_checkpoint(c); \
    MARKS_ACQUIRED(c, __VA_ARGS__)
#define FORM_END_mark(c, ...) ((void)tide_rewind(c, mark))

#define FORM_CONTEXT_mark_types tide_pool *
#define FORM_BEGIN_mark_types(c, site, types, ...)                  \
    const tide_mark mark = tide_checkpoint_types(c, marks_both, 2); \
    MARKS_ACQUIRED(c, __VA_ARGS__)
#define FORM_END_mark_types(c, ...) ((void)tide_rewind(c, mark))

/* By function, as another language calls it. */
#define FORM_CONTEXT_entered tide_pool *
#define FORM_BEGIN_entered(c, site, types, ...) \
    tide_scope scope;                           \
    (void)tide_scope_enter(c, site, &scope);    \
    TIDE_MAP_WITH(MARKS_FUNCTION, c, __VA_ARGS__)((void)0)
#define FORM_END_entered(c, ...)   ((void)tide_scope_leave(&scope))
#define MARKS_FUNCTION(i, c, item) MARKS_FUNCTION_(c, FORM_BARE item)
#define MARKS_FUNCTION_(c, ...)    MARKS_FUNCTION__(c, __VA_ARGS__)
#define MARKS_FUNCTION__(c, T, name, number) \
    T *name = tide_acquire_type(c, tide_type_of(T), number);

#define FORM_CONTEXT_entered_frame tide_pool *
#define FORM_BEGIN_entered_frame(c, site, types, ...)                           \
    const size_t counts[] = {n->count[0], n->count[1]};                         \
    tide_scope scope;                                                           \
    void *data[2];                                                              \
    (void)tide_scope_enter_frame(c, site, 2, marks_both, counts, data, &scope); \
    double *a = data[0];                                                        \
    int32_t *b = data[1]
#define FORM_END_entered_frame(c, ...) ((void)tide_scope_leave(&scope))

/* TIDE_SCOPE_TYPES that names a third type. */
typedef struct marks_unused {
    int64_t number;
} marks_unused;

#define FORM_CONTEXT_unused tide_pool *
#define FORM_BEGIN_unused(c, site, types, ...) \
    FORM_BEGIN_types(c, site, (double, int32_t, int64_t), __VA_ARGS__)
#define FORM_END_unused(c, ...) ((void)0)

#define FORM_CONTEXT_unused_struct tide_pool *
#define FORM_BEGIN_unused_struct(c, site, types, ...) \
    FORM_BEGIN_types(c, site, (double, int32_t, marks_unused), __VA_ARGS__)
#define FORM_END_unused_struct(c, ...) ((void)0)

/* --- the loops ---------------------------------------------------------------------------- */

#define MARKS_TWO (double, a, n->count[0]), (int32_t, b, n->count[1])
#define MARKS_ONCE(form, mode)                                   \
    FORM_BEGIN(form, c, s->sites, (double, int32_t), MARKS_TWO); \
    BENCH_WORK_WRITE(mode, 0, MARKS_TWO);                        \
    BENCH_WORK_READ(mode, 0, MARKS_TWO);                         \
    FORM_END(form, c, b, a)
#define MARKS_LOOP(form) BENCH_WORK_LOOP(BENCH_FOR, form, form, 1, MARKS_ONCE)

MARKS_LOOP(mark)
MARKS_LOOP(mark_types)
MARKS_LOOP(entered)
MARKS_LOOP(entered_frame)
MARKS_LOOP(site)
MARKS_LOOP(types)
MARKS_LOOP(unused)
MARKS_LOOP(unused_struct)
MARKS_LOOP(bump)

/* --- setting up --------------------------------------------------------------------------- */

static void *full_setup(const bench_case *job)
{
    bench_work *s = bench_work_pool(job);
    bench_work_pin_named(s, "marks full", TIDE_TIER_FULL, &marks_row);
    return s;
}

static void *table_setup(const bench_case *job)
{
    bench_work *s = bench_work_pool(job);
    bench_work_pin_named(s, "marks table", TIDE_TIER_TABLE, &marks_row);
    return s;
}

/* A frame's site learns nothing before it is compiled. */
static void *frame_setup(const bench_case *job)
{
    bench_work *s = bench_work_pool(job);
    tide_site *site = tide_site_register_kind("marks frame", TIDE_KIND_FRAME);
    if (site == NULL)
        bench_die("%s", tide_error_message());
    bench_work_pin(s, site, 1, TIDE_TIER_FULL, NULL, 1);
    return s;
}

/* No other types in the pool, or the named one would be in use. */
static void *two_setup(const bench_case *job)
{
    return bench_work_with(job, marks_both, 2);
}

/* Two slots: nobody has acquired of the third type. */
static bool two_verify(void *state, uint64_t operations)
{
    const bench_work *s = state;
    tide_pool_statistics now;
    if (tide_pool_stats(s->tide->pool, &now) != TIDE_OK || now.slots != 2) {
        bench_complain("%s: not two slots", s->job->name);
        return false;
    }
    return bench_work_verify(state, operations);
}

/* How many types the pool knows of, the unused one perhaps among them. */
static size_t two_figures(void *state, uint64_t operations, bench_figure *out, size_t room)
{
    const bench_work *s = state;
    (void)operations;
    if (room < 1)
        return 0;
    out[0] = (bench_figure){"shelves", (double)s->tide->warm.shelves};
    return 1;
}

BENCH_WORK_VARIANT(mark, "tide-mark", bench_work_pool)
BENCH_WORK_VARIANT(mark_types, "tide-mark-types", bench_work_pool)
BENCH_WORK_VARIANT(types, "tide-types", bench_work_pool)
BENCH_WORK_VARIANT(bump, "bump", bench_work_bump)
BENCH_WORK_VARIANT_IF(NULL, site, "tide-full", full_setup, _full)
BENCH_WORK_VARIANT_IF(NULL, site, "tide-table", table_setup, _table)
BENCH_WORK_VARIANT_IF(NULL, entered, "tide-enter-full", full_setup, _full)
BENCH_WORK_VARIANT_IF(NULL, entered, "tide-enter-table", table_setup, _table)
BENCH_WORK_VARIANT_IF(NULL, entered_frame, "tide-enter-frame", frame_setup, )

#define UNUSED_VARIANT(name, label)                                \
    static void name##_two_proof(void *state, uint64_t operations) \
    {                                                              \
        name##_prove(state, operations);                           \
        bench_work_proved(state, name##_run);                      \
    }                                                              \
    static const bench_variant variant_##name##_two = {            \
        label,      NULL,       two_setup,       name##_two_proof, \
        name##_run, two_verify, bench_work_free, two_figures};
UNUSED_VARIANT(types, "tide-types")
UNUSED_VARIANT(unused, "tide-types-unused")
UNUSED_VARIANT(unused_struct, "tide-types-unused-struct")

const bench_variant *const bench_marks_variants[] = {
    &variant_bump, &variant_types, &variant_site_full, &variant_mark, &variant_mark_types, NULL,
};

const bench_variant *const bench_ffi_variants[] = {
    &variant_bump,
    &variant_site_full,
    &variant_site_table,
    &variant_entered_full,
    &variant_entered_table,
    &variant_entered_frame,
    NULL,
};

const bench_variant *const bench_unused_variants[] = {
    &variant_bump, &variant_types_two, &variant_unused_two, &variant_unused_struct_two, NULL,
};
