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

static void register_many(tide_type types[MANY])
{
    for (unsigned i = 0; i < MANY; i++) {
        char name[32];
        snprintf(name, sizeof name, "one of many %u", i);
        types[i] = tide_type_register(name, 8, 8);
        assert_int_not_equal(types[i], TIDE_NO_TYPE);
    }
}

struct among_many {
    snapshot before;
    size_t entries; /* what the scope saved */
    bool full;
};

static void touch_two_of_many(tide_pool *pool, void *state)
{
    struct among_many *among = state;
    take(pool, TIDE_F64, 4, 1);
    take(pool, TIDE_I32, 4, 2);
    among->entries = stats_of(pool).log_entries;
    for (uint32_t type = 1; type < among->before.shelf_count; type++)
        if (!among->full && type != TIDE_F64 && type != TIDE_I32)
            assert_memory_equal(&pool->shelves[type], &among->before.shelves[type],
                                sizeof(tide_shelf));
}

static size_t entries_of_two_touched(const scene *s, tide_pool *pool)
{
    struct among_many among = {.full = form_saves_all(s->form)};
    among.before = snapshot_take(pool);
    form_run(s->form, pool, touch_two_of_many, &among);
    among.before.shelves[TIDE_F64] = pool->shelves[TIDE_F64];
    among.before.shelves[TIDE_I32] = pool->shelves[TIDE_I32];
    for (uint32_t type = 1; type < among.before.shelf_count; type++)
        assert_memory_equal(&pool->shelves[type], &among.before.shelves[type], sizeof(tide_shelf));
    snapshot_drop(&among.before);
    CHECK_POOL(pool);
    return among.entries;
}

static void of_hundreds_of_types_only_those_touched_are_saved(const scene *s)
{
    tide_type types[MANY];
    register_many(types);
    tide_pool *small = pool_of(s->kind->check);
    take(small, TIDE_F64, 10, 1);
    take(small, TIDE_I32, 10, 1);
    take(s->pool, TIDE_F64, 10, 1);
    take(s->pool, TIDE_I32, 10, 1);
    for (unsigned i = 0; i < MANY; i++)
        take(s->pool, types[i], 2, i);
    size_t few = entries_of_two_touched(s, small), many = entries_of_two_touched(s, s->pool);
    if (form_saves_all(s->form) &&
        s->kind->check == TIDE_CHECK_NONE) /* a pool that checks saves at the touch */
        assert_true(many >= BITS && few < 10);
    else
        assert_true(many == few && few <= 3); /* two shelves, and a mark's own entry */
    expect_ok(tide_pool_reset(small));
    expect_ok(tide_pool_destroy(small));
    expect_ok(tide_pool_reset(s->pool));
}

static const form_case cases[] = {
    CASE(a_helper_cannot_overwrite_its_callers_array),
    CASE(the_arrays_of_a_plain_call_stay_until_the_outer_scope_ends),
    CASE_SLOTS(of_hundreds_of_types_only_those_touched_are_saved),
};

int main(void)
{
    return forms_main("untracked", cases, sizeof cases / sizeof cases[0], NULL, 0);
}
