/* SPDX-License-Identifier: MIT */
/* A stream outlives the pools and buffers that use it, and a captured graph has memory of its own:
 * on a CUDA driver of our own (tests/device/fake_cuda), which follows a handle that is gone. */
#include "tests/device/cuda/support.h"

enum { BYTES = 4096 };

/* A checked pool tells by the stream's number, also when the handle is another stream's by now. */
static void a_pool_whose_stream_is_gone_says_so(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 10; seed++) {
        bench b = bench_start_with(seed, (tide_pool_options){.check = TIDE_CHECK_POISON});
        {
            TIDE_SCOPE(b.pool);
            put(b.stream, tide_acquire(b.pool, uint8_t, BYTES), BYTES, 1);
        }
        fake_synchronise_all();
        fake_stream_destroy(b.stream);
        b.stream = fake_stream_create(0);
        expect_status(tide_pool_wait(b.pool), TIDE_ERROR_STATE);
        expect_said("was destroyed");
        {
            TIDE_SCOPE(b.pool);
            assert_null(tide_acquire(b.pool, double, BYTES));
            expect_status(tide_error_status(), TIDE_ERROR_STATE);
        }
        expect_ok(tide_pool_destroy(b.pool));
        fake_synchronise_all();
        assert_int_equal(fake_live_bytes(), 0); /* it was given back behind a wait for the device */
        expect_ok(tide_device_close(b.device));
        expect_order();
        fake_stream_destroy(b.stream);
    }
}

/* Acquired in the capture, launched in no order with the pool: no byte of it is anybody else's until
 * it is dropped. */
static void a_graph_has_memory_of_its_own(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 20; seed++) {
        bench b = bench_start(seed);
        void *other = fake_stream_create(0), *graph = NULL;
        expect_ok(tide_capture_begin(b.pool));
        fake_capture_begin(b.stream);
        {
            TIDE_SCOPE(b.pool);
            uint8_t *x = tide_acquire(b.pool, uint8_t, BYTES);
            assert_non_null(x); /* new memory, inside of the capture */
            put(b.stream, x, BYTES, 3);
            expect(b.stream, x, BYTES, 3);
        }
        assert_int_equal(fake_capture_end(b.stream, &graph), 0);
        tide_capture *capture = tide_capture_end(b.pool);
        assert_non_null(capture);
        for (int i = 0; i < 3; i++) {
            fake_graph_launch(graph, other);
            TIDE_SCOPE(b.pool);
            uint8_t *x = tide_acquire(b.pool, uint8_t, BYTES);
            put(b.stream, x, BYTES, 7);
            expect(b.stream, x, BYTES, 7);
        }
        expect_ok(tide_capture_drop(capture, other));
        fake_graph_destroy(graph);
        fake_synchronise_all();
        fake_stream_destroy(other);
        bench_end(&b); /* nothing is left */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_pool_whose_stream_is_gone_says_so),
                                       cmocka_unit_test(a_graph_has_memory_of_its_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
