/* SPDX-License-Identifier: MIT */
/* nested-frames-N: functions that each open a frame and call the next one. An operation is one
 * frame: two arrays, whose ends are written before the call and read after it.
 *
 *   nested-frames-8   all of them take double and int32_t
 *   nested-mixed-4    no two of them take the same type: the guard of an inner frame fails each
 *                     time that the outer one has been entered anew */
#include "cases.h"
#include "work.h"

#define NESTED_FUNCTION(form, mode, name, inner, T, U)                                         \
    static __attribute__((noinline))                                                           \
    uint64_t form##_##mode##_##name(FORM_CONTEXT(form) c, const bench_sizes *n, uint32_t left) \
    {                                                                                          \
        FORM_BEGIN(form, c, , (T, U), (T, a, n->count[0]), (U, b, n->count[1]));               \
        BENCH_WORK_WRITE(mode, left, (T, a, n->count[0]), (U, b, n->count[1]));                \
        uint64_t sum = inner;                                                                  \
        BENCH_WORK_READ(mode, left, (T, a, n->count[0]), (U, b, n->count[1]));                 \
        FORM_END(form, c, b, a);                                                               \
        return sum;                                                                            \
    }

#define NESTED_CALL(form, mode, name) form##_##mode##_##name(c, n, left - 1)
#define NESTED_NEXT(form, mode, name, next, T, U) \
    NESTED_FUNCTION(form, mode, name, NESTED_CALL(form, mode, next), T, U)

/* clang-format off */
#define NESTED_FUNCTIONS(form, mode)                            \
    NESTED_FUNCTION(form, mode, 1, left, double, int32_t)       \
    NESTED_NEXT(form, mode, 2, 1, double, int32_t)              \
    NESTED_NEXT(form, mode, 3, 2, double, int32_t)              \
    NESTED_NEXT(form, mode, 4, 3, double, int32_t)              \
    NESTED_NEXT(form, mode, 5, 4, double, int32_t)              \
    NESTED_NEXT(form, mode, 6, 5, double, int32_t)              \
    NESTED_NEXT(form, mode, 7, 6, double, int32_t)              \
    NESTED_NEXT(form, mode, 8, 7, double, int32_t)              \
    NESTED_FUNCTION(form, mode, mixed_1, left, uint8_t, int64_t) \
    NESTED_NEXT(form, mode, mixed_2, mixed_1, uint16_t, int8_t) \
    NESTED_NEXT(form, mode, mixed_3, mixed_2, int16_t, float)   \
    NESTED_NEXT(form, mode, mixed_4, mixed_3, double, int32_t)
/* clang-format on */

#define NESTED_DEEP(form, mode, name, depth) sum += form##_##mode##_##name(c, n, depth)
#define NESTED_ONCE_8(form, mode)            NESTED_DEEP(form, mode, 8, BENCH_NESTED)
#define NESTED_ONCE_mixed(form, mode)        NESTED_DEEP(form, mode, mixed_4, BENCH_MIXED)

#define NESTED_VARIANT(LOOP, name, form, chain, depth, label, setup)        \
    BENCH_WORK_LOOP(LOOP, name##_##chain, form, depth, NESTED_ONCE_##chain) \
    BENCH_WORK_VARIANT(name##_##chain, label, setup)

/* All variants of one case. */
#define NESTED_CASE(chain, depth, list)                                                  \
    NESTED_VARIANT(BENCH_FOR, frame, frame, chain, depth, "tide-frame", bench_work_pool) \
    NESTED_VARIANT(BENCH_FOR, types, types, chain, depth, "tide-types", bench_work_pool) \
    NESTED_VARIANT(BENCH_FOR, bump, bump, chain, depth, "bump", bench_work_bump)         \
    NESTED_VARIANT(BENCH_FOR, heap, heap, chain, depth, "glibc", bench_work_glibc)       \
    NESTED_VARIANT(BENCH_FOR, stack, alloca, chain, depth, "alloca", bench_work_stack)   \
    const bench_variant *const list[] = {                                                \
        &variant_bump_##chain,  &variant_stack_##chain, &variant_heap_##chain,           \
        &variant_frame_##chain, &variant_types_##chain, NULL,                            \
    };

NESTED_FUNCTIONS(frame, run)
NESTED_FUNCTIONS(frame, prove)
NESTED_FUNCTIONS(types, run)
NESTED_FUNCTIONS(types, prove)
NESTED_FUNCTIONS(bump, run)
NESTED_FUNCTIONS(bump, prove)
NESTED_FUNCTIONS(heap, run)
NESTED_FUNCTIONS(heap, prove)
NESTED_FUNCTIONS(alloca, run)
NESTED_FUNCTIONS(alloca, prove)

NESTED_CASE(8, BENCH_NESTED, bench_nested_8_variants)
NESTED_CASE(mixed, BENCH_MIXED, bench_nested_mixed_variants)
