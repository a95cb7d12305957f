/* SPDX-License-Identifier: MIT */
/* A system whose pages have 64 KiB, by a model of its calls: the linker gives the library these in
 * place of the C library's. Mappings begin and end with such pages, and what does not begin with one
 * is refused, as kernels with large pages do. */
#define _GNU_SOURCE
#include "arrays_support.h"
#include "hooks.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <tidepool/buffers.h>
#include <tidepool/limit.h>
#include <tidepool/upkeep.h>

enum { PAGE = 64 << 10, MIB = 1 << 20 };

int __wrap_getpagesize(void);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);
int __real_madvise(void *at, size_t bytes, int advice);
int __wrap_madvise(void *at, size_t bytes, int advice);
int __real_mprotect(void *at, size_t bytes, int protection);
int __wrap_mprotect(void *at, size_t bytes, int protection);

static unsigned calls, refused; /* atomic */

static size_t whole(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static bool accepts(const void *at)
{
    bool good = (uintptr_t)at % PAGE == 0;
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&refused, !good, __ATOMIC_RELAXED);
    if (!good)
        errno = EINVAL;
    return good;
}

int __wrap_getpagesize(void)
{
    return PAGE;
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    if (at != NULL || file >= 0)
        return __real_mmap(at, bytes, protection, flags, file, offset);
    bytes = whole(bytes);
    char *start = __real_mmap(NULL, bytes + PAGE, protection, flags, file, offset);
    if (start == MAP_FAILED)
        return start;
    size_t skip = (PAGE - (uintptr_t)start % PAGE) % PAGE;
    if (skip != 0)
        __real_munmap(start, skip);
    if (skip != PAGE)
        __real_munmap(start + skip + bytes, PAGE - skip);
    return start + skip;
}

int __wrap_munmap(void *at, size_t bytes)
{
    return accepts(at) ? __real_munmap(at, whole(bytes)) : -1;
}

int __wrap_madvise(void *at, size_t bytes, int advice)
{
    return accepts(at) ? __real_madvise(at, whole(bytes), advice) : -1;
}

int __wrap_mprotect(void *at, size_t bytes, int protection)
{
    return accepts(at) ? __real_mprotect(at, whole(bytes), protection) : -1;
}

/* ---- arrays ---- */

static const size_t sizes[] = {1,       4095,        65535,       65537,         300000,
                               MIB - 1, MIB + 70000, 2 * MIB - 1, 2 * MIB + 100, 5 * MIB};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void take_all(tide_pool *pool)
{
    uint8_t *all[SIZES];
    for (size_t i = 0; i < SIZES; i++)
        all[i] = take(pool, TIDE_U8, sizes[i], (uint8_t)i);
    for (size_t i = 0; i < SIZES; i++)
        expect_bytes(all[i], sizes[i], (uint8_t)i);
    all[4] = tide_grow(pool, uint8_t, all[4], 3 * MIB);
    assert_non_null(all[4]);
    expect_bytes(all[4], sizes[4], 4);
    CHECK_POOL(pool);
}

static void pools_live_with_large_pages(void **state)
{
    (void)state;
    for (int check = TIDE_CHECK_NONE; check <= TIDE_CHECK_GUARD; check++) {
        tide_pool *pool = pool_of((tide_check)check);
        for (int round = 0; round < 3; round++) {
            take_all(pool);
            expect_ok(tide_pool_reset(pool));
            tide_pool_trim(pool, TIDE_ALL_TYPES);
        }
        expect_ok(tide_pool_destroy(pool));
    }
    assert_int_equal(refused, 0);
}

/* ---- buffers ---- */

static void expect_all(const uint8_t *data, size_t bytes, uint8_t value)
{
    assert_true(data[0] == value && memcmp(data, data + 1, bytes - 1) == 0);
}

static void expect_buffer(tide_buffers *buffers, size_t bytes, uint32_t flags, size_t align)
{
    tide_buffer b = tide_buffer_acquire_on(buffers, bytes, flags, NULL);
    assert_true(b.generation != 0);
    uint8_t *data = tide_buffer_pointer(buffers, b);
    assert_true((uintptr_t)data % align == 0);
    memset(data, 7, bytes);
    expect_all(data, bytes, 7);
    expect_ok(tide_buffer_release(buffers, b));
}

static void buffers_live_with_large_pages(void **state)
{
    (void)state;
    tide_buffers *buffers = tide_buffers_create(NULL, NULL);
    for (size_t i = 0; i < SIZES; i++) {
        expect_buffer(buffers, sizes[i], TIDE_BUFFER_HOST, 64);
        expect_buffer(buffers, sizes[i], TIDE_BUFFER_HOST | TIDE_BUFFER_PAGE_ALIGNED, PAGE);
        expect_buffer(buffers, sizes[i], TIDE_BUFFER_HOST | TIDE_BUFFER_HUGE_ALIGNED, 2 * MIB);
    }
    assert_true(tide_buffers_trim(buffers, 0).slots != 0);
    for (int i = 0; i < 2; i++) {
        tide_buffer b = tide_buffer_acquire_zeroed(buffers, 5 * MIB);
        uint8_t *data = tide_buffer_pointer(buffers, b);
        expect_all(data, 5 * MIB, 0);
        memset(data, 9, 5 * MIB);
        expect_ok(tide_buffer_release(buffers, b));
    }
    expect_ok(tide_buffers_destroy(buffers));
    assert_int_equal(refused, 0);
}

/* Under a limit a larger one is cut: from huge pages to large ones, too. */
static void cut_buffers_keep_their_pages(void **state)
{
    tide_limit_statistics stats;
    (void)state;
    tide_buffers *buffers = tide_buffers_create(NULL, NULL);
    expect_ok(tide_limit_stats(&stats));
    expect_ok(tide_limit_set(&(tide_limit_options){.hard_bytes = stats.bytes_held + 6 * MIB}));
    for (size_t had = 5 * MIB; had > 2 * MIB; had -= MIB) {
        expect_buffer(buffers, had, TIDE_BUFFER_HOST, 64);
        expect_buffer(buffers, had * 5 / 8, TIDE_BUFFER_HOST, 64);
        tide_buffers_trim(buffers, 0);
    }
    expect_ok(tide_limit_set(NULL));
    expect_ok(tide_buffers_destroy(buffers));
    assert_int_equal(refused, 0);
}

/* The second cache is spread over, too, where pages leave the choice. */
static void starts_spread_over_large_pages(void **state)
{
    enum { COUNT = 16 };
    uint32_t seen = 0;
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    for (int i = 0; i < COUNT; i++)
        seen |= 1u << ((uintptr_t)tide_acquire(pool, uint8_t, 1200000) % PAGE / 4096);
    if (!sanitizer_chooses_addresses())
        assert_int_equal(__builtin_popcount(seen), COUNT);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
    assert_true(calls > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_live_with_large_pages),
        cmocka_unit_test(buffers_live_with_large_pages),
        cmocka_unit_test(cut_buffers_keep_their_pages),
        cmocka_unit_test(starts_spread_over_large_pages),
    };
    return cmocka_run_group_tests_name("pages", tests, NULL, NULL);
}
