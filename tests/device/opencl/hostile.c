/* SPDX-License-Identifier: MIT */
/* Programs that let go of their queues early, have very many, or mix two devices. */
#include "bed.h"

#include <dlfcn.h>

#include <tidepool/buffers.h>
#include <tidepool/device.h>

/* The library holds what its pools use: 300 queues later they still work. */
static void queues_of_pools_outlive_the_programs_handles(void **unused)
{
    (void)unused;
    enum { QUEUES = 300, N = 1000 };
    void *queue = bed_queue(), *declared = bed_queue();
    tide_pool *pool = bed_pool(queue);
    tide_mark mark = tide_checkpoint(pool);
    uint32_t *array = tide_acquire(pool, uint32_t, N);
    expect_ok(tide_pool_use_on(pool, declared));
    bed_queue_end(queue);
    bed_queue_end(declared);
    for (int i = 0; i < QUEUES; i++) {
        void *another = bed_queue();
        expect_ok(tide_pool_destroy(bed_pool(another)));
        bed_queue_end(another);
    }
    fill_by_upload(pool, array, N, 1);
    launch_add(queue, array, array, N, 2, 0);
    launch_add(declared, array, array, N, 0, 0);
    expect_ok(tide_rewind(pool, mark));
    array = tide_acquire(pool, uint32_t, N);
    fill_by_upload(pool, array, N, 5);
    expect_words(pool, array, N, 5);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

/* An array of another device is an address here that nobody may follow. */
static void an_array_of_another_device_is_refused(void **unused)
{
    (void)unused;
    enum { N = 1000 };
    tide_device *second = tide_device_open("opencl:1");
    if (second == NULL || bed_memory() != TIDE_OPENCL_BUFFERS)
        skip();
    tide_pool *pool = bed_pool(NULL);
    tide_pool *theirs = tide_pool_create(&(tide_pool_options){.device = second});
    assert_non_null(theirs);
    uint32_t *here = tide_acquire(pool, uint32_t, N), *there = tide_acquire(theirs, uint32_t, N);
    expect_status(tide_copy(pool, here, there, N * sizeof *here), TIDE_ERROR_ARGUMENT);
    expect_status(tide_copy(pool, there, here, N * sizeof *here), TIDE_ERROR_ARGUMENT);
    assert_non_null(strstr(tide_error_message(), "no memory of device"));
    fill_by_upload(pool, here, N, 3);
    expect_words(pool, here, N, 3);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_reset(theirs));
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_pool_destroy(theirs));
    expect_ok(tide_device_close(second));
}

/* ---- a queue of another context -------------------------------------------------------------- */

static void *loaded(const char *name)
{
    void *loader = dlopen("libOpenCL.so.1", RTLD_NOW);
    assert_non_null(loader);
    void *function = dlsym(loader, name);
    assert_non_null(function);
    return function;
}

/* Of a context of its own for the same device, as a second library in the process would have. */
static void *foreign_queue(void)
{
    void *(*create)(const intptr_t *, uint32_t, void *const *, void *, void *, int32_t *);
    int32_t (*release)(void *);
    int32_t error = 0;
    void *const device = tide_opencl_of(gpu)->device;
    *(void **)(void *)&create = loaded("clCreateContext");
    *(void **)(void *)&release = loaded("clReleaseContext");
    void *context = create(NULL, 1, &device, NULL, NULL, &error);
    assert_int_equal(error, 0);
    void *queue = tide_opencl.clCreateCommandQueueWithProperties(context, device, NULL, &error);
    assert_int_equal(error, 0);
    assert_int_equal(release(context), 0); /* the queue has it */
    return queue;
}

static void expect_refused(bool refused, const char *words)
{
    assert_true(refused);
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    if (strstr(tide_error_message(), words) == NULL)
        fail_msg("%s", tide_error_message());
}

static void a_queue_of_another_context_is_refused_by_name(void **unused)
{
    (void)unused;
    void *foreign = foreign_queue();
    tide_pool *pool = bed_pool(NULL);
    expect_refused(tide_pool_create(&(tide_pool_options){.device = gpu, .stream = foreign}) == NULL,
                   "opencl:0");
    tide_mark mark = tide_checkpoint(pool);
    uint32_t *array = tide_acquire(pool, uint32_t, 100);
    expect_refused(tide_pool_use_on(pool, foreign) == TIDE_ERROR_ARGUMENT, "opencl:0");
    tide_buffers *buffers = tide_buffers_create(gpu, NULL);
    assert_non_null(buffers);
    expect_refused(tide_buffer_acquire_on(buffers, 1000, 0, foreign).generation == 0, "opencl:0");
    tide_buffer one = tide_buffer_acquire(buffers, 1000);
    assert_true(one.generation != 0);
    expect_refused(tide_buffer_release_on(buffers, one, foreign) == TIDE_ERROR_ARGUMENT,
                   "opencl:0");
    expect_ok(tide_buffer_release(buffers, one));
    expect_ok(tide_buffers_destroy(buffers));
    fill_by_upload(pool, array, 100, 4); /* nothing has suffered */
    expect_words(pool, array, 100, 4);
    expect_ok(tide_rewind(pool, mark));
    expect_ok(tide_pool_destroy(pool));
    bed_queue_end(foreign);
}

/* ---- very many, at once ---------------------------------------------------------------------- */

static void three_hundred_queues_share_buffers(void **unused)
{
    (void)unused;
    enum { QUEUES = 300, N = 256 };
    static void *queues[QUEUES];
    tide_buffers *buffers = tide_buffers_create(gpu, NULL);
    assert_non_null(buffers);
    for (int i = 0; i < QUEUES; i++)
        queues[i] = bed_queue();
    for (int i = 0; i < QUEUES; i++) {
        tide_buffer one = tide_buffer_acquire_on(buffers, N * 4, 0, queues[i]);
        assert_true(one.generation != 0);
        void *data = tide_buffer_pointer(buffers, one);
        launch_add(queues[i], data, data, N, 1, LONG);
        expect_ok(tide_buffer_release_on(buffers, one, queues[i]));
        bed_queue_end(queues[i]); /* its work goes on, and the next owner comes after it */
    }
    tide_buffers_statistics stats;
    expect_ok(tide_buffers_stats(buffers, &stats, NULL, 0));
    assert_int_equal(stats.live, 0);
    assert_int_equal(stats.misses, 1);
    expect_ok(tide_buffers_destroy(buffers));
}

enum { WAITED = 300, TURN = 150 };

static struct {
    int32_t (*finish)(tide_cl_queue queue); /* the driver's */
    void *queues[WAITED], *another;
    bool finished[WAITED], ended[WAITED];
    unsigned calls;
} waited;

/* In the middle of the wait the program lets go of what was waited for, and another queue comes. */
static int32_t finish_and_let_go(tide_cl_queue queue)
{
    int32_t result = waited.finish(queue);
    bool turn = ++waited.calls == TURN;
    for (int i = 0; i < WAITED; i++) {
        if (turn && waited.finished[i]) {
            waited.ended[i] = true;
            bed_queue_end(waited.queues[i]);
        }
        waited.finished[i] = waited.finished[i] || waited.queues[i] == (void *)queue;
    }
    if (turn)
        assert_true(gpu->methods->stream_number(gpu, waited.another) != 0);
    return result;
}

static void a_wait_for_all_queues_forgets_none(void **unused)
{
    (void)unused;
    memset(&waited, 0, sizeof waited);
    waited.another = bed_queue();
    for (int i = 0; i < WAITED; i++) {
        waited.queues[i] = bed_queue();
        assert_true(gpu->methods->stream_number(gpu, waited.queues[i]) != 0);
    }
    waited.finish = tide_opencl.clFinish;
    tide_opencl.clFinish = finish_and_let_go;
    expect_ok(gpu->methods->wait_all(gpu));
    tide_opencl.clFinish = waited.finish;
    for (int i = 0; i < WAITED; i++) {
        assert_true(waited.finished[i]);
        if (!waited.ended[i])
            bed_queue_end(waited.queues[i]);
    }
    bed_queue_end(waited.another);
}

/* ---- more than there is ---------------------------------------------------------------------- */

/* The driver has 2 GiB (POCL_MEMORY_LIMIT): what is larger is refused in words, the rest goes on.
 */
static void what_is_larger_than_the_device_is_refused(void **unused)
{
    (void)unused;
    const size_t limit = (size_t)2 << 30;
    if (bed_info().bytes == 0 || bed_info().bytes > limit)
        skip();
    tide_pool *pool = bed_pool(NULL);
    tide_mark mark = tide_checkpoint(pool);
    uint32_t *array = tide_acquire(pool, uint32_t, 100);
    for (size_t bytes = limit + 1; bytes != 0 && bytes <= (size_t)1 << 40; bytes *= 8) {
        assert_null(tide_acquire(pool, uint8_t, bytes));
        assert_int_equal(tide_error_status(), TIDE_ERROR_MEMORY);
        assert_non_null(strstr(tide_error_message(), "opencl:0"));
        assert_null(tide_zeros(pool, uint8_t, bytes));
        assert_int_equal(tide_error_status(), TIDE_ERROR_MEMORY);
    }
    tide_buffers *buffers = tide_buffers_create(gpu, NULL);
    assert_int_equal(tide_buffer_acquire(buffers, limit + 1).generation, 0);
    assert_int_equal(tide_error_status(), TIDE_ERROR_MEMORY);
    expect_ok(tide_buffers_destroy(buffers));
    fill_by_upload(pool, array, 100, 4);
    expect_words(pool, array, 100, 4);
    expect_ok(tide_rewind(pool, mark));
    expect_ok(tide_pool_destroy(pool));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queues_of_pools_outlive_the_programs_handles),
        cmocka_unit_test(an_array_of_another_device_is_refused),
        cmocka_unit_test(a_queue_of_another_context_is_refused_by_name),
        cmocka_unit_test(three_hundred_queues_share_buffers),
        cmocka_unit_test(a_wait_for_all_queues_forgets_none),
        cmocka_unit_test(what_is_larger_than_the_device_is_refused),
    };
    return BED_MAIN("hostile", tests);
}
