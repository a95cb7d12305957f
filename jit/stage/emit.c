/* SPDX-License-Identifier: MIT */
/* The runtime's structures as libgccjit's types, and the helpers that the emitter writes with.
 * libgccjit remembers every error itself, so nothing of its is checked here: stage_compile asks
 * once, at the end. What the asserts hold to is the emitter's own order of calls. */
#include "jit/stage/emit.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/assert.h"

/* ---- the runtime's structures --------------------------------------------------------------- */

/* By the names that the table uses. */
typedef tide_shelf stage_c_shelf;
typedef struct tide_pool stage_c_pool;
typedef tide_plan_counts stage_c_plan_counts;
typedef struct tide_plan stage_c_plan;
typedef struct tide_scope stage_c_scope;
typedef tide_runtime stage_c_runtime;

typedef enum structure {
#define STAGE_X(name, NAME) structure_##name,
    STAGE_STRUCTS(STAGE_X)
#undef STAGE_X
        STRUCTURES
} structure;

_Static_assert(structure_shelf < structure_pool, "a pool's field holds shelves: they come first");
_Static_assert(sizeof(size_t) == 8 && sizeof(void *) == 8, "a word is of 8 bytes, as a pointer is");
_Static_assert(sizeof(long) == 8, "stage_word hands words over as long");

typedef struct field_fact {
    structure structure;
    const char *name;
    size_t offset, size;
    stage_type type;
} field_fact;

static const field_fact field_facts[STAGE_FIELD_COUNT] = {
#define STAGE_X(structure, field, type)                                   \
    {structure_##structure, #field, offsetof(stage_c_##structure, field), \
     sizeof(((stage_c_##structure *)0)->field), STAGE_##type},
    STAGE_FIELDS(STAGE_X)
#undef STAGE_X
};

typedef struct struct_fact {
    const char *name;
    size_t size;
    stage_type pointer;
} struct_fact;

static const struct_fact struct_facts[STRUCTURES] = {
#define STAGE_X(name, NAME) {"tide_" #name, sizeof(stage_c_##name), STAGE_##NAME},
    STAGE_STRUCTS(STAGE_X)
#undef STAGE_X
};

enum { FIELDS_MAX = 32 }; /* most of one structure, padding included */

static gcc_jit_type *emit_array_type(stage_emit *e, gcc_jit_type *element, int count)
{
    return gcc_jit_context_new_array_type(e->context, NULL, element, count);
}

static gcc_jit_field *emit_padding(stage_emit *e, size_t bytes, size_t at)
{
    char name[32];
    tide_assert(bytes > 0 && bytes <= INT_MAX);
    snprintf(name, sizeof name, "unused_%zu", at);
    gcc_jit_type *byte = gcc_jit_context_get_int_type(e->context, 1, 0);
    return gcc_jit_context_new_field(e->context, NULL, emit_array_type(e, byte, (int)bytes), name);
}

/* The named fields at their places, and padding between them. */
static void emit_complete_struct(stage_emit *e, structure which, gcc_jit_struct *made)
{
    const struct_fact *fact = &struct_facts[which];
    gcc_jit_field *fields[FIELDS_MAX];
    int count = 0;
    size_t at = 0;
    for (int f = 0; f < STAGE_FIELD_COUNT; f++) {
        const field_fact *field = &field_facts[f];
        if (field->structure != which)
            continue;
        tide_assert(field->offset >= at && count + 3 < FIELDS_MAX);
        tide_assert(e->types[field->type] != NULL); /* made before the structure that holds it */
        if (field->offset > at)
            fields[count++] = emit_padding(e, field->offset - at, at);
        fields[count++] = e->fields[f] =
            gcc_jit_context_new_field(e->context, NULL, e->types[field->type], field->name);
        at = field->offset + field->size;
    }
    tide_assert(at > 0 && at <= fact->size);
    if (at < fact->size)
        fields[count++] = emit_padding(e, fact->size - at, at);
    gcc_jit_struct_set_fields(made, NULL, count, fields);
}

static void emit_make_scalars(stage_emit *e)
{
    gcc_jit_type **t = e->types;
    t[STAGE_NOTHING] = gcc_jit_context_get_type(e->context, GCC_JIT_TYPE_VOID);
    t[STAGE_POINTER] = gcc_jit_context_get_type(e->context, GCC_JIT_TYPE_VOID_PTR);
    t[STAGE_WORD] = gcc_jit_context_get_int_type(e->context, 8, 0);
    t[STAGE_INDEX] = gcc_jit_context_get_int_type(e->context, 4, 1);
}

/* ---- functions' types ----------------------------------------------------------------------- */

typedef struct param_fact {
    stage_type type;
    const char *name;
} param_fact;

static const struct function_fact {
    stage_type type;
    param_fact params[STAGE_PARAMS_MAX];
} function_facts[] = {
#define STAGE_X(NAME, ...) {STAGE_##NAME##_FUNCTION, {__VA_ARGS__}},
    STAGE_FUNCTIONS(STAGE_X)
#undef STAGE_X
};

enum { FUNCTIONS = sizeof function_facts / sizeof *function_facts };
_Static_assert((int)FUNCTIONS == STAGE_SHELVES - STAGE_ENTER_FUNCTION,
               "one type for each function");

static int emit_param_count(const struct function_fact *fact)
{
    int count = 0;
    while (count < STAGE_PARAMS_MAX && fact->params[count].name != NULL)
        count++;
    return count;
}

static void emit_make_function_types(stage_emit *e)
{
    for (size_t i = 0; i < FUNCTIONS; i++) {
        const struct function_fact *fact = &function_facts[i];
        gcc_jit_type *params[STAGE_PARAMS_MAX];
        for (int p = 0; p < emit_param_count(fact); p++)
            params[p] = e->types[fact->params[p].type];
        e->types[fact->type] = gcc_jit_context_new_function_ptr_type(
            e->context, NULL, e->types[STAGE_NOTHING], emit_param_count(fact), params, 0);
    }
}

/* Pointers before the structures they point to: the structures hold pointers to each other. */
static void emit_make_types(stage_emit *e)
{
    gcc_jit_struct *structs[STRUCTURES];
    emit_make_scalars(e);
    for (int i = 0; i < STRUCTURES; i++) {
        structs[i] = gcc_jit_context_new_opaque_struct(e->context, NULL, struct_facts[i].name);
        gcc_jit_type *type = gcc_jit_struct_as_type(structs[i]);
        e->types[struct_facts[i].pointer] = gcc_jit_type_get_pointer(type);
    }
    emit_make_function_types(e);
    e->types[STAGE_SAVED] = emit_array_type(e, e->types[STAGE_POINTER], TIDE_SCOPE_SAVED);
    for (int i = 0; i < STRUCTURES; i++) {
        emit_complete_struct(e, (structure)i, structs[i]);
        if (i == structure_shelf)
            e->types[STAGE_SHELVES] =
                emit_array_type(e, gcc_jit_struct_as_type(structs[i]), TIDE_TYPE_LIMIT);
    }
}

/* ---- a fresh context ------------------------------------------------------------------------ */

/* What every code object exports beside its functions: constants, and where the code begins and ends.
 * (Before it lie headers of the file, whose address is on the stack of whoever has loaded it. No
 * function begins right there: of two names of one address dladdr, gdb and perf choose any.) The
 * compiler writes this before all functions. */
static void emit_exports(gcc_jit_context *context)
{
    char text[512];
    int length =
        snprintf(text, sizeof text,
                 "\t.text\n\t.globl\ttide_object_code\ntide_object_code:\n\t.zero\t8\n"
                 "\t.subsection\t1\n\t.globl\ttide_object_code_end\ntide_object_code_end:\n"
                 "\t.section\t.rodata\n\t.balign\t8\n"
                 "\t.globl\ttide_object_magic\ntide_object_magic:\n\t.quad\t%" PRIu64 "\n"
                 "\t.globl\ttide_object_layout\ntide_object_layout:\n\t.quad\t%" PRIu64 "\n"
                 "\t.text\n",
                 TIDE_CODE_MAGIC, tide_compiled_layout());
    tide_assert(length > 0 && (size_t)length < sizeof text);
    gcc_jit_context_add_top_level_asm(context, NULL, text);
}

void stage_begin(stage_emit *e, gcc_jit_context *context)
{
    tide_assert(context != NULL);
    *e = (stage_emit){.context = context};
    emit_make_types(e);
    e->expect = gcc_jit_context_get_builtin_function(context, "__builtin_expect");
    e->fetch_add = gcc_jit_context_get_builtin_function(context, "__atomic_fetch_add_8");
    emit_exports(context);
    /* Exported: the compiler, which sees nobody write it, would take another one for NULL. */
    e->runtime = gcc_jit_context_new_global(context, NULL, GCC_JIT_GLOBAL_EXPORTED,
                                            e->types[STAGE_RUNTIME], "tide_object_table");
}

/* ---- functions ------------------------------------------------------------------------------ */

/* A function with its first block, in which its writing begins. */
stage_body stage_function(stage_emit *e, stage_type type, const char *stem, const char *suffix)
{
    const struct function_fact *fact = function_facts;
    while (fact->type != type)
        fact++;
    tide_assert(fact < function_facts + FUNCTIONS);
    char name[TIDE_SPEC_STEM + 32];
    tide_assert(strlen(stem) < TIDE_SPEC_STEM && strlen(suffix) < 32);
    snprintf(name, sizeof name, "%s_%s", stem, suffix);
    gcc_jit_param *params[STAGE_PARAMS_MAX];
    stage_body body = {.e = e, .param_count = emit_param_count(fact)};
    for (int p = 0; p < body.param_count; p++)
        params[p] = gcc_jit_context_new_param(e->context, NULL, e->types[fact->params[p].type],
                                              fact->params[p].name);
    body.function =
        gcc_jit_context_new_function(e->context, NULL, GCC_JIT_FUNCTION_EXPORTED,
                                     e->types[STAGE_NOTHING], name, body.param_count, params, 0);
    for (int p = 0; p < body.param_count; p++)
        body.params[p] = gcc_jit_param_as_rvalue(params[p]);
    body.here = stage_block(&body, "start");
    return body;
}

gcc_jit_block *stage_block(const stage_body *body, const char *name)
{
    return gcc_jit_function_new_block(body->function, name);
}

void stage_guard(stage_body *body, gcc_jit_rvalue *left, enum gcc_jit_comparison op,
                 gcc_jit_rvalue *right, gcc_jit_block *otherwise)
{
    gcc_jit_context *context = body->e->context;
    tide_assert(body->here != NULL && otherwise != body->here);
    gcc_jit_type *number = gcc_jit_context_get_type(context, GCC_JIT_TYPE_LONG);
    gcc_jit_rvalue *args[2] = {
        gcc_jit_context_new_cast(
            context, NULL, gcc_jit_context_new_comparison(context, NULL, op, left, right), number),
        gcc_jit_context_one(context, number)};
    gcc_jit_rvalue *likely = gcc_jit_context_new_call(context, NULL, body->e->expect, 2, args);
    char name[24];
    snprintf(name, sizeof name, "passed_%d", ++body->guards);
    gcc_jit_block *next = stage_block(body, name);
    gcc_jit_block_end_with_conditional(
        body->here, NULL,
        gcc_jit_context_new_comparison(context, NULL, GCC_JIT_COMPARISON_NE, likely,
                                       gcc_jit_context_zero(context, number)),
        next, otherwise);
    body->here = next;
}

void stage_return(stage_body *body)
{
    tide_assert(body->here != NULL); /* a block ends once */
    gcc_jit_block_end_with_void_return(body->here, NULL);
    body->here = NULL;
}

void stage_give_up(stage_body *body, stage_field general)
{
    stage_emit *e = body->e;
    tide_assert(field_facts[general].structure == structure_runtime && body->here != NULL);
    gcc_jit_rvalue *target = stage_load(e, gcc_jit_lvalue_as_rvalue(e->runtime), general);
    gcc_jit_rvalue *call = gcc_jit_context_new_call_through_ptr(e->context, NULL, target,
                                                                body->param_count, body->params);
    gcc_jit_rvalue_set_bool_require_tail_call(call, 1);
    gcc_jit_block_add_eval(body->here, NULL, call);
    stage_return(body);
}

static gcc_jit_lvalue *emit_place(stage_emit *e, gcc_jit_rvalue *pointer, stage_field field)
{
    tide_assert(field < STAGE_FIELD_COUNT && e->fields[field] != NULL);
    return gcc_jit_rvalue_dereference_field(pointer, NULL, e->fields[field]);
}

void stage_count(stage_body *body, gcc_jit_rvalue *plan)
{
    stage_emit *e = body->e;
    tide_assert(body->here != NULL);
    gcc_jit_rvalue *counts = stage_load(e, plan, AT(plan, counts));
    gcc_jit_rvalue *runs =
        gcc_jit_lvalue_get_address(emit_place(e, counts, AT(plan_counts, runs)), NULL);
    gcc_jit_type *any =
        gcc_jit_type_get_pointer(gcc_jit_type_get_volatile(e->types[STAGE_NOTHING]));
    gcc_jit_type *number = gcc_jit_context_get_type(e->context, GCC_JIT_TYPE_INT);
    gcc_jit_type *added = gcc_jit_context_get_int_type(e->context, 8, 1);
    gcc_jit_rvalue *args[3] = {
        gcc_jit_context_new_cast(e->context, NULL, runs, any),
        gcc_jit_context_one(e->context, added),
        gcc_jit_context_new_rvalue_from_int(e->context, number, __ATOMIC_RELAXED)};
    gcc_jit_block_add_eval(body->here, NULL,
                           gcc_jit_context_new_call(e->context, NULL, e->fetch_add, 3, args));
}

/* ---- values --------------------------------------------------------------------------------- */

gcc_jit_rvalue *stage_keep(stage_body *body, gcc_jit_rvalue *value, const char *format, ...)
{
    char name[64];
    va_list args;
    va_start(args, format);
    int wrote = vsnprintf(name, sizeof name, format, args);
    va_end(args);
    tide_assert(wrote > 0 && (size_t)wrote < sizeof name && body->here != NULL);
    gcc_jit_lvalue *local =
        gcc_jit_function_new_local(body->function, NULL, gcc_jit_rvalue_get_type(value), name);
    gcc_jit_block_add_assignment(body->here, NULL, local, value);
    return gcc_jit_lvalue_as_rvalue(local);
}

gcc_jit_rvalue *stage_word(stage_emit *e, uint64_t value)
{
    return gcc_jit_context_new_rvalue_from_long(e->context, e->types[STAGE_WORD], (long)value);
}

gcc_jit_rvalue *stage_binary(stage_emit *e, enum gcc_jit_binary_op op, gcc_jit_rvalue *left,
                             gcc_jit_rvalue *right)
{
    return gcc_jit_context_new_binary_op(e->context, NULL, op, e->types[STAGE_WORD], left, right);
}

gcc_jit_rvalue *stage_load(stage_emit *e, gcc_jit_rvalue *pointer, stage_field field)
{
    return gcc_jit_lvalue_as_rvalue(emit_place(e, pointer, field));
}

void stage_store(stage_body *body, gcc_jit_rvalue *pointer, stage_field field,
                 gcc_jit_rvalue *value)
{
    tide_assert(body->here != NULL);
    gcc_jit_block_add_assignment(body->here, NULL, emit_place(body->e, pointer, field), value);
}

gcc_jit_lvalue *stage_element(stage_emit *e, gcc_jit_rvalue *array, uint32_t index)
{
    gcc_jit_rvalue *number =
        gcc_jit_context_new_rvalue_from_int(e->context, e->types[STAGE_INDEX], (int)index);
    return gcc_jit_context_new_array_access(e->context, NULL, array, number);
}

gcc_jit_rvalue *stage_shelf(stage_emit *e, gcc_jit_rvalue *pool, tide_type type)
{
    tide_assert(type != TIDE_NO_TYPE && type < TIDE_TYPE_LIMIT);
    gcc_jit_rvalue *shelves = stage_load(e, pool, AT(pool, shelves));
    return gcc_jit_lvalue_get_address(stage_element(e, shelves, type), NULL);
}
