/* SPDX-License-Identifier: MIT */
/* Where the memory of arrays starts: spread over the sets of caches, aligned as promised. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

#include <tidepool/buffers.h>
#include <tidepool/tidepool.h>

enum { ARRAYS = 24, LINE = 64, L1_SETS = 64, L2_SETS = 1024, KIB = 1 << 10 };

static const size_t sizes[] = {64 * KIB, 640 * KIB, 1024 * KIB, 2048 * KIB, 3072 * KIB};

static void expect_spread(char *const starts[ARRAYS], unsigned sets)
{
    unsigned char in[L2_SETS] = {0};
    for (int i = 0; i < ARRAYS; i++) {
        assert_int_equal((uintptr_t)starts[i] % LINE, 0);
        assert_int_equal(in[(uintptr_t)starts[i] / LINE % sets]++, 0); /* no two in one set */
    }
}

/* Pages of huge ones lie side by side in memory, so their sets of a second cache are known. */
static void expect_all_spread(char *const starts[ARRAYS], size_t bytes)
{
    expect_spread(starts, L1_SETS);
    if (bytes >= 2048 * KIB)
        expect_spread(starts, L2_SETS);
}

static void slots_start_in_different_sets(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        tide_pool *pool = tide_pool_create(NULL);
        char *starts[ARRAYS];
        for (int i = 0; i < ARRAYS; i++) {
            starts[i] = tide_acquire(pool, char, sizes[k]);
            assert_non_null(starts[i]);
            starts[i][0] = starts[i][sizes[k] - 1] = 1;
        }
        expect_all_spread(starts, sizes[k]);
        assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
    }
}

static void buffers_start_in_different_sets(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        tide_buffers *buffers = tide_buffers_create(NULL, NULL);
        tide_buffer handles[ARRAYS];
        void *starts[ARRAYS];
        for (int i = 0; i < ARRAYS; i++) {
            handles[i] = tide_buffer_acquire_pointer(buffers, sizes[k], &starts[i]);
            assert_non_null(starts[i]);
            memset(starts[i], 1, sizes[k]);
        }
        expect_all_spread((char *const *)starts, sizes[k]);
        assert_int_equal(tide_buffer_release_many(buffers, handles, ARRAYS), TIDE_OK);
        assert_int_equal(tide_buffers_destroy(buffers), TIDE_OK);
    }
}

/* ---- aligned as asked for ---- */

static const size_t odd_sizes[] = {0, 1, 5000, 64 * KIB, 100000, 1024 * KIB, 5000 * KIB};

enum { HUGE_PAGE = 2 << 20 };

static size_t alignment_of(uint32_t flags)
{
    return flags == 0                          ? LINE
           : flags == TIDE_BUFFER_PAGE_ALIGNED ? (size_t)sysconf(_SC_PAGESIZE)
                                               : HUGE_PAGE;
}

static const uint32_t alignments[] = {0, TIDE_BUFFER_PAGE_ALIGNED, TIDE_BUFFER_HUGE_ALIGNED};

/* Also when others of the same size are cached. */
static void each_call_says_how_its_buffer_is_aligned(void **state)
{
    (void)state;
    tide_buffers *buffers = tide_buffers_create(NULL, NULL);
    for (size_t i = 0; i < 3 * 3 * 7; i++) {
        uint32_t flags = alignments[i % 3];
        size_t bytes = odd_sizes[i / 9];
        tide_buffer b = tide_buffer_acquire_on(buffers, bytes, flags, NULL);
        char *data = tide_buffer_pointer(buffers, b);
        assert_non_null(data);
        memset(data, 1, bytes);
        assert_int_equal((uintptr_t)data % alignment_of(flags), 0);
        assert_int_equal(tide_buffer_release(buffers, b), TIDE_OK);
    }
    tide_buffers_statistics s;
    assert_int_equal(tide_buffers_stats(buffers, &s, NULL, 0), TIDE_OK);
    assert_true(s.hits >= 2 * 3 * 7);
    assert_int_equal(tide_buffers_destroy(buffers), TIDE_OK);
}

/* As an instance's flags say, so do the slots of pools that draw from it. */
static void an_instance_says_how_all_are_aligned(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        tide_buffers_options options = {.flags = alignments[i]};
        tide_buffers *buffers = tide_buffers_create(NULL, &options);
        tide_pool *pool = tide_pool_create(&(tide_pool_options){.buffers = buffers});
        for (size_t k = 0; k < sizeof odd_sizes / sizeof *odd_sizes; k++) {
            void *data;
            tide_buffer b = tide_buffer_acquire_pointer(buffers, odd_sizes[k], &data);
            assert_int_equal((uintptr_t)data % alignment_of(alignments[i]), 0);
            assert_int_equal(tide_buffer_release(buffers, b), TIDE_OK);
            char *slot = tide_acquire(pool, char, odd_sizes[k]);
            assert_non_null(slot);
            assert_int_equal((uintptr_t)slot % alignment_of(alignments[i]), 0);
        }
        assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
        assert_int_equal(tide_buffers_destroy(buffers), TIDE_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_start_in_different_sets),
        cmocka_unit_test(buffers_start_in_different_sets),
        cmocka_unit_test(each_call_says_how_its_buffer_is_aligned),
        cmocka_unit_test(an_instance_says_how_all_are_aligned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
