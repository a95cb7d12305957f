/* SPDX-License-Identifier: MIT */
/* Threads that are cancelled while the library is in the driver, or in a function of the program
 * that it calls. Each call of this driver is a point of cancellation, as some of a real one's are,
 * and so is each such function. For the operations of the library none is: what they have half done
 * would stay so. */
#define _GNU_SOURCE
#include "support.h"

#include <pthread.h>

#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/device_bump.h>
#include <tidepool/device_ipc.h>
#include <tidepool/device_memory.h>
#include <tidepool/dlpack.h>

#include "later.h"
#include "tests/cancelled.h"

enum { LARGE = 1 << 20 };

/* Of the thread that is cancelled. */
static bench b;
static tide_buffers *buffers;
static tide_pool *other_pool; /* on another device */

static void do_slots(void)
{
    TIDE_SCOPE(b.pool);
    uint8_t *x = tide_acquire(b.pool, uint8_t, BYTES), *y = tide_fill(b.pool, uint8_t, BYTES, 7);
    const uint8_t here[BYTES] = {1};
    uint8_t back[BYTES];
    expect_ok(tide_upload(b.pool, x, here, BYTES));
    expect_ok(tide_copy(b.pool, y, x, BYTES));
    expect_ok(tide_download(b.pool, back, y, BYTES));
    assert_memory_equal(back, here, BYTES);
}

static void do_trim(void)
{
    (void)tide_pool_trim(b.pool, TIDE_ALL_TYPES);
    expect_ok(tide_pool_wait(b.pool));
    expect_ok(tide_device_memory_trim(b.device, 0));
}

static void do_make_pool(void)
{
    tide_pool *made =
        tide_pool_create(&(tide_pool_options){.device = b.device, .stream = b.stream});
    assert_non_null(tide_acquire(made, double, BYTES));
    expect_ok(tide_pool_destroy(made));
}

static void do_other_stream(void)
{
    void *stream = fake_stream_create(0);
    {
        TIDE_SCOPE(b.pool);
        uint8_t *x = tide_acquire(b.pool, uint8_t, BYTES);
        fake_order(b.stream, stream);
        put(stream, x, BYTES, 1);
        expect_ok(tide_pool_use_on(b.pool, stream));
    }
    fake_stream_destroy(stream);
}

static void do_copy_between(void)
{
    TIDE_SCOPE(b.pool);
    TIDE_SCOPE(other_pool);
    uint8_t *x = tide_fill(b.pool, uint8_t, BYTES, 3),
            *y = tide_acquire(other_pool, uint8_t, BYTES);
    expect_ok(tide_copy_from(other_pool, y, b.pool, x, BYTES));
}

static void do_buffers(void)
{
    static const uint32_t kinds[] = {TIDE_BUFFER_DEVICE, TIDE_BUFFER_PINNED, TIDE_BUFFER_MANAGED};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        tide_buffer one = tide_buffer_acquire_on(buffers, LARGE, kinds[i], b.stream);
        assert_int_not_equal(one.generation, 0);
        expect_ok(tide_buffer_release_on(buffers, one, b.stream));
    }
    (void)tide_buffers_trim(buffers, 0);
}

static void do_make_buffers(void)
{
    tide_buffers *made = tide_buffers_create(b.device, &(tide_buffers_options){.stream = b.stream});
    tide_buffer one = tide_buffer_acquire_zeroed(made, LARGE);
    expect_ok(tide_buffer_release(made, one));
    expect_ok(tide_buffers_destroy(made));
}

static void do_open(void)
{
    tide_device *opened = tide_device_open("cuda:1");
    assert_non_null(opened);
    expect_ok(tide_device_close(opened));
    assert_null(tide_device_open("cuda:2"));
}

static void do_export(void)
{
    TIDE_SCOPE(b.pool);
    tide_array *array = tide_array_acquire(b.pool, TIDE_U8, 1, (const int64_t[]){BYTES});
    tide_dl_managed *managed = tide_array_export(b.pool, array);
    assert_non_null(managed);
    managed->deleter(managed);
}

static unsigned deleted;

static void delete_it(void *data, void *context)
{
    (void)data, (void)context;
    deleted++;
    pthread_testcancel();
}

static void do_wrap(void)
{
    const int64_t shape = BYTES;
    TIDE_SCOPE(other_pool);
    void *data = tide_acquire(other_pool, uint8_t, BYTES);
    const tide_array_source source = {
        .data = data, .type = TIDE_U8, .ndim = 1, .shape = &shape, .deleter = delete_it};
    unsigned before = deleted;
    {
        TIDE_SCOPE(other_pool);
        assert_non_null(tide_array_wrap(other_pool, &source));
    }
    expect_ok(tide_pool_wait(other_pool));
    { /* the next scope looks whether it is over */
        TIDE_SCOPE(other_pool);
        assert_non_null(tide_acquire(other_pool, uint8_t, 1));
    }
    assert_null(tide_array_wrap(
        other_pool,
        &(tide_array_source){
            .data = data, .type = TIDE_U8, .ndim = -1, .shape = &shape, .deleter = delete_it}));
    assert_int_equal(deleted, before + 2);
}

static unsigned asked;

static bool is_full(tide_device *device, size_t wanted, unsigned times, void *user)
{
    (void)device, (void)wanted, (void)user;
    asked++;
    pthread_testcancel();
    return times == 0;
}

static void do_shortage(void)
{
    unsigned before = asked;
    expect_ok(tide_device_memory_set(
        b.device, &(tide_device_memory_options){.limit_bytes = 1, .full = is_full}));
    assert_null(tide_acquire(b.pool, double, LARGE));
    assert_int_equal(asked, before + 2);
    expect_ok(tide_device_memory_set(b.device, NULL));
}

static unsigned told;

static void hear(const tide_buffer_event *event, void *user)
{
    (void)event, (void)user;
    told++;
    pthread_testcancel();
}

static void do_hook(void)
{
    unsigned before = told;
    tide_buffers *made =
        tide_buffers_create(b.device, &(tide_buffers_options){.stream = b.stream, .hook = hear});
    expect_ok(tide_buffer_release(made, tide_buffer_acquire(made, LARGE)));
    expect_ok(tide_buffers_destroy(made));
    assert_int_equal(told, before + 4); /* allocated, acquired, released, freed */
}

static void hear_of_pool(const tide_pool_event *event, void *user)
{
    (void)event, (void)user;
    told++;
    pthread_testcancel();
}

static void do_pool_hook(void)
{
    unsigned before = told;
    tide_pool *made = tide_pool_create(
        &(tide_pool_options){.device = b.device, .stream = b.stream, .hook = hear_of_pool});
    assert_non_null(tide_acquire(made, double, BYTES));
    expect_ok(tide_pool_destroy(made));
    assert_true(told > before);
}

/* What was put off beside a capture is let go: the host waits for the device. */
static void do_put_off(void)
{
    scene s = {.b = b, .stream = fake_stream_create(0)};
    s.pool = tide_pool_create(&(tide_pool_options){.device = b.device, .stream = s.stream});
    void *beside = end_beside_a_capture(&s);
    assert_int_equal(fake_capture_end(beside, &s.graph), 0);
    fake_graph_destroy(s.graph);
    fake_stream_destroy(beside);
    fake_stream_destroy(s.stream);
    unsigned before = fake_calls("cuCtxSynchronize");
    expect_ok(tide_device_memory_trim(b.device, 0));
    assert_int_equal(fake_calls("cuCtxSynchronize"), before + 1);
    fake_count_anew();
}

static void do_ipc(void)
{
    tide_ipc_memory memory;
    TIDE_SCOPE(b.pool);
    uint8_t *x = tide_acquire(b.pool, uint8_t, BYTES);
    (void)tide_ipc_export(b.pool, x, &memory); /* may be refused: it is the pool's */
}

static void do_capture(void)
{
    void *graph = NULL;
    do_slots(); /* no graph is captured in a pool that grows */
    TIDE_SCOPE(b.pool);
    uint8_t *x = tide_acquire(b.pool, uint8_t, BYTES);
    expect_ok(tide_capture_begin(b.pool));
    fake_capture_begin(b.stream);
    {
        TIDE_SCOPE(b.pool);
        uint8_t *y = tide_acquire(b.pool, uint8_t, BYTES);
        expect_ok(tide_copy(b.pool, y, x, BYTES));
    }
    assert_int_equal(fake_capture_end(b.stream, &graph), 0);
    tide_capture *capture = tide_capture_end(b.pool);
    assert_non_null(capture);
    fake_graph_launch(graph, b.stream);
    expect_ok(tide_capture_drop(capture, b.stream));
    fake_graph_destroy(graph);
}

static void do_bump(void)
{
    tide_bump_scope scope;
    expect_ok(tide_bump_enter(b.pool, BYTES, &scope));
    expect_ok(tide_bump_leave(&scope));
    assert_int_equal(scope.asked, 0);
}

static const cancelled_operation operations[] = {
    {"scopes and copies", do_slots},
    {"trims", do_trim},
    {"pools", do_make_pool},
    {"uses on other streams", do_other_stream},
    {"copies between devices", do_copy_between},
    {"buffers", do_buffers},
    {"instances of buffers", do_make_buffers},
    {"devices", do_open},
    {"exports", do_export},
    {"deleters", do_wrap},
    {"shortages", do_shortage},
    {"hooks of buffers", do_hook},
    {"hooks of pools", do_pool_hook},
    {"what was put off", do_put_off},
    {"memory for others", do_ipc},
    {"captures", do_capture},
    {"allocations of kernels", do_bump},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static void run_cancelled(const cancelled_operation *operation)
{
    fake_count_anew();
    fake_cancel(true);
    expect_not_cancelled_in(operation, NULL, NULL);
    fake_cancel(false);
}

static void no_operation_on_a_device_is_a_point_of_cancellation(void **unused)
{
    (void)unused;
    tide_device *other;
    b = bench_start(51);
    other = tide_device_open("cuda:1");
    assert_non_null(other);
    other_pool = tide_pool_create(&(tide_pool_options){.device = other});
    buffers = tide_buffers_create(b.device, &(tide_buffers_options){.stream = b.stream});
    assert_non_null(buffers);
    for (unsigned i = 0; i < OPERATIONS; i++) {
        operations[i].function(); /* what fails here has nothing to do with it */
        run_cancelled(&operations[i]);
        operations[i].function(); /* nothing is locked, or half done */
    }
    expect_ok(tide_buffers_destroy(buffers));
    expect_ok(tide_pool_destroy(other_pool));
    fake_synchronise_all();
    expect_ok(tide_device_close(other));
    bench_end(&b);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_operation_on_a_device_is_a_point_of_cancellation),
    };
    return cmocka_run_group_tests_name("cuda: cancel", tests, NULL, NULL);
}
