/* SPDX-License-Identifier: MIT */
/* Two CUDA devices: copies between pools of both, and access of one to the other's memory. */
#include "support.h"

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

static void copies_between_devices_keep_the_order_of_both_streams(void **unused)
{
    (void)unused;
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

static void pools_of_one_device_copy_too_and_others_are_refused(void **unused)
{
    (void)unused;
    pair p = begin(3);
    tide_pool *host = tide_pool_local();
    void *other = fake_stream_create(0);
    tide_pool *second =
        tide_pool_create(&(tide_pool_options){.device = p.b.device, .stream = other});
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
        void *graph = NULL;
        fake_capture_begin(p.b.stream);
        expect_status(tide_copy_from(p.pool, y, p.b.pool, x, BYTES), TIDE_ERROR_STATE);
        assert_int_equal(fake_capture_end(p.b.stream, &graph), 0);
        fake_graph_destroy(graph);
    }
    expect_ok(tide_pool_destroy(second));
    fake_stream_destroy(other);
    end(&p);
}

static void kernels_reach_another_device_when_they_may(void **unused)
{
    (void)unused;
    for (int allowed = 0; allowed < 2; allowed++) {
        pair p = begin(5);
        if (allowed != 0)
            expect_ok(tide_device_reach(p.b.device, p.device, true));
        {
            TIDE_SCOPE(p.pool);
            uint8_t *y = tide_acquire(p.pool, uint8_t, BYTES);
            fake_order(p.stream, p.b.stream);
            put(p.b.stream, y, BYTES, 7); /* device 0 writes memory of device 1 */
            fake_order(p.b.stream, p.stream);
        }
        assert_int_equal(fake_violation() == NULL, allowed);
        if (allowed != 0) {
            expect_ok(tide_device_reach(p.b.device, p.device, false));
            end(&p);
            continue;
        }
        expect_ok(tide_pool_destroy(p.pool)); /* without the checks of an end */
        expect_ok(tide_pool_destroy(p.b.pool));
        fake_synchronise_all();
        expect_ok(tide_device_close(p.device));
        expect_ok(tide_device_close(p.b.device));
    }
}

static void access_that_is_refused_is_named(void **unused)
{
    (void)unused;
    pair p = begin(6);
    tide_device *host = tide_device_open("host");
    fake_no_peers();
    expect_status(tide_device_reach(p.b.device, p.device, true), TIDE_ERROR_DEVICE);
    expect_said("device cuda:0 cannot reach the memory of cuda:1");
    expect_status(tide_device_reach(p.b.device, host, true), TIDE_ERROR_ARGUMENT);
    expect_status(tide_device_reach(p.b.device, NULL, true), TIDE_ERROR_ARGUMENT);
    expect_ok(tide_device_reach(p.b.device, p.b.device, true));
    {
        TIDE_SCOPE(p.b.pool);
        TIDE_SCOPE(p.pool);
        uint8_t *x = tide_acquire(p.b.pool, uint8_t, BYTES);
        uint8_t *y = tide_acquire(p.pool, uint8_t, BYTES);
        put(p.b.stream, x, BYTES, 8);
        expect_ok(tide_copy_from(p.pool, y, p.b.pool, x, BYTES)); /* the driver goes another way */
        expect(p.stream, y, BYTES, 8);
    }
    end(&p);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_between_devices_keep_the_order_of_both_streams),
        cmocka_unit_test(pools_of_one_device_copy_too_and_others_are_refused),
        cmocka_unit_test(kernels_reach_another_device_when_they_may),
        cmocka_unit_test(access_that_is_refused_is_named),
    };
    return cmocka_run_group_tests_name("peers", tests, NULL, NULL);
}
