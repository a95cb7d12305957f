/* SPDX-License-Identifier: MIT */
/* What a call of a pool queues stands before the work of its declared streams: where that cannot be
 * had, the call says so. And what it says is why it failed, not what else failed on the way out. */
#include "later.h"

#include <tidepool/device_bump.h>

#include "runtime/base/error.h"
#include "runtime/base/hooks.h"
#include "runtime/pool/streams.h"

typedef struct work {
    bench b;
    tide_pool *source; /* a second pool, on a stream of its own */
    void *apart, *other, *third;
    uint8_t *x, *y, *z; /* z is the source's */
    uint8_t bytes[2 * BYTES];
    tide_part parts[2];
    tide_mark mark, of_source;
    tide_bump_scope bump;
} work;

static tide_pool *pool_on(const bench *b, void *stream)
{
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.device = b->device, .stream = stream});
    assert_non_null(pool);
    return pool;
}

/* A call that fails leaves no level open. */
static void expect_depth(const work *w, tide_status status)
{
    tide_pool_statistics stats;
    expect_ok(tide_pool_stats(w->b.pool, &stats));
    assert_int_equal(stats.depth, 1 + (status == TIDE_OK && w->bump.bump != NULL));
}

static void use_declared(const work *w)
{
    put(w->other, w->x, BYTES, 1);
    put(w->other, w->y, BYTES, 1);
    put(w->third, w->z, BYTES, 2);
}

/* Both pools have arrays that a declared stream is at work on. */
static void work_begin(work *w)
{
    *w = (work){.b = bench_start(71)};
    w->apart = fake_stream_create(0);
    w->other = fake_stream_create(0);
    w->third = fake_stream_create(0);
    w->source = pool_on(&w->b, w->apart);
    w->mark = tide_checkpoint(w->b.pool);
    w->of_source = tide_checkpoint(w->source);
    w->x = tide_acquire(w->b.pool, uint8_t, BYTES);
    w->y = tide_acquire(w->b.pool, uint8_t, BYTES);
    w->z = tide_acquire(w->source, uint8_t, BYTES);
    w->parts[0] = (tide_part){w->x, w->bytes, TIDE_U8, BYTES};
    w->parts[1] = (tide_part){w->y, w->bytes + BYTES, TIDE_U8, BYTES};
    expect_ok(tide_pool_use_on(w->b.pool, w->other));
    expect_ok(tide_pool_use_on(w->source, w->third));
    put(w->other, w->x, BYTES, 1);
    put(w->third, w->z, BYTES, 2);
}

static void work_end(work *w)
{
    fake_call_back("cuEventRecord", NULL);
    fake_fail("cuEventRecord", 0, 0, false);
    fake_fail("cuCtxSynchronize", 0, 0, false);
    expect_ok(tide_rewind(w->b.pool, w->mark));
    expect_ok(tide_rewind(w->source, w->of_source));
    expect_ok(tide_pool_reset(w->b.pool));
    expect_ok(tide_pool_reset(w->source));
    expect_ok(tide_pool_destroy(w->source));
    expect_ok(tide_device_memory_trim(w->b.device, 0));
    fake_stream_destroy(w->apart);
    fake_stream_destroy(w->other);
    fake_stream_destroy(w->third);
    bench_end(&w->b);
}

/* ---- the calls ------------------------------------------------------------------------------ */

static unsigned deleted;

/* With a call of its own that fails. */
static void delete (void *data, void *context)
{
    (void)data;
    (void)context;
    deleted++;
    expect_status(tide_pool_wait(NULL), TIDE_ERROR_ARGUMENT);
}

static void delete_managed(tide_dl_managed *managed)
{
    delete (managed, NULL);
}

/* The foreign memory is given back exactly once: at once if the call fails. */
static tide_status told(const void *array)
{
    assert_int_equal(deleted, array == NULL);
    return array != NULL ? TIDE_OK : tide_error_status();
}

static tide_status do_wrap(work *w)
{
    static const int64_t length = BYTES;
    deleted = 0;
    put(w->b.stream, w->y, BYTES, 4); /* who made it */
    return told(tide_array_wrap(
        w->b.pool,
        &(tide_array_source){
            .data = w->y, .type = TIDE_U8, .ndim = 1, .shape = &length, .deleter = delete}));
}

static tide_status do_import(work *w)
{
    static tide_dl_managed managed;
    static int64_t length = BYTES;
    deleted = 0;
    put(w->b.stream, w->y, BYTES, 4);
    managed = (tide_dl_managed){.version.major = TIDE_DL_MAJOR,
                                .deleter = delete_managed,
                                .tensor = {.data = w->y,
                                           .device = w->b.device->dl,
                                           .ndim = 1,
                                           .dtype = {TIDE_DL_UINT, 8, 1},
                                           .shape = &length}};
    return told(tide_array_import(w->b.pool, &managed));
}

static tide_status do_upload(work *w)
{
    return tide_upload(w->b.pool, w->x, w->bytes, BYTES);
}

static tide_status do_download(work *w)
{
    return tide_download(w->b.pool, w->bytes, w->x, BYTES);
}

static tide_status do_copy(work *w)
{
    return tide_copy(w->b.pool, w->y, w->x, BYTES);
}

static tide_status do_copy_from(work *w)
{
    return tide_copy_from(w->b.pool, w->y, w->source, w->z, BYTES);
}

static tide_status do_upload_frame(work *w)
{
    return tide_upload_frame(w->b.pool, w->parts, 2);
}

static tide_status do_download_frame(work *w)
{
    return tide_download_frame(w->b.pool, w->parts, 2);
}

static tide_status do_fill_frame(work *w)
{
    const uint8_t value = 7;
    const tide_part parts[] = {{w->x, (void *)(uintptr_t)&value, TIDE_U8, BYTES},
                               {w->y, (void *)(uintptr_t)&value, TIDE_U8, BYTES}};
    return tide_fill_frame(w->b.pool, parts, 2);
}

/* A kernel of ours does the frame's work, or does not. */
static bool help_fails, events_fail;

static void fail_event(void);

static tide_frame_result help(const tide_frame_work *frame)
{
    for (size_t i = 0; i < frame->count && frame->kind == TIDE_FRAME_FILL_PARTS; i++)
        put(frame->stream, frame->parts[i].data, BYTES, 7);
    if (frame->kind == TIDE_FRAME_HASH) {
        for (size_t i = 0; i < frame->count; i++)
            expect(frame->stream, frame->parts[i].data, BYTES, 5);
        put(frame->stream, frame->block, frame->count * sizeof(uint64_t), 8);
    }
    if (help_fails && events_fail)
        fake_call_back("cuEventRecord", fail_event);
    if (help_fails)
        tide_fail(TIDE_ERROR_DEVICE, "help", "the second kernel was refused");
    return help_fails ? TIDE_FRAME_FAILED : TIDE_FRAME_QUEUED;
}

static tide_status helped(work *w, tide_status (*call)(work *))
{
    tide_frame_result (*before)(const tide_frame_work *) = tide_hooks_policy.help;
    tide_hooks_policy.help = help;
    tide_status status = call(w);
    tide_hooks_policy.help = before;
    return status;
}

static tide_status hash_frame(work *w)
{
    uint64_t hashes[2];
    return tide_hash_frame(w->b.pool, w->parts, 2, hashes);
}

static tide_status do_helped_fill(work *w)
{
    return helped(w, do_fill_frame);
}

static tide_status do_helped_hash(work *w)
{
    put(w->other, w->x, BYTES, 5);
    put(w->other, w->y, BYTES, 5);
    return helped(w, hash_frame);
}

/* The array is what declared streams use from now on. */
static tide_status made(work *w, void *array)
{
    if (array == NULL)
        return tide_error_status();
    w->x = array;
    return TIDE_OK;
}

static tide_status do_fill(work *w)
{
    return made(w, tide_fill(w->b.pool, uint8_t, BYTES, 7));
}

/* An array that could not grow is where it was, and may be used there. */
static tide_status do_grow(work *w)
{
    tide_status status = made(w, tide_grow(w->b.pool, uint8_t, w->x, 100 * BYTES));
    if (status != TIDE_OK) {
        fake_synchronise_all();
        put(w->other, w->x, BYTES, 3);
    }
    return status;
}

static tide_status do_acquire(work *w)
{
    return made(w, tide_acquire(w->b.pool, uint16_t, BYTES));
}

/* Its level ends with the one around. */
static tide_status do_bump(work *w)
{
    tide_status status = tide_bump_enter(w->b.pool, BYTES, &w->bump);
    return status == TIDE_OK ? made(w, w->bump.bump) : status;
}

typedef struct method {
    const char *name;
    tide_status (*call)(work *w);
    unsigned follows;   /* its event from the end is what declared streams wait for; 0: none is */
    const char *queues; /* its work, by this entry point; NULL: none */
    const char *says;   /* what it says when that fails     */
} method;

static const method methods[] = {
    {"tide_array_wrap", do_wrap, 1, NULL, NULL},
    {"tide_array_import", do_import, 1, NULL, NULL},
    {"tide_upload", do_upload, 1, "cuMemcpyAsync", "cuMemcpyAsync"},
    {"tide_download", do_download, 0, "cuMemcpyAsync", "cuMemcpyAsync"},
    {"tide_copy", do_copy, 1, "cuMemcpyAsync", "cuMemcpyAsync"},
    {"tide_copy_from", do_copy_from, 1, "cuMemcpyAsync", "cuMemcpyAsync"},
    {"tide_upload_frame", do_upload_frame, 1, "cuMemcpyAsync", "cuMemcpyAsync"},
    {"tide_download_frame", do_download_frame, 1, "cuMemcpyAsync", "cuMemcpyAsync"},
    {"tide_fill_frame by kernel", do_helped_fill, 1, NULL, NULL},
    {"tide_hash_frame by kernel", do_helped_hash, 1, "cuMemcpyAsync", "cuMemcpyAsync"},
    {"tide_fill_frame", do_fill_frame, 1, "cuMemsetD8Async", "cuMemsetAsync"},
    {"tide_fill", do_fill, 1, "cuMemsetD8Async", "cuMemsetAsync"},
    {"tide_grow", do_grow, 2, "cuMemcpyAsync", "cuMemcpyAsync"},
    {"tide_acquire", do_acquire, 1, NULL, NULL},
    {"tide_bump_enter", do_bump, 1, "cuMemcpyAsync", "cuMemcpyAsync"},
};
enum { METHODS = sizeof methods / sizeof *methods };

/* ---- order ---------------------------------------------------------------------------------- */

static void fail_wait(void)
{
    fake_fail("cuCtxSynchronize", 1, TRANSIENT, false);
}

/* The call's nth event fails, and so does the wait for the device that takes its place; 0: none
 * fails. `events`: how many there were. */
static tide_status call_without_event(const method *of, unsigned nth, unsigned *events)
{
    work w;
    work_begin(&w);
    unsigned before = fake_calls("cuEventRecord");
    if (nth != 0) {
        fake_fail("cuEventRecord", nth, TRANSIENT, false);
        fake_call_back("cuCtxSynchronize", fail_wait);
    }
    tide_status status = of->call(&w);
    *events = fake_calls("cuEventRecord") - before;
    if (status == TIDE_OK && (tide_streams_ordered(w.b.pool, "the pool") != TIDE_OK ||
                              tide_streams_ordered(w.source, "the source") != TIDE_OK))
        fail_msg("%s succeeds without its event %u: %s", of->name, nth, tide_error_message());
    if (status == TIDE_OK)
        use_declared(&w);
    expect_depth(&w, status);
    expect_order();
    work_end(&w);
    return status;
}

static void a_call_that_succeeds_leaves_the_pool_in_order(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < METHODS; i++) {
        const method *of = &methods[i];
        unsigned events, had;
        expect_ok(call_without_event(of, 0, &events));
        assert_true(events >= 1 && events >= of->follows);
        for (unsigned nth = 1; nth <= events; nth++) {
            tide_status status = call_without_event(of, nth, &had);
            if (nth + of->follows == events + 1 && status != TIDE_ERROR_DEVICE)
                fail_msg("%s says %d without its event %u of %u", of->name, status, nth, events);
        }
    }
}

/* ---- what is said --------------------------------------------------------------------------- */

static const char *failing;

static void fail_waits(void)
{
    fake_fail("cuCtxSynchronize", 1, TRANSIENT, true);
}

static void fail_event(void)
{
    fake_fail("cuEventRecord", 1, TRANSIENT, false);
    fake_call_back("cuCtxSynchronize", fail_waits);
}

static void fail_event_once(void)
{
    fake_fail("cuEventRecord", 1, TRANSIENT, false);
    fake_call_back("cuCtxSynchronize", fail_wait);
}

static void fail_events(void)
{
    fake_fail("cuEventRecord", 1, TRANSIENT, true);
}

/* What is queued fails, and then what would end it in order: one event and all waits for it, or all
 * events. */
static void fail_work(void)
{
    fake_fail(failing, 1, TRANSIENT, false);
    fake_call_back("cuEventRecord", fail_event);
}

static void fail_work_and_events(void)
{
    fake_fail(failing, 1, TRANSIENT, false);
    fake_call_back("cuEventRecord", fail_events);
}

static void say_first_failure(const method *of, void (*fail)(void))
{
    work w;
    work_begin(&w);
    failing = of->queues;
    fake_call_back(failing, fail);
    tide_status status = of->call(&w);
    if (status == TIDE_OK || strstr(tide_error_message(), of->says) == NULL)
        fail_msg("%s: %d, %s", of->name, status, tide_error_message());
    expect_depth(&w, status);
    work_end(&w);
}

static void a_call_says_what_failed_first(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < METHODS; i++)
        if (methods[i].queues != NULL) {
            say_first_failure(&methods[i], fail_work);
            say_first_failure(&methods[i], fail_work_and_events);
        }
}

/* What was queued before it failed is in order all the same: frames' kernels, a copy for which the
 * host was to wait. */
static void fail_then_use(tide_status (*call)(work *w), const char *says)
{
    work w;
    work_begin(&w);
    expect_status(call(&w), TIDE_ERROR_DEVICE);
    expect_said(says);
    expect_depth(&w, TIDE_ERROR_DEVICE);
    if (!events_fail)
        use_declared(&w);
    expect_order();
    work_end(&w);
}

static tide_status failing_fill(work *w)
{
    help_fails = true;
    tide_status status = do_helped_fill(w);
    help_fails = false;
    return status;
}

static tide_status failing_hash(work *w)
{
    help_fails = true;
    tide_status status = do_helped_hash(w);
    help_fails = false;
    return status;
}

static tide_status failing_download(work *w)
{
    fake_fail("cuEventSynchronize", 1, TRANSIENT, false);
    return do_download(w);
}

static void a_call_that_fails_is_in_order(void **unused)
{
    (void)unused;
    for (int i = 0; i < 2; i++) {
        events_fail = i != 0; /* after that, which is not what is told */
        fail_then_use(failing_fill, "second kernel");
        fail_then_use(failing_hash, "second kernel");
    }
    events_fail = false;
    fail_then_use(failing_download, "cuEventSynchronize");
}

/* Also one for which a slot has memory. */
static void a_pool_that_could_not_gather_refuses_acquires(void **unused)
{
    (void)unused;
    work w;
    work_begin(&w);
    expect_ok(tide_rewind(w.b.pool, w.mark)); /* two slots are warm */
    w.mark = tide_checkpoint(w.b.pool);
    w.x = tide_acquire(w.b.pool, uint8_t, BYTES);
    expect_ok(tide_pool_use_on(w.b.pool, w.other));
    fail_event_once();
    expect_status(do_upload(&w), TIDE_ERROR_DEVICE);
    assert_null(tide_acquire(w.b.pool, uint8_t, BYTES));
    expect_said("reset it");
    work_end(&w);
}

/* And says why its figures could not be read. */
static void a_bump_scope_is_left_all_the_same(void **unused)
{
    (void)unused;
    work w;
    work_begin(&w);
    expect_ok(do_bump(&w));
    failing = "cuMemcpyAsync";
    fake_call_back(failing, fail_work_and_events);
    expect_status(tide_bump_leave(&w.bump), TIDE_ERROR_DEVICE);
    expect_said(failing);
    expect_depth(&w, TIDE_ERROR_DEVICE);
    work_end(&w);
}

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

static void fail_stream_wait(void)
{
    fake_fail("cuStreamSynchronize", 1, TRANSIENT, false);
}

/* The event after which the source's stream would come fails, and the first wait for the copy. */
static void a_copy_between_pools_says_what_failed_first(void **unused)
{
    (void)unused;
    work w;
    work_begin(&w);
    fake_fail("cuEventRecord", 4, TRANSIENT, false);
    fake_call_back("cuStreamSynchronize", fail_stream_wait);
    expect_status(do_copy_from(&w), TIDE_ERROR_DEVICE);
    expect_said("cuEventRecord");
    assert_int_equal(fake_failures(), 1); /* of the wait */
    work_end(&w);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_succeeds_leaves_the_pool_in_order),
        cmocka_unit_test(a_call_says_what_failed_first),
        cmocka_unit_test(a_call_that_fails_is_in_order),
        cmocka_unit_test(a_pool_that_could_not_gather_refuses_acquires),
        cmocka_unit_test(a_bump_scope_is_left_all_the_same),
        cmocka_unit_test(a_capture_of_a_declared_stream_is_found),
        cmocka_unit_test(a_capture_that_ends_meanwhile_leaves_the_pool_in_order),
        cmocka_unit_test(a_fill_in_a_capture_that_has_failed_leaves_the_pool_in_order),
        cmocka_unit_test(a_fill_between_two_captures_is_refused),
        cmocka_unit_test(a_fill_in_a_capture_of_the_pool_alone_is_none_of_a_declared_stream),
        cmocka_unit_test(a_copy_between_pools_says_what_failed_first),
    };
    return cmocka_run_group_tests_name("in order", tests, NULL, NULL);
}
