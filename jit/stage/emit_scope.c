/* SPDX-License-Identifier: MIT */
/* Scopes: what runtime/scope/plan.c does with a table, with its loops unrolled and its table in the
 * code itself.
 *
 *   kept     if the level around has saved the shelves of all types: positions go to the scope, the
 *            log stays as it is (plan_enter_keeping)
 *   general  everything else; it writes the log, or lets the level around save what is missing
 *
 * A guard that fails has changed nothing. Every word is loaded before the first is stored: what the
 * compiler cannot know to be apart need not be. First come the stores to the scope, then those to
 * the pool: to change cache lines with every store cost a cycle each. */
#include "jit/stage/emit.h"
#include "runtime/base/assert.h"

_Static_assert((int)TIDE_SPEC_ITEMS == (int)TIDE_SCOPE_SAVED,
               "code has a place in the scope for each type");

/* A level: its tag, what it has saved, and what the level around has. */
typedef struct scope_level {
    gcc_jit_rvalue *tag, *saved, *outer_saved;
} scope_level;

/* The level becomes the open one. */
static void scope_open_level(stage_body *body, gcc_jit_rvalue *pool, const scope_level *level)
{
    stage_store(body, pool, AT(pool, tag), level->tag);
    stage_store(body, pool, AT(pool, saved), level->saved);
}

/* The types' bits that the code knows. */
static uint64_t scope_known_bits(const tide_spec *spec)
{
    uint64_t known = 0;
    for (uint32_t i = 0; i < spec->item_count; i++)
        known |= spec->items[i].type <= TIDE_BUILTIN_COUNT ? UINT64_C(1) << spec->items[i].type : 0;
    return known;
}

/* The type's bit in this pool. */
static gcc_jit_rvalue *scope_keep_bit(stage_body *body, gcc_jit_rvalue *pool, tide_type type)
{
    stage_emit *e = body->e;
    return stage_keep(body, stage_load(e, stage_shelf(e, pool, type), AT(shelf, bit)), "bit_%u",
                      type);
}

/* Has the open level saved the types whose bits the code knows? */
static void scope_guard_known(stage_body *body, gcc_jit_rvalue *saved, uint64_t known,
                              gcc_jit_block *otherwise)
{
    stage_emit *e = body->e;
    gcc_jit_rvalue *mask = stage_word(e, known);
    if (known != 0)
        stage_guard(body, stage_binary(e, GCC_JIT_BINARY_OP_BITWISE_AND, saved, mask),
                    GCC_JIT_COMPARISON_EQ, mask, otherwise);
}

/* Has the open level saved all the types? Fills in what it and a level of these types save. */
static void scope_guard_saved(stage_body *body, const tide_spec *spec, scope_level *level,
                              gcc_jit_block *otherwise)
{
    stage_emit *e = body->e;
    gcc_jit_rvalue *pool = body->params[1], *zero = stage_word(e, 0);
    uint64_t known = scope_known_bits(spec);
    level->outer_saved = stage_keep(body, stage_load(e, pool, AT(pool, saved)), "outer_saved");
    level->saved = stage_word(e, known);
    scope_guard_known(body, level->outer_saved, known, otherwise);
    for (uint32_t i = 0; i < spec->item_count; i++) {
        if (spec->items[i].type <= TIDE_BUILTIN_COUNT)
            continue;
        gcc_jit_rvalue *bit = scope_keep_bit(body, pool, spec->items[i].type);
        stage_guard(body, stage_binary(e, GCC_JIT_BINARY_OP_BITWISE_AND, level->outer_saved, bit),
                    GCC_JIT_COMPARISON_NE, zero, otherwise);
        level->saved = stage_binary(e, GCC_JIT_BINARY_OP_BITWISE_OR, level->saved, bit);
    }
}

/* The tag of a level opened inside `outer`. */
static gcc_jit_rvalue *scope_inner_tag(stage_body *body, gcc_jit_rvalue *outer)
{
    stage_emit *e = body->e;
    return stage_keep(body, stage_binary(e, GCC_JIT_BINARY_OP_PLUS, outer, stage_word(e, 1)),
                      "tag");
}

/* May a level open inside the open one, or are there too many? */
static void scope_guard_depth(stage_body *body, gcc_jit_rvalue *pool, gcc_jit_block *otherwise)
{
    stage_emit *e = body->e;
    gcc_jit_rvalue *deep = stage_word(e, TIDE_TAG_DEEP);
    stage_guard(
        body,
        stage_binary(e, GCC_JIT_BINARY_OP_BITWISE_AND, stage_load(e, pool, AT(pool, tag)), deep),
        GCC_JIT_COMPARISON_EQ, stage_word(e, 0), otherwise);
}

static void scope_store_saved(stage_body *body, gcc_jit_rvalue *scope, uint32_t index,
                              gcc_jit_rvalue *next)
{
    stage_emit *e = body->e;
    tide_assert(index < TIDE_SCOPE_SAVED);
    gcc_jit_lvalue *saved = stage_element(e, stage_load(e, scope, AT(scope, saved)), index);
    gcc_jit_block_add_assignment(body->here, NULL, saved, next);
}

/* Where the type's shelf stands, in a variable. */
static gcc_jit_rvalue *scope_keep_next(stage_body *body, gcc_jit_rvalue *pool, tide_type type)
{
    stage_emit *e = body->e;
    return stage_keep(body, stage_load(e, stage_shelf(e, pool, type), AT(shelf, next)), "next_%u",
                      type);
}

/* ---- enter ---------------------------------------------------------------------------------- */

static void scope_begin(stage_body *body, gcc_jit_rvalue *top, const scope_level *level)
{
    gcc_jit_rvalue *scope = body->params[0], *pool = body->params[1], *plan = body->params[2];
    stage_store(body, scope, AT(scope, pool), pool);
    stage_store(body, scope, AT(scope, base), top);
    stage_store(body, scope, AT(scope, outer_saved), level->outer_saved);
    stage_store(body, scope, AT(scope, tag), level->tag);
    stage_store(body, scope, AT(scope, plan), plan);
}

/* All guards, then all loads, then all stores. Ends the block. */
static void scope_enter(stage_body *body, const tide_spec *spec, gcc_jit_block *general)
{
    stage_emit *e = body->e;
    gcc_jit_rvalue *pool = body->params[1], *next[TIDE_SCOPE_SAVED];
    uint32_t count = spec->item_count;
    scope_level level;
    tide_assert(count > 0 && count <= TIDE_SCOPE_SAVED);
    gcc_jit_rvalue *top = stage_keep(body, stage_load(e, pool, AT(pool, log_top)), "top");
    stage_guard(body, top, GCC_JIT_COMPARISON_LT, stage_load(e, pool, AT(pool, log_room)), general);
    scope_guard_depth(body, pool, general);
    scope_guard_saved(body, spec, &level, general);
    if (spec->count)
        stage_count(body, body->params[2]);
    for (uint32_t i = 0; i < count; i++)
        next[i] = scope_keep_next(body, pool, spec->items[i].type);
    level.tag = scope_inner_tag(body, stage_load(e, pool, AT(pool, tag)));
    scope_begin(body, top, &level);
    for (uint32_t i = 0; i < count; i++)
        scope_store_saved(body, body->params[0], i, next[i]);
    scope_open_level(body, pool, &level);
    stage_return(body);
}

static void scope_emit_enter(stage_emit *e, const tide_spec *spec)
{
    stage_body body = stage_function(e, STAGE_ENTER_FUNCTION, spec->stem, "enter");
    gcc_jit_block *general = stage_block(&body, "general");
    scope_enter(&body, spec, general);
    tide_assert(body.here == NULL);
    body.here = general;
    stage_give_up(&body, AT(runtime, enter));
}

/* ---- leave ---------------------------------------------------------------------------------- */

/* The level around is open again. */
static void scope_close_level(stage_body *body, gcc_jit_rvalue *scope, gcc_jit_rvalue *pool)
{
    stage_emit *e = body->e;
    gcc_jit_rvalue *tag = stage_load(e, scope, AT(scope, tag));
    gcc_jit_rvalue *outer =
        stage_keep(body, stage_binary(e, GCC_JIT_BINARY_OP_MINUS, tag, stage_word(e, 1)), "outer");
    gcc_jit_rvalue *saved =
        stage_keep(body, stage_load(e, scope, AT(scope, outer_saved)), "outer_saved");
    stage_store(body, pool, AT(pool, tag), outer);
    stage_store(body, pool, AT(pool, saved), saved);
}

/* If the log is as it was at entry, what was kept in the scope goes back. */
static void scope_leave_kept(stage_body *body, const tide_spec *spec, gcc_jit_block *general)
{
    stage_emit *e = body->e;
    uint32_t count = spec->item_count;
    tide_assert(count > 0 && count <= TIDE_SCOPE_SAVED);
    gcc_jit_rvalue *scope = body->params[0], *next[TIDE_SCOPE_SAVED];
    stage_guard(body, stage_load(e, stage_load(e, scope, AT(scope, pool)), AT(pool, log_top)),
                GCC_JIT_COMPARISON_EQ, stage_load(e, scope, AT(scope, base)), general);
    gcc_jit_rvalue *pool = stage_keep(body, stage_load(e, scope, AT(scope, pool)), "home");
    for (uint32_t i = 0; i < count; i++)
        next[i] = stage_keep(
            body,
            gcc_jit_lvalue_as_rvalue(stage_element(e, stage_load(e, scope, AT(scope, saved)), i)),
            "next_%u", spec->items[i].type);
    scope_close_level(body, scope, pool);
    for (uint32_t i = 0; i < count; i++)
        stage_store(body, stage_shelf(e, pool, spec->items[i].type), AT(shelf, next), next[i]);
    stage_return(body);
}

/* Of a leave, whose scope is the first parameter: the level open is the scope's own. */
static void scope_guard_level(stage_body *body, gcc_jit_block *otherwise)
{
    stage_emit *e = body->e;
    gcc_jit_rvalue *scope = body->params[0], *pool = stage_load(e, scope, AT(scope, pool));
    stage_guard(body, stage_load(e, pool, AT(pool, tag)), GCC_JIT_COMPARISON_EQ,
                stage_load(e, scope, AT(scope, tag)), otherwise);
}

static void scope_emit_leave(stage_emit *e, const tide_spec *spec)
{
    stage_body body = stage_function(e, STAGE_LEAVE_FUNCTION, spec->stem, "leave");
    gcc_jit_block *general = stage_block(&body, "general");
    scope_guard_level(&body, general);
    scope_leave_kept(&body, spec, general);
    tide_assert(body.here == NULL);
    body.here = general;
    stage_give_up(&body, AT(runtime, leave));
}

void stage_emit_scope(stage_emit *e, const tide_spec *spec)
{
    tide_assert(spec->item_count > 0 && spec->item_count <= TIDE_SCOPE_SAVED);
    scope_emit_enter(e, spec);
    scope_emit_leave(e, spec);
}
