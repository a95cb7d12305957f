/* SPDX-License-Identifier: MIT */
/* A graph is captured on a stream that a pool has declared, or on the pool's own: what is captured is
 * no work that anything can be ordered after. */
#include "declared.h"

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

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_capture_of_a_declared_stream_is_found),
        cmocka_unit_test(a_capture_that_ends_meanwhile_leaves_the_pool_in_order),
        cmocka_unit_test(a_fill_in_a_capture_that_has_failed_leaves_the_pool_in_order),
        cmocka_unit_test(a_fill_between_two_captures_is_refused),
        cmocka_unit_test(a_fill_in_a_capture_of_the_pool_alone_is_none_of_a_declared_stream),
    };
    return cmocka_run_group_tests_name("captures of declared streams", tests, NULL, NULL);
}
