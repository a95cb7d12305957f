/* SPDX-License-Identifier: MIT */
/* Every public macro does in C and in C++ what it says (use.h), at each check level. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <tidepool/tidepool.h>
#include <tidepool/upkeep.h>

#include <cmocka.h>

int use_in_c(tide_pool *pool);
int use_in_cpp(tide_pool *pool);

static void each_macro_works(int (*use)(tide_pool *pool), tide_check level)
{
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.check = level});
    assert_non_null(pool);
    assert_int_equal(use(pool), 0);
    assert_int_equal(tide_pool_depth(pool), 0);
    assert_int_equal(tide_pool_check(pool), TIDE_OK);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
}

static void each_macro_works_in_c(void **state)
{
    (void)state;
    each_macro_works(use_in_c, TIDE_CHECK_NONE);
    each_macro_works(use_in_c, TIDE_CHECK_POISON);
}

static void each_macro_works_in_cpp(void **state)
{
    (void)state;
    each_macro_works(use_in_cpp, TIDE_CHECK_NONE);
    each_macro_works(use_in_cpp, TIDE_CHECK_POISON);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_macro_works_in_c),
        cmocka_unit_test(each_macro_works_in_cpp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
