/* SPDX-License-Identifier: MIT */
/* Memory by the page (runtime/device/cuda/pages.c): blocks split, join and grow where they are, what is
 * free in the middle is unmapped, and any request is met that fits in what is free. */
#include <tidepool/buffers.h>
#include <tidepool/device_memory.h>
#include <tidepool/tune.h>

#include "support.h"

#include "runtime/device/cuda/cuda.h"

enum { GRANULE = 256 << 10, MIB = 1 << 20 };

static bench start(uint32_t seed)
{
    expect_ok(tide_tune_set("cuda_memory", 1));
    bench b = bench_start(seed);
    expect_ok(tide_tune_set("cuda_memory", 0));
    assert_non_null(tide_cuda_of(b.device)->pages);
    return b;
}

static uint8_t *take(const bench *b, size_t bytes)
{
    void *data = NULL;
    return b->device->methods->allocate(b->device, b->stream, TIDE_MEMORY_DEVICE, bytes, 64,
                                        &data) == TIDE_OK
               ? data
               : NULL;
}

static void give(const bench *b, void *data)
{
    b->device->methods->release(b->device, b->stream, TIDE_MEMORY_DEVICE, data, 0);
}

static tide_device_memory memory_of(tide_device *device)
{
    tide_device_memory memory;
    expect_ok(tide_device_memory_stats(device, &memory));
    return memory;
}

static tide_pool_statistics stats_of(const tide_pool *pool)
{
    tide_pool_statistics stats;
    expect_ok(tide_pool_stats(pool, &stats));
    return stats;
}

/* ---- which memory it is --------------------------------------------------------------------- */

static void it_is_asked_for_and_where_it_cannot_be_had_the_pool_stays(void **unused)
{
    (void)unused;
    bench b = bench_start(1);
    assert_null(tide_cuda_of(b.device)->pages);
    assert_non_null(memory_of(b.device).driver_pool);
    bench_end(&b);
    expect_ok(tide_tune_set("cuda_memory", 1));
    b = bench_start_without(1, FAKE_PAGES);
    assert_non_null(tide_cuda_of(b.device)->pool);
    assert_int_equal(fake_calls("cuMemAddressReserve"), 0);
    bench_end(&b);
    b = start(1);
    const tide_device_memory memory = memory_of(b.device);
    assert_true(memory.driver_known && memory.driver_pool != NULL && memory.driver_reserved == 0);
    uint8_t *small = take(&b, GRANULE - 1); /* is the pool's */
    assert_int_equal(fake_calls("cuMemCreate"), 0);
    assert_int_equal(fake_calls("cuMemAllocFromPoolAsync"), 1);
    give(&b, small);
    tide_device *other = tide_device_open("cuda:1");
    expect_status(tide_device_reach(other, b.device, true), TIDE_ERROR_DEVICE);
    expect_said("is not all of a memory pool");
    expect_ok(tide_device_close(other));
    bench_end(&b);
    assert_int_equal(fake_calls("cuMemAddressFree"), 1);
}

/* ---- blocks --------------------------------------------------------------------------------- */

static void blocks_split_and_join(void **unused)
{
    (void)unused;
    bench b = start(2);
    uint8_t *whole = take(&b, 8 * GRANULE);
    give(&b, whole);
    fake_synchronise_all();
    uint8_t *parts[4];
    for (int i = 0; i < 4; i++)
        parts[i] = take(&b, 2 * GRANULE);
    for (int i = 0; i < 4; i++)
        assert_ptr_equal(parts[i], whole + i * 2 * GRANULE);
    assert_int_equal(memory_of(b.device).driver_reserved, 8 * GRANULE);
    uint8_t *odd = take(&b, GRANULE + 1), *next = take(&b, GRANULE);
    assert_ptr_equal(odd, whole + 16 * GRANULE); /* with room behind the whole */
    assert_ptr_equal(next, whole + 8 * GRANULE);
    for (int i = 0; i < 4; i++) {
        put(b.stream, parts[i], 2 * GRANULE, 1);
        give(&b, parts[i]);
    }
    fake_synchronise_all();
    assert_ptr_equal(take(&b, 8 * GRANULE), whole);
    assert_int_equal(memory_of(b.device).driver_used, 11 * GRANULE);
    give(&b, odd);
    give(&b, next);
    give(&b, whole);
    bench_end(&b);
}

/* What is in flight serves nobody, and is not unmapped, until it is over. */
static void memory_leaves_behind_its_stream(void **unused)
{
    (void)unused;
    for (uint32_t seed = 1; seed <= 20; seed++) {
        bench b = start(seed);
        uint8_t *x = take(&b, MIB);
        for (uint8_t i = 0; i < 20; i++)
            put(b.stream, x, MIB, i);
        give(&b, x);
        if (fake_pending() != 0)
            (void)b.device->methods->trim(b.device, 0);
        uint8_t *y = take(&b, MIB);
        void *other = fake_stream_create(0);
        put(other, y, MIB, 9);
        expect(other, y, MIB, 9);
        fake_synchronise_all();
        expect_order();
        give(&b, y);
        expect_ok(tide_device_memory_trim(b.device, 0)); /* waits */
        assert_int_equal(memory_of(b.device).driver_reserved, 0);
        assert_int_equal(fake_live_bytes(), 0);
        fake_stream_destroy(other);
        bench_end(&b);
    }
}

static void a_trim_unmaps_what_is_free_in_the_middle(void **unused)
{
    (void)unused;
    bench b = start(3);
    uint8_t *first = take(&b, MIB), *middle = take(&b, 4 * MIB), *last = take(&b, MIB);
    put(b.stream, first, MIB, 1);
    put(b.stream, last, MIB, 2);
    give(&b, middle);
    expect_ok(tide_device_memory_trim(b.device, 2 * MIB)); /* so much is kept */
    assert_int_equal(fake_live_bytes(), 4 * MIB);
    expect_ok(tide_device_memory_trim(b.device, 0));
    assert_int_equal(fake_live_bytes(), 2 * MIB);
    expect(b.stream, first, MIB, 1);
    expect(b.stream, last, MIB, 2);
    fake_synchronise_all();
    expect_order();
    give(&b, first);
    give(&b, last);
    bench_end(&b);
}

/* Of 80 MiB, taken in pieces of 2, 60 are given back: no hole has more than 6. Then 60 in one piece, then
 * 70. */
static void what_is_free_can_be_had_in_one_piece(void **unused)
{
    (void)unused;
    bench b = start(4);
    uint8_t *pieces[40];
    fake_limit(80 * MIB);
    for (int i = 0; i < 40; i++)
        assert_non_null(pieces[i] = take(&b, 2 * MIB));
    assert_null(take(&b, 1));
    for (int i = 0; i < 40; i++)
        if (i % 4 != 0)
            give(&b, pieces[i]);
    fake_synchronise_all();
    uint8_t *large = take(&b, 60 * MIB);
    assert_non_null(large);
    put(b.stream, large, 60 * MIB, 3);
    expect(b.stream, large, 60 * MIB, 3);
    assert_int_equal(fake_live_bytes(), 80 * MIB);
    for (int i = 0; i < 20; i += 4)
        give(&b, pieces[i]);
    give(&b, large);
    fake_synchronise_all();
    large = take(&b, 70 * MIB);
    assert_non_null(large);
    assert_null(take(&b, MIB));
    expect_order();
    for (int i = 20; i < 40; i += 4)
        give(&b, pieces[i]);
    give(&b, large);
    bench_end(&b);
}

/* Managed and shared memory come from the driver, which knows nothing of what is mapped and free. */
static void what_is_free_goes_back_before_the_driver_refuses(void **unused)
{
    (void)unused;
    bench b = start(5);
    void *managed = NULL;
    fake_limit(8 * MIB);
    uint8_t *x = take(&b, 6 * MIB);
    give(&b, x);
    fake_synchronise_all();
    expect_ok(b.device->methods->allocate(b.device, b.stream, TIDE_MEMORY_MANAGED, 6 * MIB, 64,
                                          &managed));
    b.device->methods->release(b.device, b.stream, TIDE_MEMORY_MANAGED, managed, 6 * MIB);
    assert_int_equal(fake_live_bytes(), 0);
    bench_end(&b);
}

/* ---- growing -------------------------------------------------------------------------------- */

static void a_live_array_grows_where_it_is(void **unused)
{
    (void)unused;
    bench b = start(6);
    {
        TIDE_SCOPE(b.pool);
        uint8_t *x = tide_acquire(b.pool, uint8_t, 3 * GRANULE), *was = x;
        put(b.stream, x, 3 * GRANULE, 5);
        fake_count_anew();
        for (size_t n = 4; n <= 16; n *= 2) {
            x = tide_grow(b.pool, uint8_t, x, n * GRANULE);
            assert_ptr_equal(x, was);
            put(b.stream, x + 3 * GRANULE, (n - 3) * GRANULE, 6);
        }
        assert_int_equal(fake_calls("cuMemcpyAsync"), 0);
        expect(b.stream, x, 3 * GRANULE, 5);
        expect(b.stream, x + 3 * GRANULE, 13 * GRANULE, 6);
        assert_int_equal(stats_of(b.pool).bytes_held, memory_of(b.device).bytes_held);
        assert_int_equal(memory_of(b.device).bytes_held, memory_of(b.device).driver_used);
    }
    {
        TIDE_SCOPE(b.pool); /* a free slot, too */
        fake_count_anew();
        assert_non_null(tide_acquire(b.pool, uint8_t, 40 * GRANULE));
        assert_int_equal(stats_of(b.pool).releases, 0);
    }
    bench_end(&b);
}

/* One that is followed by others has room behind it; where that is full, it is copied as ever. */
static void an_array_that_cannot_grow_is_copied(void **unused)
{
    (void)unused;
    bench b = start(7);
    {
        TIDE_SCOPE(b.pool);
        uint8_t *x = tide_acquire(b.pool, uint8_t, 2 * GRANULE), *was = x;
        uint16_t *y = tide_acquire(b.pool, uint16_t, GRANULE);
        assert_true((uint8_t *)y >= x + 4 * GRANULE);
        put(b.stream, x, 2 * GRANULE, 5);
        x = tide_grow(b.pool, uint8_t, x, 4 * GRANULE);
        assert_ptr_equal(x, was);
        x = tide_grow(b.pool, uint8_t, x, 9 * GRANULE);
        assert_ptr_not_equal(x, was);
        expect(b.stream, x, 2 * GRANULE, 5);
        expect_ok(tide_device_memory_set(
            b.device, &(tide_device_memory_options){.limit_bytes = 12 * GRANULE}));
        assert_null(tide_grow(b.pool, uint8_t, x, 20 * GRANULE));
        expect_status(tide_error_status(), TIDE_ERROR_LIMIT);
        expect_ok(tide_device_memory_set(b.device, NULL));
    }
    expect_ok(tide_pool_wait(b.pool));
    bench_end(&b);
}

/* What a graph was captured with stays its own. */
static void in_a_capture_nothing_grows_where_it_is(void **unused)
{
    (void)unused;
    bench b = start(8);
    void *graph = NULL;
    expect_ok(tide_capture_begin(b.pool));
    fake_capture_begin(b.stream);
    uint8_t *was = NULL;
    {
        TIDE_SCOPE(b.pool);
        uint8_t *x = was = tide_acquire(b.pool, uint8_t, GRANULE);
        assert_non_null(x);
        put(b.stream, x, GRANULE, 1);
        x = tide_grow(b.pool, uint8_t, x, 4 * GRANULE);
        assert_true(x != NULL && x != was);
        put(b.stream, x, 4 * GRANULE, 2);
    }
    assert_int_equal(fake_capture_end(b.stream, &graph), 0);
    tide_capture *capture = tide_capture_end(b.pool);
    assert_non_null(capture);
    fake_graph_launch(graph, b.stream);
    uint8_t *y = take(&b, GRANULE);
    assert_ptr_not_equal(y, was);
    give(&b, y);
    expect_ok(tide_capture_drop(capture, b.stream));
    fake_graph_destroy(graph);
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_asked_for_and_where_it_cannot_be_had_the_pool_stays),
        cmocka_unit_test(blocks_split_and_join),
        cmocka_unit_test(memory_leaves_behind_its_stream),
        cmocka_unit_test(a_trim_unmaps_what_is_free_in_the_middle),
        cmocka_unit_test(what_is_free_can_be_had_in_one_piece),
        cmocka_unit_test(what_is_free_goes_back_before_the_driver_refuses),
        cmocka_unit_test(a_live_array_grows_where_it_is),
        cmocka_unit_test(an_array_that_cannot_grow_is_copied),
        cmocka_unit_test(in_a_capture_nothing_grows_where_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
