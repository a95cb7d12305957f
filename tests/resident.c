/* SPDX-License-Identifier: MIT */
/* What the first pool of a process takes of the machine's memory, as the system sees it. */
#define _GNU_SOURCE
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <unistd.h>

#include <tidepool/buffers.h>
#include <tidepool/tidepool.h>

#include "support.h"

/* Code and constants of the library and of the C library come from files that other processes
 * share, in pieces of 64 KiB; the rest is the process's own. */
typedef struct resident {
    long all, own; /* KiB */
} resident;

static long field(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at != NULL ? strtol(at + strlen(name), NULL, 10) : -1;
}

/* By calls of the system alone: what formats and buffers would be measured, too. */
static resident look(void)
{
    char text[4096];
    int from = open("/proc/self/status", O_RDONLY);
    ssize_t bytes = read(from, text, sizeof text - 1);
    close(from);
    text[bytes > 0 ? bytes : 0] = 0;
    return (resident){field(text, "VmRSS:"), field(text, "RssAnon:")};
}

static resident first_pool, with_arrays;
static bool worked;

static resident less(resident after, resident before)
{
    return (resident){after.all - before.all, after.own - before.own};
}

/* Before anything else has run. */
static void measure_first_pool(void)
{
    look();
    resident before = look();
    tide_pool *pool = tide_pool_create(NULL);
    first_pool = less(look(), before);
    worked = pool != NULL && tide_acquire(pool, double, 10) != NULL &&
             tide_acquire(pool, float, 10) != NULL && tide_acquire(pool, uint8_t, 10) != NULL;
    with_arrays = less(look(), before);
    worked &= tide_pool_destroy(pool) == TIDE_OK;
}

/* What a process of its own measures: "own all own-with-arrays". */
static int tell(void)
{
    measure_first_pool();
    printf("%ld %ld %ld\n", first_pool.own, first_pool.all, with_arrays.own);
    return worked ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void ask(const char *self, long figures[3])
{
    char command[512], line[64] = "";
    snprintf(command, sizeof command, "'%.400s' tell", self);
    FILE *in = popen(command, "r");
    assert_non_null(in);
    assert_non_null(fgets(line, sizeof line, in));
    assert_int_equal(pclose(in), 0);
    assert_int_equal(sscanf(line, "%ld %ld %ld", &figures[0], &figures[1], &figures[2]), 3);
}

/* How much comes along of a file depends on where it is mapped, and the system counts in batches:
 * so the least of some processes. 28 to 36 and 100 to 196 KiB were measured, 252 of a program just
 * linked, whose file lies in memory in larger pieces; 52 to 60 own with the arrays. Before the C
 * library's formatting, its tables of characters and its reader of the process's mappings were left
 * alone, single processes had 310 to 490. */
static void the_first_pool_is_small(void **state)
{
    enum { PROCESSES = 12 };
    long least[3] = {LONG_MAX, LONG_MAX, LONG_MAX};
    for (int i = 0; i < PROCESSES; i++) {
        long figures[3];
        ask(*state, figures);
        for (int k = 0; k < 3; k++)
            least[k] = figures[k] < least[k] ? figures[k] : least[k];
    }
    print_message("KiB: a pool %ld, %ld with what is shared; with three types %ld\n", least[0],
                  least[1], least[2]);
    assert_in_range(least[2], 1, 76);
    assert_in_range(least[1], 1, 360);
}

/* ---- huge pages only where pages are used ---------------------------------------------------- */

enum { LARGE_MIB = 64, HUGE_PAGE_KIB = 2048, ELSE_KIB = 512 };

/* What the process grows by while the first tenth, then all of it, is written. */
static void expect_as_touched(char *data)
{
    size_t bytes = (size_t)LARGE_MIB << 20;
    long tenth = LARGE_MIB * 1024 / 10;
    resident before = look();
    memset(data, 1, bytes / 10);
    long first = less(look(), before).own;
    memset(data, 1, bytes);
    long all = less(look(), before).own;
    print_message("KiB of %d MiB: a tenth written %ld, all of it %ld\n", LARGE_MIB, first, all);
    assert_in_range(first, tenth - ELSE_KIB, tenth + HUGE_PAGE_KIB + ELSE_KIB);
    assert_in_range(all, bytes / 1024 - ELSE_KIB, bytes / 1024 + ELSE_KIB);
}

static void large_memory_is_resident_as_far_as_it_is_written(void **state)
{
    (void)state;
    tide_buffers *buffers = tide_buffers_create(NULL, NULL);
    tide_buffer buffer = tide_buffer_acquire(buffers, (size_t)LARGE_MIB << 20);
    assert_int_not_equal(buffer.generation, 0);
    expect_as_touched(tide_buffer_pointer(buffers, buffer));
    assert_int_equal(tide_buffer_release(buffers, buffer), TIDE_OK);
    assert_int_equal(tide_buffers_destroy(buffers), TIDE_OK);

    tide_pool *pool = tide_pool_create(NULL);
    expect_as_touched(tide_acquire(pool, char, (size_t)LARGE_MIB << 20));
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
}

/* ---- what a trim reports leaves the process -------------------------------------------------- */

enum { SIZE_KIB = 256, BLOCKS = 400, BLOCKS_MIB = BLOCKS * SIZE_KIB / 1024 };

/* The C library's small blocks between the buffers keep its heap from shrinking, and its threshold
 * of what it maps has grown by the second time. */
static void what_a_trim_reports_leaves_the_process(void **state)
{
    (void)state;
    static void *between[2][BLOCKS];
    tide_buffer handles[BLOCKS];
    tide_buffers *buffers = tide_buffers_create(NULL, NULL);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            void *data;
            handles[i] = tide_buffer_acquire_pointer(buffers, SIZE_KIB << 10, &data);
            memset(data, 1, SIZE_KIB << 10);
            between[round][i] = malloc(2000);
        }
        assert_int_equal(tide_buffer_release_many(buffers, handles, BLOCKS), TIDE_OK);
        resident before = look();
        tide_trim_summary said = tide_buffers_trim(buffers, 0);
        assert_int_equal(said.bytes >> 20, BLOCKS_MIB);
        assert_in_range(before.own - look().own, BLOCKS_MIB * 1024 * 9 / 10, LONG_MAX);
    }
    for (int i = 0; i < 2 * BLOCKS; i++)
        free(between[i / BLOCKS][i % BLOCKS]);
    assert_int_equal(tide_buffers_destroy(buffers), TIDE_OK);
}

/* There in programs that a sanitizer watches, whichever compiler made them. */
extern void __asan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));

int main(int count, char **arguments)
{
    if (count == 2)
        return tell();
    const char *launcher = getenv("TIDE_TEST_LAUNCHER");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(the_first_pool_is_small, arguments[0]),
        cmocka_unit_test(large_memory_is_resident_as_far_as_it_is_written),
        cmocka_unit_test(what_a_trim_reports_leaves_the_process)};
    bool sanitized = &__asan_init != NULL || &__tsan_init != NULL;
    if (sanitized || (launcher != NULL && *launcher != 0))
        return 0; /* it has memory of its own */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
