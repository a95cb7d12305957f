/* SPDX-License-Identifier: MIT */
/* Acquires of a type known at run time: the inlined acquire, once for each type foreseen, with the
 * shelf at a constant distance. A type that was not foreseen is a miss; one that was, in a pool
 * that is not ready for it, is not. */
#include "jit/stage/emit.h"
#include "runtime/base/assert.h"

/* The type is known from here on: its shelf's next slot, or `slow`. Ends the block. */
static void acquire_take_slot(stage_body *body, const tide_spec *spec, tide_type type,
                              gcc_jit_block *slow)
{
    stage_emit *e = body->e;
    gcc_jit_rvalue *pool = body->params[0], *shelf = stage_shelf(e, pool, type);
    stage_level level;
    stage_guard_saved(body, pool, 1, &type, &level, slow);
    gcc_jit_rvalue *slot = stage_keep(body, stage_load(e, shelf, AT(shelf, next)), "slot_%u", type);
    stage_guard(body, body->params[2], GCC_JIT_COMPARISON_LT, stage_load(e, slot, AT(slot, limit)),
                slow);
    if (spec->count)
        stage_count(body, body->params[3]);
    stage_store(body, shelf, AT(shelf, next), stage_ahead(e, slot, 1));
    stage_return(body, stage_load(e, slot, AT(slot, data)));
}

void stage_emit_acquire(stage_emit *e, const tide_spec *spec)
{
    tide_assert(spec->kind == TIDE_KIND_ACQUIRE && spec->item_count > 0);
    stage_body body = stage_function(e, STAGE_ACQUIRE_FUNCTION, spec->stem, "acquire");
    gcc_jit_block *slow = stage_block(&body, "slow"), *other = NULL;
    for (uint32_t i = 0; i < spec->item_count; i++) {
        other = stage_block(&body, "other");
        stage_guard(&body, body.params[1], GCC_JIT_COMPARISON_EQ,
                    stage_constant(e, STAGE_TYPE, spec->items[i].type), other);
        acquire_take_slot(&body, spec, spec->items[i].type, slow);
        tide_assert(body.here == NULL && other != slow);
        body.here = other;
    }
    stage_give_up(&body, AT(runtime, acquire));
    body.here = slow;
    stage_give_up(&body, AT(runtime, acquire_slow));
}
