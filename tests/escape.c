/* SPDX-License-Identifier: MIT */
/* Pointers that leave the scope that will rewind them: reported, and nothing else is. */
#include "escape.h"
#include "forms.h"
#include "reports.h"

#include <stdio.h>

#include <tidepool/array.h>
#include <tidepool/check.h>

static heard all;

static tide_pool *checked(void)
{
    all = (heard){0};
    tide_report_set_handler(hear, &all);
    return pool_of(TIDE_CHECK_POISON);
}

static void expect_silence(void)
{
    if (all.count != 0)
        fail_msg("%s", all.text);
}

static void expect_escape(const char *file, unsigned line, const char *function)
{
    char place[300];
    snprintf(place, sizeof place, "acquired  %s:%u in %s", file, line, function);
    assert_int_equal(all.count, 1);
    assert_int_equal(all.kind, TIDE_REPORT_ESCAPE);
    if (strstr(all.text, place) == NULL)
        fail_msg("%s is not in %s", place, all.text);
    all = (heard){0};
}

static void done(tide_pool *pool)
{
    tide_report_set_handler(NULL, NULL);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

/* ---- TIDE_RETURN ---- */

static unsigned line;

static double *return_inner(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    line = __LINE__ + 1;
    double *inner = tide_acquire(pool, double, 10);
    TIDE_RETURN(inner);
}

static const float *return_the_middle(tide_pool *pool, size_t at)
{
    TIDE_SCOPE_TYPES(pool, float);
    line = __LINE__ + 1;
    const float *inner = tide_zeros(pool, float, 10);
    TIDE_RETURN(inner + at);
}

static double *return_argument(tide_pool *pool, double *argument)
{
    TIDE_SCOPE(pool);
    tide_ones(pool, double, 10);
    TIDE_RETURN(argument);
}

static tide_array *return_array(tide_pool *pool)
{
    const int64_t shape[] = {2, 3};
    TIDE_FRAME(pool, (double, other, 3));
    (void)other;
    line = __LINE__ + 1;
    tide_array *array = tide_array_acquire(pool, TIDE_F32, 2, shape);
    TIDE_RETURN(array);
}

static void an_inner_array_is_reported_with_its_place(void **state)
{
    (void)state;
    tide_pool *pool = checked();
    assert_non_null(return_inner(pool));
    expect_escape(__FILE__, line, "return_inner");
    for (size_t i = 0; i < 10; i++) {
        assert_non_null(return_the_middle(pool, i));
        expect_escape(__FILE__, line, "return_the_middle");
    }
    return_the_middle(pool, 10); /* one past the end is no element of it */
    expect_silence();
    assert_non_null(return_array(pool));
    expect_escape(__FILE__, line, "return_array");
    done(pool);
}

/* It has no scope of its own: what it acquires is its caller's. */
static double *return_to_the_caller(tide_pool *pool)
{
    TIDE_RETURN(tide_acquire(pool, double, 10));
}

static void an_outer_array_is_not_reported(void **state)
{
    (void)state;
    tide_pool *pool = checked();
    {
        TIDE_SCOPE(pool);
        assert_non_null(return_to_the_caller(pool));
        expect_silence();
    }
    double *root = tide_acquire(pool, double, 10);
    return_argument(pool, root);
    (void)tide_checkpoint(pool);
    double *outer = tide_acquire(pool, double, 10);
    assert_ptr_equal(return_argument(pool, outer), outer);
    assert_ptr_equal(return_argument(pool, outer + 9), outer + 9);
    assert_null(return_argument(pool, NULL));
    double own[3];
    return_argument(pool, own);
    return_argument(pool, (double *)(uintptr_t)-1);
    expect_silence();
    done(pool);
}

/* A longjmp that skips scopes leaves them open until the one around them ends. */
static jmp_buf over;

static void open_and_jump(tide_pool *pool)
{
    TIDE_SCOPE_TYPES(pool, int);
    tide_acquire(pool, int, 3);
    longjmp(over, 1);
}

static double *return_after_a_jump(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    line = __LINE__ + 1;
    double *volatile inner = tide_acquire(pool, double, 10);
    if (setjmp(over) == 0)
        open_and_jump(pool);
    TIDE_RETURN(inner);
}

static double *return_after_a_jump_inside(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    line = __LINE__ + 1;
    double *volatile inner = tide_acquire(pool, double, 10);
    if (setjmp(over) == 0) {
        TIDE_SCOPE(pool);
        tide_acquire(pool, int, 3);
        longjmp(over, 1);
    }
    TIDE_RETURN(inner);
}

static double *return_argument_after_a_jump(tide_pool *pool, double *argument)
{
    TIDE_SCOPE(pool);
    if (setjmp(over) == 0)
        open_and_jump(pool);
    TIDE_RETURN(argument);
}

/* The scopes that were skipped are reported as leaks. */
static bool hear_escapes(tide_report_kind kind, const char *text, void *user)
{
    return kind == TIDE_REPORT_ESCAPE && hear(kind, text, user);
}

static void an_array_is_reported_though_a_longjmp_skipped_a_scope(void **state)
{
    (void)state;
    tide_pool *pool = checked();
    tide_report_set_handler(hear_escapes, &all);
    (void)tide_checkpoint(pool);
    double *outer = tide_acquire(pool, double, 10);
    assert_non_null(return_after_a_jump(pool));
    expect_escape(__FILE__, line, "return_after_a_jump");
    assert_non_null(return_after_a_jump_inside(pool));
    expect_escape(__FILE__, line, "return_after_a_jump_inside");
    assert_ptr_equal(return_argument_after_a_jump(pool, outer), outer);
    expect_silence();
    done(pool);
}

/* ---- tide_escape_check ---- */

static void every_element_and_header_of_the_open_scope_counts(void **state)
{
    (void)state;
    tide_pool *pool = checked();
    const int64_t shape[] = {4, 5}, start[] = {1, 1}, extent[] = {2, 2};
    (void)tide_checkpoint(pool);
    tide_array *outer = tide_array_acquire(pool, TIDE_F64, 2, shape);
    void *nothing_outer = tide_acquire(pool, char, 0);
    {
        TIDE_SCOPE(pool);
        tide_array *array = tide_array_acquire(pool, TIDE_F64, 2, shape);
        tide_array *view = tide_array_view(pool, outer, start, extent, NULL);
        void *nothing = tide_acquire(pool, char, 0);
        assert_true(tide_escape_check(outer));
        assert_true(tide_escape_check(tide_array_data(outer)));
        assert_true(tide_escape_check(tide_array_data(view))); /* the outer array's memory */
        assert_true(tide_escape_check(nothing_outer));
        expect_silence();
        const void *inner[] = {array, tide_array_data(array), view, nothing};
        for (size_t i = 0; i < 4; i++)
            assert_false(tide_escape_check(inner[i]));
        assert_int_equal(all.count, 4);
    }
    done(pool);
}

static void unchecked_pools_are_not_searched(void **state)
{
    (void)state;
    tide_pool *pool = checked(), *unchecked = pool_of(TIDE_CHECK_NONE);
    return_inner(unchecked);
    expect_silence();
    done(pool);
    int before = tide_checked_pools;
    tide_pool *another = checked();
    assert_int_equal(tide_checked_pools, before + 1);
    done(another);
    assert_int_equal(tide_checked_pools, before);
    expect_ok(tide_pool_destroy(unchecked));
}

/* ---- C++ ---- */

static void it_is_the_same_in_cpp(void **state)
{
    (void)state;
    tide_pool *pool = checked();
    unsigned cpp_line = 0;
    const char *file = NULL;
    escape_in_cpp(pool, &file, &cpp_line);
    expect_escape(file, cpp_line, "first_of");
    escape_nothing_in_cpp(pool);
    expect_silence();
    done(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_inner_array_is_reported_with_its_place),
        cmocka_unit_test(an_outer_array_is_not_reported),
        cmocka_unit_test(an_array_is_reported_though_a_longjmp_skipped_a_scope),
        cmocka_unit_test(every_element_and_header_of_the_open_scope_counts),
        cmocka_unit_test(unchecked_pools_are_not_searched),
        cmocka_unit_test(it_is_the_same_in_cpp),
    };
    return cmocka_run_group_tests_name("escape", tests, NULL, NULL);
}
