/* SPDX-License-Identifier: MIT */
/* Scopes: what runtime/scope/plan.c does with a table, with its loops unrolled and its table in the
 * code itself.
 *
 *   kept     up to TIDE_SCOPE_SAVED types, if the level around has saved all their shelves:
 *            positions go to the scope, the log stays as it is (plan_enter_keeping)
 *   logged   more types, if all their shelves are set up and the log has room: one entry for each
 *            (plan_enter_logging); and few types inside a level that has not saved them, if the
 *            spec says that this is often so: for the others it is not compiled, since a function
 *            takes 2 ms
 *   general  everything else
 *
 * A guard that fails has changed nothing. Every word is loaded before the first is stored: what the
 * compiler cannot know to be apart need not be. First come the stores to the scope, then those to
 * the pool: to change cache lines with every store cost a cycle each. */
#include "jit/stage/emit.h"
#include "runtime/base/assert.h"

/* What stands in the shelves, loaded before anything is stored. */
typedef struct words {
    gcc_jit_rvalue *next[TIDE_SPEC_ITEMS], *saved_at[TIDE_SPEC_ITEMS];
} words;

void stage_fill_scope(stage_body *body, gcc_jit_rvalue *scope, gcc_jit_rvalue *pool,
                      gcc_jit_rvalue *top, gcc_jit_rvalue *outer, gcc_jit_rvalue *tag)
{
    stage_store(body, scope, AT(scope, pool), pool);
    stage_store(body, scope, AT(scope, base), top);
    stage_store(body, scope, AT(scope, outer), outer);
    stage_store(body, scope, AT(scope, tag), tag);
}

gcc_jit_rvalue *stage_inner_tag(stage_body *body, gcc_jit_rvalue *pool, gcc_jit_rvalue *outer)
{
    stage_emit *e = body->e;
    gcc_jit_rvalue *depth = stage_binary(
        e, GCC_JIT_BINARY_OP_BITWISE_AND,
        stage_binary(e, GCC_JIT_BINARY_OP_PLUS, outer, stage_constant(e, STAGE_WORD, 1)),
        stage_constant(e, STAGE_WORD, TIDE_TAG_DEPTH));
    return stage_keep(
        body,
        stage_binary(e, GCC_JIT_BINARY_OP_BITWISE_OR, depth, stage_load(e, pool, AT(pool, epoch))),
        "tag");
}

void stage_store_saved(stage_body *body, gcc_jit_rvalue *scope, uint32_t index,
                       gcc_jit_rvalue *next)
{
    stage_emit *e = body->e;
    tide_assert(index < TIDE_SCOPE_SAVED);
    gcc_jit_lvalue *saved = stage_element(e, stage_load(e, scope, AT(scope, saved)), index);
    gcc_jit_block_add_assignment(body->here, NULL, saved, next);
}

gcc_jit_rvalue *stage_load_saved(stage_emit *e, gcc_jit_rvalue *scope, uint32_t index)
{
    tide_assert(index < TIDE_SCOPE_SAVED);
    return gcc_jit_lvalue_as_rvalue(
        stage_element(e, stage_load(e, scope, AT(scope, saved)), index));
}

gcc_jit_rvalue *stage_load_shelf(stage_emit *e, gcc_jit_rvalue *pool, tide_type type,
                                 stage_field field)
{
    tide_assert(field == AT(shelf, next) || field == AT(shelf, saved_at));
    return stage_load(e, stage_shelf(e, pool, type), field);
}

static gcc_jit_rvalue *scope_keep_shelf(stage_body *body, gcc_jit_rvalue *pool, tide_type type,
                                        stage_field field)
{
    return stage_keep(body, stage_load_shelf(body->e, pool, type, field),
                      field == AT(shelf, next) ? "next_%u" : "saved_at_%u", type);
}

/* ---- enter ---------------------------------------------------------------------------------- */

static void scope_begin(stage_body *body, gcc_jit_rvalue *top, gcc_jit_rvalue *outer,
                        gcc_jit_rvalue *tag)
{
    gcc_jit_rvalue *scope = body->params[0], *pool = body->params[1], *plan = body->params[2];
    stage_fill_scope(body, scope, pool, top, outer, tag);
    stage_store(body, scope, AT(scope, plan), plan);
}

/* The form "kept" of the head of this file. Ends the block. */
static void scope_enter_kept(stage_body *body, const tide_spec *spec, gcc_jit_block *general)
{
    stage_emit *e = body->e;
    gcc_jit_rvalue *pool = body->params[1];
    words w;
    tide_assert(spec->item_count <= TIDE_SCOPE_SAVED);
    gcc_jit_rvalue *top = stage_keep(body, stage_load(e, pool, AT(pool, log_top)), "top");
    stage_guard(body, top, GCC_JIT_COMPARISON_LT, stage_load(e, pool, AT(pool, log_room)), general);
    gcc_jit_rvalue *outer = stage_keep(body, stage_load(e, pool, AT(pool, tag)), "outer");
    for (uint32_t i = 0; i < spec->item_count; i++)
        stage_guard(body, stage_load_shelf(e, pool, spec->items[i].type, AT(shelf, saved_at)),
                    GCC_JIT_COMPARISON_EQ, outer, general);
    if (spec->count)
        stage_count(body, body->params[2]);
    for (uint32_t i = 0; i < spec->item_count; i++)
        w.next[i] = scope_keep_shelf(body, pool, spec->items[i].type, AT(shelf, next));
    gcc_jit_rvalue *tag = stage_inner_tag(body, pool, outer);
    scope_begin(body, top, outer, tag);
    for (uint32_t i = 0; i < spec->item_count; i++)
        stage_store_saved(body, body->params[0], i, w.next[i]);
    stage_store(body, pool, AT(pool, tag), tag);
    for (uint32_t i = 0; i < spec->item_count; i++)
        stage_store(body, stage_shelf(e, pool, spec->items[i].type), AT(shelf, saved_at), tag);
    stage_return(body, NULL);
}

/* The form "logged". A shelf that is not set up has nothing to save: rare, and left to
 * the general path. */
static void scope_enter_logged(stage_body *body, const tide_spec *spec, gcc_jit_block *general)
{
    stage_emit *e = body->e;
    gcc_jit_rvalue *pool = body->params[1], *zero = stage_constant(e, STAGE_WORD, 0);
    words w;
    tide_assert(spec->item_count <= TIDE_SPEC_ITEMS);
    gcc_jit_rvalue *top = stage_keep(body, stage_load(e, pool, AT(pool, log_top)), "log");
    gcc_jit_rvalue *new_top = stage_keep(body, stage_ahead(e, top, spec->item_count), "log_end");
    stage_guard(body, new_top, GCC_JIT_COMPARISON_LT, stage_load(e, pool, AT(pool, log_room)),
                general);
    for (uint32_t i = 0; i < spec->item_count; i++) {
        w.saved_at[i] = scope_keep_shelf(body, pool, spec->items[i].type, AT(shelf, saved_at));
        stage_guard(body, w.saved_at[i], GCC_JIT_COMPARISON_NE, zero, general);
    }
    if (spec->count)
        stage_count(body, body->params[2]);
    gcc_jit_rvalue *outer = stage_keep(body, stage_load(e, pool, AT(pool, tag)), "around");
    for (uint32_t i = 0; i < spec->item_count; i++)
        w.next[i] = scope_keep_shelf(body, pool, spec->items[i].type, AT(shelf, next));
    gcc_jit_rvalue *tag = stage_inner_tag(body, pool, outer);
    scope_begin(body, stage_marked(e, top, 1), outer, tag);
    stage_store(body, pool, AT(pool, tag), tag);
    for (uint32_t i = 0; i < spec->item_count; i++) {
        gcc_jit_rvalue *shelf = stage_shelf(e, pool, spec->items[i].type);
        gcc_jit_rvalue *entry = stage_ahead(e, top, i);
        stage_store(body, entry, AT(entry, shelf), shelf);
        stage_store(body, entry, AT(entry, next), w.next[i]);
        stage_store(body, entry, AT(entry, saved_at), w.saved_at[i]);
        stage_store(body, shelf, AT(shelf, saved_at), tag);
    }
    stage_store(body, pool, AT(pool, log_top), new_top);
    stage_return(body, NULL);
}

/* Where a guard of the first form fails: the second form, if there is one, or the general path. */
static void scope_go_on(stage_body *body, gcc_jit_block *block, const stage_body *other,
                        stage_field general)
{
    tide_assert(body->here == NULL && block != NULL); /* the form before has ended */
    body->here = block;
    if (other != NULL)
        stage_go_on_in(body, other);
    else
        stage_give_up(body, general);
}

static void scope_emit_enter_logged(stage_body *body, const tide_spec *spec)
{
    gcc_jit_block *general = stage_block(body, "general");
    scope_enter_logged(body, spec, general);
    scope_go_on(body, general, NULL, AT(runtime, enter));
}

static void scope_emit_enter(stage_emit *e, const tide_spec *spec)
{
    stage_body other, body = stage_function(e, STAGE_ENTER_FUNCTION, spec->stem, "enter");
    if (spec->item_count > TIDE_SCOPE_SAVED) {
        scope_emit_enter_logged(&body, spec);
        return;
    }
    if (spec->nested)
        other = stage_other_form(e, STAGE_ENTER_FUNCTION, spec->stem, "enter_logged");
    gcc_jit_block *otherwise = stage_block(&body, "otherwise");
    scope_enter_kept(&body, spec, otherwise);
    scope_go_on(&body, otherwise, spec->nested ? &other : NULL, AT(runtime, enter));
    if (spec->nested)
        scope_emit_enter_logged(&other, spec);
}

/* ---- leave ---------------------------------------------------------------------------------- */

void stage_put_back(stage_body *body, uint32_t count, const tide_type *types, bool claim)
{
    stage_emit *e = body->e;
    tide_assert(count > 0 && count <= TIDE_SCOPE_SAVED);
    gcc_jit_rvalue *scope = body->params[0], *next[TIDE_SCOPE_SAVED];
    gcc_jit_rvalue *pool = stage_keep(body, stage_load(e, scope, AT(scope, pool)), "home");
    for (uint32_t i = 0; i < count; i++)
        next[i] = stage_keep(body, stage_load_saved(e, scope, i), "next_%u", types[i]);
    gcc_jit_rvalue *outer = stage_keep(body, stage_load(e, scope, AT(scope, outer)), "outer");
    stage_store(body, pool, AT(pool, tag), outer);
    for (uint32_t i = 0; i < count; i++) {
        gcc_jit_rvalue *shelf = stage_shelf(e, pool, types[i]);
        stage_store(body, shelf, AT(shelf, next), next[i]);
        if (claim)
            stage_store(body, shelf, AT(shelf, saved_at), outer);
    }
    stage_return(body, NULL);
}

/* The log holds what this scope saved and nothing else: exactly the entries it pushed, or that the
 * first touches made in the same order; a base that is not marked ends at no entry. The room says
 * that the pool is not careful. */
static void scope_leave_logged(stage_body *body, const tide_spec *spec, gcc_jit_block *general)
{
    stage_emit *e = body->e;
    uint32_t count = spec->item_count;
    tide_assert(count > 0 && count <= TIDE_SPEC_ITEMS);
    gcc_jit_rvalue *scope = body->params[0];
    words w;
    gcc_jit_rvalue *pool = stage_keep(body, stage_load(e, scope, AT(scope, pool)), "owner");
    gcc_jit_rvalue *marked = stage_load(e, scope, AT(scope, base));
    gcc_jit_rvalue *base = stage_keep(body, stage_marked(e, marked, -1), "log");
    stage_guard(body, stage_load(e, pool, AT(pool, log_top)), GCC_JIT_COMPARISON_EQ,
                stage_ahead(e, base, count), general);
    stage_guard(body, base, GCC_JIT_COMPARISON_LT, stage_load(e, pool, AT(pool, log_room)),
                general);
    for (uint32_t i = 0; i < count; i++)
        stage_guard(body, stage_load(e, stage_ahead(e, base, i), AT(entry, shelf)),
                    GCC_JIT_COMPARISON_EQ, stage_shelf(e, pool, spec->items[i].type), general);
    for (uint32_t i = 0; i < count; i++) {
        gcc_jit_rvalue *entry = stage_ahead(e, base, i);
        tide_type type = spec->items[i].type;
        w.next[i] = stage_keep(body, stage_load(e, entry, AT(entry, next)), "was_next_%u", type);
        w.saved_at[i] =
            stage_keep(body, stage_load(e, entry, AT(entry, saved_at)), "was_saved_at_%u", type);
    }
    gcc_jit_rvalue *outer = stage_keep(body, stage_load(e, scope, AT(scope, outer)), "around");
    for (uint32_t i = 0; i < count; i++) {
        gcc_jit_rvalue *shelf = stage_shelf(e, pool, spec->items[i].type);
        stage_store(body, shelf, AT(shelf, next), w.next[i]);
        stage_store(body, shelf, AT(shelf, saved_at), w.saved_at[i]);
    }
    stage_store(body, pool, AT(pool, log_top), base);
    stage_store(body, pool, AT(pool, tag), outer);
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

static void scope_emit_leave_logged(stage_body *body, const tide_spec *spec)
{
    gcc_jit_block *general = stage_block(body, "general");
    stage_guard_level(body, general);
    scope_leave_logged(body, spec, general);
    scope_go_on(body, general, NULL, AT(runtime, leave));
}

static void scope_leave_kept(stage_body *body, const tide_spec *spec, gcc_jit_block *otherwise)
{
    tide_type types[TIDE_SCOPE_SAVED];
    tide_assert(spec->item_count <= TIDE_SCOPE_SAVED);
    for (uint32_t i = 0; i < spec->item_count; i++)
        types[i] = spec->items[i].type;
    stage_guard_level(body, otherwise);
    stage_guard_log(body, otherwise);
    stage_put_back(body, spec->item_count, types, true);
}

static void scope_emit_leave(stage_emit *e, const tide_spec *spec)
{
    stage_body other, body = stage_function(e, STAGE_LEAVE_FUNCTION, spec->stem, "leave");
    if (spec->item_count > TIDE_SCOPE_SAVED) {
        scope_emit_leave_logged(&body, spec);
        return;
    }
    if (spec->nested)
        other = stage_other_form(e, STAGE_LEAVE_FUNCTION, spec->stem, "leave_logged");
    gcc_jit_block *otherwise = stage_block(&body, "otherwise");
    scope_leave_kept(&body, spec, otherwise);
    scope_go_on(&body, otherwise, spec->nested ? &other : NULL, AT(runtime, leave));
    if (spec->nested)
        scope_emit_leave_logged(&other, spec);
}

void stage_emit_scope(stage_emit *e, const tide_spec *spec)
{
    tide_assert(spec->kind == TIDE_KIND_SCOPE && spec->item_count > 0);
    tide_assert(!spec->nested || spec->item_count <= TIDE_SCOPE_SAVED);
    scope_emit_enter(e, spec);
    scope_emit_leave(e, spec);
}
