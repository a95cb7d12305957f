/* SPDX-License-Identifier: MIT */
/* Copies and frames on the fake driver: work is as late as it may be, so a staged chunk that is
 * written while a copy still reads it shows. */
#include <tidepool/array.h>
#include <tidepool/device.h>
#include <tidepool/tune.h>

#include "support.h"

enum { WORDS = 900, ARRAYS = 24, BACKLOG = 150 };

static bench start(uint32_t seed)
{
    expect_ok(tide_tune_set("staging", 4)); /* KiB: the ring of four turns often */
    return bench_start(seed);
}

static void end(bench *b)
{
    bench_end(b);
    expect_ok(tide_tune_set("staging", 1024));
}

static void make(uint32_t *words, uint32_t seed)
{
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = i * 2654435761u + seed;
}

static void expect_there(tide_pool *pool, const uint32_t *array, uint32_t seed)
{
    uint32_t wanted[WORDS], got[WORDS];
    make(wanted, seed);
    expect_ok(tide_download(pool, got, array, sizeof got));
    assert_memory_equal(got, wanted, sizeof got);
}

TEST(uploads_in_flight_do_not_disturb_each_other)
{
    for (uint32_t seed = 1; seed <= scaled(50, 5); seed++) {
        bench b = start(seed);
        {
            TIDE_SCOPE(b.pool);
            uint32_t words[WORDS], *arrays[ARRAYS];
            uint8_t *busy = tide_acquire(b.pool, uint8_t, 64);
            for (uint8_t i = 0; i < BACKLOG; i++)
                put(b.stream, busy, 64, i); /* or the copies would be over before the next */
            for (uint32_t i = 0; i < ARRAYS; i++) {
                arrays[i] = tide_acquire(b.pool, uint32_t, WORDS);
                make(words, seed + i);
                expect_ok(tide_upload(b.pool, arrays[i], words, sizeof words));
                memset(words, 0xEE, sizeof words);
            }
            for (uint32_t i = 0; i < ARRAYS; i++)
                expect_there(b.pool, arrays[i], seed + i);
            expect_ok(tide_copy(b.pool, arrays[0], arrays[1], sizeof words));
            expect_there(b.pool, arrays[0], seed + 1);
        }
        expect_order();
        end(&b);
    }
}

/* Four chunks of 4 KiB: what fits is staged without waiting, and one event serves a chunk. */
enum { CHUNK_WORDS = 1024, CHUNKS = 4 };

/* The wait for the next chunk fails; the one before is in flight still, and stays as it is. */
TEST(a_failed_upload_leaves_those_before_alone)
{
    for (uint32_t seed = 1; seed <= 10; seed++) {
        bench b = start(seed);
        {
            TIDE_SCOPE(b.pool);
            uint32_t words[CHUNK_WORDS], got[CHUNK_WORDS], *arrays[CHUNKS + 2];
            uint8_t *busy = tide_acquire(b.pool, uint8_t, 64);
            for (uint8_t i = 0; i < BACKLOG; i++)
                put(b.stream, busy, 64, i);
            for (uint32_t i = 0; i < CHUNKS + 2; i++)
                arrays[i] = tide_acquire(b.pool, uint32_t, CHUNK_WORDS);
            for (uint32_t i = 0; i < CHUNKS + 2; i++) {
                memset(words, (int)i + 1, sizeof words); /* each fills a chunk */
                if (i == CHUNKS)
                    fake_fail("cuEventSynchronize", 1, 1, false);
                expect_status(tide_upload(b.pool, arrays[i], words, sizeof words),
                              i == CHUNKS ? TIDE_ERROR_DEVICE : TIDE_OK);
            }
            assert_int_equal(fake_failures(), 1);
            for (uint32_t i = 0; i < CHUNKS + 2; i++) {
                memset(words, (int)i + 1, sizeof words);
                expect_ok(tide_download(b.pool, got, arrays[i], sizeof got));
                if (i != CHUNKS)
                    assert_memory_equal(got, words, sizeof got);
            }
        }
        end(&b);
    }
}

TEST(an_upload_waits_only_when_the_ring_is_full)
{
    bench b = start(7);
    char *array = tide_acquire_type(b.pool, TIDE_U8, 4 * 4096);
    static char bytes[4 * 4096];
    expect_ok(tide_upload(b.pool, array, bytes, sizeof bytes)); /* chunks have been made */
    expect_ok(tide_pool_wait(b.pool));
    tide_device_information before = info_of(b.device);
    for (int i = 0; i < 30; i++)
        expect_ok(tide_upload(b.pool, array, bytes, 256));
    tide_device_information after = info_of(b.device);
    assert_int_equal(after.waits, before.waits);
    assert_int_equal(after.copies, before.copies + 30);
    assert_true(after.events <= before.events + 3);
    expect_ok(tide_pool_reset(b.pool));
    expect_order();
    end(&b);
}

/* The driver here loads no kernels: a block on the device would be a copy more, and memory. */
TEST(a_frame_goes_up_by_a_copy_for_each_part_where_no_kernel_unpacks_it)
{
    bench b = start(8);
    {
        TIDE_FRAME(b.pool, (uint8_t, x, 100), (uint8_t, y, 100), (uint8_t, z, 100));
        uint8_t bytes[3][100], got[100];
        memset(bytes, 4, sizeof bytes);
        const tide_part parts[] = {
            {x, bytes[0], TIDE_U8, 100}, {y, bytes[1], TIDE_U8, 100}, {z, bytes[2], TIDE_U8, 100}};
        const uint64_t before = info_of(b.device).copies;
        expect_ok(tide_upload_frame(b.pool, parts, 3));
        assert_int_equal(info_of(b.device).copies, before + 3);
        expect_ok(tide_download(b.pool, got, z, 100));
        assert_memory_equal(got, bytes[2], 100);
    }
    expect_order();
    end(&b);
}

/* What is staged would be read at each replay, whatever was there by then. A frame that is refused has put
 * nothing into the graph, either. */
TEST(staging_during_capture_is_refused)
{
    bench b = start(3);
    {
        TIDE_FRAME(b.pool, (uint8_t, from, 100), (uint8_t, to, 100));
        uint8_t bytes[2][100];
        const tide_part parts[] = {{from, bytes[0], TIDE_U8, 100}, {to, bytes[1], TIDE_U8, 100}};
        put(b.stream, from, 100, 7);
        put(b.stream, to, 100, 8);
        expect_ok(tide_download_frame(b.pool, parts, 2)); /* the pool has what it needs */
        fake_capture_begin(b.stream);
        fake_count_anew();
        expect_status(tide_upload(b.pool, to, bytes, 100), TIDE_ERROR_STATE);
        expect_said("tide_upload: a graph is captured");
        expect_status(tide_download(b.pool, bytes, from, 100), TIDE_ERROR_STATE);
        expect_status(tide_download_frame(b.pool, parts, 2), TIDE_ERROR_STATE);
        expect_said("tide_download_frame: a graph is captured");
        expect_status(tide_upload_frame(b.pool, parts, 2), TIDE_ERROR_STATE);
        assert_int_equal(fake_calls("cuMemcpyAsync") + fake_calls("cuLaunchKernel"), 0);
        expect_ok(tide_copy(b.pool, to, from, 100)); /* within the device: work like any other */
        void *graph = take_graph(b.stream);
        fake_graph_launch(graph, b.stream);
        expect(b.stream, to, 100, 7);
        expect_ok(tide_download(b.pool, bytes, to, 100));
        assert_int_equal(bytes[0][99], 7);
        fake_graph_destroy(graph);
    }
    end(&b);
}

/* Nor is pinned memory taken for what is refused; and frames of nothing are none. */
TEST(a_first_upload_during_capture_takes_nothing)
{
    bench b = start(5);
    uint8_t *x = tide_acquire(b.pool, uint8_t, 100), bytes[100] = {0};
    const tide_part none = {x, bytes, TIDE_U8, 0};
    fake_capture_begin(b.stream);
    expect_status(tide_upload(b.pool, x, bytes, 100), TIDE_ERROR_STATE);
    assert_int_equal(fake_calls("cuMemHostAlloc"), 0);
    expect_ok(tide_upload_frame(b.pool, &none, 1));
    expect_capture_whole(b.stream);
    end(&b);
}

/* A chunk that is full stays so: nobody waits for the next. */
TEST(an_upload_during_capture_does_not_turn_the_ring)
{
    bench b = start(5);
    uint8_t *x = tide_acquire(b.pool, uint8_t, 4096), bytes[4096] = {0};
    for (int i = 0; i < 8; i++)
        expect_ok(tide_upload(b.pool, x, bytes, sizeof bytes));
    fake_capture_begin(b.stream);
    fake_count_anew();
    expect_status(tide_upload(b.pool, x, bytes, 100), TIDE_ERROR_STATE);
    assert_int_equal(fake_calls("cuEventQuery") + fake_calls("cuEventSynchronize"), 0);
    expect_capture_whole(b.stream);
    for (int i = 0; i < 8; i++)
        expect_ok(tide_upload(b.pool, x, bytes, sizeof bytes));
    end(&b);
}

TEST(a_checked_pool_tells_pointers_in_the_wrong_order)
{
    uint32_t words[WORDS] = {0};
    bench b = bench_start_with(6, (tide_pool_options){.check = TIDE_CHECK_POISON});
    {
        TIDE_SCOPE(b.pool);
        uint32_t *array = tide_acquire(b.pool, uint32_t, WORDS);
        expect_status(tide_upload(b.pool, words, array, sizeof words), TIDE_ERROR_ARGUMENT);
        expect_said("tide_upload: ");
        expect_said("in the wrong order?");
        expect_status(tide_download(b.pool, array, words, sizeof words), TIDE_ERROR_ARGUMENT);
        expect_said("tide_download: ");
        expect_ok(tide_upload(b.pool, array, words, sizeof words));
        const tide_part parts[] = {{array, words, TIDE_U32, 8}, {array + 8, array, TIDE_U32, 8}};
        expect_status(tide_download_frame(b.pool, parts, 2), TIDE_ERROR_ARGUMENT);
        expect_said("part 1: ");
        const int64_t shape[] = {4, 4}, flat[] = {16};
        tide_array *square = tide_array_acquire(b.pool, TIDE_F64, 2, shape);
        const tide_array *header = tide_array_reshape(b.pool, square, 1, flat); /* of the host */
        assert_non_null(header);
        expect_ok(tide_upload(b.pool, array, header, sizeof *header));
    }
    bench_end(&b);
}

TEST(a_failed_copy_names_the_call)
{
    uint32_t words[WORDS] = {0};
    bench b = start(7);
    {
        TIDE_SCOPE(b.pool);
        uint32_t *array = tide_acquire(b.pool, uint32_t, WORDS);
        fake_fail("cuMemcpyAsync", 1, 1, false);
        expect_status(tide_upload(b.pool, array, words, sizeof words), TIDE_ERROR_DEVICE);
        expect_said("tide_upload: cuMemcpyAsync: device cuda:0");
    }
    end(&b);
}

int main(void)
{
    return RUN_TESTS("copies");
}
