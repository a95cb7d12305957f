/* SPDX-License-Identifier: MIT */
/* Pools where address space is short: each reserves in steps, and what is
 * refused changes nothing. */
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

#include "hooks.h"
#include "runtime/base/shim.h"
#include "runtime/pool/core.h"
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
    assert_in_range(status_kib("VmSize:") - before, 1, 6 * 1024);
    use_two_types(pool);
    assert_in_range(status_kib("VmSize:") - before, 1, 11 * 1024);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
    assert_int_equal(tide_pool_destroy(first), TIDE_OK);
}

static void so_five_find_room_where_one_did_not(void **state)
{
    (void)state;
    (void)tide_pool_destroy(make());
    pid_t child = fork_child(60);
    if (child == 0) {
        size_t most = status_kib("VmSize:") * 1024 + 60 * (size_t)MIB;
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

/* ---- the log's steps ---- */

static bool refuse_all(size_t bytes)
{
    (void)bytes;
    return true;
}

static bool refuse_once(size_t bytes)
{
    (void)bytes;
    set_memory_fault(NULL);
    return true;
}

/* As many marks as the log has room for, up to so many. */
static size_t push_marks(tide_pool *pool, size_t most)
{
    size_t count = 0;
    while (count < most && tide_checkpoint(pool).pool != NULL)
        count++;
    return count;
}

static void a_log_that_cannot_grow_refuses_and_goes_on_later(void **state)
{
    (void)state;
    bool (*const faults[])(size_t) = {refuse_once, refuse_all};
    for (size_t i = 0; i < 2; i++) {
        tide_pool *pool = make();
        tide_mark first = tide_checkpoint(pool);
        const tide_entry *end = pool->core->log.end;
        set_memory_fault(faults[i]);
        size_t count = push_marks(pool, 100000);
        set_memory_fault(NULL);
        if (i == 0) /* a first try, made before there was need, may fail */
            assert_int_equal(count, 100000);
        else
            assert_in_range(count, 1000, 5000);
        assert_true(i == 0 || tide_error_status() == TIDE_ERROR_MEMORY);
        assert_true(i == 0 || pool->core->log.end == end);
        assert_int_equal(tide_pool_check(pool), TIDE_OK);
        assert_int_equal(push_marks(pool, 100000), 100000);
        assert_true(pool->core->log.end > end && pool->log_room == pool->core->log.end);
        assert_int_equal(tide_pool_check(pool), TIDE_OK);
        assert_int_equal(tide_rewind(pool, first), TIDE_OK);
        assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
    }
}

/* A log that is open at its end is grown by whatever comes there by cold code. */
static void scopes_deep_down_are_fast_again(void **state)
{
    (void)state;
    tide_pool *pool = make();
    tide_mark first = tide_checkpoint(pool);
    const tide_entry *end = pool->core->log.end;
    while (pool->log_top < end)
        assert_non_null(tide_checkpoint(pool).pool);
    {
        TIDE_SCOPE(pool);
        assert_non_null(tide_acquire(pool, double, 10));
    }
    assert_true(pool->core->log.end > end && pool->log_room == pool->core->log.end);
    assert_int_equal(tide_rewind(pool, first), TIDE_OK);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_reserves_some_mebibytes),
        cmocka_unit_test(so_five_find_room_where_one_did_not),
        cmocka_unit_test(a_log_that_cannot_grow_refuses_and_goes_on_later),
        cmocka_unit_test(scopes_deep_down_are_fast_again),
    };
    if (tide_shim_chooses_addresses())
        return 0; /* all is mapped at once */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
