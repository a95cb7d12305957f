/* SPDX-License-Identifier: MIT */
/* Devices that constructors and destructors of modules open and close: the linker's lock is held
 * then, for which a driver that is being loaded, opened or closed, or that builds a kernel, may be
 * waiting. So whoever opens or closes a device waits for nobody else who does.
 *
 * Another thread is stopped at a place: before the linker, which it needs next, or in a driver that
 * is made up. It goes on when the constructor has what it wants, or waits for the linker until the
 * constructor is over. A call that hangs is ended by an alarm, which says in which scene. */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/dlpack.h>
#include <tidepool/facts.h>
#include <tidepool/learn.h>
#include <tidepool/tune.h>

#include "runtime/base/error.h"
#include "runtime/base/ring.h"
#include "runtime/device/cuda/backend.h"
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/device.h"
#include "support.h"
#include "tests/gate.h"
#include "tests/in_linker.h"
#include "tests/watchdog.h"

/* ---- a thread that is stopped -------------------------------------------------------------- */

enum place { BEFORE_DLOPEN, IN_OPEN, IN_CLOSE, IN_STREAM };

/* The thread is at that place when this returns. */
static pthread_t stop_at(enum place at, void *(*run)(void *), void *user)
{
    pthread_t thread;
    gate_close(at);
    assert_int_equal(pthread_create(&thread, NULL, run, user), 0);
    gate_wait_reached();
    return thread;
}

static void *joined(pthread_t thread)
{
    void *result = NULL;
    assert_int_equal(pthread_join(thread, &result), 0);
    return result;
}

static void *open_named(void *name)
{
    return tide_device_open(name);
}

static void *close_device(void *device)
{
    return tide_device_close(device) == TIDE_OK ? device : NULL;
}

static void *share(void *device)
{
    return tide_buffers_shared(device, TIDE_BUFFER_DEVICE);
}

UNOBSERVED void *__wrap_dlopen(const char *path, int flags)
{
    if (gate_is_at(BEFORE_DLOPEN))
        gate_pass(BEFORE_DLOPEN);
    return __real_dlopen(path, flags);
}

/* ---- a driver that is made up -------------------------------------------------------------- */

static unsigned opens, closes; /* atomic */

static void count(unsigned *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_SEQ_CST);
}

static unsigned times(const unsigned *counter)
{
    return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}

static void made_close(tide_device *device)
{
    (void)device;
    gate_pass(IN_CLOSE);
    count(&closes);
}

static uint64_t made_number(tide_device *device, void *stream)
{
    (void)device, (void)stream;
    gate_pass(IN_STREAM);
    return 1;
}

static const tide_device_methods made_methods = {.stream_number = made_number, .close = made_close};

static unsigned opens_max = UINT_MAX; /* as many has the driver memory for; atomic */

static tide_status made_open(tide_device *device, unsigned ordinal)
{
    gate_pass(IN_OPEN);
    if (times(&opens) >= times(&opens_max))
        return tide_fail(TIDE_ERROR_MEMORY, "made_open", "no memory");
    device->methods = &made_methods;
    device->dl = (tide_dl_device){TIDE_DL_OPENCL, (int32_t)ordinal};
    count(&opens);
    return TIDE_OK;
}

static void expect_made(unsigned opened, unsigned closed)
{
    assert_int_equal(times(&opens), opened);
    assert_int_equal(times(&closes), closed);
    opens = closes = 0;
}

static tide_device *open_made(void)
{
    tide_device *device = tide_device_open("made:0");
    if (device == NULL)
        fail_msg("%s", tide_error_message());
    return device;
}

/* ---- in a constructor ---------------------------------------------------------------------- */

static tide_device *opened_here;

static void close_here(void)
{
    expect_ok(tide_device_close(opened_here));
}

/* ---- scenes -------------------------------------------------------------------------------- */

static void open_while_the_other_goes_on_into_the_linker(void)
{
    gate_let_pass();
    opened_here = tide_device_open("cuda:0");
    if (opened_here == NULL)
        fail_msg("%s", tide_error_message());
}

/* What the other thread was doing in the driver is half done in the child. */
static void expect_child_opens_none(void)
{
    pid_t child = fork_child(60);
    if (child == 0) {
        CHILD_MUST(tide_device_open("cuda:0") == NULL);
        CHILD_MUST(strstr(tide_error_message(), "forked") != NULL);
        _exit(0);
    }
    expect_child_ends_well(child);
}

/* The first device of the process: so both load the driver. */
static void a_constructor_opens_while_the_driver_is_being_loaded(void **unused)
{
    (void)unused;
    play("a constructor opens, the other is about to load the driver");
    fake_reset(2, 1);
    tide_cuda_driver_set(FAKE_CUDA);
    pthread_t other = stop_at(BEFORE_DLOPEN, open_named, "cuda:0");
    expect_child_opens_none();
    visit_linker(open_while_the_other_goes_on_into_the_linker, close_here);
    tide_device *device = joined(other);
    assert_non_null(device);
    expect_ok(tide_device_close(device));
    expect_order();
    play(NULL);
}

static bool fork_waits, open_goes_on; /* the second is atomic */

/* As tide_cuda_open. */
static tide_status late_open(tide_device *device, unsigned ordinal)
{
    gate_pass(IN_OPEN);
    gate_close(BEFORE_DLOPEN);
    __atomic_store_n(&open_goes_on, true, __ATOMIC_RELEASE);
    return tide_cuda_open(device, ordinal);
}

/* In a fork, after what the library does before it: the other thread begins to load the driver. */
static void wait_in_fork(void)
{
    if (!fork_waits)
        return;
    fork_waits = false;
    gate_let_pass();
    while (!__atomic_load_n(&open_goes_on, __ATOMIC_ACQUIRE))
        usleep(200);
    gate_wait_reached();
}

/* Before the library registers its own, so it runs after them. */
__attribute__((constructor(101))) static void watch_forks(void)
{
    (void)pthread_atfork(wait_in_fork, NULL, NULL);
}

static void load_in_a_fork(void)
{
    fake_reset(2, 1);
    tide_cuda_driver_set(FAKE_CUDA);
    tide_device_add_backend((tide_backend){"late:", late_open});
    pthread_t other = stop_at(IN_OPEN, open_named, "late:0");
    fork_waits = true;
    expect_child_opens_none();
    gate_let_pass();
    tide_device *device = joined(other);
    CHILD_MUST(device != NULL && tide_device_close(device) == TIDE_OK);
    _exit(0);
}

/* In a process of its own, for a driver is loaded once. */
static void a_driver_is_loaded_while_a_fork_begins(void **unused)
{
    (void)unused;
    play("a fork has begun, the other loads the driver");
    pid_t child = fork_child(120);
    if (child == 0)
        load_in_a_fork();
    expect_child_ends_well(child);
    play(NULL);
}

static pthread_t opening;
static tide_device *opened_there;

static void open_before_the_other_has(void)
{
    opened_here = open_made();
    gate_let_pass();
    opened_there = joined(opening);
}

static void a_constructor_opens_while_the_same_is_being_opened(void **unused)
{
    (void)unused;
    play("a constructor opens, the other is in the driver to open the same");
    opening = stop_at(IN_OPEN, open_named, "made:0");
    visit_linker(open_before_the_other_has, close_here);
    assert_ptr_equal(opened_there, opened_here);
    expect_made(2, 1); /* the later one's own was dropped */
    tide_device_information info = info_of(opened_there);
    assert_string_equal(info.name, "made:0");
    expect_ok(tide_device_close(opened_there));
    expect_made(0, 1);
    play(NULL);
}

static void an_open_fails_while_another_thread_is_first(void **unused)
{
    (void)unused;
    play("an open fails, the other has opened the same");
    opens_max = 1;
    opening = stop_at(IN_OPEN, open_named, "made:0");
    opened_here = open_made();
    gate_let_pass();
    assert_ptr_equal(joined(opening), opened_here);
    close_here();
    close_here();
    expect_made(1, 1);
    opens_max = 0;
    assert_null(tide_device_open("made:0"));
    assert_int_equal(tide_error_status(), TIDE_ERROR_MEMORY);
    opens_max = UINT_MAX;
    expect_ok(tide_device_close(open_made()));
    expect_made(1, 1);
    play(NULL);
}

static void open_here(void)
{
    opened_here = open_made();
}

static void a_constructor_opens_while_the_same_is_being_closed(void **unused)
{
    (void)unused;
    play("a constructor opens, the other is in the driver to close the same");
    tide_device *device = open_made();
    pthread_t other = stop_at(IN_CLOSE, close_device, device);
    tide_device_information info;
    expect_status(tide_device_info(device, &info), TIDE_ERROR_DEVICE);
    visit_linker(open_here, close_here);
    assert_ptr_not_equal(opened_here, device);
    gate_let_pass();
    assert_ptr_equal(joined(other), device);
    expect_made(2, 2);
    play(NULL);
}

static void a_destructor_closes_while_another_is_being_opened(void **unused)
{
    (void)unused;
    play("a destructor closes, the other is in the driver to open another");
    pthread_t other = stop_at(IN_OPEN, open_named, "made:1");
    visit_linker(open_here, close_here);
    expect_made(1, 1);
    gate_let_pass();
    expect_ok(tide_device_close(joined(other)));
    expect_made(1, 1);
    play(NULL);
}

/* ---- buffers ------------------------------------------------------------------------------- */

static tide_buffers *shared_here;

static void share_here(void)
{
    shared_here = share(opened_here);
    assert_non_null(shared_here);
}

static void end_share_here(void)
{
    expect_ok(tide_buffers_destroy(shared_here));
}

static bool count_made(const tide_buffers_information *buffers, void *user)
{
    *(unsigned *)user += strcmp(buffers->device, "made:0") == 0;
    return true;
}

static unsigned instances(void)
{
    unsigned found = 0;
    expect_ok(tide_buffers_each(count_made, &found));
    return found;
}

static void a_constructor_shares_buffers_that_are_being_made(void **unused)
{
    (void)unused;
    play("a constructor shares buffers, the other asks the driver for a stream");
    opened_here = open_made();
    pthread_t other = stop_at(IN_STREAM, share, opened_here);
    visit_linker(share_here, NULL);
    gate_let_pass();
    assert_ptr_equal(joined(other), shared_here);
    assert_int_equal(instances(), 1);
    visit_linker(end_share_here, end_share_here);
    assert_int_equal(instances(), 0);
    close_here();
    expect_made(1, 1);
    play(NULL);
}

/* ---- fork ---------------------------------------------------------------------------------- */

static void open_in_child(enum place other_is)
{
    pid_t child = fork_child(120);
    if (child == 0) {
        tide_device *device = tide_device_open("made:0");
        CHILD_MUST(device != NULL && times(&opens) == (other_is == IN_CLOSE ? 2 : 1));
        CHILD_MUST(tide_device_close(device) == TIDE_OK && times(&closes) == 1);
        exit(0);
    }
    expect_child_ends_well(child);
}

static void a_child_opens_what_the_parent_is_opening_or_closing(void **unused)
{
    (void)unused;
    play("a child opens");
    pthread_t other = stop_at(IN_OPEN, open_named, "made:0");
    open_in_child(IN_OPEN);
    gate_let_pass();
    other = stop_at(IN_CLOSE, close_device, joined(other));
    open_in_child(IN_CLOSE);
    gate_let_pass();
    assert_non_null(joined(other));
    expect_made(1, 1);
    play(NULL);
}

static void who_is_in_the_driver_forks(void **unused)
{
    (void)unused;
    play("a thread forks in the driver");
    assert_true(tide_cuda_begin());
    pid_t child = fork_child(120);
    tide_cuda_end();
    if (child == 0) {
        CHILD_MUST(!tide_cuda_begin());
        exit(0);
    }
    expect_child_ends_well(child);
    play(NULL);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_driver_is_loaded_while_a_fork_begins),
        cmocka_unit_test(a_constructor_opens_while_the_driver_is_being_loaded),
        cmocka_unit_test(a_constructor_opens_while_the_same_is_being_opened),
        cmocka_unit_test(an_open_fails_while_another_thread_is_first),
        cmocka_unit_test(a_constructor_opens_while_the_same_is_being_closed),
        cmocka_unit_test(a_destructor_closes_while_another_is_being_opened),
        cmocka_unit_test(a_constructor_shares_buffers_that_are_being_made),
        cmocka_unit_test(a_child_opens_what_the_parent_is_opening_or_closing),
        cmocka_unit_test(who_is_in_the_driver_forks),
    };
    if (count < 2)
        return 2;
    in_linker_module = arguments[1];
    tide_attach();
    tide_device_add_backend((tide_backend){"made:", made_open});
    return cmocka_run_group_tests(tests, NULL, NULL);
}
