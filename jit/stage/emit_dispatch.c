/* SPDX-License-Identifier: MIT */
/* Dispatches: for the generic function the plan was made for, a jump to each foreseen type's
 * method, read from its place: methods may be replaced. The generic function, the types and the
 * places are all data of the plan, so that one piece of code serves every site that tests for as
 * many (tide_code_shared). */
#include "jit/stage/emit.h"
#include "runtime/base/assert.h"

enum { GENERIC, TYPE, ARGS, PLAN }; /* the parameters, as STAGE_FUNCTIONS has them */

static gcc_jit_rvalue *dispatch_test(stage_body *body, uint32_t index)
{
    tide_assert(index < TIDE_PLAN_METHODS);
    gcc_jit_rvalue *tests = stage_load(body->e, body->params[PLAN], AT(plan, tests));
    return gcc_jit_lvalue_as_rvalue(stage_element(body->e, tests, index));
}

/* To the method that stands at this place of the plan now. Ends the block. */
static void dispatch_jump(stage_body *body, uint32_t index)
{
    stage_emit *e = body->e;
    tide_assert(index < TIDE_PLAN_METHODS);
    gcc_jit_rvalue *methods = stage_load(e, body->params[PLAN], AT(plan, methods));
    gcc_jit_rvalue *place = gcc_jit_lvalue_as_rvalue(stage_element(e, methods, index));
    gcc_jit_rvalue *method = gcc_jit_lvalue_as_rvalue(gcc_jit_rvalue_dereference(place, NULL));
    stage_tail_call(body, method, 1, &body->params[ARGS]);
}

void stage_emit_dispatch(stage_emit *e, const tide_spec *spec)
{
    tide_assert(spec->kind == TIDE_KIND_DISPATCH);
    tide_assert(spec->item_count > 0 && spec->item_count <= TIDE_PLAN_METHODS);
    stage_body body = stage_function(e, STAGE_DISPATCH_FUNCTION, spec->stem, "dispatch");
    gcc_jit_block *general = stage_block(&body, "general");
    stage_guard(&body, body.params[GENERIC], GCC_JIT_COMPARISON_EQ,
                stage_load(e, body.params[PLAN], AT(plan, generic)), general);
    for (uint32_t i = 0; i < spec->item_count; i++) {
        gcc_jit_block *other = i + 1 < spec->item_count ? stage_block(&body, "other") : general;
        stage_guard(&body, body.params[TYPE], GCC_JIT_COMPARISON_EQ, dispatch_test(&body, i),
                    other);
        if (spec->count)
            stage_count(&body, body.params[PLAN]);
        dispatch_jump(&body, i);
        tide_assert(body.here == NULL);
        body.here = other;
    }
    stage_give_up(&body, AT(runtime, dispatch));
}
