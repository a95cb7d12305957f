/* SPDX-License-Identifier: MIT */
/* When things go wrong on the device: no memory, another process, a device that is lost, no driver.
 */
#define _GNU_SOURCE
#include "bed.h"

#include <tidepool/device_memory.h>

#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/upkeep.h>

#include "runtime/base/ring.h"
#include "runtime/base/test_hooks.h"

/* ---- no memory ------------------------------------------------------------------------------- */

static _Thread_local size_t asked, fail_at;
static _Thread_local bool for_ever;

static bool fail_nth(size_t bytes)
{
    (void)bytes;
    asked++;
    return for_ever ? asked >= fail_at : asked == fail_at;
}

/* All that asks for memory of any kind; stops where it is refused. */
static bool use_everything(tide_pool *pool)
{
    uint32_t words[300] = {0};
    TIDE_SCOPE_TYPES(pool, uint32_t);
    uint32_t *a = tide_acquire(pool, uint32_t, 300), *b = tide_zeros(pool, uint32_t, 300);
    if (a == NULL || b == NULL)
        return false;
    tide_part parts[2] = {{a, words, TIDE_U32, 300}, {b, words, TIDE_U32, 300}};
    int64_t shape = 10;
    return tide_upload(pool, a, words, sizeof words) == TIDE_OK &&
           tide_upload_frame(pool, parts, 2) == TIDE_OK &&
           tide_download_frame(pool, parts, 2) == TIDE_OK &&
           tide_array_acquire(pool, TIDE_F32, 1, &shape) != NULL;
}

static bool attempt(void)
{
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.device = gpu});
    if (pool == NULL)
        return false;
    bool all = use_everything(pool);
    if (!all)
        assert_true(strlen(tide_error_message()) > 0);
    tide_os_fault = NULL; /* the checker needs memory itself */
    assert_int_equal(tide_pool_depth(pool), 0);
    CHECK_POOL(pool);
    expect_ok(tide_pool_destroy(pool));
    return all;
}

TEST(every_allocation_may_fail)
{
    assert_true(attempt());
    for (int forms = 0; forms < 2; forms++) {
        for_ever = forms == 1;
        bool all = false;
        for (fail_at = 1; !all && fail_at < 200; fail_at++) {
            asked = 0;
            tide_os_fault = fail_nth;
            all = attempt() && asked < fail_at;
            tide_os_fault = NULL;
        }
        assert_true(all);
        assert_true(fail_at > 5); /* something did fail */
    }
    expect_ok(tide_device_memory_trim(gpu, 0));
    assert_int_equal(bed_info().allocations, bed_info().releases);
}

/* ---- an event that failed -------------------------------------------------------------------- */

static tide_opencl_calls real_calls;
static unsigned failed_waits;

static int32_t wait_and_fail(uint32_t count, const tide_cl_event *events)
{
    (void)real_calls.clWaitForEvents(count, events);
    failed_waits++;
    return -14; /* of the events one has failed */
}

static int32_t tell_failure(tide_cl_event event, uint32_t what, size_t bytes, void *out,
                            size_t *size)
{
    int32_t error = real_calls.clGetEventInfo(event, what, bytes, out, size);
    if (what == TIDE_CL_EVENT_STATUS)
        memcpy(out, &(int32_t){-5}, sizeof(int32_t));
    return error;
}

static void fail_events(void)
{
    real_calls = tide_opencl;
    tide_opencl.clWaitForEvents = wait_and_fail;
    tide_opencl.clGetEventInfo = tell_failure;
    failed_waits = 0;
}

/* So what must not go before may go, without a second wait; but what came of it is not right. */
TEST(an_event_that_failed_is_over_and_no_success)
{
    void *mark = gpu->methods->mark(gpu, NULL);
    assert_non_null(mark);
    fail_events();
    tide_status waited = gpu->methods->mark_wait(gpu, mark);
    bool over = tide_device_mark_over(gpu, mark);
    unsigned waits = failed_waits;
    tide_opencl = real_calls;
    assert_int_equal(waited, TIDE_ERROR_DEVICE);
    assert_true(over);
    assert_int_equal(waits, 2);
    gpu->methods->mark_drop(gpu, mark);
}

/* ---- a device that is lost --------------------------------------------------------------------
 */

TEST(a_lost_device_can_be_left)
{
    tide_pool *pool = bed_pool(NULL);
    uint32_t words[10];
    {
        TIDE_SCOPE_TYPES(pool, uint32_t);
        uint32_t *array = tide_acquire(pool, uint32_t, 10);
        assert_true(tide_device_mark_lost(gpu, "as the test has it"));
        expect_status(tide_upload(pool, array, words, sizeof words), TIDE_ERROR_DEVICE);
        assert_non_null(strstr(tide_error_message(), "is lost: as the test has it"));
        assert_null(tide_device_open("opencl:0"));
        assert_non_null(strstr(tide_error_message(), "is lost: as the test has it"));
        assert_null(tide_zeros(pool, uint32_t, 100000));
        assert_null(tide_pool_create(&(tide_pool_options){.device = gpu}));
    }
    assert_int_equal(tide_pool_depth(pool), 0);
    CHECK_POOL(pool);
    expect_ok(tide_pool_destroy(pool));
    __atomic_store_n(&gpu->lost, NULL, __ATOMIC_RELAXED);
}

/* ---- fork -------------------------------------------------------------------------------------
 */

/* The last call has said so, in its own name, and why. */
static bool said_forked(const char *call)
{
    return tide_error_status() == TIDE_ERROR_DEVICE &&
           strncmp(tide_error_message(), call, strlen(call)) == 0 &&
           strstr(tide_error_message(), "before this process was forked") != NULL;
}

static void refuse_in_child(tide_pool *pool)
{
    tide_device_information info;
    CHILD_MUST(tide_device_info(gpu, &info) == TIDE_OK && info.lost);
    CHILD_MUST(tide_device_open("opencl:0") == NULL && said_forked("tide_device_open"));
    CHILD_MUST(tide_pool_local_on(gpu, NULL) == NULL && said_forked("tide_pool_local_on"));
    CHILD_MUST(tide_buffers_shared(gpu, 0) == NULL && said_forked("tide_buffers_shared"));
    CHILD_MUST(tide_pool_create(&(tide_pool_options){.device = gpu}) == NULL);
    CHILD_MUST(said_forked("tide_pool_create"));
    for (int times = 0; times < 2; times++)
        CHILD_MUST(tide_pool_wait(pool) != TIDE_OK && said_forked("tide_pool_wait"));
}

static void work_in_child(tide_pool *pool, uint32_t *array)
{
    uint32_t words[10];
    refuse_in_child(pool);
    CHILD_MUST(tide_download(pool, words, array, sizeof words) != TIDE_OK && said_forked(""));
    CHILD_MUST(tide_acquire(pool, uint32_t, 1000000) == NULL && said_forked(""));
    CHILD_MUST(tide_pool_reset(pool) == TIDE_OK);
    CHILD_MUST(tide_pool_destroy(pool) == TIDE_OK);
    double *host = tide_zeros(tide_pool_local(), double, 100);
    CHILD_MUST(host != NULL && host[99] == 0);
}

/* The driver's threads stayed with the parent: whoever waited for them would wait for ever. */
TEST(a_forked_child_is_told_and_does_not_hang)
{
    tide_pool *pool = bed_pool(NULL);
    uint32_t *array = tide_acquire(pool, uint32_t, 10);
    fill_by_upload(pool, array, 10, 1);
    tide_buffers *shared = tide_buffers_shared(gpu, 0);
    assert_non_null(shared);
    assert_non_null(tide_pool_local_on(gpu, NULL));
    pid_t child = fork_child(60);
    if (child == 0) {
        work_in_child(pool, array);
        _exit(0);
    }
    expect_child_ends_well(child);
    expect_words(pool, array, 10, 1);
    expect_ok(tide_pool_local_end(gpu));
    expect_ok(tide_buffers_destroy(shared));
    bed_pool_end(pool);
}

/* ---- other processes, before this one has a driver ---------------------------------------------- */

/* With live pools; kernels and copies may be in flight. */
static int exits(void)
{
    tide_pool *pool =
        tide_pool_create(&(tide_pool_options){.device = tide_device_open("opencl:0")});
    if (pool == NULL || tide_checkpoint(pool).pool == NULL)
        return 77;
    uint32_t words[100] = {0}, *array = tide_zeros(pool, uint32_t, 1000000);
    return array == NULL || tide_upload(pool, array, words, sizeof words) != TIDE_OK;
}

static bool is_refused(const char *words)
{
    return tide_device_open("opencl:0") == NULL && tide_error_status() == TIDE_ERROR_DEVICE &&
           strstr(tide_error_message(), words) != NULL;
}

static int loaderless(void)
{
    tide_opencl_library = "libOpenCL-that-nobody-has.so.1";
    bool refused = is_refused("libOpenCL-that-nobody-has");
    tide_opencl_library = "libm.so.6"; /* a library, but no loader */
    refused = refused && is_refused("clGetPlatformIDs");
    return !refused || tide_zeros(tide_pool_local(), double, 10) == NULL;
}

static int driverless(void)
{
    setenv("OCL_ICD_VENDORS", "/nonexistent", 1);
    return !is_refused("no platform");
}

/* False: one of them has not ended as it should. Where there is no device no test runs. */
static bool others_end_well(void)
{
    int (*const all[])(void) = {exits, loaderless, driverless};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        pid_t child = fork_child(60);
        if (child == 0)
            exit(all[i]());
        int status = wait_for_child(child);
        if (i == 0 && status == 77)
            return true;
        if (status != 0) {
            fprintf(stderr, "process %zu of the others: %d\n", i, status);
            return false;
        }
    }
    return true;
}

/* ---- threads -----------------------------------------------------------------------------------
 */

static void *work(void *unused)
{
    (void)unused;
    void *queue = bed_queue();
    tide_pool *pool = bed_pool(queue);
    for (uint32_t round = 0; round < scaled(200, 10); round++) {
        TIDE_SCOPE_TYPES(pool, uint32_t);
        uint32_t *a = tide_acquire(pool, uint32_t, 1000), *b = tide_acquire(pool, uint32_t, 1000);
        fill_by_upload(pool, a, 1000, round);
        launch_add(queue, b, a, 1000, 2, 100);
        expect_words(pool, b, 1000, round + 2);
        if (round % 16 == 0)
            tide_pool_trim(pool, TIDE_ALL_TYPES);
    }
    expect_ok(tide_pool_destroy(pool));
    bed_queue_end(queue);
    return NULL;
}

TEST(threads_share_a_device)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

int main(int argc, char **argv)
{
    return under_valgrind() || others_end_well() ? BED_MAIN("opencl failing") : 1;
}
