/* SPDX-License-Identifier: MIT */
/* What a pool gives up while work on a stream that was declared can be neither ordered nor waited
 * for: an event fails and then the wait for the device, once; the stream is gone and that wait
 * fails; it is being captured. Nothing goes before that work is over. */
#include <tidepool/array.h>
#include <tidepool/device.h>
#include <tidepool/device_memory.h>
#include <tidepool/dlpack.h>

#include "later.h"

#include "runtime/device/device.h"

typedef enum trouble { EVENT_FAILS, STREAM_IS_GONE, STREAM_IS_CAPTURED, TROUBLES } trouble;
typedef enum given_up { IMPORT, MEMORY, EXPORT } given_up;

static unsigned deleted;

/* Finds out whether the array is in use. */
static void delete (tide_dl_managed *managed)
{
    tide_device *device = managed->manager_ctx;
    void *data = managed->tensor.data;
    fake_host_uses(data, BYTES, true);
    device->methods->release(device, device->service, TIDE_MEMORY_DEVICE, data, BYTES);
    deleted++;
}

static void *import_array(bench *b)
{
    static tide_dl_managed managed;
    static int64_t length = BYTES;
    const tide_device_methods *methods = b->device->methods;
    void *data = NULL;
    expect_ok(methods->allocate(b->device, b->stream, TIDE_MEMORY_DEVICE, BYTES, 64, &data));
    fake_synchronise_all();
    managed = (tide_dl_managed){.version.major = TIDE_DL_MAJOR,
                                .manager_ctx = b->device,
                                .deleter = delete,
                                .tensor = {.data = data,
                                           .device = b->device->dl,
                                           .ndim = 1,
                                           .dtype = {TIDE_DL_UINT, 8, 1},
                                           .shape = &length}};
    assert_non_null(tide_array_import(b->pool, &managed));
    return data;
}

static void *export_array(bench *b, tide_dl_managed **out)
{
    tide_array *array = tide_array_acquire(b->pool, TIDE_U8, 1, (const int64_t[]){BYTES});
    *out = tide_array_export(b->pool, array);
    assert_non_null(*out);
    return array->tensor.data;
}

static void fail_wait(void)
{
    fake_fail("cuCtxSynchronize", 1, TRANSIENT, false);
}

static void fail_waits(void)
{
    fake_fail("cuCtxSynchronize", 1, TRANSIENT, true);
}

static void *bring_trouble(trouble what, void *stream)
{
    switch (what) {
    case EVENT_FAILS:
        fake_fail("cuEventRecord", 1, TRANSIENT, false);
        fake_call_back("cuCtxSynchronize", fail_wait);
        break;
    case STREAM_IS_GONE:
        fake_stream_destroy(stream);
        assert_ptr_equal(fake_stream_create(0), stream);
        fail_wait();
        break;
    default: fake_capture_begin(stream);
    }
    return stream;
}

/* A declared stream is at work on it when its scope ends, and then it goes, with the pool or
 * without. */
static void give_up(given_up what, trouble which, bool with_pool)
{
    bench b = bench_start(61);
    void *other = fake_stream_create(0), *graph = NULL;
    tide_dl_managed *exported = NULL;
    deleted = 0;
    {
        TIDE_SCOPE(b.pool);
        void *data = what == IMPORT   ? import_array(&b)
                     : what == EXPORT ? export_array(&b, &exported)
                                      : tide_acquire(b.pool, uint8_t, BYTES);
        expect_ok(tide_pool_use_on(b.pool, other));
        for (uint8_t i = 0; i < WORK; i++)
            put(other, data, BYTES, i);
        assert_true(fake_pending() > 0);
        other = bring_trouble(which, other);
        if (exported != NULL)
            exported->deleter(exported);
    }
    if (with_pool)
        expect_ok(tide_pool_destroy(b.pool));
    else
        (void)tide_pool_trim(b.pool, TIDE_ALL_TYPES);
    expect_order();
    assert_int_equal(fake_failures(), which != STREAM_IS_CAPTURED); /* of the wait */
    if (which == STREAM_IS_CAPTURED) {
        assert_int_equal(deleted, 0);
        assert_int_equal(fake_capture_end(other, &graph), 0);
        fake_graph_destroy(graph);
        if (!with_pool)
            expect_ok(tide_pool_reset(b.pool)); /* which may ask the stream for the last time */
    }
    expect_ok(tide_device_memory_trim(b.device, 0));
    fake_stream_destroy(other);
    if (with_pool)
        b.pool = tide_pool_create(&(tide_pool_options){.device = b.device, .stream = b.stream});
    bench_end(&b);
    assert_int_equal(deleted, what == IMPORT);
}

static void give_up_each_time(given_up what)
{
    for (trouble which = 0; which < TROUBLES; which++)
        for (int with_pool = 0; with_pool < 2; with_pool++)
            give_up(what, which, with_pool != 0);
}

static void an_import_outlasts_the_work(void **unused)
{
    (void)unused;
    give_up_each_time(IMPORT);
}

static void memory_outlasts_the_work(void **unused)
{
    (void)unused;
    give_up_each_time(MEMORY);
}

static void an_export_outlasts_the_work(void **unused)
{
    (void)unused;
    give_up_each_time(EXPORT);
}

/* Where no wait succeeds what the pool itself queued is still before what it gives up. */
static void the_pools_own_order_outlasts_all_waits(void **unused)
{
    (void)unused;
    bench b = bench_start(62);
    void *other = fake_stream_create(0);
    {
        TIDE_SCOPE(b.pool);
        void *data = tide_acquire(b.pool, uint8_t, BYTES);
        expect_ok(tide_pool_use_on(b.pool, other));
        for (uint8_t i = 0; i < WORK; i++)
            put(b.stream, data, BYTES, i);
        fake_fail("cuEventRecord", 1, TRANSIENT, false);
        fake_call_back("cuCtxSynchronize", fail_waits);
    }
    (void)tide_pool_trim(b.pool, TIDE_ALL_TYPES);
    assert_true(fake_failures() > 2);
    assert_true(fake_pending() > 0);
    expect_order();
    fake_fail("cuCtxSynchronize", 0, 0, false);
    fake_stream_destroy(other);
    bench_end(&b);
}

/* It begins while the pool is unordered. Whichever stream the driver does not tell of then. */
static void capture_beside_a_trim(unsigned unanswered)
{
    bench b = bench_start(63);
    void *other = fake_stream_create(0), *graph = NULL;
    tide_mark mark = tide_checkpoint(b.pool);
    expect_ok(tide_pool_use_on(b.pool, other));
    {
        TIDE_SCOPE(b.pool);
        assert_non_null(tide_acquire(b.pool, uint8_t, BYTES));
        fake_fail("cuEventRecord", 1, TRANSIENT, false);
        fake_call_back("cuCtxSynchronize", fail_wait);
    }
    fake_capture_begin(other);
    fake_fail("cuStreamGetId", unanswered, TRANSIENT, false);
    (void)tide_pool_trim(b.pool, TIDE_ALL_TYPES);
    fake_fail("cuStreamGetId", 0, 0, false);
    expect_order();
    assert_int_equal(fake_capture_end(other, &graph), 0);
    fake_graph_destroy(graph);
    expect_ok(tide_rewind(b.pool, mark));
    expect_ok(tide_pool_reset(b.pool));
    fake_stream_destroy(other);
    expect_ok(tide_device_memory_trim(b.device, 0));
    bench_end(&b);
}

static void a_wait_ends_no_capture_of_a_declared_stream(void **unused)
{
    (void)unused;
    for (unsigned unanswered = 0; unanswered < 4; unanswered++)
        capture_beside_a_trim(unanswered);
}

/* The driver does not tell whose handle it is, once, while it is captured. */
static void a_reset_ends_no_capture_of_the_pools_own_stream(void **unused)
{
    (void)unused;
    bench b = bench_start(64);
    void *other = fake_stream_create(0), *graph = NULL;
    {
        TIDE_SCOPE(b.pool);
        assert_non_null(tide_acquire(b.pool, uint8_t, BYTES));
        expect_ok(tide_pool_use_on(b.pool, other));
        fake_fail("cuEventRecord", 1, TRANSIENT, false);
        fake_call_back("cuCtxSynchronize", fail_wait);
    }
    fake_capture_begin(b.stream);
    fake_fail("cuStreamGetCtx", 1, TRANSIENT, false);
    (void)tide_pool_reset(b.pool);
    fake_fail("cuStreamGetCtx", 0, 0, false);
    expect_order();
    assert_int_equal(fake_capture_end(b.stream, &graph), 0);
    fake_graph_destroy(graph);
    expect_ok(tide_pool_reset(b.pool));
    fake_stream_destroy(other);
    bench_end(&b);
}

/* A copy would be in no order with the work on the declared stream. */
static void copies_are_refused(void **unused)
{
    (void)unused;
    bench b = bench_start(65);
    void *other = fake_stream_create(0);
    uint8_t bytes[BYTES] = {1};
    tide_mark mark = tide_checkpoint(b.pool);
    uint8_t *x = tide_acquire(b.pool, uint8_t, BYTES), *y = tide_acquire(b.pool, uint8_t, BYTES);
    const tide_part parts[] = {{x, bytes, TIDE_U8, BYTES}, {y, bytes, TIDE_U8, BYTES}};
    const tide_part empty[] = {{x, bytes, TIDE_U8, 0}, {y, bytes, TIDE_U8, 0}};
    uint64_t hashes[2];
    expect_ok(tide_pool_use_on(b.pool, other));
    for (uint8_t i = 0; i < WORK; i++)
        put(other, x, BYTES, i);
    fake_fail("cuEventRecord", 1, TRANSIENT, true);
    fake_call_back("cuCtxSynchronize", fail_waits);
    expect_status(tide_download(b.pool, bytes, x, BYTES), TIDE_ERROR_DEVICE);
    expect_said("reset it");
    expect_status(tide_upload(b.pool, x, bytes, BYTES), TIDE_ERROR_DEVICE);
    expect_status(tide_copy(b.pool, y, x, BYTES), TIDE_ERROR_DEVICE);
    expect_status(tide_upload_frame(b.pool, parts, 2), TIDE_ERROR_DEVICE);
    expect_ok(tide_upload_frame(b.pool, empty, 2));
    expect_status(tide_fill_frame(b.pool, parts, 2), TIDE_ERROR_DEVICE);
    expect_status(tide_hash_frame(b.pool, parts, 2, hashes), TIDE_ERROR_DEVICE);
    expect_order();
    fake_fail("cuCtxSynchronize", 0, 0, false);
    expect_ok(tide_rewind(b.pool, mark));
    expect_ok(tide_pool_reset(b.pool));
    fake_stream_destroy(other);
    bench_end(&b);
}

/* The frame's own block goes back by waits that fail, too, and tide_grow's new memory would. What
 * is said is what refused. */
static void a_refusal_is_told_as_it_is(void **unused)
{
    (void)unused;
    for (int grows = 0; grows < 2; grows++) {
        bench b = bench_start(66);
        void *other = fake_stream_create(0);
        uint8_t bytes[BYTES] = {1};
        uint64_t hashes[2];
        tide_mark mark = tide_checkpoint(b.pool);
        tide_array *x = tide_array_acquire(b.pool, TIDE_U8, 1, (const int64_t[]){BYTES});
        uint8_t *y = tide_acquire(b.pool, uint8_t, BYTES);
        const tide_part parts[] = {{x->tensor.data, bytes, TIDE_U8, BYTES},
                                   {y, bytes, TIDE_U8, BYTES}};
        expect_ok(tide_pool_use_on(b.pool, other));
        put(other, x->tensor.data, BYTES, 1);
        fake_fail("cuEventRecord", 1, TRANSIENT, true);
        fake_call_back("cuCtxSynchronize", fail_waits);
        if (grows)
            assert_null(tide_grow(b.pool, uint8_t, y, 100 * BYTES));
        else
            expect_status(tide_hash_frame(b.pool, parts, 2, hashes), TIDE_ERROR_DEVICE);
        assert_int_equal(tide_error_status(), TIDE_ERROR_DEVICE);
        expect_said("reset it");
        fake_fail("cuCtxSynchronize", 0, 0, false);
        expect_ok(tide_rewind(b.pool, mark));
        expect_ok(tide_pool_reset(b.pool));
        fake_stream_destroy(other);
        bench_end(&b);
    }
}

/* Nothing is asked of a declared stream first. */
static void an_array_that_may_not_grow_leaves_the_pool_ordered(void **unused)
{
    (void)unused;
    bench b = bench_start(67);
    void *other = fake_stream_create(0), *graphs[2] = {NULL, NULL};
    tide_mark mark = tide_checkpoint(b.pool);
    uint8_t *x = tide_acquire(b.pool, uint8_t, BYTES);
    {
        TIDE_SCOPE(b.pool);
        assert_non_null(tide_acquire(b.pool, uint8_t, BYTES)); /* warm */
    }
    expect_ok(tide_pool_use_on(b.pool, other));
    fake_capture_begin(b.stream);
    fake_capture_begin(other);
    assert_null(tide_grow(b.pool, uint8_t, x, 100 * BYTES));
    expect_status(tide_error_status(), TIDE_ERROR_STATE);
    expect_said("warm it up");
    assert_non_null(tide_acquire(b.pool, uint8_t, BYTES));
    assert_int_equal(fake_capture_end(other, &graphs[0]), 0);
    assert_int_equal(fake_capture_end(b.stream, &graphs[1]), 0);
    fake_graph_destroy(graphs[0]);
    fake_graph_destroy(graphs[1]);
    expect_ok(tide_rewind(b.pool, mark));
    fake_stream_destroy(other);
    bench_end(&b);
}

/* Nothing is asked of a declared stream, nor queued on what has the pool's handle now. */
static void an_array_of_a_pool_without_its_stream_does_not_grow(void **unused)
{
    (void)unused;
    bench b = bench_start(68);
    void *other = fake_stream_create(0);
    tide_mark mark = tide_checkpoint(b.pool);
    uint8_t *x = tide_acquire(b.pool, uint8_t, BYTES);
    expect_ok(tide_pool_use_on(b.pool, other));
    put(other, x, BYTES, 1);
    fake_stream_destroy(b.stream);
    assert_ptr_equal(fake_stream_create(0), b.stream);
    unsigned events = fake_calls("cuEventRecord"), waits = fake_calls("cuCtxSynchronize");
    assert_null(tide_grow(b.pool, uint8_t, x, 100 * BYTES));
    expect_status(tide_error_status(), TIDE_ERROR_STATE);
    expect_said("was destroyed");
    assert_int_equal(fake_calls("cuEventRecord"), events);
    assert_int_equal(fake_calls("cuCtxSynchronize"), waits);
    expect_ok(tide_rewind(b.pool, mark));
    fake_stream_destroy(other);
    bench_end(&b);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_import_outlasts_the_work),
        cmocka_unit_test(memory_outlasts_the_work),
        cmocka_unit_test(an_export_outlasts_the_work),
        cmocka_unit_test(the_pools_own_order_outlasts_all_waits),
        cmocka_unit_test(a_wait_ends_no_capture_of_a_declared_stream),
        cmocka_unit_test(a_reset_ends_no_capture_of_the_pools_own_stream),
        cmocka_unit_test(copies_are_refused),
        cmocka_unit_test(a_refusal_is_told_as_it_is),
        cmocka_unit_test(an_array_that_may_not_grow_leaves_the_pool_ordered),
        cmocka_unit_test(an_array_of_a_pool_without_its_stream_does_not_grow),
    };
    return cmocka_run_group_tests_name("unordered", tests, NULL, NULL);
}
