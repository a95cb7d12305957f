/* SPDX-License-Identifier: MIT */
/* What all emitters share: the runtime's structures as libgccjit's types, and a few words to write
 * functions with. Structures have their real fields at their real places, so what --explain prints
 * reads like the C that it stands for. */
#ifndef TIDEPOOL_JIT_STAGE_EMIT_H
#define TIDEPOOL_JIT_STAGE_EMIT_H

#include <libgccjit.h>

#include "jit/spec/spec.h"
#include "runtime/scope/compiled.h"

/* Structure (as in tide_NAME), field, its place in the C structure, what it holds. Fields of one
 * structure stand together, in the order of their places; what is not named is padding. */
/* clang-format off */
#define STAGE_FIELDS(X)                                                                            \
    X(slot, data, data, POINTER) X(slot, limit, limit, WORD) X(slot, array, array, ARRAY)          \
    X(slot, form, form, WORD)                                                                      \
    X(shelf, next, next, SLOT) X(shelf, bit, bit, WORD)                                            \
    X(pool, tag, tag, WORD) X(pool, log_top, log_top, POINTER) X(pool, log_room, log_room, POINTER) \
    X(pool, saved, saved, WORD) X(pool, shelves, shelves, SHELVES)                                 \
    X(plan_counts, runs, runs, WORD)                                                               \
    X(plan, counts, counts, COUNTS)                                                                \
    X(scope, pool, pool, POOL) X(scope, base, base, POINTER) X(scope, tag, tag, WORD)                \
    X(scope, outer_saved, outer_saved, WORD) X(scope, plan, plan, PLAN)                            \
    X(scope, saved, saved, SAVED) X(scope, site, site, POINTER)                                    \
    X(array, shape, tensor.shape, EXTENTS)                                                         \
    X(runtime, enter, enter, ENTER_FUNCTION) X(runtime, leave, leave, LEAVE_FUNCTION)              \
    X(runtime, frame, frame, FRAME_FUNCTION)                                                       \
    X(runtime, frame_leave, frame_leave, LEAVE_FUNCTION)                                           \
    X(runtime, acquire, acquire, ACQUIRE_FUNCTION)                                                 \
    X(runtime, acquire_slow, acquire_slow, ACQUIRE_FUNCTION)                                       \
    X(runtime, array, array, ARRAY_FUNCTION) X(runtime, array_slow, array_slow, ARRAY_FUNCTION)

#define STAGE_STRUCTS(X) \
    X(slot, SLOT) X(shelf, SHELF) X(pool, POOL) X(plan_counts, COUNTS)                             \
    X(plan, PLAN) X(scope, SCOPE) X(array, ARRAY) X(runtime, RUNTIME)
/* clang-format on */

/* A function that compiled code is, or calls: kind, what it gives, its parameters. */
/* clang-format off */
#define STAGE_FUNCTIONS(X)                                                                         \
    X(ENTER, STAGE_NOTHING, {STAGE_SCOPE, "scope"}, {STAGE_POOL, "pool"}, {STAGE_PLAN, "plan"},    \
      {STAGE_POINTER, "site"})                                                                     \
    X(LEAVE, STAGE_NOTHING, {STAGE_SCOPE, "scope"})                                                \
    X(FRAME, STAGE_NOTHING, {STAGE_SCOPE, "scope"}, {STAGE_POOL, "pool"}, {STAGE_TYPE, "count"},   \
      {STAGE_TYPES, "types"}, {STAGE_WORDS, "counts"}, {STAGE_POINTERS, "data"})                   \
    X(ACQUIRE, STAGE_POINTER, {STAGE_POOL, "pool"}, {STAGE_TYPE, "type"}, {STAGE_WORD, "n"},       \
      {STAGE_PLAN, "plan"}, {STAGE_POINTER, "site"})                                               \
    X(ARRAY, STAGE_ARRAY, {STAGE_POOL, "pool"}, {STAGE_TYPE, "type"}, {STAGE_RANK, "ndim"},        \
      {STAGE_EXTENTS, "shape"}, {STAGE_PLAN, "plan"}, {STAGE_POINTER, "site"})

typedef enum stage_type {
    STAGE_NOTHING,
    STAGE_POINTER,
    STAGE_WORD,
    STAGE_TYPE, /* an element type's number */
    STAGE_RANK,
    STAGE_EXTENT,
    STAGE_POINTERS, /* pointers to these ... */
    STAGE_WORDS,
    STAGE_TYPES,
    STAGE_EXTENTS,
#define STAGE_X(name, NAME) STAGE_##NAME, /* ... and to structures */
    STAGE_STRUCTS(STAGE_X)
#undef STAGE_X
#define STAGE_X(NAME, ...) STAGE_##NAME##_FUNCTION,
    STAGE_FUNCTIONS(STAGE_X)
#undef STAGE_X
    STAGE_SHELVES, /* arrays that stand in structures */
    STAGE_SAVED,
    STAGE_TYPE_COUNT
} stage_type;

typedef enum stage_field {
#define STAGE_X(structure, field, place, type) STAGE_AT_##structure##_##field,
    STAGE_FIELDS(STAGE_X)
#undef STAGE_X
    STAGE_FIELD_COUNT
} stage_field;
/* clang-format on */

/* The first argument of helpers: stage_load(e, scope, AT(scope, base)). */
#define AT(structure, field) STAGE_AT_##structure##_##field

/* Code in the making. */
typedef struct stage_emit {
    gcc_jit_context *context;
    gcc_jit_type *types[STAGE_TYPE_COUNT];
    gcc_jit_field *fields[STAGE_FIELD_COUNT];
    gcc_jit_lvalue *runtime; /* where the library's table is */
    gcc_jit_function *expect, *fetch_add;
} stage_emit;

enum { STAGE_PARAMS_MAX = 6 };

/* One function in the making: what is written next goes to `here`. */
typedef struct stage_body {
    stage_emit *e;
    gcc_jit_function *function;
    gcc_jit_block *here;
    gcc_jit_rvalue *params[STAGE_PARAMS_MAX];
    int param_count, guards;
    bool gives; /* a value */
} stage_body;

/* Types and globals of a fresh context. */
void stage_begin(stage_emit *e, gcc_jit_context *context);

/* ---- functions ---- */

/* An exported function STEM_suffix of one of STAGE_FUNCTIONS' types. */
stage_body stage_function(stage_emit *e, stage_type type, const char *stem, const char *suffix);

gcc_jit_block *stage_block(const stage_body *body, const char *name);

/* Likely: left op right; otherwise go there. Goes on in a new block. */
void stage_guard(stage_body *body, gcc_jit_rvalue *left, enum gcc_jit_comparison op,
                 gcc_jit_rvalue *right, gcc_jit_block *otherwise);

/* Calls what stands in that field of the runtime's table with the function's own parameters, as its
 * last act. */
void stage_give_up(stage_body *body, stage_field general);

/* Ends the function. `value` NULL: it gives nothing. */
void stage_return(stage_body *body, gcc_jit_rvalue *value);

/* plan->counts->runs += 1, exactly even if threads share the site. */
void stage_count(stage_body *body, gcc_jit_rvalue *plan);

/* ---- values ---- */

/* Keeps a value in a variable, so that it is computed here and once. Give it a readable name. */
gcc_jit_rvalue *stage_keep(stage_body *body, gcc_jit_rvalue *value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

gcc_jit_rvalue *stage_constant(stage_emit *e, stage_type type, uint64_t value);
gcc_jit_rvalue *stage_binary(stage_emit *e, enum gcc_jit_binary_op op, gcc_jit_rvalue *left,
                             gcc_jit_rvalue *right);

/* Fields of the structure that `pointer` points to; elements of an array or a pointer. */
gcc_jit_lvalue *stage_place(stage_emit *e, gcc_jit_rvalue *pointer, stage_field field);
gcc_jit_rvalue *stage_load(stage_emit *e, gcc_jit_rvalue *pointer, stage_field field);
void stage_store(stage_body *body, gcc_jit_rvalue *pointer, stage_field field,
                 gcc_jit_rvalue *value);
gcc_jit_lvalue *stage_element(stage_emit *e, gcc_jit_rvalue *array, uint32_t index);

/* &pointer[index] */
gcc_jit_rvalue *stage_ahead(stage_emit *e, gcc_jit_rvalue *pointer, uint32_t index);

/* &pool->shelves[type]: a constant distance from the pool. */
gcc_jit_rvalue *stage_shelf(stage_emit *e, gcc_jit_rvalue *pool, tide_type type);

/* ---- the kinds ---- */

void stage_emit_scope(stage_emit *e, const tide_spec *spec);
void stage_emit_frame(stage_emit *e, const tide_spec *spec);
void stage_emit_acquire(stage_emit *e, const tide_spec *spec);
void stage_emit_array(stage_emit *e, const tide_spec *spec);

/* ---- what scopes and frames have in common ---- */

/* The tag of a level opened inside `outer`. */
gcc_jit_rvalue *stage_inner_tag(stage_body *body, gcc_jit_rvalue *outer);

/* May a level open inside the open one, or are there too many? */
void stage_guard_depth(stage_body *body, gcc_jit_rvalue *pool, gcc_jit_block *otherwise);

/* A level: its tag, what it has saved, and what the level around has. */
typedef struct stage_level {
    gcc_jit_rvalue *tag, *saved, *outer_saved;
} stage_level;

/* Has the open level saved all these types? Fills in what it and a level of these types save. */
void stage_guard_saved(stage_body *body, gcc_jit_rvalue *pool, uint32_t count,
                       const tide_type *types, stage_level *level, gcc_jit_block *otherwise);

/* What every scope is filled with; a frame's plan and site are set already. */
void stage_fill_scope(stage_body *body, gcc_jit_rvalue *scope, gcc_jit_rvalue *pool,
                      gcc_jit_rvalue *top, const stage_level *level);

/* The level becomes the open one. */
void stage_open_level(stage_body *body, gcc_jit_rvalue *pool, const stage_level *level);
void stage_store_saved(stage_body *body, gcc_jit_rvalue *scope, uint32_t index,
                       gcc_jit_rvalue *next);

/* Where the type's shelf stands, in a variable. */
gcc_jit_rvalue *stage_keep_next(stage_body *body, gcc_jit_rvalue *pool, tide_type type);

/* Of a leave, whose scope is the first parameter: the level open is the scope's own; the log is as
 * at its entry. */
void stage_guard_level(stage_body *body, gcc_jit_block *otherwise);
void stage_guard_log(stage_body *body, gcc_jit_block *otherwise);

/* What was kept in the scope goes back, and the function ends. */
void stage_put_back(stage_body *body, uint32_t count, const tide_type *types);

#endif
