/* SPDX-License-Identifier: MIT */
/* A graph is captured on a stream that a pool has declared, or on the pool's own. What is captured
 * is no work that anything can be ordered after, and comes after nothing that was queued before. */
#include <tidepool/device.h>

#include "declared.h"

#include "runtime/device/device.h"

/* The next call that orders the streams finds it. */
static void a_capture_of_a_declared_stream_is_found(void **unused)
{
    static const method finds[] = {{"tide_acquire", do_acquire, 0, NULL, NULL},
                                   {"tide_fill", do_fill, 0, NULL, NULL},
                                   {"tide_array_wrap", do_wrap, 0, NULL, NULL},
                                   {"tide_array_import", do_import, 0, NULL, NULL},
                                   {"tide_copy", do_copy, 0, NULL, NULL}};
    (void)unused;
    for (size_t i = 0; i < sizeof finds / sizeof *finds; i++) {
        work w;
        void *graph = NULL;
        work_begin(&w);
        fake_capture_begin(w.other);
        tide_status status = finds[i].call(&w);
        if (status != TIDE_ERROR_DEVICE)
            fail_msg("%s finds no capture: %d", finds[i].name, status);
        expect_said("reset it");
        assert_int_equal(fake_capture_end(w.other, &graph), 0);
        fake_graph_destroy(graph);
        work_end(&w);
    }
}

/* Another thread ends it between two questions about it: then there is nothing to find, and the
 * host waits. */
static void *ending;

static void end_capture(void)
{
    void *graph = NULL;
    assert_int_equal(fake_capture_end(ending, &graph), 0);
    fake_graph_destroy(graph);
}

static void end_after_the_first_question(void)
{
    fake_call_back("cuStreamIsCapturing", end_capture);
}

static void a_capture_that_ends_meanwhile_leaves_the_pool_in_order(void **unused)
{
    (void)unused;
    work w;
    work_begin(&w);
    fake_capture_begin(ending = w.other);
    fake_call_back("cuStreamGetCaptureInfo", end_after_the_first_question);
    expect_ok(do_acquire(&w));
    use_declared(&w);
    expect_order();
    work_end(&w);
}

/* In what has failed nothing runs, so there is nothing to order. In two captures of their own there
 * is. */
static void fill_in_a_capture(bool shared)
{
    work w;
    void *graph = NULL, *other_graph = NULL;
    work_begin(&w);
    {
        TIDE_SCOPE(w.b.pool);
        assert_non_null(tide_acquire(w.b.pool, uint8_t, BYTES)); /* warm */
    }
    fake_capture_begin(w.b.stream);
    if (shared) {
        fake_order(w.b.stream, w.other);
        fake_order(w.third, w.b.stream); /* which fails it */
    } else {
        fake_capture_begin(w.other);
    }
    expect_status(do_fill(&w), shared ? TIDE_OK : TIDE_ERROR_DEVICE);
    assert_int_equal(fake_capture_end(w.b.stream, &graph) != 0, shared);
    if (!shared) {
        assert_int_equal(fake_capture_end(w.other, &other_graph), 0);
        fake_graph_destroy(graph);
        fake_graph_destroy(other_graph);
    }
    assert_int_equal(tide_acquire(w.b.pool, uint8_t, BYTES) != NULL, shared);
    work_end(&w);
}

static void a_fill_in_a_capture_that_has_failed_leaves_the_pool_in_order(void **unused)
{
    (void)unused;
    fill_in_a_capture(true);
}

static void a_fill_between_two_captures_is_refused(void **unused)
{
    (void)unused;
    fill_in_a_capture(false);
}

/* The declared stream does not wait for what a graph's launch will do. */
static void a_fill_in_a_capture_of_the_pool_alone_is_none_of_a_declared_stream(void **unused)
{
    (void)unused;
    work w;
    void *graph = NULL;
    work_begin(&w);
    {
        TIDE_SCOPE(w.b.pool);
        assert_non_null(tide_acquire(w.b.pool, uint8_t, BYTES)); /* warm */
    }
    fake_capture_begin(w.b.stream);
    expect_ok(do_fill(&w));
    assert_int_equal(fake_capture_end(w.b.stream, &graph), 0);
    assert_non_null(tide_acquire(w.b.pool, uint8_t, BYTES));
    fake_graph_destroy(graph);
    expect_order();
    work_end(&w);
}

/* ---- what was queued before the capture ------------------------------------------------------ */

enum { MANY = 30 }; /* pieces of work that are not over soon */

static void put_many(void *stream, void *data)
{
    for (int i = 0; i < MANY; i++)
        put(stream, data, BYTES, 1);
}

/* An array of a level inside of the one that declares, which ends in the capture. */
static tide_mark inner_begin(const work *w, uint8_t **x)
{
    tide_mark inner = tide_checkpoint(w->b.pool);
    *x = tide_acquire(w->b.pool, uint8_t, BYTES);
    assert_non_null(*x);
    return inner;
}

static uint8_t *inner_again(const work *w, tide_mark inner, const uint8_t *x)
{
    expect_ok(tide_rewind(w->b.pool, inner));
    uint8_t *y = tide_acquire(w->b.pool, uint8_t, BYTES);
    assert_ptr_equal(y, x);
    return y;
}

static void capture_launch(const work *w, void *graph)
{
    tide_capture *capture = tide_capture_end(w->b.pool);
    assert_non_null(capture);
    fake_graph_launch(graph, w->b.stream);
    expect_order();
    fake_graph_destroy(graph);
    expect_ok(tide_capture_drop(capture, w->b.stream));
}

/* What a rewind queues inside becomes edges of the graph. */
static void work_from_before_a_shared_capture_is_before_its_launches(void **unused)
{
    (void)unused;
    work w;
    uint8_t *x;
    void *graph = NULL;
    work_begin(&w);
    tide_mark inner = inner_begin(&w, &x);
    put_many(w.other, x);
    expect_ok(tide_capture_begin(w.b.pool));
    fake_capture_begin(w.b.stream);
    fake_order(w.b.stream, w.other);
    put(w.b.stream, inner_again(&w, inner, x), BYTES, 2);
    fake_order(w.other, w.b.stream);
    assert_int_equal(fake_capture_end(w.b.stream, &graph), 0);
    capture_launch(&w, graph);
    work_end(&w);
}

static void a_declared_stream_beside_a_capture_comes_after_what_was_before(void **unused)
{
    (void)unused;
    work w;
    uint8_t *x;
    void *graph = NULL;
    work_begin(&w);
    tide_mark inner = inner_begin(&w, &x);
    put_many(w.b.stream, x);
    expect_ok(tide_capture_begin(w.b.pool));
    fake_capture_begin(w.b.stream);
    put(w.other, inner_again(&w, inner, x), BYTES, 2);
    assert_int_equal(fake_capture_end(w.b.stream, &graph), 0);
    fake_order(w.other, w.b.stream);
    capture_launch(&w, graph);
    work_end(&w);
}

/* One of them joins the capture, the other stays beside it: it comes after what the first did. */
static void two_declared_streams_are_in_order_when_a_capture_begins(void **unused)
{
    (void)unused;
    work w;
    uint8_t *x;
    void *graph = NULL;
    work_begin(&w);
    tide_mark mark = tide_checkpoint(w.b.pool);
    expect_ok(tide_pool_use_on(w.b.pool, w.apart));
    tide_mark inner = inner_begin(&w, &x);
    put_many(w.other, x);
    expect_ok(tide_capture_begin(w.b.pool));
    fake_capture_begin(w.b.stream);
    fake_order(w.b.stream, w.other);
    put(w.apart, inner_again(&w, inner, x), BYTES, 2);
    fake_order(w.other, w.b.stream);
    assert_int_equal(fake_capture_end(w.b.stream, &graph), 0);
    capture_launch(&w, graph);
    expect_ok(tide_rewind(w.b.pool, mark));
    work_end(&w);
}

/* No event may be recorded then. */
static void a_capture_that_begins_late_waits_for_declared_streams(void **unused)
{
    (void)unused;
    work w;
    void *graph = NULL;
    work_begin(&w);
    fake_capture_begin(w.b.stream);
    unsigned waits = fake_calls("cuStreamSynchronize"), events = fake_calls("cuEventRecord");
    expect_ok(tide_capture_begin(w.b.pool));
    assert_int_equal(fake_calls("cuStreamSynchronize"), waits + 1);
    assert_int_equal(fake_calls("cuEventRecord"), events);
    assert_int_equal(fake_capture_end(w.b.stream, &graph), 0);
    capture_launch(&w, graph);
    work_end(&w);
}

/* Then no capture has begun, and the pool says so until a reset. The first event is the declared
 * stream's, the second the pool's. */
static void begin_without_event(unsigned nth)
{
    work w;
    work_begin(&w);
    fake_fail("cuEventRecord", nth, TRANSIENT, false);
    fake_call_back("cuCtxSynchronize", fail_wait);
    expect_status(tide_capture_begin(w.b.pool), TIDE_ERROR_DEVICE);
    expect_said("reset it");
    assert_null(tide_capture_end(w.b.pool));
    expect_status(tide_capture_begin(w.b.pool), TIDE_ERROR_DEVICE);
    expect_ok(tide_pool_reset(w.b.pool));
    w.mark = tide_checkpoint(w.b.pool);
    expect_ok(tide_capture_begin(w.b.pool));
    expect_ok(tide_capture_drop(tide_capture_end(w.b.pool), w.b.stream));
    expect_order();
    work_end(&w);
}

static void a_capture_does_not_begin_out_of_order(void **unused)
{
    (void)unused;
    begin_without_event(1);
    begin_without_event(2);
}

/* What the declared stream did before can be neither ordered nor waited for. */
static void a_rewind_in_a_capture_that_has_failed_leaves_the_pool_unordered(void **unused)
{
    (void)unused;
    work w;
    uint8_t *x;
    void *graph = NULL;
    work_begin(&w);
    tide_mark inner = inner_begin(&w, &x);
    put_many(w.other, x);
    fake_capture_begin(w.b.stream);
    fake_order(w.b.stream, w.other);
    fake_order(w.third, w.b.stream); /* which fails it */
    expect_ok(tide_rewind(w.b.pool, inner));
    assert_null(tide_acquire(w.b.pool, uint8_t, BYTES));
    expect_said("reset it");
    assert_int_not_equal(fake_capture_end(w.b.stream, &graph), 0);
    expect_order();
    work_end(&w);
}

static void set_on_legacy(const work *w, void *data)
{
    expect_ok(w->b.device->methods->fill(w->b.device, NULL, data, &(uint8_t){2}, 1, BYTES));
}

/* What is queued on it is in no capture: it really runs, and no event can be recorded behind it. */
static void the_legacy_stream_beside_a_capture_leaves_its_pool_unordered(void **unused)
{
    (void)unused;
    work w;
    void *graph = NULL;
    work_begin(&w);
    void *blocking = fake_stream_create_blocking(0);
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.device = w.b.device});
    assert_non_null(pool);
    tide_mark outer = tide_checkpoint(pool);
    expect_ok(tide_pool_use_on(pool, w.other));
    tide_mark inner = tide_checkpoint(pool);
    uint8_t *x = tide_acquire(pool, uint8_t, BYTES);
    for (int i = 0; i < MANY; i++)
        set_on_legacy(&w, x);
    fake_capture_begin(blocking);
    expect_ok(tide_rewind(pool, inner));
    assert_null(tide_acquire(pool, uint8_t, BYTES));
    expect_said("reset it");
    assert_int_equal(fake_capture_end(blocking, &graph), 0);
    expect_ok(tide_rewind(pool, outer));
    expect_ok(tide_pool_reset(pool));
    set_on_legacy(&w, tide_acquire(pool, uint8_t, BYTES));
    expect_order();
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
    fake_graph_destroy(graph);
    fake_stream_destroy(blocking);
    work_end(&w);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_capture_of_a_declared_stream_is_found),
        cmocka_unit_test(a_capture_that_ends_meanwhile_leaves_the_pool_in_order),
        cmocka_unit_test(a_fill_in_a_capture_that_has_failed_leaves_the_pool_in_order),
        cmocka_unit_test(a_fill_between_two_captures_is_refused),
        cmocka_unit_test(a_fill_in_a_capture_of_the_pool_alone_is_none_of_a_declared_stream),
        cmocka_unit_test(work_from_before_a_shared_capture_is_before_its_launches),
        cmocka_unit_test(a_declared_stream_beside_a_capture_comes_after_what_was_before),
        cmocka_unit_test(two_declared_streams_are_in_order_when_a_capture_begins),
        cmocka_unit_test(a_capture_that_begins_late_waits_for_declared_streams),
        cmocka_unit_test(a_capture_does_not_begin_out_of_order),
        cmocka_unit_test(a_rewind_in_a_capture_that_has_failed_leaves_the_pool_unordered),
        cmocka_unit_test(the_legacy_stream_beside_a_capture_leaves_its_pool_unordered),
    };
    return cmocka_run_group_tests_name("captures of declared streams", tests, NULL, NULL);
}
