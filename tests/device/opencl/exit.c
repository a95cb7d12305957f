/* SPDX-License-Identifier: MIT */
/* The process ends while threads are in an OpenCL driver: exit waits for them, two seconds at most,
 * and leaves what one that stays there may come back to. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tidepool/device.h>

#include <cmocka.h>

#include "ending.h"
#include "runtime/base/hooks.h"

static void *module, *kernel;

/* ---- a thread in the driver ------------------------------------------------------------------*/

static void *drop_mark(void *unused)
{
    devices[0]->methods->mark_drop(devices[0], mark);
    return unused;
}

static void *ask_for_mark(void *unused)
{
    (void)devices[0]->methods->mark_done(devices[0], mark);
    return unused;
}

static void *drop_module(void *unused)
{
    void *gone = module;
    module = NULL;
    devices[0]->methods->unload(devices[0], gone);
    return unused;
}

static void *allocate(void *unused)
{
    make_array();
    return unused;
}

static void *fill(void *unused)
{
    const tide_device_methods *methods = devices[0]->methods;
    CHILD_MUST(methods->fill(devices[0], NULL, array, "pattern", 1, BYTES) == TIDE_OK);
    return unused;
}

static void *copy(void *unused)
{
    char from[10] = "";
    CHILD_MUST(devices[0]->methods->copy(devices[0], NULL, array, from, sizeof from) == TIDE_OK);
    return unused;
}

static void *number_stream(void *unused)
{
    const tide_device *device = devices[0];
    CHILD_MUST(device->methods->stream_number(devices[0], device->stream) != 0);
    return unused;
}

/* The mark of the one stream, and then the other's barrier. */
static void *order_streams(void *unused)
{
    static char other;
    CHILD_MUST(devices[0]->methods->order(devices[0], &other, NULL) == TIDE_OK);
    return unused;
}

static void *make_mark(void *unused)
{
    mark = devices[0]->methods->mark(devices[0], NULL);
    CHILD_MUST(mark != NULL);
    return unused;
}

static void *wait_for_mark(void *unused)
{
    CHILD_MUST(devices[0]->methods->mark_wait(devices[0], mark) == TIDE_OK);
    return unused;
}

static void *follow_mark(void *unused)
{
    CHILD_MUST(devices[0]->methods->mark_follow(devices[0], mark, NULL) == TIDE_OK);
    return unused;
}

static void *wait_for_stream(void *unused)
{
    CHILD_MUST(devices[0]->methods->wait(devices[0], NULL) == TIDE_OK);
    return unused;
}

static void *wait_for_all(void *unused)
{
    const tide_status status = devices[0]->methods->wait_all(devices[0]);
    CHILD_MUST(status == TIDE_OK || late_is_refused(status)); /* exit came between two streams */
    return unused;
}

static void *build_module(void *unused)
{
    module = devices[0]->methods->load(devices[0], "text", 4, "");
    CHILD_MUST(module != NULL);
    return unused;
}

static void *make_kernel(void *unused)
{
    kernel = devices[0]->methods->kernel(devices[0], module, "kernel");
    CHILD_MUST(kernel != NULL);
    return unused;
}

static void *launch(void *unused)
{
    CHILD_MUST(devices[0]->methods->launch(devices[0], NULL, kernel, 1, 1, NULL, 0) == TIDE_OK);
    return unused;
}

/* Nobody goes into the driver any more who wants an answer: of streams, */
static void be_refused_on_streams(tide_device *device)
{
    const tide_device_methods *methods = device->methods;
    static char other;
    CHILD_MUST(late_is_refused(methods->wait(device, NULL)));
    CHILD_MUST(late_is_refused(methods->order(device, NULL, &other)));
    CHILD_MUST(methods->stream_number(device, NULL) == 0 && late_is_refused(tide_error_status()));
    CHILD_MUST(methods->mark(device, NULL) == NULL && late_is_refused(tide_error_status()));
    CHILD_MUST(late_is_refused(methods->mark_wait(device, &other)));
    CHILD_MUST(late_is_refused(methods->mark_follow(device, &other, NULL)));
    CHILD_MUST(!methods->mark_done(device, &other));
    CHILD_MUST(late_is_refused(methods->wait_all(device)) && !tide_device_lost(device));
}

/* of memory and kernels, and of another device. */
static void be_refused(tide_device *device)
{
    const tide_device_methods *methods = device->methods;
    char from[10] = "";
    void *data = NULL;
    be_refused_on_streams(device);
    CHILD_MUST(
        late_is_refused(methods->allocate(device, NULL, TIDE_MEMORY_DEVICE, BYTES, 64, &data)));
    CHILD_MUST(late_is_refused(methods->fill(device, NULL, from, "pattern", 1, sizeof from)));
    CHILD_MUST(late_is_refused(methods->copy(device, NULL, from, from, sizeof from)));
    CHILD_MUST(methods->load(device, "text", 4, "") == NULL);
    CHILD_MUST(late_is_refused(tide_error_status()));
    if (module != NULL)
        CHILD_MUST(methods->kernel(device, module, "kernel") == NULL &&
                   late_is_refused(tide_error_status()));
    if (kernel != NULL)
        CHILD_MUST(late_is_refused(methods->launch(device, NULL, kernel, 1, 1, NULL, 0)));
    CHILD_MUST(tide_device_open("opencl:1") == NULL && late_is_refused(tide_error_status()));
}

static void *(*its_work)(void *);

static void *work_and_be_refused(void *unused)
{
    (void)its_work(unused);
    if (devices[0] != NULL)
        be_refused(devices[0]);
    return unused;
}

/* Exits while the thread is in the driver, which comes out once it is waited for. */
static void exit_beside(void *(*work)(void *))
{
    its_work = work;
    start_inside(work_and_be_refused);
    anybody_comes_out = true;
    wanted_sleeps = 1;
}

static void exit_beside_release(void)
{
    open_device(0);
    make_array();
    exit_beside(give_back_array);
}

/* ---- exit begins in the middle of a call -----------------------------------------------------*/

static char other; /* a stream without a number */

static bool other_has_number(void)
{
    const tide_opencl_device *own = tide_opencl_of(devices[0]);
    for (size_t i = 0; i < own->stream_count; i++)
        if (own->streams[i].queue == (tide_cl_queue)&other)
            return true;
    return false;
}

/* In place of a mark that is refused the stream would be waited for. */
static void *give_back_part(void *unused)
{
    void *gone = array;
    array = NULL;
    devices[0]->methods->release(devices[0], &other, TIDE_MEMORY_DEVICE, gone, BYTES);
    CHILD_MUST(__atomic_load_n(&made_up_waits, __ATOMIC_RELAXED) == 0 && other_has_number());
    return unused;
}

static void *take_part(void *unused)
{
    CHILD_MUST(devices[0]->methods->allocate(devices[0], &other, TIDE_MEMORY_DEVICE, BYTES, 64,
                                             &array) == TIDE_OK);
    CHILD_MUST(other_has_number());
    return unused;
}

static void *order_other(void *unused)
{
    CHILD_MUST(devices[0]->methods->order(devices[0], &other, NULL) == TIDE_OK);
    return unused;
}

/* Whoever was told that the driver may be called goes on to the end of his call. */
static void exit_after_question(void *(*work)(void *), bool with_array)
{
    made_up_buffers = true;
    open_device(0);
    if (with_array)
        make_array();
    its_work = work;
    made_up_stop_after_question();
    CHILD_MUST(pthread_create(&comes_out, NULL, work_and_be_refused, NULL) == 0);
    made_up_wait_stopped();
    anybody_comes_out = true;
    wanted_sleeps = 1;
}

static void exit_in_release(void)
{
    exit_after_question(give_back_part, true);
}

static void exit_in_allocation(void)
{
    exit_after_question(take_part, false);
}

static void exit_in_order(void)
{
    exit_after_question(order_other, false);
}

static void a_call_that_has_begun_is_not_refused_in_the_middle(void **unused)
{
    (void)unused;
    expect_end(exit_in_release);
    expect_end(exit_in_allocation);
    expect_end(exit_in_order);
}

/* ---- exit waits ------------------------------------------------------------------------------*/

static void exit_beside_mark(void *(*work)(void *))
{
    open_device(0);
    mark = devices[0]->methods->mark(devices[0], NULL);
    CHILD_MUST(mark != NULL);
    exit_beside(work);
}

static void exit_beside_drop(void)
{
    exit_beside_mark(drop_mark);
}

static void exit_beside_question(void)
{
    exit_beside_mark(ask_for_mark);
}

static void exit_beside_module(void)
{
    open_device(0);
    (void)build_module(NULL);
    exit_beside(drop_module);
}

static void exit_beside_close(void)
{
    open_device(0);
    exit_beside(close_device);
}

static void exit_waits_for_who_gives_back(void **unused)
{
    (void)unused;
    expect_end(exit_beside_release);
    expect_end(exit_beside_drop);
    expect_end(exit_beside_question);
    expect_end(exit_beside_module);
    expect_end(exit_beside_close);
}

/* What a thread does on the device, one after the other; all before it is done. */
static void *(*const uses[])(void *) = {number_stream, allocate,      fill,        copy,
                                        make_mark,     wait_for_mark, follow_mark, wait_for_stream,
                                        wait_for_all,  build_module,  make_kernel, launch};

static size_t used; /* the number of the last, in a child */

static void exit_beside_use(void)
{
    open_device(0);
    for (size_t i = 0; i < used; i++)
        (void)uses[i](NULL);
    exit_beside(uses[used]);
}

static void exit_beside_barrier(void)
{
    open_device(0);
    calls_before = 1;
    exit_beside(order_streams);
}

/* Once the driver has registered its handler; before, its end is not known. */
static void exit_beside_open(void)
{
    open_device(0);
    (void)close_device(NULL);
    wanted_ends = 0;
    exit_beside(open_first);
}

static void exit_waits_for_who_uses_a_device(void **unused)
{
    (void)unused;
    expect_end(exit_beside_open);
    expect_end(exit_beside_barrier);
    for (used = 0; used < sizeof uses / sizeof *uses; used++)
        expect_end(exit_beside_use);
}

/* ---- a thread that stays in the driver -------------------------------------------------------*/

static void exit_beside_stuck(void)
{
    open_device(0);
    open_device(1);
    make_array();
    start_inside(give_back_array);
    may_be_inside = true;
    wanted_sleeps = SLEEPS_MAX;
}

/* Nor does the handler of the second platform wait as long once more. */
static void exit_does_not_wait_for_ever(void **unused)
{
    (void)unused;
    expect_end(exit_beside_stuck);
}

/* The thread comes back to them. */
static void drop_module_and_close(void)
{
    tide_opencl_device *own = tide_opencl_of(devices[0]);
    void *dropped = module;
    (void)drop_module(NULL);
    CHILD_MUST(own->kept == dropped);
    CHILD_MUST(tide_device_close(devices[0]) == TIDE_OK && devices[0]->own == own);
    CHILD_MUST(tide_device_context(devices[0]) == NULL && tide_device_stream(devices[0]) == NULL);
    CHILD_MUST(tide_device_open("opencl:0") == NULL && devices[0]->own == own);
    made_up_let_go();
    CHILD_MUST(pthread_join(comes_out, NULL) == 0);
    devices[0] = NULL;
}

static void *(*stuck)(void *);

static void exit_beside_stuck_use(void)
{
    open_device(0);
    (void)build_module(NULL);
    (void)make_kernel(NULL);
    start_inside(stuck);
    at_last_sleep = drop_module_and_close;
    wanted_sleeps = SLEEPS_MAX;
}

static void what_a_thread_in_the_driver_has_is_left_at_exit(void **unused)
{
    (void)unused;
    stuck = launch;
    expect_end(exit_beside_stuck_use);
    stuck = number_stream; /* it has the device's lock */
    expect_end(exit_beside_stuck_use);
}

static void exit_now(void)
{
    exit(EXIT_SUCCESS);
}

static void exit_inside(void)
{
    open_device(0);
    make_array();
    made_up_callback = exit_now;
    (void)give_back_array(NULL);
}

static void exit_in_a_callback_does_not_wait_for_itself(void **unused)
{
    (void)unused;
    expect_end(exit_inside);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_has_begun_is_not_refused_in_the_middle),
        cmocka_unit_test(exit_waits_for_who_gives_back),
        cmocka_unit_test(exit_waits_for_who_uses_a_device),
        cmocka_unit_test(exit_does_not_wait_for_ever),
        cmocka_unit_test(what_a_thread_in_the_driver_has_is_left_at_exit),
        cmocka_unit_test(exit_in_a_callback_does_not_wait_for_itself),
    };
    return cmocka_run_group_tests_name("opencl: exit", tests, NULL, NULL);
}
