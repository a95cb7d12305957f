/* SPDX-License-Identifier: MIT */
/* What a call of a pool queues stands before the work of its declared streams: where that cannot be
 * had, the call says so. */
#include <tidepool/device.h>

#include "declared.h"

#include "runtime/pool/streams.h"

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
    for (size_t i = 0; i < method_count; i++) {
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

/* What was queued before it failed is in order all the same: frames' kernels, a copy for which the
 * host was to wait. */
static void fail_then_use(tide_status (*call)(work *w), const char *says)
{
    work w;
    work_begin(&w);
    expect_status(call(&w), TIDE_ERROR_DEVICE);
    expect_said(says);
    expect_depth(&w, TIDE_ERROR_DEVICE);
    if (before_help_fails == NULL)
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

static tide_status failing_download(work *w)
{
    fake_fail("cuEventSynchronize", 1, TRANSIENT, false);
    return do_download(w);
}

/* The event that would end in order what was queued. */
static void fail_next_event(void)
{
    fake_call_back("cuEventRecord", fail_event_and_waits);
}

static void a_call_that_fails_is_in_order(void **unused)
{
    (void)unused;
    for (int i = 0; i < 2; i++) {
        before_help_fails = i != 0 ? fail_next_event : NULL; /* which is not what is told */
        fail_then_use(failing_fill, "second kernel");
    }
    before_help_fails = NULL;
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
    fail_event_and_wait();
    expect_status(do_upload(&w), TIDE_ERROR_DEVICE);
    assert_null(tide_acquire(w.b.pool, uint8_t, BYTES));
    expect_said("reset it");
    work_end(&w);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_succeeds_leaves_the_pool_in_order),
        cmocka_unit_test(a_call_that_fails_is_in_order),
        cmocka_unit_test(a_pool_that_could_not_gather_refuses_acquires),
    };
    return cmocka_run_group_tests_name("in order", tests, NULL, NULL);
}
