/* SPDX-License-Identifier: MIT */
/* What the emitter is written with: the runtime's structures as libgccjit's types, and a few words to
 * write functions with. Structures have their real fields at their real places, so what --explain prints
 * reads like the C that it stands for. */
#ifndef TIDEPOOL_JIT_STAGE_EMIT_H
#define TIDEPOOL_JIT_STAGE_EMIT_H

#include <libgccjit.h>

#include "jit/spec/spec.h"
#include "runtime/scope/compiled.h"

/* Structure (as in tide_NAME), field, what it holds. Fields of one structure stand together, in the
 * order of their places; what is not named is padding. */
/* clang-format off */
#define STAGE_FIELDS(X)                                                                            \
    X(shelf, next, POINTER) X(shelf, bit, WORD)                                                    \
    X(pool, tag, WORD) X(pool, log_top, POINTER) X(pool, log_room, POINTER)                        \
    X(pool, saved, WORD) X(pool, shelves, SHELVES)                                                 \
    X(plan_counts, runs, WORD) X(plan, counts, COUNTS)                                             \
    X(scope, pool, POOL) X(scope, base, POINTER) X(scope, tag, WORD)                               \
    X(scope, outer_saved, WORD) X(scope, plan, PLAN) X(scope, saved, SAVED)                        \
    X(runtime, enter, ENTER_FUNCTION) X(runtime, leave, LEAVE_FUNCTION)

#define STAGE_STRUCTS(X) \
    X(shelf, SHELF) X(pool, POOL) X(plan_counts, COUNTS) X(plan, PLAN) X(scope, SCOPE)              \
    X(runtime, RUNTIME)
/* clang-format on */

/* A function that compiled code is, or calls: kind, its parameters. It gives nothing. */
/* clang-format off */
#define STAGE_FUNCTIONS(X)                                                                         \
    X(ENTER, {STAGE_SCOPE, "scope"}, {STAGE_POOL, "pool"}, {STAGE_PLAN, "plan"},                   \
      {STAGE_POINTER, "site"})                                                                     \
    X(LEAVE, {STAGE_SCOPE, "scope"})

typedef enum stage_type {
    STAGE_NOTHING,
    STAGE_POINTER,
    STAGE_WORD,
    STAGE_INDEX,
#define STAGE_X(name, NAME) STAGE_##NAME, /* pointers to structures */
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
#define STAGE_X(structure, field, type) STAGE_AT_##structure##_##field,
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

enum { STAGE_PARAMS_MAX = 4 };

/* One function in the making: what is written next goes to `here`. */
typedef struct stage_body {
    stage_emit *e;
    gcc_jit_function *function;
    gcc_jit_block *here;
    gcc_jit_rvalue *params[STAGE_PARAMS_MAX];
    int param_count, guards;
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

/* Ends the function. */
void stage_return(stage_body *body);

/* plan->counts->runs += 1, exactly even if threads share the site. */
void stage_count(stage_body *body, gcc_jit_rvalue *plan);

/* ---- values ---- */

/* Keeps a value in a variable, so that it is computed here and once. Give it a readable name. */
gcc_jit_rvalue *stage_keep(stage_body *body, gcc_jit_rvalue *value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

gcc_jit_rvalue *stage_word(stage_emit *e, uint64_t value);
gcc_jit_rvalue *stage_binary(stage_emit *e, enum gcc_jit_binary_op op, gcc_jit_rvalue *left,
                             gcc_jit_rvalue *right);

/* Fields of the structure that `pointer` points to; elements of an array. */
gcc_jit_rvalue *stage_load(stage_emit *e, gcc_jit_rvalue *pointer, stage_field field);
void stage_store(stage_body *body, gcc_jit_rvalue *pointer, stage_field field,
                 gcc_jit_rvalue *value);
gcc_jit_lvalue *stage_element(stage_emit *e, gcc_jit_rvalue *array, uint32_t index);

/* &pool->shelves[type]: a constant distance from the pool. */
gcc_jit_rvalue *stage_shelf(stage_emit *e, gcc_jit_rvalue *pool, tide_type type);

/* The functions STEM_enter and STEM_leave of a scope. */
void stage_emit_scope(stage_emit *e, const tide_spec *spec);

#endif
