/* SPDX-License-Identifier: MIT */
/* Memory for other processes. The other one is this program once more, with the fake driver of its
 * own: it gets what was exported by a pipe, and answers by another. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/device_ipc.h>
#include <tidepool/device_memory.h>
#include <tidepool/dlpack.h>

#include "runtime/device/cuda/cuda.h"
#include "support.h"

enum { BYTES = 10000, BEFORE = 3, AFTER = 4, SECONDS = 60, UNSUPPORTED = 801, OWN = 201 };

/* ---- the other process ----------------------------------------------------------------------- */

#define PEER_TRY(condition)                                                              \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "peer, line %d: %s; %s\n", __LINE__, #condition,             \
                    fake_violation() != NULL ? fake_violation() : tide_error_message()); \
            return 1;                                                                    \
        }                                                                                \
    } while (0)

/* The device is lost while memory is open twice: nothing there can be ended any more,
 * and each close lets go of the device all the same. */
static int peer_of_lost(const tide_ipc_memory *memory)
{
    bench b = bench_start(9);
    uint8_t *x = tide_ipc_open(b.device, memory);
    PEER_TRY(x != NULL && tide_ipc_open(b.device, memory) == (void *)x);
    fake_lose(0);
    (void)tide_pool_wait(b.pool);
    PEER_TRY(tide_pool_destroy(b.pool) == TIDE_OK);
    for (int left = 2; left > 0; left--) {
        PEER_TRY(tide_device_close(b.device) == TIDE_ERROR_STATE);
        PEER_TRY(tide_ipc_close(b.device, memory, x) == TIDE_OK);
    }
    PEER_TRY(tide_device_close(b.device) == TIDE_OK);
    PEER_TRY(tide_device_close(b.device) == TIDE_ERROR_DEVICE);
    PEER_TRY(tide_ipc_close(b.device, memory, x) == TIDE_ERROR_DEVICE);
    PEER_TRY(strstr(tide_error_message(), "closed") != NULL);
    PEER_TRY(fake_violation() == NULL);
    fake_reset(2, 9); /* as the end of a process does: nothing of others' is open */
    return 0;
}

/* Reads what it is told of from its input; finds BEFORE there, leaves AFTER. `how`: it says when it
 * has it open, and waits for a word before it closes it; or it does not wait for its own work. */
static int peer_main(const char *how)
{
    tide_ipc_memory memory;
    alarm(SECONDS);
    PEER_TRY(read(STDIN_FILENO, &memory, sizeof memory) == sizeof memory);
    if (strcmp(how, "lost") == 0)
        return peer_of_lost(&memory);
    bench b = bench_start(9);
    uint8_t *x = tide_ipc_open(b.device, &memory);
    PEER_TRY(x != NULL && tide_ipc_open(b.device, &memory) == (void *)x);
    PEER_TRY(fake_calls("cuIpcOpenMemHandle") == 2 && fake_opened() == 2);
    PEER_TRY(tide_ipc_close(b.device, &memory, x) == TIDE_OK); /* one of two */
    expect(b.stream, x, BYTES, BEFORE);
    put(b.stream, x, BYTES, AFTER);
    if (strcmp(how, "hasty") == 0) {
        PEER_TRY(tide_ipc_close(b.device, &memory, x) == TIDE_OK);
        return fake_hazard() != NULL && strstr(fake_hazard(), "cuIpcCloseMemHandle") != NULL ? 0
                                                                                             : 1;
    }
    fake_synchronise(b.stream);
    PEER_TRY(unexpected() == 0);
    PEER_TRY(tide_pool_destroy(b.pool) == TIDE_OK);
    PEER_TRY(tide_device_close(b.device) == TIDE_ERROR_STATE); /* it is open still */
    char word = 'o';
    if (strcmp(how, "slow") == 0)
        PEER_TRY(write(STDOUT_FILENO, &word, 1) == 1 && read(STDIN_FILENO, &word, 1) == 1);
    PEER_TRY(tide_ipc_close(b.device, &memory, x) == TIDE_OK);
    PEER_TRY(tide_ipc_close(b.device, &memory, x) == TIDE_ERROR_DEVICE);
    PEER_TRY(fake_opened() == 0 && fake_hazard() == NULL && fake_violation() == NULL);
    PEER_TRY(tide_device_close(b.device) == TIDE_OK);
    return 0;
}

typedef struct peer {
    pid_t process;
    int to, from;
} peer;

static peer peer_start(const char *how, const tide_ipc_memory *memory)
{
    static char self[4096];
    int to[2], from[2];
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    assert_true(pipe(to) == 0 && pipe(from) == 0);
    peer made = {.process = fork(), .to = to[1], .from = from[0]};
    if (made.process == 0) {
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        close(to[1]);
        close(from[0]);
        execl(self, self, how, (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    assert_int_equal(write(made.to, memory, sizeof *memory), sizeof *memory);
    return made;
}

/* Its alarm ends it, if nothing else does. */
static void peer_end(const peer *one)
{
    int status = 0;
    close(one->to);
    assert_int_equal(waitpid(one->process, &status, 0), one->process);
    close(one->from);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- buffers and slots ----------------------------------------------------------------------- */

static tide_buffers *ipc_on(const bench *b)
{
    tide_buffers *made = tide_buffers_create(
        b->device, &(tide_buffers_options){.flags = TIDE_BUFFER_IPC, .stream = b->stream});
    if (made == NULL)
        fail_msg("%s", tide_error_message());
    return made;
}

static void another_process_uses_a_buffer(void **unused)
{
    (void)unused;
    bench b = bench_start(1);
    assert_true(info_of(b.device).exports);
    tide_buffers *buffers = ipc_on(&b);
    for (int i = 0; i < 2; i++) { /* the second is cached memory */
        tide_buffer buffer = tide_buffer_acquire(buffers, BYTES);
        uint8_t *x = tide_buffer_pointer(buffers, buffer);
        tide_ipc_memory memory;
        put(b.stream, x, BYTES, BEFORE);
        expect_ok(tide_ipc_export_buffer(buffers, buffer, &memory));
        assert_int_equal(memory.offset, 0);
        assert_int_equal(memory.bytes, tide_buffer_bytes(buffers, buffer));
        fake_synchronise(b.stream);
        peer other = peer_start("quick", &memory);
        peer_end(&other);
        expect(b.stream, x, BYTES, AFTER);
        expect_ok(tide_buffer_release(buffers, buffer));
    }
    tide_device_memory held;
    expect_ok(tide_device_memory_stats(b.device, &held));
    assert_true(held.bytes_held >= BYTES);
    assert_int_equal(fake_calls("cuMemAlloc"), 1);
    assert_int_equal(fake_calls("cuMemAllocFromPoolAsync"), 0);
    fake_synchronise_all();
    expect_ok(tide_buffers_destroy(buffers));
    assert_int_equal(fake_calls("cuMemFree"), 1);
    bench_end(&b);
}

static void another_process_uses_a_part_of_an_array(void **unused)
{
    (void)unused;
    bench b = bench_start(2);
    tide_buffers *buffers = ipc_on(&b);
    tide_pool *pool = tide_pool_create(
        &(tide_pool_options){.device = b.device, .stream = b.stream, .buffers = buffers});
    {
        TIDE_SCOPE(pool);
        tide_ipc_memory memory;
        uint8_t *gone = NULL, *x = tide_acquire(pool, uint8_t, 3 * BYTES);
        {
            TIDE_SCOPE(pool);
            gone = tide_acquire(pool, uint8_t, BYTES);
        }
        put(b.stream, x, 3 * BYTES, 1);
        put(b.stream, x + BYTES, BYTES, BEFORE);
        expect_ok(tide_ipc_export(pool, x + BYTES, &memory));
        assert_int_equal(memory.offset, BYTES);
        assert_true(memory.bytes >= 2 * BYTES);
        expect_ok(tide_pool_wait(pool));
        peer other = peer_start("quick", &memory);
        peer_end(&other);
        expect(b.stream, x, BYTES, 1);
        expect(b.stream, x + BYTES, BYTES, AFTER);
        expect(b.stream, x + 2 * BYTES, BYTES, 1);
        expect_status(tide_ipc_export(pool, gone, &memory), TIDE_ERROR_ARGUMENT);
        expect_said("no live array");
    }
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_buffers_destroy(buffers));
    bench_end(&b);
}

/* What a consumer of DLPack holds, or a graph, is a live array's as before. */
static void another_process_uses_an_exported_array(void **unused)
{
    (void)unused;
    bench b = bench_start(11);
    tide_buffers *buffers = ipc_on(&b);
    tide_pool *pool = tide_pool_create(
        &(tide_pool_options){.device = b.device, .stream = b.stream, .buffers = buffers});
    tide_capture *capture;
    {
        TIDE_SCOPE(pool);
        tide_ipc_memory before, memory;
        tide_array *array = tide_array_acquire(pool, TIDE_U8, 1, (const int64_t[]){2 * BYTES});
        uint8_t *x = array->tensor.data;
        expect_ok(tide_ipc_export(pool, x + BYTES, &before));
        tide_dl_managed *managed = tide_array_export(pool, array);
        assert_non_null(managed);
        expect_ok(tide_capture_begin(pool));
        capture = tide_capture_end(pool);
        assert_non_null(capture);
        put(b.stream, x, 2 * BYTES, BEFORE);
        if (tide_ipc_export(pool, x + BYTES, &memory) != TIDE_OK)
            fail_msg("%s", tide_error_message());
        assert_memory_equal(&memory, &before, sizeof memory);
        expect_status(tide_ipc_export(pool, x + memory.bytes + BYTES, &memory),
                      TIDE_ERROR_ARGUMENT);
        expect_ok(tide_pool_wait(pool));
        peer other = peer_start("quick", &memory);
        peer_end(&other);
        expect(b.stream, x + BYTES, BYTES, AFTER);
        fake_synchronise(b.stream);
        managed->deleter(managed);
    }
    expect_ok(tide_capture_drop(capture, b.stream));
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_buffers_destroy(buffers));
    bench_end(&b);
}

/* Streams order the buffers as they do the device's own; they go back to the driver, which knows no
 * order for them, when their work is over. */
static void streams_order_them_as_others(void **unused)
{
    (void)unused;
    for (uint32_t seed = 1; seed <= 10; seed++) {
        bench b = bench_start(seed);
        tide_buffers *buffers = ipc_on(&b);
        void *other = fake_stream_create(0);
        fake_count_anew();
        for (uint8_t i = 0; i < 20; i++) {
            void *now = i % 2 == 0 ? b.stream : other;
            tide_buffer buffer = tide_buffer_acquire_on(buffers, BYTES, TIDE_BUFFER_IPC, now);
            void *x = tide_buffer_pointer(buffers, buffer);
            fake_handed_out(now, x, BYTES);
            put(now, x, BYTES, i);
            expect(now, x, BYTES, i);
            expect_ok(tide_buffer_release_on(buffers, buffer, now));
        }
        assert_int_equal(fake_calls("cuMemAlloc"), 1);
        assert_int_equal(fake_calls("cuStreamSynchronize") + fake_calls("cuEventSynchronize"), 0);
        tide_buffers_trim(buffers, 0);
        expect_ok(tide_buffers_destroy(buffers));
        expect_ok(tide_device_memory_trim(b.device, 0));
        assert_int_equal(fake_calls("cuMemFree"), 1);
        fake_stream_destroy(other);
        bench_end(&b);
    }
}

/* ---- what may not be ------------------------------------------------------------------------- */

/* The fake knows: the driver's documentation calls it undefined. */
static void what_others_have_open_is_not_freed(void **unused)
{
    (void)unused;
    bench b = bench_start(3);
    tide_buffers *buffers = ipc_on(&b);
    tide_buffer buffer = tide_buffer_acquire(buffers, BYTES);
    tide_ipc_memory memory;
    char word = 'g';
    put(b.stream, tide_buffer_pointer(buffers, buffer), BYTES, BEFORE);
    fake_synchronise(b.stream);
    expect_ok(tide_ipc_export_buffer(buffers, buffer, &memory));
    peer other = peer_start("slow", &memory);
    assert_int_equal(read(other.from, &word, 1), 1);
    assert_int_equal(word, 'o');
    expect_ok(tide_buffer_release(buffers, buffer)); /* too early */
    fake_synchronise_all();
    expect_ok(tide_buffers_destroy(buffers));
    expect_ok(tide_device_memory_trim(b.device, 0));
    assert_non_null(fake_violation());
    assert_non_null(strstr(fake_violation(), "another process has open"));
    assert_int_equal(write(other.to, &word, 1), 1);
    peer_end(&other);
    expect_ok(tide_pool_destroy(b.pool));
    expect_ok(tide_device_close(b.device));
    fake_stream_destroy(b.stream);
}

static void who_closes_waits_for_his_work(void **unused)
{
    (void)unused;
    bench b = bench_start(4);
    tide_buffers *buffers = ipc_on(&b);
    tide_buffer buffer = tide_buffer_acquire(buffers, BYTES);
    tide_ipc_memory memory;
    put(b.stream, tide_buffer_pointer(buffers, buffer), BYTES, BEFORE);
    fake_synchronise(b.stream);
    expect_ok(tide_ipc_export_buffer(buffers, buffer, &memory));
    peer other = peer_start("hasty", &memory);
    peer_end(&other);
    expect_ok(tide_buffer_release(buffers, buffer));
    expect_ok(tide_buffers_destroy(buffers));
    bench_end(&b);
}

static void what_is_open_does_not_keep_a_lost_device(void **unused)
{
    (void)unused;
    bench b = bench_start(10);
    tide_buffers *buffers = ipc_on(&b);
    tide_buffer buffer = tide_buffer_acquire(buffers, BYTES);
    tide_ipc_memory memory;
    expect_ok(tide_ipc_export_buffer(buffers, buffer, &memory));
    peer other = peer_start("lost", &memory);
    peer_end(&other);
    expect_ok(tide_buffer_release(buffers, buffer));
    tide_ipc_memory at = {.offset = 0};
    expect_status(tide_ipc_close(b.device, &at, &memory), TIDE_ERROR_DEVICE); /* nothing is open */
    expect_said("cuIpcCloseMemHandle");
    expect_ok(tide_buffers_destroy(buffers));
    bench_end(&b);
}

static void what_cannot_be_exported_is_refused(void **unused)
{
    (void)unused;
    bench b = bench_start(6);
    tide_ipc_memory memory = {.offset = 77};
    tide_buffers *plain =
        tide_buffers_create(b.device, &(tide_buffers_options){.stream = b.stream});
    tide_buffer buffer = tide_buffer_acquire(plain, BYTES);
    expect_status(tide_ipc_export_buffer(plain, buffer, &memory), TIDE_ERROR_STATE);
    expect_said("TIDE_BUFFER_IPC");
    expect_ok(tide_buffer_release(plain, buffer));
    expect_status(tide_ipc_export_buffer(plain, buffer, &memory), TIDE_ERROR_STALE);
    expect_ok(tide_buffers_destroy(plain));
    {
        TIDE_SCOPE(b.pool);
        uint8_t *x = tide_acquire(b.pool, uint8_t, BYTES);
        expect_status(tide_ipc_export(b.pool, x, &memory), TIDE_ERROR_STATE);
        expect_said("TIDE_BUFFER_IPC");
        expect_ok(tide_capture_begin(b.pool));
        expect_status(tide_ipc_export(b.pool, x, &memory), TIDE_ERROR_STATE);
        expect_said("capture");
    }
    tide_capture *capture = tide_capture_end(b.pool);
    expect_ok(tide_capture_drop(capture, b.stream));
    expect_status(tide_ipc_export(NULL, &memory, &memory), TIDE_ERROR_ARGUMENT);
    expect_status(tide_ipc_export_buffer(NULL, buffer, &memory), TIDE_ERROR_ARGUMENT);
    assert_int_equal(memory.offset, 77); /* nothing was written */
    {
        TIDE_SCOPE(tide_pool_local());
        void *x = tide_acquire(tide_pool_local(), uint8_t, BYTES);
        expect_status(tide_ipc_export(tide_pool_local(), x, &memory), TIDE_ERROR_DEVICE);
    }
    assert_null(tide_buffers_create(NULL, &(tide_buffers_options){.flags = TIDE_BUFFER_IPC}));
    assert_int_equal(tide_error_status(), TIDE_ERROR_DEVICE);
    assert_null(tide_ipc_open(tide_device_open("host"), &memory));
    assert_int_equal(tide_error_status(), TIDE_ERROR_DEVICE);
    bench_end(&b);
}

typedef struct stranger {
    tide_pool *pool;
    void *data;
    tide_status status;
} stranger;

static void *export_of_another_thread(void *of)
{
    stranger *s = of;
    tide_ipc_memory memory;
    s->status = tide_ipc_export(s->pool, s->data, &memory);
    return NULL;
}

static void only_the_owner_exports(void **unused)
{
    (void)unused;
    bench b = bench_start(12);
    tide_buffers *buffers = ipc_on(&b);
    stranger s = {.pool = tide_pool_create(&(tide_pool_options){.device = b.device,
                                                                .stream = b.stream,
                                                                .buffers = buffers,
                                                                .check = TIDE_CHECK_POISON})};
    {
        TIDE_SCOPE(s.pool);
        pthread_t other;
        s.data = tide_acquire(s.pool, uint8_t, BYTES);
        assert_int_equal(pthread_create(&other, NULL, export_of_another_thread, &s), 0);
        pthread_join(other, NULL);
        expect_status(s.status, TIDE_ERROR_THREAD);
        (void)export_of_another_thread(&s);
        expect_ok(s.status);
    }
    expect_ok(tide_pool_destroy(s.pool));
    expect_ok(tide_buffers_destroy(buffers));
    bench_end(&b);
}

static void what_cannot_be_opened_holds_nothing(void **unused)
{
    (void)unused;
    bench b = bench_start(7);
    tide_buffers *buffers = ipc_on(&b);
    tide_buffer buffer = tide_buffer_acquire(buffers, BYTES);
    tide_ipc_memory memory, later;
    expect_ok(tide_ipc_export_buffer(buffers, buffer, &memory));
    assert_null(tide_ipc_open(b.device, &memory)); /* this very process */
    assert_int_equal(tide_error_status(), TIDE_ERROR_DEVICE);
    later = memory;
    later.growth_[0] = 1;
    assert_null(tide_ipc_open(b.device, &later));
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    assert_null(tide_ipc_open(NULL, &memory));
    assert_null(tide_ipc_open(b.device, NULL));
    expect_status(tide_ipc_close(b.device, &memory, NULL), TIDE_ERROR_ARGUMENT);
    fake_fail("cuIpcGetMemHandle", 1, TIDE_CU_INVALID_VALUE, false);
    expect_status(tide_ipc_export_buffer(buffers, buffer, &memory), TIDE_ERROR_DEVICE);
    expect_ok(tide_buffer_release(buffers, buffer));
    fake_fail("cuMemAlloc", 1, TIDE_CU_OUT_OF_MEMORY, true);
    assert_int_equal(tide_buffer_acquire(buffers, 100 * BYTES).generation, 0);
    assert_int_equal(tide_error_status(), TIDE_ERROR_MEMORY);
    expect_ok(tide_buffers_destroy(buffers));
    bench_end(&b); /* the device closes: nobody holds it */
}

static void a_device_without_it_says_so(void **unused)
{
    (void)unused;
    fake_reset(1, 8);
    tide_cuda_driver_set(FAKE_CUDA);
    fake_without(FAKE_IPC);
    tide_device *device = tide_device_open("cuda:0");
    assert_non_null(device);
    assert_false(info_of(device).exports);
    assert_null(tide_buffers_shared(device, TIDE_BUFFER_IPC));
    assert_int_equal(tide_error_status(), TIDE_ERROR_DEVICE);
    expect_said("no memory for other processes");
    expect_ok(tide_device_close(device));
    fake_reset(1, 8); /* a driver that does not know the question has it */
    fake_fail("cuDeviceGetAttribute", 4, TIDE_CU_INVALID_VALUE, false);
    device = tide_device_open("cuda:0");
    assert_non_null(device);
    assert_true(info_of(device).exports);
    assert_int_equal(fake_failures(), 1);
    expect_ok(tide_device_close(device));
}

int main(int count, char **words)
{
    if (count > 1)
        return peer_main(words[1]);
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_process_uses_a_buffer),
        cmocka_unit_test(another_process_uses_a_part_of_an_array),
        cmocka_unit_test(another_process_uses_an_exported_array),
        cmocka_unit_test(streams_order_them_as_others),
        cmocka_unit_test(what_others_have_open_is_not_freed),
        cmocka_unit_test(who_closes_waits_for_his_work),
        cmocka_unit_test(what_is_open_does_not_keep_a_lost_device),
        cmocka_unit_test(what_cannot_be_exported_is_refused),
        cmocka_unit_test(only_the_owner_exports),
        cmocka_unit_test(what_cannot_be_opened_holds_nothing),
        cmocka_unit_test(a_device_without_it_says_so),
    };
    alarm(4 * SECONDS);
    return cmocka_run_group_tests_name("processes", tests, NULL, NULL);
}
