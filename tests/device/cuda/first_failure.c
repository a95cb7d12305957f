/* SPDX-License-Identifier: MIT */
/* A call that fails says why it failed, and not what else failed on the way out. */
#include <tidepool/device_bump.h>

#include "declared.h"

static const char *failing;

static void fail_events(void)
{
    fake_fail("cuEventRecord", 1, TRANSIENT, true);
}

/* What is queued fails, and then what would end it in order: one event and all waits for it, or all
 * events. */
static void fail_work(void)
{
    fake_fail(failing, 1, TRANSIENT, false);
    fake_call_back("cuEventRecord", fail_event_and_waits);
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
    for (size_t i = 0; i < method_count; i++)
        if (methods[i].queues != NULL) {
            say_first_failure(&methods[i], fail_work);
            say_first_failure(&methods[i], fail_work_and_events);
        }
}

/* A bump scope is left all the same, and says why its figures could not be read. */
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
        cmocka_unit_test(a_call_says_what_failed_first),
        cmocka_unit_test(a_bump_scope_is_left_all_the_same),
        cmocka_unit_test(a_copy_between_pools_says_what_failed_first),
    };
    return cmocka_run_group_tests_name("first failure", tests, NULL, NULL);
}
