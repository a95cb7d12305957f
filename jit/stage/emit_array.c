/* SPDX-License-Identifier: MIT */
/* Acquires of an array whose type and shape are known at run time.
 *
 * A hit needs three things: the request is one that was foreseen; the slot's last header has the
 * request's shape; the slot is large enough. Comparing request with constants and then header
 * with constants would take two comparisons for each extent. But if the header equals the
 * request, it does not matter for the result which shape that is: so the hot path compares the
 * two with each other, once, and only type and rank with constants (which make the shelf a
 * constant distance and the comparison a fixed sequence). The constants are asked in the cold
 * path, where they tell a request that was foreseen in a pool not ready for it from a miss.
 * Shapes of one type and rank therefore share one guard, and a shape that was not foreseen is
 * served if the header happens to have it.
 *
 * Of a header with form {row-major, rank} the library keeps: shape has `rank` extents, none
 * negative, and length is their product. So for rank 0 length is 1, and for rank 1 it is the
 * extent: there the shape's own memory is not looked at. From rank 2 on each extent counts: no
 * product of the request's can stand for them, since it may overflow. */
#include "jit/stage/emit.h"
#include "runtime/base/assert.h"

enum { POOL, TYPE, RANK, SHAPE, PLAN }; /* the parameters, as STAGE_FUNCTIONS has them */

/* Of one type and rank: such items share their guards. */
static bool array_same_pair(const tide_spec_item *a, const tide_spec_item *b)
{
    return a->type == b->type && a->ndim == b->ndim;
}

static gcc_jit_rvalue *array_extent(stage_body *body, gcc_jit_rvalue *shape, int d)
{
    tide_assert(d >= 0 && d < TIDE_NDIM_MAX);
    return gcc_jit_lvalue_as_rvalue(stage_element(body->e, shape, (uint32_t)d));
}

static gcc_jit_rvalue *array_as_word(stage_body *body, gcc_jit_rvalue *value)
{
    return gcc_jit_context_new_cast(body->e->context, NULL, value, body->e->types[STAGE_WORD]);
}

/* The header has the request's shape; gives its length, in the cheapest form. */
static gcc_jit_rvalue *array_guard_shape(stage_body *body, gcc_jit_rvalue *header, int ndim,
                                         gcc_jit_block *unready)
{
    stage_emit *e = body->e;
    tide_assert(ndim >= 0 && ndim <= TIDE_NDIM_MAX);
    if (ndim == 0)
        return stage_constant(e, STAGE_WORD, 1);
    gcc_jit_rvalue *length = stage_load(e, header, AT(array, length));
    if (ndim == 1) {
        gcc_jit_rvalue *wanted = stage_keep(
            body, array_as_word(body, array_extent(body, body->params[SHAPE], 0)), "wanted");
        stage_guard(body, wanted, GCC_JIT_COMPARISON_EQ, length, unready);
        return wanted;
    }
    gcc_jit_rvalue *shape = stage_keep(body, stage_load(e, header, AT(array, shape)), "last_shape");
    for (int d = 0; d < ndim; d++)
        stage_guard(body, array_extent(body, body->params[SHAPE], d), GCC_JIT_COMPARISON_EQ,
                    array_extent(body, shape, d), unready);
    return length;
}

/* A hit, as the head of this file says; else `unready`. Ends the block. */
static void array_take_slot(stage_body *body, const tide_spec *spec, const tide_spec_item *item,
                            gcc_jit_block *unready)
{
    stage_emit *e = body->e;
    gcc_jit_rvalue *pool = body->params[POOL], *shelf = stage_shelf(e, pool, item->type);
    stage_guard(body, stage_load(e, shelf, AT(shelf, saved_at)), GCC_JIT_COMPARISON_EQ,
                stage_load(e, pool, AT(pool, tag)), unready);
    gcc_jit_rvalue *slot = stage_keep(body, stage_load(e, shelf, AT(shelf, next)), "slot");
    gcc_jit_rvalue *header = stage_keep(body, stage_load(e, slot, AT(slot, array)), "header");
    stage_guard(body, header, GCC_JIT_COMPARISON_NE, stage_constant(e, STAGE_ARRAY, 0), unready);
    stage_guard(body, stage_load(e, header, AT(array, form)), GCC_JIT_COMPARISON_EQ,
                stage_constant(e, STAGE_WORD, tide_array_form(TIDE_ROW_MAJOR, item->ndim)),
                unready);
    gcc_jit_rvalue *length = array_guard_shape(body, header, item->ndim, unready);
    stage_guard(body, length, GCC_JIT_COMPARISON_LT, stage_load(e, slot, AT(slot, limit)), unready);
    if (spec->count)
        stage_count(body, body->params[PLAN]);
    stage_store(body, shelf, AT(shelf, next), stage_ahead(e, slot, 1));
    gcc_jit_block_add_assignment_op(body->here, NULL, stage_place(e, header, AT(array, hits)),
                                    GCC_JIT_BINARY_OP_PLUS, stage_constant(e, STAGE_WORD, 1));
    stage_return(body, header);
}

/* Cold: was the shape foreseen? */
static void array_tell_slow_from_miss(stage_body *body, const tide_spec *spec, uint32_t first,
                                      gcc_jit_block *slow, gcc_jit_block *miss)
{
    stage_emit *e = body->e;
    const tide_spec_item *items = spec->items;
    tide_assert(first < spec->item_count && slow != miss);
    if (items[first].ndim == 0) { /* there is but one such shape */
        gcc_jit_block_end_with_jump(body->here, NULL, slow);
        return;
    }
    for (uint32_t i = first; i < spec->item_count; i++) {
        if (!array_same_pair(&items[i], &items[first]))
            continue;
        gcc_jit_block *other = stage_block(body, "other_shape");
        for (int d = 0; d < items[i].ndim; d++)
            stage_guard(body, array_extent(body, body->params[SHAPE], d), GCC_JIT_COMPARISON_EQ,
                        stage_constant(e, STAGE_EXTENT, (uint64_t)items[i].shape[d]), other);
        gcc_jit_block_end_with_jump(body->here, NULL, slow);
        body->here = other;
    }
    gcc_jit_block_end_with_jump(body->here, NULL, miss);
}

/* The end of a pair's cold path. Type and rank are known there: said as constants they need not
 * outlive the guards in registers, of which six parameters leave three. */
static void array_give_up(stage_body *body, gcc_jit_block *block, const tide_spec_item *item,
                          stage_field general)
{
    gcc_jit_rvalue *type = body->params[TYPE], *rank = body->params[RANK];
    tide_assert(general == AT(runtime, array) || general == AT(runtime, array_slow));
    body->here = block;
    body->params[TYPE] = stage_constant(body->e, STAGE_TYPE, item->type);
    body->params[RANK] = stage_constant(body->e, STAGE_RANK, (uint64_t)item->ndim);
    stage_give_up(body, general);
    body->params[TYPE] = type;
    body->params[RANK] = rank;
}

/* One type and rank; goes on, in body->here, for all others. */
static void array_emit_pair(stage_body *body, const tide_spec *spec, uint32_t first)
{
    stage_emit *e = body->e;
    const tide_spec_item *item = &spec->items[first];
    gcc_jit_block *other = stage_block(body, "other"), *unready = stage_block(body, "unready");
    gcc_jit_block *slow = stage_block(body, "slow"), *miss = stage_block(body, "miss");
    stage_guard(body, body->params[TYPE], GCC_JIT_COMPARISON_EQ,
                stage_constant(e, STAGE_TYPE, item->type), other);
    stage_guard(body, body->params[RANK], GCC_JIT_COMPARISON_EQ,
                stage_constant(e, STAGE_RANK, (uint64_t)item->ndim), other);
    stage_guard(body, body->params[SHAPE], GCC_JIT_COMPARISON_NE,
                stage_constant(e, STAGE_EXTENTS, 0), miss);
    array_take_slot(body, spec, item, unready);
    tide_assert(body->here == NULL);
    body->here = unready;
    array_tell_slow_from_miss(body, spec, first, slow, miss);
    array_give_up(body, miss, item, AT(runtime, array));
    array_give_up(body, slow, item, AT(runtime, array_slow));
    body->here = other;
}

void stage_emit_array(stage_emit *e, const tide_spec *spec)
{
    stage_body body = stage_function(e, STAGE_ARRAY_FUNCTION, spec->stem, "array");
    tide_assert(spec->kind == TIDE_KIND_ARRAY && !spec->nested && spec->item_count > 0);
    tide_assert(body.param_count == PLAN + 2); /* the site is the last */
    for (uint32_t i = 0; i < spec->item_count; i++) {
        uint32_t first = 0;
        while (!array_same_pair(&spec->items[first], &spec->items[i]))
            first++;
        tide_assert(first <= i);
        if (first == i)
            array_emit_pair(&body, spec, first);
    }
    stage_give_up(&body, AT(runtime, array));
}
