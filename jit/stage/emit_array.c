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
 * The slot's `form` says three of these at once: there is a header, it has this rank and order, and
 * its array fits. Cold code keeps it so (tide_slot_admit in runtime/pool/header.h).
 *
 * Extents are compared one by one. A program has often just stored them, one by one, and a vector
 * cannot be loaded from two stores that are still on their way: it waits until they have arrived.
 * To compare two extents then takes 10.5 ns instead of 3.0; where they lie in memory for long, the
 * vector saves 0.2 ns an array. */
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

/* The header has the request's shape, whose rank it has. */
static void array_guard_shape(stage_body *body, gcc_jit_rvalue *header, int ndim,
                              gcc_jit_block *unready)
{
    tide_assert(ndim >= 0 && ndim <= TIDE_NDIM_MAX);
    if (ndim == 0)
        return;
    gcc_jit_rvalue *shape =
        stage_keep(body, stage_load(body->e, header, AT(array, shape)), "last_shape");
    for (int d = 0; d < ndim; d++)
        stage_guard(body, array_extent(body, body->params[SHAPE], d), GCC_JIT_COMPARISON_EQ,
                    array_extent(body, shape, d), unready);
}

/* A hit, as the head of this file says; else `unready`. Ends the block. */
static void array_take_slot(stage_body *body, const tide_spec *spec, const tide_spec_item *item,
                            gcc_jit_block *unready)
{
    stage_emit *e = body->e;
    gcc_jit_rvalue *pool = body->params[POOL], *shelf = stage_shelf(e, pool, item->type);
    stage_level level;
    stage_guard_saved(body, pool, 1, &item->type, &level, unready);
    gcc_jit_rvalue *slot = stage_keep(body, stage_load(e, shelf, AT(shelf, next)), "slot");
    stage_guard(body, stage_load(e, slot, AT(slot, form)), GCC_JIT_COMPARISON_EQ,
                stage_constant(e, STAGE_WORD, tide_array_form(TIDE_ROW_MAJOR, item->ndim)),
                unready);
    gcc_jit_rvalue *header = stage_keep(body, stage_load(e, slot, AT(slot, array)), "header");
    array_guard_shape(body, header, item->ndim, unready);
    if (spec->count)
        stage_count(body, body->params[PLAN]);
    stage_store(body, shelf, AT(shelf, next), stage_ahead(e, slot, 1));
    stage_return(body, header);
}

/* Cold: was the shape foreseen? The rank is not 0, of which there is but one shape. */
static void array_tell_slow_from_miss(stage_body *body, const tide_spec *spec, uint32_t first,
                                      gcc_jit_block *slow, gcc_jit_block *miss)
{
    stage_emit *e = body->e;
    const tide_spec_item *items = spec->items;
    tide_assert(first < spec->item_count && slow != miss && items[first].ndim > 0);
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

/* The cold path of a pair, which begins in this block. */
static void array_emit_unready(stage_body *body, const tide_spec *spec, uint32_t first,
                               gcc_jit_block *unready)
{
    const tide_spec_item *item = &spec->items[first];
    if (item->ndim == 0) {
        array_give_up(body, unready, item, AT(runtime, array_slow));
        return;
    }
    gcc_jit_block *slow = stage_block(body, "slow"), *miss = stage_block(body, "miss");
    body->here = unready;
    array_tell_slow_from_miss(body, spec, first, slow, miss);
    array_give_up(body, miss, item, AT(runtime, array));
    array_give_up(body, slow, item, AT(runtime, array_slow));
}

/* One type and rank; goes on, in body->here, for all others. */
static void array_emit_pair(stage_body *body, const tide_spec *spec, uint32_t first)
{
    stage_emit *e = body->e;
    const tide_spec_item *item = &spec->items[first];
    gcc_jit_block *other = stage_block(body, "other"), *unready = stage_block(body, "unready");
    stage_guard(body, body->params[TYPE], GCC_JIT_COMPARISON_EQ,
                stage_constant(e, STAGE_TYPE, item->type), other);
    stage_guard(body, body->params[RANK], GCC_JIT_COMPARISON_EQ,
                stage_constant(e, STAGE_RANK, (uint64_t)item->ndim), other);
    array_take_slot(body, spec, item, unready);
    tide_assert(body->here == NULL);
    array_emit_unready(body, spec, first, unready);
    body->here = other;
}

void stage_emit_array(stage_emit *e, const tide_spec *spec)
{
    stage_body body = stage_function(e, STAGE_ARRAY_FUNCTION, spec->stem, "array");
    tide_assert(spec->kind == TIDE_KIND_ARRAY && spec->item_count > 0);
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
