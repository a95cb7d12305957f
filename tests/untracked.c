/* SPDX-License-Identifier: MIT */
/* What the scope could not see: types that it did not name and helpers acquire. */
#include "forms.h"
#include <stdio.h>

#include <tidepool/upkeep.h>

/* ---- a helper touches what its caller uses ---- */

struct callers_array {
    tide_type type;
    size_t live_before;
};

static void call_a_helper(tide_pool *pool, void *state)
{
    struct callers_array *caller = state;
    take(pool, TIDE_F64, 10, 1);
    for (unsigned i = 0; i < 3; i++)
        take(pool, caller->type, 20, 2 + i);
    assert_int_equal(tide_pool_active(pool, caller->type), caller->live_before + 3);
    CHECK_POOL(pool);
}

static void a_helper_cannot_overwrite_its_callers_array(const scene *s)
{
    struct callers_array caller = {TIDE_I64, 2};
    void *first = take(s->pool, caller.type, 50, 9);
    void *second = take(s->pool, caller.type, 5, 10);
    for (size_t i = 0; i < 3; i++) {
        form_run(s->form, s->pool, call_a_helper, &caller);
        assert_int_equal(tide_pool_active(s->pool, caller.type), 2);
        expect_bytes(first, 50 * 8, 9);
        expect_bytes(second, 5 * 8, 10);
        CHECK_POOL(s->pool);
    }
    expect_ok(tide_pool_reset(s->pool));
}

/* ---- scope, plain, scope ---- */

struct sandwich {
    const form *inner;
    tide_type inner_type, middle_type;
};

static void innermost(tide_pool *pool, void *state)
{
    struct sandwich *types = state;
    take(pool, types->inner_type, 8, 1);
    take(pool, types->middle_type, 8, 2);
    CHECK_POOL(pool);
}

static void middle_without_a_scope(tide_pool *pool, struct sandwich *types)
{
    uint8_t *kept = take(pool, types->middle_type, 30, 3);
    form_run(types->inner, pool, innermost, types);
    assert_int_equal(tide_pool_active(pool, types->inner_type), 0);
    assert_int_equal(tide_pool_active(pool, types->middle_type), 1);
    take(pool, types->middle_type, 30, 4);
    expect_bytes(kept, 30 * tide_type_size(types->middle_type), 3);
    CHECK_POOL(pool);
}

static void outer_calls_the_middle(tide_pool *pool, void *state)
{
    struct sandwich *types = state;
    middle_without_a_scope(pool, types);
    assert_int_equal(tide_pool_active(pool, types->middle_type), 2);
}

static void the_arrays_of_a_plain_call_stay_until_the_outer_scope_ends(const scene *s)
{
    EACH_FORM(inner)
    {
        struct sandwich types = {inner, fresh_type(), TIDE_U32};
        note("inner %s", inner->name);
        form_run(s->form, s->pool, outer_calls_the_middle, &types);
        assert_int_equal(tide_pool_active(s->pool, types.inner_type), 0);
        assert_int_equal(tide_pool_active(s->pool, types.middle_type), 0);
        counts_same((counts){0, 0, 0, 0}, s->pool);
    }
}

/* ---- hundreds of types ---- */

/* BITS: as many of these have a bit at least, which a full scope saves when it opens. */
enum { MANY = 300, BITS = 40 };

static const form_case cases[] = {
    CASE(a_helper_cannot_overwrite_its_callers_array),
    CASE(the_arrays_of_a_plain_call_stay_until_the_outer_scope_ends),
};

int main(void)
{
    return forms_main("untracked", cases, sizeof cases / sizeof cases[0], NULL, 0);
}
