// SPDX-License-Identifier: MIT
// The first unit, and the test.
#include "units.h"

#include <csetjmp>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <tidepool/site.h>

extern "C" {
#include <cmocka.h>
}

struct census {
    size_t count, lines;
};

static bool count_site(tide_site *site, void *user)
{
    tide_site_information info;
    auto *found = static_cast<census *>(user);
    assert_int_equal(tide_site_info(site, &info), TIDE_OK);
    found->count++;
    found->lines += info.line;
    return true;
}

static census count_sites()
{
    census found = {};
    tide_site_each(count_site, &found);
    return found;
}

static void a_scope_of_an_inline_function_is_one_site(void **)
{
    tide_pool *pool = tide_pool_create(nullptr);
    assert_int_equal(count_sites().count, UNIT_SITES); // before any was used
    facts first = facts_here(pool);
    census after_first = count_sites();
    facts second = facts_of_second(pool);
    census after_second = count_sites();
    assert_int_equal(first.got, 3 + 2 + 1);
    assert_int_equal(second.got, first.got);
    assert_int_equal(after_first.count, UNIT_SITES);
    assert_int_equal(after_second.count, UNIT_SITES);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
}

static void a_type_is_known_by_its_whole_name(void **)
{
    tide_pool *pool = tide_pool_create(nullptr);
    facts first = facts_here(pool), second = facts_of_second(pool);
    assert_int_not_equal(first.long_int, first.long_char);
#ifndef __clang__ // which spells the name of a local type without the function that it is local to
    assert_int_not_equal(first.local_int, first.local_char);
#endif
    assert_int_not_equal(first.pair[0], first.pair[1]);
    assert_int_equal(first.long_int, second.long_int);
    assert_int_equal(first.long_char, second.long_char);
    assert_int_equal(first.local_int, second.local_int);
    assert_true(std::strlen(tide_type_name(first.long_int)) > 200);
    struct particle {
        float x, y, z;
    };
    const char *name = tide_type_name(tide_type_of(particle));
    assert_non_null(std::strstr(name, "particle"));
    assert_string_equal(tide_type_name(tide_type_of(facts)), "facts");
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
}

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_scope_of_an_inline_function_is_one_site),
        cmocka_unit_test(a_type_is_known_by_its_whole_name),
    };
    return cmocka_run_group_tests_name("units", tests, nullptr, nullptr);
}
