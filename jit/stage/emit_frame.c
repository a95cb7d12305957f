/* SPDX-License-Identifier: MIT */
/* Frames: a level and all its arrays under one guard, as tide_frame_enter of
 * tidepool/inline/typed.h with everything constant.
 *
 * The caller's types are tested one by one: they were stored one by one, and a wider load would
 * wait for those stores. */
#include <tidepool/inline/map.h>

#include "jit/stage/emit.h"
#include "runtime/base/assert.h"

/* The arrays of a frame, by different type: the i-th is of types[of[i]] and comes
 * after repeats[i] others. */
typedef struct frame {
    uint32_t count, distinct;
    tide_type types[TIDE_SCOPE_SAVED];
    uint32_t of[TIDE_TYPED_MAX], repeats[TIDE_TYPED_MAX];
    uint32_t taken[TIDE_SCOPE_SAVED]; /* slots of each type, in all */
} frame;

_Static_assert(TIDE_TYPED_MAX <= TIDE_SPEC_ITEMS, "a spec holds every frame");

/* Sorts the arrays by type: arrays of one type lie in slots that follow each other. */
static frame frame_analyse(const tide_spec *spec)
{
    frame f = {.count = spec->item_count};
    tide_assert(f.count > 0 && f.count <= TIDE_TYPED_MAX);
    for (uint32_t i = 0; i < f.count; i++) {
        uint32_t k = 0;
        while (k < f.distinct && f.types[k] != spec->items[i].type)
            k++;
        tide_assert(k < TIDE_SCOPE_SAVED); /* the reader refuses frames of more types */
        if (k == f.distinct)
            f.types[f.distinct++] = spec->items[i].type;
        f.of[i] = k;
        f.repeats[i] = f.taken[k]++;
    }
    tide_assert(f.distinct > 0 && f.distinct <= f.count);
    return f;
}

/* What the guards load, and the stores after them use. */
typedef struct loaded {
    stage_level level;
    gcc_jit_rvalue *top, *next[TIDE_SCOPE_SAVED];
} loaded;

/* Is it the frame that was foreseen? */
static void frame_guard_types(stage_body *body, const frame *f, gcc_jit_block *general)
{
    stage_emit *e = body->e;
    stage_guard(body, body->params[2], GCC_JIT_COMPARISON_EQ,
                stage_constant(e, STAGE_TYPE, f->count), general);
    for (uint32_t i = 0; i < f->count; i++)
        stage_guard(body, gcc_jit_lvalue_as_rvalue(stage_element(e, body->params[3], i)),
                    GCC_JIT_COMPARISON_EQ, stage_constant(e, STAGE_TYPE, f->types[f->of[i]]),
                    general);
}

/* May the level open without the log? */
static void frame_guard_pool(stage_body *body, const frame *f, loaded *l, gcc_jit_block *general)
{
    stage_emit *e = body->e;
    gcc_jit_rvalue *pool = body->params[1];
    l->top = stage_keep(body, stage_load(e, pool, AT(pool, log_top)), "top");
    stage_guard(body, l->top, GCC_JIT_COMPARISON_LT, stage_load(e, pool, AT(pool, log_room)),
                general);
    stage_guard_depth(body, pool, general);
    stage_guard_saved(body, pool, f->distinct, f->types, &l->level, general);
    for (uint32_t k = 0; k < f->distinct; k++)
        l->next[k] = stage_keep_next(body, pool, f->types[k]);
}

/* Is each array's slot large enough? Past the sentinel all is zero, and nothing fits into that. */
static void frame_guard_slots(stage_body *body, const frame *f, loaded *l, gcc_jit_block *general)
{
    stage_emit *e = body->e;
    for (uint32_t i = 0; i < f->count; i++) {
        gcc_jit_rvalue *slot = stage_ahead(e, l->next[f->of[i]], f->repeats[i]);
        gcc_jit_rvalue *wanted = gcc_jit_lvalue_as_rvalue(stage_element(e, body->params[4], i));
        stage_guard(body, wanted, GCC_JIT_COMPARISON_LT, stage_load(e, slot, AT(slot, limit)),
                    general);
    }
}

/* A load that is not merged with the one before. Six parameters must outlive the last guard, which
 * leaves three registers: a word that lived across the guards, too, would cost a push and a pop. */
static gcc_jit_rvalue *frame_load_again(stage_body *body, stage_field field, stage_type type,
                                        const char *name)
{
    stage_emit *e = body->e;
    gcc_jit_rvalue *place =
        gcc_jit_lvalue_get_address(stage_place(e, body->params[1], field), NULL);
    gcc_jit_type *again = gcc_jit_type_get_pointer(gcc_jit_type_get_volatile(e->types[type]));
    gcc_jit_lvalue *value =
        gcc_jit_rvalue_dereference(gcc_jit_context_new_cast(e->context, NULL, place, again), NULL);
    return stage_keep(
        body,
        gcc_jit_context_new_cast(e->context, NULL, gcc_jit_lvalue_as_rvalue(value), e->types[type]),
        "%s", name);
}

/* Each address is stored as it is loaded, for want of registers. */
static void frame_give_data(stage_body *body, const frame *f, const loaded *l)
{
    stage_emit *e = body->e;
    for (uint32_t i = 0; i < f->count; i++) {
        gcc_jit_rvalue *slot = stage_ahead(e, l->next[f->of[i]], f->repeats[i]);
        gcc_jit_block_add_assignment(body->here, NULL, stage_element(e, body->params[5], i),
                                     stage_load(e, slot, AT(slot, data)));
    }
}

/* All guards have passed: opens the level and moves the shelves on. Ends the block. */
static void frame_take_slots(stage_body *body, const frame *f, loaded *l)
{
    stage_emit *e = body->e;
    gcc_jit_rvalue *scope = body->params[0], *pool = body->params[1];
    frame_give_data(body, f, l);
    l->top = frame_load_again(body, AT(pool, log_top), STAGE_POINTER, "same_top");
    l->level.outer_saved = frame_load_again(body, AT(pool, saved), STAGE_WORD, "same_saved");
    l->level.tag =
        stage_inner_tag(body, frame_load_again(body, AT(pool, tag), STAGE_WORD, "outer"));
    stage_fill_scope(body, scope, pool, l->top, &l->level);
    stage_open_level(body, pool, &l->level);
    for (uint32_t k = 0; k < f->distinct; k++) {
        stage_store_saved(body, scope, k, l->next[k]);
        stage_store(body, stage_shelf(e, pool, f->types[k]), AT(shelf, next),
                    stage_ahead(e, l->next[k], f->taken[k]));
    }
    stage_return(body, NULL);
}

static void frame_emit_enter(stage_emit *e, const tide_spec *spec, const frame *f)
{
    loaded l;
    stage_body body = stage_function(e, STAGE_FRAME_FUNCTION, spec->stem, "frame");
    gcc_jit_block *general = stage_block(&body, "general");
    frame_guard_types(&body, f, general);
    frame_guard_pool(&body, f, &l, general);
    frame_guard_slots(&body, f, &l, general);
    if (spec->count)
        stage_count(&body, stage_load(e, body.params[0], AT(scope, plan)));
    frame_take_slots(&body, f, &l);
    tide_assert(body.here == NULL);
    body.here = general;
    stage_give_up(&body, AT(runtime, frame));
}

static void frame_emit_leave(stage_emit *e, const tide_spec *spec, const frame *f)
{
    stage_body body = stage_function(e, STAGE_LEAVE_FUNCTION, spec->stem, "leave");
    gcc_jit_block *general = stage_block(&body, "general");
    stage_guard_level(&body, general);
    stage_guard_log(&body, general);
    stage_put_back(&body, f->distinct, f->types);
    tide_assert(body.here == NULL);
    body.here = general;
    stage_give_up(&body, AT(runtime, frame_leave));
}

void stage_emit_frame(stage_emit *e, const tide_spec *spec)
{
    tide_assert(spec->kind == TIDE_KIND_FRAME);
    frame f = frame_analyse(spec);
    frame_emit_enter(e, spec, &f);
    frame_emit_leave(e, spec, &f);
}
