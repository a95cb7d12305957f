/* SPDX-License-Identifier: MIT */
/* Acquires of an array whose type and shape are known at run time.
 *
 * A hit needs three things: the request's type and rank are ones that were foreseen; the slot's last
 * header has the request's shape; the slot is large enough. The shape itself is no constant: if the
 * header equals the request, it does not matter for the result which shape that is. So the code
 * compares the two with each other, and only type and rank with constants, which make the shelf a
 * constant distance and the comparison a fixed sequence.
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

/* A request that was foreseen, in a pool that is not ready for it. Type and rank are known there: said
 * as constants they need not outlive the guards in registers, of which six parameters leave three. */
static void array_emit_unready(stage_body *body, const tide_spec_item *item, gcc_jit_block *unready)
{
    gcc_jit_rvalue *type = body->params[TYPE], *rank = body->params[RANK];
    body->here = unready;
    body->params[TYPE] = stage_constant(body->e, STAGE_TYPE, item->type);
    body->params[RANK] = stage_constant(body->e, STAGE_RANK, (uint64_t)item->ndim);
    stage_give_up(body, AT(runtime, array_slow));
    body->params[TYPE] = type;
    body->params[RANK] = rank;
}

/* One type and rank; goes on, in body->here, for all others. */
static void array_emit_item(stage_body *body, const tide_spec *spec, const tide_spec_item *item)
{
    stage_emit *e = body->e;
    gcc_jit_block *other = stage_block(body, "other"), *unready = stage_block(body, "unready");
    stage_guard(body, body->params[TYPE], GCC_JIT_COMPARISON_EQ,
                stage_constant(e, STAGE_TYPE, item->type), other);
    stage_guard(body, body->params[RANK], GCC_JIT_COMPARISON_EQ,
                stage_constant(e, STAGE_RANK, (uint64_t)item->ndim), other);
    array_take_slot(body, spec, item, unready);
    tide_assert(body->here == NULL);
    array_emit_unready(body, item, unready);
    body->here = other;
}

void stage_emit_array(stage_emit *e, const tide_spec *spec)
{
    stage_body body = stage_function(e, STAGE_ARRAY_FUNCTION, spec->stem, "array");
    tide_assert(spec->kind == TIDE_KIND_ARRAY && spec->item_count > 0);
    tide_assert(body.param_count == PLAN + 2); /* the site is the last */
    for (uint32_t i = 0; i < spec->item_count; i++)
        array_emit_item(&body, spec, &spec->items[i]);
    stage_give_up(&body, AT(runtime, array));
}
