/* SPDX-License-Identifier: MIT */
/* What has a fixed size, filled to the brim: the undo log, a row of slots, the table of types.
 * Full means refused with a message; and everything is as before once there is room again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <tidepool/array.h>
#include <tidepool/dlpack.h>
#include <tidepool/dynamic.h>
#include <tidepool/site.h>
#include <tidepool/tidepool.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

#include "tests/hooks.h"

/* Of the library: entries of a log, slots of a row. */
enum { LOG_ENTRIES = 1 << 17, ROW_MAX = 65472 };

static tide_pool *make_pool(void)
{
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.name = "brim"});
    assert_non_null(pool);
    return pool;
}

static void expect_full(const char *limit)
{
    assert_int_equal(tide_error_status(), TIDE_ERROR_LIMIT);
    assert_non_null(strstr(tide_error_message(), limit));
}

static void expect_valid(const tide_pool *pool)
{
    if (tide_pool_check(pool) != TIDE_OK)
        fail_msg("%s", tide_error_message());
}

/* ---- the undo log ----------------------------------------------------------------------- */

/* Opens marks until `left` entries are free. Returns the first mark. */
static tide_mark fill_log(tide_pool *pool, size_t left)
{
    tide_pool_statistics stats;
    tide_mark first = tide_checkpoint(pool);
    tide_pool_stats(pool, &stats);
    for (size_t i = stats.log_entries; i < LOG_ENTRIES - left; i++)
        assert_non_null(tide_checkpoint(pool).pool);
    return first;
}

static bool acquires(tide_pool *pool)
{
    if (tide_acquire(pool, double, 10) != NULL && tide_acquire(pool, float, 10) != NULL)
        return true;
    expect_full("131072");
    return false;
}

static void use_function_scope(tide_pool *pool, size_t left)
{
    tide_scope scope;
    if (left > 0) {
        assert_int_equal(tide_scope_enter(pool, NULL, &scope), TIDE_OK);
        assert_int_equal(acquires(pool), left >= 3);
        assert_int_equal(tide_scope_leave(&scope), TIDE_OK);
    } else {
        assert_int_equal(tide_scope_enter(pool, NULL, &scope), TIDE_ERROR_LIMIT);
        assert_null(tide_checkpoint(pool).pool);
        expect_full("131072");
    }
}

enum { FORMS = 5 };

/* With `left` entries free a scope of two types needs two of them, whoever pushes them. */
static void use_form(tide_pool *pool, unsigned form, size_t left)
{
    if (form == 0) {
        TIDE_SCOPE(pool);
        assert_int_equal(acquires(pool), left >= 2);
    } else if (form == 1) {
        TIDE_SCOPE_TYPES(pool, double, float);
        assert_int_equal(acquires(pool), left >= 2);
    } else if (form == 2) {
        TIDE_FRAME(pool, (double, a, 10), (float, b, 10));
        assert_int_equal(a != NULL && b != NULL, left >= 2);
        assert_int_equal(a == NULL, b == NULL);
    } else if (form == 3) {
        TIDE_LOOP(pool, i, 3)
        assert_int_equal(acquires(pool), left >= 2);
    } else {
        use_function_scope(pool, left);
    }
}

/* Each with a log of its own: what a form saves for the level around it stays there. */
static void use_every_form(tide_pool *pool, size_t left)
{
    for (unsigned form = 0; form < FORMS; form++) {
        tide_mark first = fill_log(pool, left);
        size_t depth = tide_pool_depth(pool);
        use_form(pool, form, left);
        use_form(pool, form, left); /* what the first use saved is not needed again */
        assert_int_equal(tide_pool_depth(pool), depth);
        assert_int_equal(tide_pool_active(pool, TIDE_F64), 1);
        assert_int_equal(tide_rewind(pool, first), TIDE_OK);
        assert_int_equal(tide_pool_depth(pool), 0);
        expect_valid(pool);
    }
}

static void when_the_log_is_full_scopes_still_begin_and_end(void **state)
{
    (void)state;
    tide_pool *pool = make_pool();
    const double *outer = tide_fill(pool, double, 10, 2.5);
    tide_mark warm = tide_checkpoint(pool);
    assert_true(acquires(pool));
    assert_int_equal(tide_rewind(pool, warm), TIDE_OK);
    for (size_t left = 0; left < 5; left++)
        use_every_form(pool, left);
    assert_true(outer[0] == 2.5 && outer[9] == 2.5);
    for (unsigned form = 0; form < FORMS; form++)
        use_form(pool, form, 5);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
}

/* A header's type that comes after all bits are given takes two entries when it is touched. */
static void an_import_needs_room_for_all_its_entries(void **state)
{
    (void)state;
    enum { LATE = 50 };
    static double numbers[4];
    static int64_t shape[1] = {4};
    tide_pool *pool = make_pool();
    for (int i = 0; i < LATE; i++) {
        char name[32];
        snprintf(name, sizeof name, "struct late %d", i);
        assert_non_null(tide_acquire_type(pool, tide_type_register(name, 8, 8), 1));
    }
    for (size_t left = 0; left < 5; left++) {
        tide_dl_managed foreign = {
            .version = {1, 0},
            .tensor = {
                .data = numbers, .device = {1, 0}, .ndim = 1, .dtype = {2, 64, 1}, .shape = shape}};
        tide_mark first = fill_log(pool, left);
        const tide_array *array = tide_array_import(pool, &foreign);
        assert_int_equal(array != NULL, left >= 3);
        assert_int_equal(tide_rewind(pool, first), TIDE_OK);
        expect_valid(pool);
    }
    assert_int_equal(tide_pool_reset(pool), TIDE_OK);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
}

/* ---- a row ------------------------------------------------------------------------------ */

/* Where the library walks the row after every acquire, filling it would take minutes. */
static void when_a_row_is_full_the_next_array_is_refused(void **state)
{
    (void)state;
    if (assert_level() >= 2)
        skip();
    tide_pool *pool = make_pool();
    char limit[16];
    snprintf(limit, sizeof limit, "%d", ROW_MAX);
    for (size_t i = 0; i < ROW_MAX; i++)
        assert_non_null(tide_acquire(pool, int8_t, 1));
    assert_null(tide_acquire(pool, int8_t, 1));
    expect_full(limit);
    {
        TIDE_FRAME(pool, (int8_t, a, 1), (int8_t, b, 1), (int8_t, c, 1));
        assert_true(a == NULL && b == NULL && c == NULL);
        assert_non_null(tide_acquire(pool, uint8_t, 1));
    }
    assert_int_equal(tide_pool_active(pool, TIDE_I8), ROW_MAX);
    expect_valid(pool);
    assert_int_equal(tide_pool_reset(pool), TIDE_OK);
    assert_non_null(tide_acquire(pool, int8_t, 1));
    assert_int_equal(tide_pool_reset(pool), TIDE_OK);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
}

/* ---- types ------------------------------------------------------------------------------ */

static tide_type number_type(unsigned number)
{
    char name[32];
    snprintf(name, sizeof name, "number %u", number);
    return tide_type_register(name, 8, 8);
}

static void many_types_in_one_scope_are_all_rewound(void **state)
{
    (void)state;
    enum { MANY = 200 };
    tide_pool *pool = make_pool();
    tide_pool_statistics stats;
    for (unsigned round = 0; round < 3; round++) {
        TIDE_SCOPE(pool);
        for (unsigned i = 0; i < MANY; i++)
            assert_non_null(tide_acquire_type(pool, number_type(i), 5));
        assert_int_equal(tide_pool_stats(pool, &stats), TIDE_OK);
        assert_int_equal(stats.slots_live, MANY);
    }
    assert_int_equal(tide_pool_stats(pool, &stats), TIDE_OK);
    assert_int_equal(stats.slots_live, 0);
    assert_int_equal(stats.allocations, MANY);
    expect_valid(pool);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
}

static void when_all_numbers_are_given_a_new_type_is_refused(void **state)
{
    (void)state;
    unsigned number = 0;
    tide_type last = TIDE_NO_TYPE, type;
    while ((type = number_type(number)) != TIDE_NO_TYPE) {
        last = type;
        number++;
    }
    expect_full("65535");
    assert_int_equal(last, TIDE_TYPE_LIMIT - 1);
    assert_int_equal(tide_type_count(), last);
    assert_int_equal(number_type(number - 1), last);
    assert_int_equal(tide_type_size(last), 8);
    tide_pool *pool = make_pool();
    assert_non_null(tide_acquire_type(pool, last, 100));
    assert_null(tide_acquire_type(pool, last + 1, 100));
    assert_int_equal(tide_error_status(), TIDE_ERROR_TYPE);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(when_the_log_is_full_scopes_still_begin_and_end),
        cmocka_unit_test(an_import_needs_room_for_all_its_entries),
        cmocka_unit_test(when_a_row_is_full_the_next_array_is_refused),
        cmocka_unit_test(many_types_in_one_scope_are_all_rewound),
        cmocka_unit_test(when_all_numbers_are_given_a_new_type_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
