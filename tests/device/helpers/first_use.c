/* SPDX-License-Identifier: MIT */
/* The first frame of a CUDA device has the kernels compiled, on its thread. The driver is the fake, and
 * the compiler makes code for this processor (../kernels). */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/mman.h>

#include <tidepool/device.h>
#include <tidepool/learn.h>
#include <tidepool/tune.h>

#include "jit/kernels/modules.h"
#include "jit/kernels/nvrtc.h"
#include "runtime/base/test_hooks.h"
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/device.h"
#include "tests/device/cuda/support.h"

enum { BYTES = 1000 };

static bench start(void)
{
    bench b = bench_start(7);
    tide_nvrtc_set(HOST_NVRTC);
    return b;
}

/* Of two arrays; was it part by part? */
static bool fills_by_parts(tide_pool *pool)
{
    static const uint8_t values[] = {0x5A, 0x5B};
    const unsigned before = fake_kernel_runs("tide_fill");
    uint8_t *arrays[] = {tide_fill(pool, uint8_t, BYTES, 1), tide_fill(pool, uint8_t, BYTES, 1)};
    uint8_t got = 0;
    const tide_part parts[] = {{arrays[0], (void *)(uintptr_t)&values[0], TIDE_U8, BYTES},
                               {arrays[1], (void *)(uintptr_t)&values[1], TIDE_U8, BYTES}};
    expect_ok(tide_fill_frame(pool, parts, 2));
    expect_ok(tide_download(pool, &got, arrays[1], 1));
    assert_int_equal(got, values[1]);
    return fake_kernel_runs("tide_fill") == before;
}

static unsigned loads(void)
{
    return fake_calls("cuModuleLoadDataEx");
}

TEST(the_first_frame_has_them_compiled)
{
    bench b = start();
    for (unsigned i = 1; i <= 3; i++) {
        assert_false(fills_by_parts(b.pool));
        assert_int_equal(loads(), 1);
        assert_int_equal(fake_kernel_runs("tide_fill"), i);
    }
    bench_end(&b);
    assert_int_equal(fake_calls("cuModuleUnload"), 1);
}

/* It goes up part by part whether there are kernels or not. */
TEST(what_is_too_large_to_be_packed_has_none_compiled)
{
    enum { LARGE = 9 << 20 };
    static uint8_t bytes[LARGE];
    bench b = start();
    {
        TIDE_FRAME(b.pool, (uint8_t, x, LARGE), (uint8_t, y, LARGE));
        tide_part parts[] = {{x, bytes, TIDE_U8, LARGE}, {y, bytes, TIDE_U8, LARGE}};
        expect_ok(tide_upload_frame(b.pool, parts, 2));
        assert_int_equal(loads(), 0);
        parts[0].count = parts[1].count = BYTES;
        expect_ok(tide_upload_frame(b.pool, parts, 2));
        fake_synchronise_all();
        assert_int_equal(loads(), 1);
        assert_int_equal(fake_kernel_runs("tide_unpack"), 1);
    }
    bench_end(&b);
}

/* And the thread's last failure stays what it was. */
TEST(a_frame_without_memory_for_a_block_goes_part_by_part)
{
    uint8_t there[2][BYTES] = {{3}, {4}}, got[2][BYTES] = {{0}};
    bench b = bench_start_with(8, (tide_pool_options){.limit_bytes = 3 * BYTES});
    tide_nvrtc_set(HOST_NVRTC);
    uint8_t *x = tide_acquire(b.pool, uint8_t, BYTES), *y = tide_acquire(b.pool, uint8_t, BYTES);
    tide_part parts[] = {{x, there[0], TIDE_U8, BYTES}, {y, there[1], TIDE_U8, BYTES}};
    assert_non_null(y);
    assert_null(tide_acquire(b.pool, uint64_t, BYTES / 4));
    expect_ok(tide_upload_frame(b.pool, parts, 2));
    parts[0].host = got[0];
    parts[1].host = got[1];
    expect_ok(tide_download_frame(b.pool, parts, 2));
    assert_memory_equal(got, there, sizeof got);
    expect_said("tide_acquire");
    assert_int_equal(fake_kernel_runs("tide_unpack") + fake_kernel_runs("tide_pack"), 0);
    bench_end(&b);
}

/* The copy to the host reads all of the block. */
TEST(what_is_between_packed_parts_is_written)
{
    enum { FIRST = 1000, SECOND = 63, BLOCK = 1088 };
    uint8_t got[FIRST], block[BLOCK];
    bench b = start();
    uint8_t *x = tide_fill(b.pool, uint8_t, FIRST, 1), *y = tide_fill(b.pool, uint8_t, SECOND, 2);
    const tide_part parts[] = {{x, got, TIDE_U8, FIRST}, {y, got, TIDE_U8, SECOND}};
    expect_ok(tide_download_frame(b.pool, parts, 2));
    assert_int_equal(fake_kernel_runs("tide_pack"), 1);
    const uint64_t *packed = tide_acquire(b.pool, uint64_t, BLOCK / 8); /* where the block was */
    expect_ok(tide_download(b.pool, block, packed, BLOCK));
    for (size_t i = 0; i < BLOCK; i++)
        assert_int_equal(block[i], i < FIRST ? 1 : i >= 1024 && i < 1024 + SECOND ? 2 : 0);
    bench_end(&b);
}

static bool is_a_unit(size_t bytes)
{
    return bytes == 32;
}

TEST(want_of_memory_leaves_them_to_a_later_frame)
{
    bench b = start();
    tide_os_fault = is_a_unit;
    assert_true(fills_by_parts(b.pool));
    tide_os_fault = NULL;
    assert_false(fills_by_parts(b.pool));
    bench_end(&b);
}

TEST(they_are_switched_off_by_a_setting)
{
    bench b = start();
    expect_ok(tide_tune_set("frame_kernels", 0));
    assert_true(fills_by_parts(b.pool));
    expect_ok(tide_tune_set("frame_kernels", 1));
    assert_int_equal(loads(), 0);
    bench_end(&b);
}

static void *fill_there(void *device)
{
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.device = device});
    assert_non_null(pool);
    bool by_parts = fills_by_parts(pool);
    expect_ok(tide_pool_destroy(pool));
    return by_parts ? device : NULL;
}

TEST(who_comes_meanwhile_goes_part_by_part)
{
    bench b = start();
    pthread_t other;
    void *by_parts;
    fake_hold_up("cuModuleLoadDataEx");
    assert_int_equal(pthread_create(&other, NULL, fill_there, b.device), 0);
    while (fake_held_up() == 0)
        usleep(200);
    assert_true(fills_by_parts(b.pool));
    fake_hold_up(NULL);
    assert_int_equal(pthread_join(other, &by_parts), 0);
    assert_null(by_parts);
    assert_false(fills_by_parts(b.pool));
    assert_int_equal(loads(), 1);
    bench_end(&b);
}

/* What stderr gets while a frame is filled part by part, twice. */
static void fill_and_listen(bench *b, char *said, size_t room)
{
    int before = dup(STDERR_FILENO), file = memfd_create("said", 0);
    assert_true(before >= 0 && dup2(file, STDERR_FILENO) >= 0);
    bool by_parts = fills_by_parts(b->pool) && fills_by_parts(b->pool);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    ssize_t bytes = pread(file, said, room - 1, 0);
    said[bytes > 0 ? bytes : 0] = '\0';
    close(before);
    close(file);
    assert_true(by_parts);
}

TEST(what_fails_is_said_once_and_not_tried_again)
{
    char said[600];
    bench b = start();
    fake_fail("cuModuleLoadDataEx", 1, 999, true);
    fill_and_listen(&b, said, sizeof said);
    assert_non_null(strstr(said, "frames on cuda:0 are filled and copied array by array: "));
    assert_non_null(strstr(said, "cuModuleLoadDataEx"));
    assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
    assert_int_equal(loads(), 1);
    bench_end(&b);
    b = start(); /* a device that is opened again tries again; nothing more is said */
    tide_nvrtc_set("none");
    fill_and_listen(&b, said, sizeof said);
    assert_string_equal(said, "");
    assert_int_equal(loads(), 0);
    bench_end(&b);
}

TEST(the_child_of_a_fork_has_none)
{
    bench b = start();
    uint8_t *array = tide_acquire(b.pool, uint8_t, BYTES);
    const tide_part part = {.data = array, .type = TIDE_U8, .count = BYTES};
    pid_t child = fork_child(60);
    if (child == 0) {
        bool silent = dup2(memfd_create("said", 0), STDERR_FILENO) >= 0;
        bool refused = tide_fill_frame(b.pool, &part, 1) == TIDE_ERROR_DEVICE;
        _exit(silent && refused && lseek(STDERR_FILENO, 0, SEEK_END) == 0 ? 0 : 1);
    }
    expect_child_ends_well(child);
    bench_end(&b);
}

/* ---- what the fake driver sees of kernels ------------------------------------------------------ */

/* Adds `by` to each of 32 words; or reads far outside. */
static const char text[] =
    "extern \"C\" __global__ void add(unsigned *data, unsigned by) { data[threadIdx.x] += by; }\n"
    "extern \"C\" __global__ void stray(volatile int *data) { (void)data[1 << 16]; }\n";

/* Last: the device stays lost. */
TEST(what_is_not_ordered_is_found_and_a_fault_loses_the_device)
{
    char got[4], cubin[64] = "\177ELF\2\1\1\x33\7";
    bench b = start();
    cubin[18] = (char)190; /* the machine: CUDA */
    assert_null(tide_cuda_module(b.device, cubin));
    assert_non_null(strstr(tide_error_message(), "cuModuleLoadDataEx"));
    void *module = tide_modules_compile(b.device, text);
    if (module == NULL)
        fail_msg("%s", tide_error_message());
    void *other = fake_stream_create(0), *data = tide_acquire(b.pool, uint32_t, 32);
    void *add = tide_cuda_kernel(b.device, module, "add");
    uint32_t by = 1;
    void *arguments[] = {&data, &by};
    assert_null(tide_cuda_kernel(b.device, module, "subtract"));
    fake_order(b.stream, other);
    expect_ok(tide_cuda_launch(b.device, other, add, 1, 32, arguments));
    fake_synchronise(other);
    assert_null(fake_hazard());
    expect_ok(tide_cuda_launch(b.device, b.stream, add, 1, 32, arguments));
    expect_ok(tide_cuda_launch(b.device, other, add, 1, 32, arguments));
    fake_synchronise(other);
    fake_synchronise(b.stream);
    assert_non_null(strstr(fake_hazard(), "add on the device is not ordered with add"));
    expect_ok(tide_cuda_launch(b.device, b.stream, tide_cuda_kernel(b.device, module, "stray"), 1,
                               1, arguments));
    fake_synchronise(b.stream);
    assert_non_null(strstr(fake_violation(), "stray: group 0, thread 0 reads 4 bytes at"));
    expect_status(tide_download(b.pool, got, data, 4), TIDE_ERROR_DEVICE);
}

int main(void)
{
    setenv("FAKE_CUDA_ARCHITECTURE", "90", 1);
    return RUN_TESTS("first_use");
}
