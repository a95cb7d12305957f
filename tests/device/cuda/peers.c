/* SPDX-License-Identifier: MIT */
/* Two CUDA devices: copies between pools of both. */
#include <tidepool/device.h>

#include "support.h"

#include "runtime/device/device.h"

enum { BYTES = 4096 };

typedef struct pair {
    bench b;
    tide_device *device;
    void *stream;
    tide_pool *pool;
} pair;

static pair begin(uint32_t seed)
{
    pair p = {.b = bench_start(seed)};
    p.device = tide_device_open("cuda:1");
    p.stream = fake_stream_create(1);
    p.pool = tide_pool_create(&(tide_pool_options){.device = p.device, .stream = p.stream});
    assert_non_null(p.pool);
    return p;
}

static void end(pair *p)
{
    expect_ok(tide_pool_destroy(p->pool));
    fake_synchronise_all();
    expect_ok(tide_device_close(p->device));
    fake_stream_destroy(p->stream);
    bench_end(&p->b);
}

TEST(copies_between_devices_keep_the_order_of_both_streams)
{
    for (uint32_t seed = 1; seed <= scaled(50, 5); seed++) {
        pair p = begin(seed);
        for (uint8_t i = 1; i <= 10; i++) {
            TIDE_SCOPE(p.b.pool);
            TIDE_SCOPE(p.pool);
            uint8_t *x = tide_acquire(p.b.pool, uint8_t, BYTES);
            uint8_t *y = tide_acquire(p.pool, uint8_t, BYTES);
            put(p.b.stream, x, BYTES, i);
            expect_ok(tide_copy_from(p.pool, y, p.b.pool, x, BYTES));
            put(p.b.stream, x, BYTES, 99); /* after the copy has read it */
            expect(p.stream, y, BYTES, i);
            expect_ok(tide_copy_from(p.b.pool, x, p.pool, y, BYTES / 2));
            expect(p.b.stream, x, BYTES / 2, i);
            expect(p.b.stream, x + BYTES / 2, BYTES / 2, 99);
        }
        expect_order();
        end(&p);
    }
}

TEST(pools_of_one_device_copy_too_and_others_are_refused)
{
    pair p = begin(3);
    tide_pool *host = tide_pool_local();
    void *other = fake_stream_create(0);
    tide_pool *second = bench_pool(&p.b, other);
    {
        TIDE_SCOPE(p.b.pool);
        TIDE_SCOPE(second);
        TIDE_SCOPE(host);
        uint8_t *x = tide_acquire(p.b.pool, uint8_t, BYTES);
        uint8_t *y = tide_acquire(second, uint8_t, BYTES), *z = tide_acquire(host, uint8_t, BYTES);
        put(p.b.stream, x, BYTES, 4);
        expect_ok(tide_copy_from(second, y, p.b.pool, x, BYTES));
        expect(other, y, BYTES, 4);
        expect_status(tide_copy_from(second, y, host, z, BYTES), TIDE_ERROR_ARGUMENT);
        expect_said("download and upload");
        expect_status(tide_copy_from(host, z, second, y, BYTES), TIDE_ERROR_ARGUMENT);
        expect_ok(tide_copy_from(second, NULL, p.b.pool, NULL, 0));
        fake_capture_begin(p.b.stream);
        expect_status(tide_copy_from(p.pool, y, p.b.pool, x, BYTES), TIDE_ERROR_STATE);
        expect_capture_whole(p.b.stream);
    }
    expect_ok(tide_pool_destroy(second));
    fake_stream_destroy(other);
    end(&p);
}

/* ---- captures ------------------------------------------------------------------------------- */

/* The pools of the two arrays are on one device or on two; what is captured besides them is not
 * touched. */
typedef enum captured { SOURCE, TARGET, BOTH_ALIKE, CAPTURED_KINDS } captured;

static void begin_capture(captured kind, void *from, void *to)
{
    fake_capture_begin(kind == TARGET ? to : from);
    if (kind == BOTH_ALIKE)
        fake_order(from, to);
}

static void end_capture(captured kind, void *from, void *to)
{
    void *graph = NULL;
    if (kind == BOTH_ALIKE)
        fake_order(to, from);
    assert_int_equal(fake_capture_end(kind == TARGET ? to : from, &graph), 0); /* it is whole */
    if (kind == BOTH_ALIKE)
        fake_graph_launch(graph, from);
    fake_graph_destroy(graph);
}

static void copy_beside(const bench *b, captured kind, tide_device *device, void *stream,
                        tide_pool *pool)
{
    TIDE_SCOPE(b->pool);
    TIDE_SCOPE(pool);
    uint8_t *x = tide_acquire(b->pool, uint8_t, BYTES), *y = tide_acquire(pool, uint8_t, BYTES);
    put(b->stream, x, BYTES, 6);
    put(stream, y, BYTES, 7);
    fake_synchronise_all();
    begin_capture(kind, b->stream, stream);
    bool whose[] = {b->device->methods->capturing(b->device, b->stream),
                    device->methods->capturing(device, stream)};
    uint64_t copies = info_of(device).copies, events = info_of(device).events;
    tide_status status = tide_copy_from(pool, y, b->pool, x, BYTES);
    assert_int_equal(status, kind == BOTH_ALIKE ? TIDE_OK : TIDE_ERROR_STATE);
    assert_int_equal(info_of(device).copies, copies + (kind == BOTH_ALIKE));
    assert_true(kind == BOTH_ALIKE || info_of(device).events == events);
    assert_int_equal(b->device->methods->capturing(b->device, b->stream), whose[0]);
    assert_int_equal(device->methods->capturing(device, stream), whose[1]);
    end_capture(kind, b->stream, stream);
    fake_order(b->stream, stream);
    expect(stream, y, BYTES, kind == BOTH_ALIKE ? 6 : 7);
    fake_order(stream, b->stream);
}

TEST(a_copy_neither_ends_a_capture_nor_draws_a_stream_into_one)
{
    for (captured kind = SOURCE; kind < CAPTURED_KINDS; kind++)
        for (int devices = 1; devices <= 2; devices++) {
            pair p = begin(8);
            void *beside = fake_stream_create(0);
            tide_pool *second = bench_pool(&p.b, beside);
            if (devices == 1)
                copy_beside(&p.b, kind, p.b.device, beside, second);
            else
                copy_beside(&p.b, kind, p.device, p.stream, p.pool);
            expect_order();
            expect_ok(tide_pool_destroy(second));
            fake_synchronise_all();
            fake_stream_destroy(beside);
            end(&p);
        }
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* A pool that is not checked asks nobody, and the driver copies. */
TEST(a_checked_pool_tells_memory_of_another_device)
{
    pair p = begin(7);
    tide_pool *checked = tide_pool_create(&(tide_pool_options){
        .device = p.b.device, .stream = p.b.stream, .check = TIDE_CHECK_POISON});
    {
        TIDE_SCOPE(checked);
        TIDE_SCOPE(p.pool);
        uint8_t *x = tide_acquire(checked, uint8_t, BYTES),
                *y = tide_acquire(p.pool, uint8_t, BYTES);
        uint8_t bytes[BYTES] = {0};
        expect_ok(tide_upload(checked, x, bytes, BYTES));
        expect_status(tide_copy(checked, x, y, BYTES), TIDE_ERROR_ARGUMENT);
        expect_said("is memory of another device than cuda:0");
        expect_status(tide_upload(checked, y, bytes, BYTES), TIDE_ERROR_ARGUMENT);
        expect_status(tide_upload(checked, x, y, BYTES), TIDE_ERROR_ARGUMENT);
        expect_said("the side of the host, is memory of a device");
        expect_status(tide_download(checked, y, x, BYTES), TIDE_ERROR_ARGUMENT);
        expect_ok(tide_copy_from(checked, x, p.pool, y, BYTES));
    }
    expect_ok(tide_pool_destroy(checked));
    end(&p);
}

int main(void)
{
    return RUN_TESTS("peers");
}
