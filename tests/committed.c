/* SPDX-License-Identifier: MIT */
/* What a system that counts strictly takes for used (Linux: overcommit_memory is 2, and whatever
 * may be written counts, MAP_NORESERVE or not): of what is reserved only what is opened.
 * The library behaves here as on such a system, and what may be written is counted. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <tidepool/tidepool.h>

#include <tidepool/buffers.h>
#include <tidepool/upkeep.h>

#include "hooks.h"
#include "support.h"

static bool measured; /* else a sanitizer's own memory would be counted, too */

/* ---- counted ------------------------------------------------------------------------------- */

static size_t data_kib(void)
{
    char text[4096];
    int from = open("/proc/self/status", O_RDONLY);
    size_t bytes = read_to_end(from, text, sizeof text - 1);
    text[bytes] = 0;
    const char *at = strstr(text, "VmData:");
    return at != NULL ? strtoul(at + strlen("VmData:"), NULL, 10) : 0;
}

static void expect_counted(const char *what, size_t kib, size_t least, size_t most)
{
    if (!measured)
        return;
    print_message("%s: %zu KiB\n", what, kib);
    assert_in_range(kib, least, most);
}

static tide_pool *make_used(void)
{
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.check = TIDE_CHECK_NONE});
    CHILD_MUST(pool != NULL);
    CHILD_MUST(tide_acquire(pool, double, 10) != NULL && tide_acquire(pool, float, 10) != NULL &&
               tide_acquire(pool, uint8_t, 10) != NULL);
    CHILD_MUST(tide_pool_check(pool) == TIDE_OK);
    return pool;
}

/* ---- pools --------------------------------------------------------------------------------- */

/* The log's first step is 64 KiB; all else is a page here and there. */
enum { POOL_KIB = 160 };

static void a_pool_counts_as_it_is_used(void **state)
{
    (void)state;
    tide_pool *first = make_used(); /* with it comes what the library has but once */
    size_t before = data_kib();
    tide_pool *pool = make_used();
    size_t counted = data_kib() - before;
    expect_counted("a pool with three types", counted, 64, POOL_KIB);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
    assert_int_equal(tide_pool_destroy(first), TIDE_OK);
}

static void two_hundred_pools_count_as_they_are_used(void **state)
{
    (void)state;
    enum { POOLS = 200 };
    tide_pool *pools[POOLS];
    size_t before = data_kib();
    for (int i = 0; i < POOLS; i++)
        pools[i] = make_used();
    size_t counted = data_kib() - before;
    expect_counted("two hundred pools", counted, POOLS, POOLS * POOL_KIB);
    for (int i = 0; i < POOLS; i++)
        assert_int_equal(tide_pool_destroy(pools[i]), TIDE_OK);
    expect_counted("those that are kept of them", data_kib() - before, 0, 20 * POOL_KIB);
}

/* A library that walks the pool after each cold call takes a square of the time. */
#define WALKS (assert_level() >= 2)

enum { ROW_MAX = 65472 }; /* arrays of one type that may be live */

/* Shelves and rows of types with any number. */
static void a_pool_may_have_thousands_of_types(void **state)
{
    (void)state;
    enum { TYPES = 2000, EACH = 97 };
    tide_pool *pool = make_used();
    size_t before = data_kib();
    for (unsigned i = 0; i < TYPES; i++) {
        char name[32];
        snprintf(name, sizeof name, "committed.%u", i);
        tide_type type = tide_type_register(name, 8, 8);
        assert_int_not_equal(type, TIDE_NO_TYPE);
        if (i % EACH != 0)
            continue;
        tide_mark mark =
            tide_checkpoint(pool); /* no site: the background thread's stack would count */
        assert_non_null(tide_acquire_type(pool, type, 3));
        assert_non_null(tide_acquire_type(pool, TIDE_F64, 3));
        assert_int_equal(tide_rewind(pool, mark), TIDE_OK);
    }
    expect_counted("two thousand types, every 97th used", data_kib() - before, 1, 2048);
    assert_int_equal(tide_pool_check(pool), TIDE_OK);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
}

/* ---- buffers ------------------------------------------------------------------------------- */

static void buffers_count_as_they_are_used(void **state)
{
    (void)state;
    enum { COUNT = 4, KIB = 4096, BOOKS_KIB = 512 };
    tide_buffer held[COUNT];
    size_t before = data_kib();
    tide_buffers *buffers = tide_buffers_create(NULL, NULL);
    assert_non_null(buffers);
    for (int i = 0; i < COUNT; i++) {
        held[i] = tide_buffer_acquire(buffers, (size_t)KIB * 1024);
        assert_int_not_equal(held[i].generation, 0);
        memset(tide_buffer_pointer(buffers, held[i]), 1, (size_t)KIB * 1024);
    }
    size_t counted = data_kib() - before;
    expect_counted("an instance with four buffers of 4 MiB", counted, COUNT * KIB,
                   COUNT * KIB + BOOKS_KIB);
    assert_int_equal(tide_buffer_release_many(buffers, held, COUNT), TIDE_OK);
    assert_int_equal(tide_buffers_destroy(buffers), TIDE_OK);
}

/* ---- refused ------------------------------------------------------------------------------- */

/* The process may have so many KiB more than it has now; 0: as many as it may want. */
static void allow(size_t kib)
{
    struct rlimit now;
    CHILD_MUST(getrlimit(RLIMIT_DATA, &now) == 0);
    now.rlim_cur = kib != 0 ? (data_kib() + kib) * 1024 : now.rlim_max;
    CHILD_MUST(setrlimit(RLIMIT_DATA, &now) == 0);
}

static size_t fill_row(tide_pool *pool)
{
    size_t count = 0;
    while (tide_acquire(pool, double, 0) != NULL)
        count++;
    return count;
}

static void refuse_pools(void)
{
    tide_pool *pool = make_used(), *other = NULL;
    allow(1024);
    for (int i = 0; (other = tide_pool_create(NULL)) != NULL; i++)
        CHILD_MUST(i < 64 && tide_acquire(other, double, 1) != NULL);
    CHILD_MUST(tide_error_status() == TIDE_ERROR_MEMORY);
    allow(256);
    size_t count = fill_row(pool);
    CHILD_MUST(tide_error_status() == TIDE_ERROR_MEMORY && count < ROW_MAX - 1000);
    CHILD_MUST(tide_pool_check(pool) == TIDE_OK);
    allow(0);
    CHILD_MUST(fill_row(pool) > 0 && tide_error_status() == TIDE_ERROR_LIMIT);
    CHILD_MUST(tide_pool_check(pool) == TIDE_OK && tide_pool_reset(pool) == TIDE_OK);
    CHILD_MUST(tide_pool_destroy(pool) == TIDE_OK);
}

static void refuse_buffers(void)
{
    static tide_buffer held[200000];
    tide_buffers *buffers = tide_buffers_create(NULL, NULL);
    CHILD_MUST(buffers != NULL);
    allow(4096);
    size_t count = 0;
    while (count < 200000 && (held[count] = tide_buffer_acquire(buffers, 64)).generation != 0)
        count++;
    CHILD_MUST(count > 100 && count < 200000 && tide_error_status() == TIDE_ERROR_MEMORY);
    allow(0);
    CHILD_MUST(tide_buffer_acquire(buffers, 64).generation != 0);
    CHILD_MUST(tide_buffer_release_many(buffers, held, count) == TIDE_OK);
}

static void in_child(void (*function)(void))
{
    pid_t child = fork_child(60);
    if (child == 0) {
        function();
        _exit(0);
    }
    expect_child_ends_well(child);
}

static void what_cannot_be_opened_is_refused(void **state)
{
    (void)state;
    if (!measured || WALKS)
        return;
    in_child(refuse_pools);
    in_child(refuse_buffers);
}

/* There in programs that a sanitizer watches, whichever compiler made them. */
extern void __asan_init(void) __attribute__((weak));

int main(void)
{
    measured = &__asan_init == NULL && !sanitizer_chooses_addresses();
    set_strict_counting(true);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_counts_as_it_is_used),
        cmocka_unit_test(two_hundred_pools_count_as_they_are_used),
        cmocka_unit_test(a_pool_may_have_thousands_of_types),
        cmocka_unit_test(buffers_count_as_they_are_used),
        cmocka_unit_test(what_cannot_be_opened_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
