/* SPDX-License-Identifier: MIT */
/* What pools on a device do: each test says in its name what it shows. (The end of the process with live
 * pools is a program of its own: exit.c.) */
#include "support.h"

#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/dlpack.h>
#include <tidepool/dynamic.h>
#include <tidepool/upkeep.h>

#include "runtime/device/device.h"

TEST(shrink_to_0_and_grow_again_gives_the_same_address_and_no_driver_call)
{
    bench b = bench_start(63);
    tide_mark mark = tide_checkpoint(b.pool);
    float *first = tide_acquire(b.pool, float, 1000);
    expect_ok(tide_rewind(b.pool, mark));
    fake_count_anew();
    for (size_t n = 0; n <= 1000; n += 250) {
        TIDE_SCOPE(b.pool);
        assert_ptr_equal(tide_acquire(b.pool, float, n), first);
    }
    TIDE_LOOP(b.pool, i, 10)
    assert_ptr_equal(tide_acquire(b.pool, float, i), first);
    for (int i = 0; i < 3; i++) {
        TIDE_FRAME(b.pool, (float, x, 1000));
        assert_ptr_equal(x, first);
    }
    assert_int_equal(fake_calls(NULL), 0);
    bench_end(&b);
}

static void use_everything(bench *b, void *other)
{
    TIDE_SCOPE(b->pool);
    expect_ok(tide_pool_use_on(b->pool, other));
    float *x = tide_zeros(b->pool, float, 500);
    float *y = tide_ones(b->pool, float, 5000);
    const float one = 1;
    assert_non_null(x);
    assert_non_null(y);
    expect(b->stream, x, 2000, 0);
    expect_pattern(other, y, &one, 4, 5000);
    expect_ok(tide_pool_wait(b->pool));
}

TEST(a_pool_used_while_another_device_is_current_switches_and_switches_back)
{
    bench b = bench_start(65);
    void *other = fake_stream_create(0);
    for (int device = -1; device < 2; device++) {
        fake_use_device(device);
        use_everything(&b, other);
        assert_int_equal(fake_current_device(), device);
        expect_ok(tide_pool_empty(b.pool));
        assert_int_equal(fake_current_device(), device);
    }
    fake_stream_destroy(other);
    bench_end(&b);
}

/* A method that calls another enters the context for both: another device is current, so to enter is to switch. */
TEST(a_method_enters_the_context_once)
{
    bench b = bench_start(66);
    void *const streams[] = {b.stream, NULL};
    for (int i = 0; i < 2; i++) {
        void *data = NULL;
        fake_use_device(1);
        fake_count_anew();
        expect_ok(
            b.device->methods->allocate(b.device, streams[i], TIDE_MEMORY_DEVICE, 64, 64, &data));
        assert_int_equal(fake_calls("cuCtxPushCurrent"), 1);
        assert_int_equal(fake_calls("cuThreadExchangeStreamCaptureMode"), 2);
        b.device->methods->release(b.device, streams[i], TIDE_MEMORY_DEVICE, data, 64);
        assert_int_equal(fake_calls("cuEventRecord"), 1);
        assert_int_equal(fake_calls("cuCtxPushCurrent"), 2);
        assert_int_equal(fake_calls("cuThreadExchangeStreamCaptureMode"), 4);
        assert_int_equal(fake_current_device(), 1);
    }
    fake_use_device(-1);
    bench_end(&b);
}

/* A checked pool asks. */
TEST(a_stream_of_another_device_is_refused)
{
    bench b = bench_start(65);
    void *elsewhere = fake_stream_create(1);
    const tide_pool_options options = {
        .device = b.device, .stream = elsewhere, .check = TIDE_CHECK_POISON};
    assert_null(tide_pool_create(&options));
    expect_said("cuda:0 has no stream");
    fake_stream_destroy(elsewhere);
    bench_end(&b);
}

TEST(streams_that_did_nothing_cost_no_event)
{
    enum {
        SCOPES = 10,
        BUSY = 16,
        CALLS = 3 + 2 * 2
    }; /* the context and its mode; two questions each way */
    bench b = bench_start(67);
    void *other = fake_stream_create(0);
    {
        TIDE_SCOPE(b.pool);
        expect_ok(tide_pool_use_on(b.pool, other));
        {
            TIDE_SCOPE(b.pool);
            (void)tide_acquire(b.pool, float, 256);
        }
        fake_synchronise_all();
        fake_use_device(0);
        TIDE_LOOP(b.pool, i, BUSY) /* a stream that was at work is not asked for a while */
        {
            (void)tide_acquire(b.pool, float, 256);
        }
        fake_synchronise_all();
        fake_count_anew();
        TIDE_LOOP(b.pool, i, SCOPES)
        {
            (void)tide_acquire(b.pool, float, 256);
        }
        assert_int_equal(fake_calls("cuEventRecord"), 0);
        assert_int_equal(fake_calls(NULL), SCOPES * CALLS);
        fake_use_device(-1);
    }
    bench_end(&b);
    fake_stream_destroy(other);
}

/* An array that both streams may use, rewound inside the declaration and used first on the other. */
TEST(inner_rewinds_order_both_ways)
{
    bench b = bench_start(67);
    void *other = fake_stream_create(0);
    {
        TIDE_SCOPE(b.pool);
        expect_ok(tide_pool_use_on(b.pool, other));
        for (int i = 0; i < 10; i++) {
            if (i == 6)
                fake_count_anew();
            TIDE_SCOPE(b.pool);
            float *x = tide_acquire(b.pool, float, 256), *y = tide_acquire(b.pool, float, 256);
            void *stream = i % 2 == 0 ? b.stream : other;
            put(stream, x, 1024, (uint8_t)i);
            expect(stream, x, 1024, (uint8_t)i);
            put(b.stream, y, 1024, (uint8_t)i);
        }
        assert_in_range(fake_calls("cuEventRecord"), 1, 4 * 2); /* not one for each array */
        fake_count_anew();
        {
            TIDE_SCOPE(b.pool);
        }
        assert_int_equal(fake_calls("cuEventRecord"), 0); /* nothing was freed */
        put(other, tide_acquire(b.pool, float, 256), 1024, 1);
        put(other, tide_acquire(b.pool, float, 256), 1024, 1);
    }
    assert_int_equal(fake_calls("cuEventRecord"), 1);
    assert_int_equal(waits(), 0);
    fake_count_anew();
    {
        TIDE_SCOPE(b.pool);
        put(b.stream, tide_acquire(b.pool, float, 256), 1024, 1);
        put(b.stream, tide_acquire(b.pool, float, 256), 1024, 1);
    }
    assert_int_equal(fake_calls(NULL), 0); /* the declaration has ended */
    bench_end(&b);
    fake_stream_destroy(other);
}

TEST(declarations_are_refused_where_nothing_would_end_them)
{
    bench b = bench_start(67);
    void *streams[20];
    for (int i = 0; i < 20; i++)
        streams[i] = fake_stream_create(0);
    expect_status(tide_pool_use_on(b.pool, streams[0]), TIDE_ERROR_STATE);
    expect_said("no open scope");
    expect_status(tide_pool_use_on(NULL, streams[0]), TIDE_ERROR_ARGUMENT);
    {
        TIDE_SCOPE(b.pool);
        expect_ok(tide_pool_use_on(b.pool, b.stream)); /* its own: nothing to do */
        assert_int_equal(info_of(b.device).events, 0);
        for (int i = 0; i < 16; i++)
            expect_ok(tide_pool_use_on(b.pool, streams[i]));
        expect_status(tide_pool_use_on(b.pool, streams[16]), TIDE_ERROR_LIMIT);
        expect_said("16");
        expect_ok(tide_pool_use_on(b.pool, streams[3])); /* again: ordered again, no more */
    }
    {
        TIDE_SCOPE(b.pool);
        expect_ok(tide_pool_use_on(b.pool, streams[16]));
    }
    for (int i = 0; i < 20; i++)
        fake_stream_destroy(streams[i]);
    bench_end(&b);
}

static void expect_consistent(bench *b, size_t live)
{
    expect_ok(tide_pool_check(b->pool));
    assert_int_equal(stats_of(b->pool).slots_live, live);
}

TEST(device_lost_in_the_middle_of_a_scope)
{
    bench b = bench_start(69);
    void *other = fake_stream_create(0);
    {
        TIDE_SCOPE(b.pool);
        expect_ok(tide_pool_use_on(b.pool, other));
        float *x = tide_acquire(b.pool, float, 1000);
        assert_non_null(x);
        put(other, x, 4000, 1);
        fake_lose(0);
        assert_null(tide_acquire(b.pool, float, 1 << 20));
        expect_status(tide_error_status(), TIDE_ERROR_DEVICE);
        expect_said("cuda:0 is lost");
        assert_null(tide_zeros(b.pool, float, 10));
        expect_consistent(&b, 1);
    }
    expect_consistent(&b, 0);
    assert_true(info_of(b.device).lost);
    {
        TIDE_SCOPE(b.pool);
        expect_status(tide_pool_use_on(b.pool, other), TIDE_ERROR_DEVICE);
        expect_said("cuda:0 is lost");
        expect_status(tide_pool_use_on(b.pool, b.stream), TIDE_ERROR_DEVICE);
        expect_status(tide_capture_begin(b.pool), TIDE_ERROR_DEVICE);
    }
    expect_status(tide_pool_wait(b.pool), TIDE_ERROR_DEVICE);
    assert_null(tide_pool_create(&(tide_pool_options){.device = b.device}));
    expect_said("cuda:0 is lost");
    expect_ok(tide_pool_destroy(b.pool));
    expect_ok(tide_device_close(b.device));
    fake_stream_destroy(b.stream);
    fake_stream_destroy(other);
}

static void fill_and_look(bench *b, tide_type type, const void *value, size_t n)
{
    void *data = tide_fill_type(b->pool, type, n, value);
    assert_non_null(data);
    expect_pattern(b->stream, data, value, tide_type_size(type), n);
}

struct very_large { /* more units than columns are filled one by one */
    uint16_t parts[15];
};

TEST(patterns_of_any_size_are_filled)
{
    bench b = bench_start(71);
    struct very_large value;
    for (uint16_t i = 0; i < 15; i++)
        value.parts[i] = (uint16_t)(i * 1000 + 7);
    fill_and_look(&b, tide_type_of(struct very_large), &value, 1);
    fill_and_look(&b, tide_type_of(struct very_large), &value, 777);
    const uint64_t all = UINT64_MAX, last = (1 << 6) - 1;
    uint64_t *bits = tide_fill_type(b.pool, TIDE_BIT, 70, &(bool){true}); /* by words */
    expect_pattern(b.stream, bits, &all, 8, 1);
    expect_pattern(b.stream, bits + 1, &last, 8, 1);
    uint8_t *data = tide_acquire(b.pool, uint8_t, 4096); /* at any address */
    for (size_t at = 0; at < 8; at++)
        for (size_t bytes = 1; bytes <= 16; bytes++) {
            expect_ok(b.device->methods->fill(b.device, b.stream, data + at, &value, bytes, 9));
            expect_pattern(b.stream, data + at, &value, bytes, 9);
            fake_synchronise_all();
        }
    tide_array *ones = tide_array_ones(b.pool, TIDE_F16, 2, (const int64_t[]){30, 7});
    const tide_f16 one = {0x3C00};
    assert_non_null(ones);
    expect_pattern(b.stream, tide_array_data(ones), &one, 2, 210);
    expect_ok(tide_pool_reset(b.pool));
    bench_end(&b);
}

/* The copy comes after what a declared stream still writes, and the old memory goes after the copy:
 * the fake driver finds it if not. */
TEST(an_array_grows_while_declared_work_on_it_is_in_flight)
{
    bench b = bench_start(73);
    void *other = fake_stream_create(0);
    {
        TIDE_SCOPE(b.pool);
        float *x = tide_acquire(b.pool, float, 256), *beside = tide_acquire(b.pool, float, 256);
        expect_ok(tide_pool_use_on(b.pool, other));
        put(other, x, 1024, 1);
        put(b.stream, beside, 1024, 2);
        float *grown = tide_grow(b.pool, float, x, 100000);
        assert_non_null(grown);
        assert_ptr_not_equal(grown, x);
        expect(b.stream, grown, 1024, 1);
        put(other, grown + 256, 1024, 3);
        expect(other, grown, 1024, 1);
        expect(b.stream, beside, 1024, 2);
    }
    {
        TIDE_SCOPE(b.pool);
        float *x = tide_acquire(b.pool, float, 10);
        put(b.stream, x, 40, 4);
        assert_ptr_equal(tide_grow(b.pool, float, x, 100000), x); /* there is room now */
        expect(b.stream, x, 40, 4);
    }
    fake_stream_destroy(other);
    bench_end(&b);
}

TEST(a_pool_whose_stream_is_gone_says_so)
{
    bench b = bench_start_with(72, (tide_pool_options){.check = TIDE_CHECK_POISON});
    {
        TIDE_SCOPE(b.pool);
        put(b.stream, tide_acquire(b.pool, float, 256), 1024, 1);
    }
    fake_stream_destroy(b.stream);
    assert_ptr_equal(fake_stream_create(0), b.stream);
    {
        TIDE_SCOPE(b.pool);
        assert_null(tide_acquire(b.pool, float, 1 << 16));
        expect_status(tide_error_status(), TIDE_ERROR_STATE);
        expect_said("was destroyed");
        assert_null(tide_zeros(b.pool, float, 10));
        expect_status(tide_pool_use_on(b.pool, b.stream), TIDE_ERROR_STATE);
    }
    expect_status(tide_pool_wait(b.pool), TIDE_ERROR_STATE);
    bench_end(&b);
}

/* ---- devices, exchange, checks -------------------------------------------------------------- */

TEST(devices_are_counted_and_held)
{
    bench b = bench_start(1);
    assert_ptr_equal(tide_device_open("cuda:0"), b.device);
    assert_ptr_equal(tide_device_open("cuda:00"), b.device);
    expect_ok(tide_device_close(b.device));
    expect_ok(tide_device_close(b.device));
    expect_status(tide_device_close(b.device), TIDE_ERROR_STATE);
    expect_said("on it: 1");
    assert_null(tide_device_open("cuda:2"));
    expect_said("the driver knows 2");
    assert_null(tide_device_open("cuda:"));
    expect_status(tide_error_status(), TIDE_ERROR_NAME);
    assert_null(tide_device_open("cuda:12345"));
    assert_null(tide_device_open(NULL));
    tide_device_information info = info_of(b.device);
    assert_string_equal(info.name, "cuda:0");
    assert_string_equal(info.description, "fake device 0");
    assert_false(info.host);
    assert_non_null(tide_device_context(b.device));
    tide_device *device = b.device;
    bench_end(&b);
    assert_null(tide_device_context(device)); /* it is not ours to use any more */
    expect_said("tide_device_context: device cuda:0 is closed");
    assert_null(tide_device_stream(device));
    expect_said("tide_device_stream: device cuda:0 is closed");
    expect_status(tide_device_info(device, &info), TIDE_ERROR_DEVICE);
    expect_said("closed");
    assert_null(tide_pool_create(&(tide_pool_options){.device = device}));
    expect_said("closed");
    expect_status(tide_device_close(device), TIDE_ERROR_DEVICE);
    assert_null(tide_pool_create(&(tide_pool_options){.device = (tide_device *)(void *)&info}));
    expect_said("is no device");
}

static unsigned given_back;

/* The producer does with it what it likes, on the host. */
static void give_back(tide_dl_managed *managed)
{
    fake_host_uses(managed->tensor.data, 400, true);
    given_back++;
}

/* A tensor that kernels may still be reading is not given back while they may. */
TEST(an_imported_tensor_goes_back_when_its_work_is_over)
{
    bench b = bench_start(3);
    tide_pool *producer = bench_pool(&b, b.stream, NULL);
    int64_t shape[] = {100};
    float *data = tide_acquire(producer, float, 100);
    tide_dl_managed managed = {.version = {TIDE_DL_MAJOR, TIDE_DL_MINOR},
                               .deleter = give_back,
                               .tensor = {.data = data,
                                          .device = {TIDE_DL_CUDA, 0},
                                          .ndim = 1,
                                          .dtype = {TIDE_DL_FLOAT, 32, 1},
                                          .shape = shape}};
    void *other = fake_stream_create(0);
    given_back = 0;
    for (unsigned i = 0; i < 20; i++) {
        TIDE_SCOPE(b.pool);
        if (i % 3 == 1)
            expect_ok(tide_pool_use_on(b.pool, other));
        tide_array *array = tide_array_import(b.pool, &managed);
        assert_non_null(array);
        put(i % 3 == 1 ? other : b.stream, tide_array_data(array), 400, 1);
        assert_true(given_back <= i);
    }
    assert_int_equal(fake_calls("cuEventSynchronize") + fake_calls("cuStreamSynchronize"), 0);
    fake_synchronise_all(); /* what is refused goes back at once */
    managed.tensor.device.device_id = 1;
    assert_null(tide_array_import(b.pool, &managed));
    expect_status(tide_error_status(), TIDE_ERROR_DEVICE);
    expect_ok(tide_pool_reset(producer));
    expect_ok(tide_pool_destroy(producer));
    bench_end(&b);
    fake_stream_destroy(other);
    assert_int_equal(given_back, 21);
}

TEST(a_careful_pool_poisons_on_its_stream)
{
    bench b = bench_start_with(5, (tide_pool_options){.check = TIDE_CHECK_GUARD});
    float *x;
    {
        TIDE_SCOPE(b.pool);
        x = tide_acquire(b.pool, float, 100);
        put(b.stream, x, 400, 1);
        expect(b.stream, x, 400, 1);
    }
    expect(b.stream, x, 400, 0xFF);
    bench_end(&b);
}

int main(void)
{
    return RUN_TESTS("scenarios");
}
