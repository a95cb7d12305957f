/* SPDX-License-Identifier: MIT */
/* Scopes that are still on the stack when the pool is rewound under them: their end must do
 * nothing, whatever was opened at their depth meanwhile. */
#include "forms.h"

#include <setjmp.h>

#include <tidepool/dynamic.h>
#include <tidepool/upkeep.h>

/* How the scopes around a body are taken away from under it. */
enum removal { BY_RESET, BY_EMPTY, BY_OUTER_MARK, BY_OUTER_SCOPE, REMOVAL_COUNT };

struct removed {
    enum removal how;
    tide_mark outer_mark; /* opened before the form's scope */
    tide_scope outer_scope;
    const form *inner; /* opened after the removal, and left open or ended */
    tide_mark left_open[2];
    tide_scope left_entered;
    uint8_t *kept; /* acquired after the removal */
};

static void open_around(struct removed *r, tide_pool *pool)
{
    r->outer_mark.pool = NULL;
    if (r->how == BY_OUTER_MARK)
        r->outer_mark = tide_checkpoint(pool);
    if (r->how == BY_OUTER_SCOPE)
        expect_ok(tide_scope_enter(pool, NULL, &r->outer_scope));
}

static void remove_all(struct removed *r, tide_pool *pool)
{
    if (r->how == BY_RESET)
        expect_ok(tide_pool_reset(pool));
    else if (r->how == BY_EMPTY)
        expect_ok(tide_pool_empty(pool));
    else if (r->how == BY_OUTER_MARK)
        expect_ok(tide_rewind(pool, r->outer_mark));
    else
        expect_ok(tide_scope_leave(&r->outer_scope));
    counts_same((counts){0, 0, 0, 0}, pool);
}

/* Runs the form around a body that removes it; only those left by a call can say that it went. */
static void run_removed(const form *f, tide_pool *pool, form_body *body, void *state)
{
    tide_status status = f->run(pool, body, state);
    expect_status(status, f->block ? TIDE_OK : TIDE_ERROR_STALE);
    CHECK_POOL(pool);
}

static void use_three_types(tide_pool *pool, void *state)
{
    (void)state;
    take(pool, TIDE_F64, 10, 1);
    take(pool, TIDE_I32, 10, 2);
    take(pool, TIDE_F32, 10, 3);
    CHECK_POOL(pool);
}

/* ---- marks and scopes left open ---- */

static void remove_then_leave_marks_open(tide_pool *pool, void *state)
{
    struct removed *r = state;
    use_three_types(pool, NULL);
    remove_all(r, pool);
    for (size_t i = 0; i < 2; i++) {
        r->left_open[i] = tide_checkpoint(pool);
        assert_ptr_equal(r->left_open[i].pool, pool);
        use_three_types(pool, NULL);
    }
    r->kept = take(pool, TIDE_F64, 50, 9);
}

static void expect_kept(const struct removed *r, tide_pool *pool, size_t depth, size_t reals)
{
    CHECK_POOL(pool);
    assert_int_equal(tide_pool_depth(pool), depth);
    assert_int_equal(tide_pool_active(pool, TIDE_F64), reals);
    if (r != NULL)
        expect_bytes(r->kept, 50 * sizeof(double), 9);
}

static void the_end_of_a_removed_scope_leaves_newer_marks_open(const scene *s)
{
    for (int how = 0; how < REMOVAL_COUNT; how++) {
        struct removed r = {.how = (enum removal)how};
        note("removal %d", how);
        open_around(&r, s->pool);
        run_removed(s->form, s->pool, remove_then_leave_marks_open, &r);
        expect_kept(&r, s->pool, 2, 3);
        expect_ok(tide_rewind(s->pool, r.left_open[1]));
        expect_kept(NULL, s->pool, 1, 1);
        expect_ok(tide_rewind(s->pool, r.left_open[0]));
        counts_same((counts){0, 0, 0, 0}, s->pool);
    }
}

/* ---- a loop goes on after it was removed ---- */

struct loop_removed {
    struct removed removed;
    size_t round;
};

static void remove_in_the_second_round(tide_pool *pool, void *state)
{
    struct loop_removed *l = state;
    if (l->round++ == 1)
        remove_then_leave_marks_open(pool, &l->removed);
    else if (l->round == 4)
        tide_acquire(pool, double, 10);
    if (l->round >= 2)
        expect_bytes(l->removed.kept, 50 * sizeof(double), 9);
    CHECK_POOL(pool);
}

static void a_removed_loop_runs_on_without_rewinding(void **state)
{
    (void)state;
    for (int how = 0; how < REMOVAL_COUNT; how++) {
        struct loop_removed l = {.removed = {.how = (enum removal)how}};
        tide_pool *pool = pool_of(how % 2 ? TIDE_CHECK_POISON : TIDE_CHECK_NONE);
        open_around(&l.removed, pool);
        TIDE_LOOP(pool, i, 5)
        remove_in_the_second_round(pool, &l);
        assert_int_equal(l.round, 5);
        expect_kept(&l.removed, pool, 2, 4);
        expect_ok(tide_rewind(pool, l.removed.left_open[0]));
        counts_same((counts){0, 0, 0, 0}, pool);
        expect_ok(tide_pool_destroy(pool));
    }
}

/* ---- many times over, so that nothing wraps or piles up ---- */

/* Nothing is written for these scopes, so only their number tells that they are there. */
static void leave_open_by_longjmp(tide_pool *pool, size_t times)
{
    for (volatile size_t i = 0; i < times; i++) {
        jmp_buf away;
        if (setjmp(away) == 0) {
            TIDE_SCOPE_TYPES(pool, double);
            longjmp(away, 1);
        }
    }
}

/* At the level around, whose arrays a refused block takes; those of a frame are refused, too. */
static void stay_at_the_deepest(tide_pool *pool, void *times)
{
    assert_int_equal(tide_pool_depth(pool), TIDE_TAG_DEEP - 1);
    ++*(size_t *)times;
}

static void expect_no_level_opens(tide_pool *pool, const tide_pool_statistics *before)
{
    tide_scope scope;
    expect_status(tide_scope_enter(pool, NULL, &scope), TIDE_ERROR_LIMIT);
    assert_null(tide_checkpoint(pool).pool);
    assert_int_equal(tide_error_status(), TIDE_ERROR_LIMIT);
    assert_non_null(strstr(tide_error_message(), "longjmp"));
    size_t times = 0;
    EACH_FORM(inner)
    {
        (void)inner->run(pool, stay_at_the_deepest, &times); /* or is refused, and runs nothing */
        assert_int_equal(tide_pool_depth(pool), before->depth);
        CHECK_POOL(pool);
    }
    assert_true(times > 0); /* blocks run, refused or not */
}

static void more_levels_than_a_tag_counts_are_refused(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    {
        TIDE_SCOPE_TYPES(pool, double);
        tide_acquire(pool, double, 4);
        size_t times = scaled((size_t)TIDE_TAG_DEEP, 2000);
        pool->tag += TIDE_TAG_DEEP - times; /* as many as are not left here one by one */
        leave_open_by_longjmp(pool, times + 1000);
        tide_acquire(pool, double, 4);
        tide_acquire(pool, int32_t, 4);
        tide_acquire(pool, float, 4);
        tide_pool_statistics deep = stats_of(pool);
        assert_int_equal(deep.depth, TIDE_TAG_DEEP - 1);
        expect_no_level_opens(pool, &deep);
    }
    assert_int_equal(tide_pool_depth(pool), 0);
    assert_int_equal(tide_pool_active(pool, TIDE_F64), 0);
    expect_ok(tide_pool_destroy(pool));
}

/* A block of the first epoch would take a level of the next one for its own. */
static void no_epoch_is_used_twice(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    pool->tag |= ~TIDE_TAG_DEPTH; /* as after 2^40 - 1 resets under an open mark */
    tide_mark mark = tide_checkpoint(pool);
    {
        TIDE_SCOPE_TYPES(pool, double);
        double *kept = take(pool, TIDE_F64, 4, 5);
        expect_status(tide_pool_reset(pool), TIDE_ERROR_LIMIT);
        expect_status(tide_pool_empty(pool), TIDE_ERROR_LIMIT);
        expect_status(tide_rewind(pool, mark), TIDE_ERROR_LIMIT);
        assert_int_equal(tide_pool_depth(pool), 2);
        assert_ptr_not_equal(tide_acquire(pool, double, 4), kept);
        expect_bytes(kept, 4 * sizeof(double), 5);
    }
    expect_ok(tide_rewind(pool, mark)); /* scopes and marks that end in turn need no epoch */
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

static const form_case cases[] = {
    CASE(the_end_of_a_removed_scope_leaves_newer_marks_open),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(a_removed_loop_runs_on_without_rewinding),
    cmocka_unit_test(more_levels_than_a_tag_counts_are_refused),
    cmocka_unit_test(no_epoch_is_used_twice),
};

int main(void)
{
    return FORMS_MAIN("abandoned", cases, others);
}
