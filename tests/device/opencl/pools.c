/* SPDX-License-Identifier: MIT */
/* Pools, scopes and arrays of an OpenCL device: the same bookkeeping, other memory. */
#include "bed.h"

#include "tests/random.h"
#include <tidepool/device_memory.h>

#include <math.h>

#include <tidepool/array.h>
#include <tidepool/device.h>
#include <tidepool/dlpack.h>
#include <tidepool/dynamic.h>
#include <tidepool/half.h>
#include <tidepool/upkeep.h>

/* ---- the device ---------------------------------------------------------------------------- */

TEST(a_name_gives_one_device_counted)
{
    tide_device_information info = bed_info();
    assert_string_equal(info.name, "opencl:0");
    assert_int_equal(info.dl.device_type, TIDE_DL_OPENCL);
    assert_false(info.host);
    assert_false(info.lost);
    assert_true(info.bytes > 0);
    assert_true(strlen(info.description) > 0);
    assert_ptr_equal(tide_device_open("opencl:0"), gpu);
    expect_ok(tide_device_close(gpu));
    assert_non_null(tide_device_context(gpu));
    assert_non_null(tide_device_stream(gpu));
    tide_pool *pool = bed_pool(NULL);
    expect_status(tide_device_close(gpu), TIDE_ERROR_STATE);
    expect_ok(tide_pool_destroy(pool));
}

TEST(a_device_that_is_not_there_is_refused_in_words)
{
    assert_null(tide_device_open("opencl:999"));
    assert_int_equal(tide_error_status(), TIDE_ERROR_DEVICE);
    assert_non_null(strstr(tide_error_message(), "no device opencl:999: the drivers know"));
    assert_null(tide_device_open("opencl:x"));
    assert_int_equal(tide_error_status(), TIDE_ERROR_NAME);
}

/* As a stream, and as one that is declared. Without a check level the handle is trusted. */
static void expect_refused(void *queue, const char *words)
{
    tide_pool_options options = {.device = gpu, .stream = queue, .check = TIDE_CHECK_POISON};
    assert_null(tide_pool_create(&options));
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    assert_non_null(strstr(tide_error_message(), "tide_pool_create: queue"));
    assert_non_null(strstr(tide_error_message(), words));
    options.stream = NULL;
    tide_pool *pool = tide_pool_create(&options);
    assert_non_null(pool);
    {
        TIDE_SCOPE(pool);
        expect_status(tide_pool_use_on(pool, queue), TIDE_ERROR_ARGUMENT);
        assert_non_null(strstr(tide_error_message(), "tide_pool_use_on: queue"));
        assert_non_null(strstr(tide_error_message(), words));
    }
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_pool_destroy(bed_pool(queue)));
}

TEST(a_checked_pool_looks_at_its_queue)
{
    int32_t error = 0;
    tide_cl_device of = tide_opencl_of(gpu)->device;
    tide_cl_context other = tide_opencl.clCreateContext(NULL, 1, &of, NULL, NULL, &error);
    assert_int_equal(error, 0);
    void *elsewhere = bed_queue_of(other, 0);
    void *unordered = bed_queue_of(tide_device_context(gpu), TIDE_CL_QUEUE_OUT_OF_ORDER);
    void *right = bed_queue();
    expect_refused(elsewhere, "is of another context");
    expect_refused(unordered, "is out of order");
    tide_pool *pool = tide_pool_create(
        &(tide_pool_options){.device = gpu, .stream = right, .check = TIDE_CHECK_POISON});
    assert_non_null(pool);
    assert_non_null(tide_zeros(pool, uint32_t, 100));
    bed_pool_end(pool);
    bed_queue_end(right);
    bed_queue_end(unordered);
    bed_queue_end(elsewhere);
    assert_int_equal(tide_opencl.clReleaseContext(other), 0);
}

TEST(slots_lie_as_was_asked)
{
    tide_pool *pool = bed_pool(NULL);
    char *data = tide_acquire_type(pool, TIDE_U8, 10000);
    size_t offset = 99;
    assert_int_equal((uintptr_t)data % 64, 0);
    if (bed_memory() != TIDE_OPENCL_BUFFERS) {
        assert_null(tide_device_buffer(pool, data, &offset));
    } else {
        void *buffer = tide_device_buffer(pool, data, &offset);
        assert_non_null(buffer);
        assert_int_equal(offset, 0);
        assert_ptr_equal(tide_device_buffer(pool, data + 9999, &offset), buffer);
        assert_int_equal(offset, 9999);
        assert_null(tide_device_buffer(pool, &offset, &offset));
    }
    const tide_type wide = tide_type_register("of 256", 256, 256);
    for (int i = 0; i < 8; i++) {
        data = tide_acquire_type(pool, wide, 10);
        assert_int_equal(data != NULL,
                         bed_memory() == TIDE_OPENCL_BUFFERS); /* no matter of chance */
        assert_int_equal((uintptr_t)data % 256, 0);
    }
    bed_pool_end(pool);
}

/* ---- values -------------------------------------------------------------------------------- */

struct vec3 {
    float x, y, z;
};

static void expect_repeated(tide_pool *pool, const void *data, const void *value, size_t size,
                            size_t n)
{
    char *got = malloc(size * n);
    assert_non_null(got);
    expect_ok(tide_download(pool, got, data, size * n));
    for (size_t i = 0; i < n; i++)
        assert_memory_equal(got + i * size, value, size);
    free(got);
}

/* 12 bytes are no pattern that OpenCL fills with; 1 to 16 are. */
TEST(arrays_start_with_any_value)
{
    static const size_t lengths[] = {1, 2, 3, 63, 64, 1000, 100003};
    const struct vec3 vector = {1, 2.5f, -3};
    const double complex_one[2] = {1, 0};
    tide_pool *pool = bed_pool(NULL);
    tide_array *ones = tide_array_ones(pool, TIDE_F32, 2, (const int64_t[]){10, 20});
    assert_non_null(ones);
    assert_int_equal(ones->tensor.device.device_type, TIDE_DL_OPENCL);
    expect_repeated(pool, tide_array_data(ones), &(float){1}, 4, 200);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t n = lengths[i];
        expect_repeated(pool, tide_fill(pool, struct vec3, n, vector), &vector, 12, n);
        expect_repeated(pool, tide_ones_type(pool, TIDE_C128, n), complex_one, 16, n);
        expect_repeated(pool, tide_fill(pool, uint8_t, n, 7), &(uint8_t){7}, 1, n);
        expect_repeated(pool, tide_zeros(pool, double, n), &(double){0}, 8, n);
        expect_ok(tide_pool_reset(pool));
    }
    CHECK_POOL(pool);
    expect_ok(tide_pool_destroy(pool));
}

/* ---- memory itself -------------------------------------------------------------------------- */

/* Taken and given back in any order: each address names its own memory, from end to end. */
TEST(each_piece_is_found_by_its_addresses)
{
    enum { PIECES = 40 };
    tide_pool *pool = bed_pool(NULL);
    char *pieces[PIECES] = {NULL};
    rng random = {1};
    for (size_t round = 0; round < scaled(2000, 200); round++) {
        const size_t i = rng_below(&random, PIECES), bytes = 64 * (i + 1), align = 64 << i % 2;
        uint32_t ends[2] = {(uint32_t)i, (uint32_t)~i}, got[2];
        void *data = pieces[i];
        if (data == NULL) {
            expect_ok(gpu->methods->allocate(gpu, NULL, TIDE_MEMORY_DEVICE, bytes, align, &data));
            assert_int_equal((uintptr_t)data % align, 0);
            pieces[i] = data;
            expect_ok(tide_upload(pool, pieces[i], &ends[0], 4));
            expect_ok(tide_upload(pool, pieces[i] + bytes - 4, &ends[1], 4));
            continue;
        }
        expect_ok(tide_download(pool, &got[0], pieces[i], 4));
        expect_ok(tide_download(pool, &got[1], pieces[i] + bytes - 4, 4));
        assert_memory_equal(got, ends, sizeof got);
        gpu->methods->release(gpu, NULL, TIDE_MEMORY_DEVICE, data, bytes);
        pieces[i] = NULL;
    }
    for (size_t i = 0; i < PIECES; i++)
        if (pieces[i] != NULL)
            gpu->methods->release(gpu, NULL, TIDE_MEMORY_DEVICE, pieces[i], 64 * (i + 1));
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_device_memory_trim(gpu, 0)); /* what waits for the pool's copies goes */
    assert_int_equal(tide_opencl_of(gpu)->span_count, 0);
}

int main(int argc, char **argv)
{
    return BED_MAIN("opencl pools");
}
