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

void stage_fill_scope(stage_body *body, gcc_jit_rvalue *scope, gcc_jit_rvalue *pool,
                      gcc_jit_rvalue *top, const stage_level *level)
{
    stage_store(body, scope, AT(scope, pool), pool);
    stage_store(body, scope, AT(scope, base), top);
    stage_store(body, scope, AT(scope, outer_saved), level->outer_saved);
    stage_store(body, scope, AT(scope, tag), level->tag);
}

void stage_open_level(stage_body *body, gcc_jit_rvalue *pool, const stage_level *level)
{
    stage_store(body, pool, AT(pool, tag), level->tag);
    stage_store(body, pool, AT(pool, saved), level->saved);
}

/* The types' bits that the code knows. */
static uint64_t scope_known_bits(uint32_t count, const tide_type *types)
{
    uint64_t known = 0;
    for (uint32_t i = 0; i < count; i++)
        known |= types[i] <= TIDE_BUILTIN_COUNT ? UINT64_C(1) << types[i] : 0;
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
    gcc_jit_rvalue *mask = stage_constant(e, STAGE_WORD, known);
    if (known != 0)
        stage_guard(body, stage_binary(e, GCC_JIT_BINARY_OP_BITWISE_AND, saved, mask),
                    GCC_JIT_COMPARISON_EQ, mask, otherwise);
}

void stage_guard_saved(stage_body *body, gcc_jit_rvalue *pool, uint32_t count,
                       const tide_type *types, stage_level *level, gcc_jit_block *otherwise)
{
    stage_emit *e = body->e;
    gcc_jit_rvalue *zero = stage_constant(e, STAGE_WORD, 0);
    uint64_t known = scope_known_bits(count, types);
    level->outer_saved = stage_keep(body, stage_load(e, pool, AT(pool, saved)), "outer_saved");
    level->saved = stage_constant(e, STAGE_WORD, known);
    scope_guard_known(body, level->outer_saved, known, otherwise);
    for (uint32_t i = 0; i < count; i++) {
        if (types[i] <= TIDE_BUILTIN_COUNT)
            continue;
        gcc_jit_rvalue *bit = scope_keep_bit(body, pool, types[i]);
        stage_guard(body, stage_binary(e, GCC_JIT_BINARY_OP_BITWISE_AND, level->outer_saved, bit),
                    GCC_JIT_COMPARISON_NE, zero, otherwise);
        level->saved = stage_binary(e, GCC_JIT_BINARY_OP_BITWISE_OR, level->saved, bit);
    }
}

gcc_jit_rvalue *stage_inner_tag(stage_body *body, gcc_jit_rvalue *outer)
{
    stage_emit *e = body->e;
    return stage_keep(
        body, stage_binary(e, GCC_JIT_BINARY_OP_PLUS, outer, stage_constant(e, STAGE_WORD, 1)),
        "tag");
}

void stage_guard_depth(stage_body *body, gcc_jit_rvalue *pool, gcc_jit_block *otherwise)
{
    stage_emit *e = body->e;
    gcc_jit_rvalue *deep = stage_constant(e, STAGE_WORD, TIDE_TAG_DEEP);
    stage_guard(
        body,
        stage_binary(e, GCC_JIT_BINARY_OP_BITWISE_AND, stage_load(e, pool, AT(pool, tag)), deep),
        GCC_JIT_COMPARISON_EQ, stage_constant(e, STAGE_WORD, 0), otherwise);
}

void stage_store_saved(stage_body *body, gcc_jit_rvalue *scope, uint32_t index,
                       gcc_jit_rvalue *next)
{
    stage_emit *e = body->e;
    tide_assert(index < TIDE_SCOPE_SAVED);
    gcc_jit_lvalue *saved = stage_element(e, stage_load(e, scope, AT(scope, saved)), index);
    gcc_jit_block_add_assignment(body->here, NULL, saved, next);
}

gcc_jit_rvalue *stage_keep_next(stage_body *body, gcc_jit_rvalue *pool, tide_type type)
{
    stage_emit *e = body->e;
    return stage_keep(body, stage_load(e, stage_shelf(e, pool, type), AT(shelf, next)), "next_%u",
                      type);
}

/* ---- enter ---------------------------------------------------------------------------------- */

static void scope_begin(stage_body *body, gcc_jit_rvalue *top, const stage_level *level)
{
    gcc_jit_rvalue *scope = body->params[0], *pool = body->params[1], *plan = body->params[2];
    stage_fill_scope(body, scope, pool, top, level);
    stage_store(body, scope, AT(scope, plan), plan);
}

static void scope_types(const tide_spec *spec, tide_type types[TIDE_SCOPE_SAVED])
{
    tide_assert(spec->item_count > 0 && spec->item_count <= TIDE_SCOPE_SAVED);
    for (uint32_t i = 0; i < spec->item_count; i++)
        types[i] = spec->items[i].type;
}

/* All guards, then all loads, then all stores. Ends the block. */
static void scope_enter(stage_body *body, const tide_spec *spec, gcc_jit_block *general)
{
    stage_emit *e = body->e;
    gcc_jit_rvalue *pool = body->params[1], *next[TIDE_SCOPE_SAVED];
    tide_type types[TIDE_SCOPE_SAVED] = {0};
    uint32_t count = spec->item_count;
    stage_level level;
    scope_types(spec, types);
    gcc_jit_rvalue *top = stage_keep(body, stage_load(e, pool, AT(pool, log_top)), "top");
    stage_guard(body, top, GCC_JIT_COMPARISON_LT, stage_load(e, pool, AT(pool, log_room)), general);
    stage_guard_depth(body, pool, general);
    stage_guard_saved(body, pool, count, types, &level, general);
    if (spec->count)
        stage_count(body, body->params[2]);
    for (uint32_t i = 0; i < count; i++)
        next[i] = stage_keep_next(body, pool, types[i]);
    level.tag = stage_inner_tag(body, stage_load(e, pool, AT(pool, tag)));
    scope_begin(body, top, &level);
    for (uint32_t i = 0; i < count; i++)
        stage_store_saved(body, body->params[0], i, next[i]);
    stage_open_level(body, pool, &level);
    stage_return(body, NULL);
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
    gcc_jit_rvalue *outer = stage_keep(
        body, stage_binary(e, GCC_JIT_BINARY_OP_MINUS, tag, stage_constant(e, STAGE_WORD, 1)),
        "outer");
    gcc_jit_rvalue *saved =
        stage_keep(body, stage_load(e, scope, AT(scope, outer_saved)), "outer_saved");
    stage_store(body, pool, AT(pool, tag), outer);
    stage_store(body, pool, AT(pool, saved), saved);
}

void stage_put_back(stage_body *body, uint32_t count, const tide_type *types)
{
    stage_emit *e = body->e;
    tide_assert(count > 0 && count <= TIDE_SCOPE_SAVED);
    gcc_jit_rvalue *scope = body->params[0], *next[TIDE_SCOPE_SAVED];
    gcc_jit_rvalue *pool = stage_keep(body, stage_load(e, scope, AT(scope, pool)), "home");
    for (uint32_t i = 0; i < count; i++)
        next[i] = stage_keep(
            body,
            gcc_jit_lvalue_as_rvalue(stage_element(e, stage_load(e, scope, AT(scope, saved)), i)),
            "next_%u", types[i]);
    scope_close_level(body, scope, pool);
    for (uint32_t i = 0; i < count; i++)
        stage_store(body, stage_shelf(e, pool, types[i]), AT(shelf, next), next[i]);
    stage_return(body, NULL);
}

void stage_guard_level(stage_body *body, gcc_jit_block *otherwise)
{
    stage_emit *e = body->e;
    gcc_jit_rvalue *scope = body->params[0], *pool = stage_load(e, scope, AT(scope, pool));
    stage_guard(body, stage_load(e, pool, AT(pool, tag)), GCC_JIT_COMPARISON_EQ,
                stage_load(e, scope, AT(scope, tag)), otherwise);
}

void stage_guard_log(stage_body *body, gcc_jit_block *otherwise)
{
    stage_emit *e = body->e;
    gcc_jit_rvalue *scope = body->params[0], *pool = stage_load(e, scope, AT(scope, pool));
    stage_guard(body, stage_load(e, pool, AT(pool, log_top)), GCC_JIT_COMPARISON_EQ,
                stage_load(e, scope, AT(scope, base)), otherwise);
}

static void scope_emit_leave(stage_emit *e, const tide_spec *spec)
{
    stage_body body = stage_function(e, STAGE_LEAVE_FUNCTION, spec->stem, "leave");
    gcc_jit_block *general = stage_block(&body, "general");
    tide_type types[TIDE_SCOPE_SAVED] = {0};
    scope_types(spec, types);
    stage_guard_level(&body, general);
    stage_guard_log(&body, general);
    stage_put_back(&body, spec->item_count, types);
    tide_assert(body.here == NULL);
    body.here = general;
    stage_give_up(&body, AT(runtime, leave));
}

void stage_emit_scope(stage_emit *e, const tide_spec *spec)
{
    tide_assert(spec->kind == TIDE_KIND_SCOPE && spec->item_count > 0);
    scope_emit_enter(e, spec);
    scope_emit_leave(e, spec);
}
