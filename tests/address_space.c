/* SPDX-License-Identifier: MIT */
/* Pools where address space is short. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <tidepool/tidepool.h>
#include <tidepool/upkeep.h>

#include "support.h"

enum { MIB = 1 << 20 };

static size_t status_kib(const char *name)
{
    char text[4096];
    int from = open("/proc/self/status", O_RDONLY);
    size_t bytes = read_to_end(from, text, sizeof text - 1);
    text[bytes] = 0;
    const char *at = strstr(text, name);
    return at != NULL ? strtoul(at + strlen(name), NULL, 10) : 0;
}

static tide_pool *make(void)
{
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.check = TIDE_CHECK_NONE});
    assert_non_null(pool);
    return pool;
}

static void use_two_types(tide_pool *pool)
{
    CHILD_MUST(tide_acquire(pool, double, 10) != NULL && tide_acquire(pool, float, 10) != NULL);
    CHILD_MUST(tide_pool_check(pool) == TIDE_OK);
}

/* ---- what a pool reserves ---- */

static void a_pool_reserves_some_mebibytes(void **state)
{
    (void)state;
    tide_pool *first = make(); /* with it comes what the library has but once */
    size_t before = status_kib("VmSize:");
    tide_pool *pool = make();
    assert_in_range(status_kib("VmSize:") - before, 1, 9 * 1024);
    use_two_types(pool);
    assert_in_range(status_kib("VmSize:") - before, 1, 14 * 1024);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
    assert_int_equal(tide_pool_destroy(first), TIDE_OK);
}

static void so_five_find_room_where_one_did_not(void **state)
{
    (void)state;
    (void)tide_pool_destroy(make());
    pid_t child = fork_child(60);
    if (child == 0) {
        size_t most = status_kib("VmSize:") * 1024 + 70 * (size_t)MIB;
        CHILD_MUST(setrlimit(RLIMIT_AS, &(struct rlimit){most, most}) == 0);
        tide_pool *pools[5];
        for (int i = 0; i < 5; i++) {
            CHILD_MUST((pools[i] = tide_pool_create(NULL)) != NULL);
            use_two_types(pools[i]);
        }
        for (int i = 0; i < 20; i++) /* until there is none left */
            if (tide_pool_create(NULL) == NULL)
                break;
        CHILD_MUST(tide_error_status() == TIDE_ERROR_MEMORY);
        for (int i = 0; i < 5; i++)
            CHILD_MUST(tide_pool_destroy(pools[i]) == TIDE_OK);
        _exit(0);
    }
    expect_child_ends_well(child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_reserves_some_mebibytes),
        cmocka_unit_test(so_five_find_room_where_one_did_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
