/* SPDX-License-Identifier: MIT */
/* Every entry point of the driver fails, at its first, second, third … call, once and for ever,
 * with an error that passes and with one that loses the device, while a program runs that uses all
 * of the library's face. Whatever fails: what reports success is right, the pool's invariants
 * hold, no work is unordered, everything can be given up, and after failing once everything works
 * again. */
#include <stdlib.h>

#include <tidepool/array.h>
#include <tidepool/device.h>
#include <tidepool/dlpack.h>
#include <tidepool/dynamic.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

#include "support.h"

#include "runtime/base/test_hooks.h"
#include "runtime/device/cuda/cuda.h"

enum { PASSING = 999, FATAL = 719, MOST = 400 };

/* What the program found to be wrong; it goes on to its end whatever fails. */
static unsigned refused;

static void *streams[3]; /* the pool's, a declared one, another device's */

static void note(tide_status status)
{
    if (status == TIDE_OK)
        return;
    refused++;
    assert_true(tide_error_message()[0] != '\0');
    assert_int_equal(status, tide_error_status());
}

static void note_array(void *stream, void *data, size_t bytes, uint8_t value)
{
    if (data == NULL)
        note(tide_error_status());
    else
        expect(stream, data, bytes, value);
}

static void use_pool(tide_pool *pool, void *stream, void *other)
{
    for (int i = 0; i < 3; i++) {
        TIDE_SCOPE(pool);
        bool declared = tide_pool_use_on(pool, other) == TIDE_OK;
        note(declared ? TIDE_OK : tide_error_status());
        note_array(stream, tide_zeros(pool, float, 100), 400, 0);
        uint8_t *x = tide_acquire(pool, uint8_t, 1000 * (size_t)(i + 1));
        note(x != NULL ? TIDE_OK : tide_error_status());
        if (x != NULL)
            put(declared ? other : stream, x, 1000, 1);
        TIDE_LOOP(pool, j, 2)
        {
            double *y = tide_ones(pool, double, 10);
            note(y != NULL ? TIDE_OK : tide_error_status());
        }
        note(tide_pool_check(pool));
    }
    note(tide_pool_wait(pool));
}

typedef struct triple {
    uint8_t bytes[3];
} triple;

typedef struct sextuple {
    uint16_t parts[3];
} sextuple;

static void fill(tide_pool *pool, void *stream, tide_type type, const void *value)
{
    void *data = tide_fill_type(pool, type, 33, value);
    note(data != NULL ? TIDE_OK : tide_error_status());
    if (data != NULL)
        expect_pattern(stream, data, value, tide_type_size(type), 33);
}

static void fill_all(tide_pool *pool, void *stream)
{
    const tide_f16 f16 = {0x3E01};
    const float f32 = 1.5f;
    const double f64 = 1.25;
    const triple three = {{1, 2, 3}};
    const sextuple six = {{1, 2, 3}};
    TIDE_SCOPE(pool);
    fill(pool, stream, TIDE_F16, &f16);
    fill(pool, stream, TIDE_F32, &f32);
    fill(pool, stream, TIDE_F64, &f64);
    fill(pool, stream, tide_type_of(triple), &three);
    fill(pool, stream, tide_type_of(sextuple), &six);
}

/* What came back is right if it is said to have come back. */
static void copy(tide_pool *pool)
{
    static uint8_t from[5000], to[5000];
    memset(from, 7, sizeof from);
    memset(to, 0, sizeof to);
    TIDE_SCOPE(pool);
    uint8_t *x = tide_acquire(pool, uint8_t, sizeof from);
    uint8_t *y = tide_acquire(pool, uint8_t, sizeof from);
    if (x == NULL || y == NULL) {
        note(tide_error_status());
        return;
    }
    tide_status status = tide_upload(pool, x, from, sizeof from);
    if (status == TIDE_OK)
        status = tide_copy(pool, y, x, sizeof from);
    if (status == TIDE_OK)
        status = tide_download(pool, to, y, sizeof from);
    note(status);
    if (status == TIDE_OK)
        assert_memory_equal(from, to, sizeof from);
}

static bool paged;      /* memory by the page is asked for */
static unsigned mapped; /* calls that map it               */

/* What is large enough for pages, and grows there. */
static void use_pages(tide_pool *pool, void *stream)
{
    enum { LARGE = 2 << 20 };
    TIDE_SCOPE(pool);
    uint8_t *x = tide_acquire(pool, uint8_t, LARGE);
    note(x != NULL ? TIDE_OK : tide_error_status());
    if (x == NULL)
        return;
    put(stream, x, 1000, 1);
    uint8_t *grown = tide_grow(pool, uint8_t, x, LARGE + LARGE / 4);
    note(grown != NULL ? TIDE_OK : tide_error_status());
    expect(stream, grown != NULL ? grown : x, 1000, 1);
    mapped += fake_calls("cuMemMap");
}

static void launch(tide_device *device, tide_pool *pool, void *stream)
{
    TIDE_SCOPE(pool);
    uint8_t *x = tide_zeros(pool, uint8_t, 128);
    tide_status status = x != NULL ? try_bump(device, stream, x) : tide_error_status();
    note(status);
    if (status == TIDE_OK)
        expect(stream, x, 128, 5);
}

static void exchange(tide_pool *pool, void *stream)
{
    tide_dl_managed *managed = NULL;
    {
        TIDE_SCOPE(pool);
        tide_array *array = tide_array_acquire(pool, TIDE_F32, 1, (const int64_t[]){50});
        managed = array != NULL ? tide_array_export(pool, array) : NULL;
        note(managed != NULL ? TIDE_OK : tide_error_status());
        if (managed != NULL)
            put(stream, managed->tensor.data, 200, 1);
    }
    if (managed == NULL)
        return;
    TIDE_SCOPE(pool);
    tide_array *again = tide_array_import(pool, managed);
    note(again != NULL ? TIDE_OK : tide_error_status());
    if (again != NULL)
        expect(stream, again->tensor.data, 200, 1);
}

/* The source may be used again behind the copy, also where that failed half-way. */
static void copy_between(tide_pool *pool, void *stream, tide_device *to, void *to_stream)
{
    tide_pool *second = tide_pool_create(&(tide_pool_options){.device = to, .stream = to_stream});
    note(second != NULL ? TIDE_OK : tide_error_status());
    if (second == NULL)
        return;
    {
        TIDE_SCOPE(pool);
        TIDE_SCOPE(second);
        uint8_t *x = tide_zeros(pool, uint8_t, 500), *y = tide_acquire(second, uint8_t, 500);
        for (int i = 0; i < 8 && x != NULL && y != NULL; i++) { /* neither stream is at its end */
            put(stream, x, 500, 3);
            put(to_stream, y, 500, 4);
        }
        tide_status status =
            x != NULL && y != NULL ? tide_copy_from(second, y, pool, x, 500) : tide_error_status();
        note(status);
        if (x != NULL)
            put(stream, x, 500, 2);
        if (status == TIDE_OK)
            expect(to_stream, y, 500, 3);
    }
    expect_ok(tide_pool_destroy(second));
}

static void copy_to_another_device(tide_pool *pool, void *stream)
{
    tide_device *second = tide_device_open("cuda:1");
    note(second != NULL ? TIDE_OK : tide_error_status());
    if (second == NULL)
        return;
    copy_between(pool, stream, second, streams[2]);
    fake_synchronise(streams[2]); /* its end is not what fails here */
    expect_ok(tide_device_close(second));
}

/* What a capture that failed to end has taken goes with the pool. */
static void capture(tide_pool *pool, void *stream)
{
    tide_status status = tide_capture_begin(pool);
    note(status);
    if (status != TIDE_OK)
        return;
    for (int i = 0; i < 3; i++) {
        TIDE_SCOPE(pool);
        uint8_t *x = tide_acquire(pool, uint8_t, 3000 * (size_t)(i + 1));
        note(x != NULL ? TIDE_OK : tide_error_status());
        if (x != NULL)
            put(stream, x, 3000, 1);
    }
    tide_capture *made = tide_capture_end(pool);
    note(made != NULL ? TIDE_OK : tide_error_status());
    if (made != NULL)
        note(tide_capture_drop(made, stream));
}

/* From opening the device to closing it. False: it could not even be opened, or lost what a pool
 * needs. */
static bool run_program(void *stream, void *other)
{
    refused = 0;
    tide_device *device = tide_device_open("cuda:0");
    if (device == NULL)
        return note(tide_error_status()), false;
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.device = device, .stream = stream});
    note(pool != NULL ? TIDE_OK : tide_error_status());
    if (pool != NULL) {
        copy_between(pool, stream, device, other); /* first: every one of its calls fails once */
        copy_to_another_device(pool, stream);
        use_pool(pool, stream, other);
        if (tide_cuda_of(device)->pages != NULL)
            use_pages(pool, stream);
        exchange(pool, stream);
        fill_all(pool, stream);
        copy(pool);
        launch(device, pool, stream);
        capture(pool, stream);
        tide_status valid = tide_pool_check(pool); /* wants memory to compare slots in */
        assert_true(valid == TIDE_OK || valid == TIDE_ERROR_MEMORY);
        (void)tide_pool_trim(pool, TIDE_ALL_TYPES);
        expect_ok(tide_pool_destroy(pool));
    }
    tide_status closed = tide_device_close(device);
    if (closed != TIDE_OK)
        fail_msg("%d: %s", closed, tide_error_message());
    return pool != NULL;
}

static unsigned swept; /* entry points that the program calls */
static unsigned
    before; /* bytes that programs before have found wrong: where nothing can be ordered */

static void start(uint32_t seed)
{
    before = unexpected();
    fake_reset(2, seed);
    tide_cuda_driver_set(FAKE_CUDA);
    streams[0] = fake_stream_create(0);
    streams[1] = fake_stream_create(0);
    streams[2] = fake_stream_create(1);
}

/* What is unordered on a device that is lost does not run. Where nothing can be ordered nor waited
 * for there is no order. */
static void expect_no_harm(const char *entry, unsigned nth, int result, bool for_ever)
{
    if (result != FATAL && !for_ever && fake_hazard() != NULL)
        fail_msg("%s, call %u: %s", entry, nth, fake_hazard());
    if (fake_violation() != NULL)
        fail_msg("%s, call %u: %s", entry, nth, fake_violation());
    if (result != FATAL && !for_ever && unexpected() != before)
        fail_msg("%s, call %u: %u bytes are not what they were", entry, nth, unexpected() - before);
}

/* False: there is no nth call. */
static bool fail_one(const char *entry, unsigned nth, int result, bool for_ever)
{
    start(nth);
    fake_fail(entry, nth, result, for_ever);
    (void)run_program(streams[0], streams[1]);
    bool failed = fake_failures() > 0;
    fake_fail(entry, 0, 0, false);
    fake_synchronise_all();
    expect_no_harm(entry, nth, result, for_ever);
    if (!failed)
        assert_int_equal(refused, 0);
    if (strncmp(entry, "cuMem", 5) == 0 &&
        result != FATAL) /* only the test's and the legacy ones */
        assert_int_equal(fake_streams(), 2 + sizeof streams / sizeof *streams);
    start(1);
    assert_true(run_program(streams[0], streams[1]));
    assert_int_equal(refused, 0);
    return failed;
}

static void sweep(void **state)
{
    const char *entry = *state;
    unsigned failed = 0;
    for (int mode = 0; mode < 4; mode++) {
        unsigned nth = 1;
        while (nth < MOST && fail_one(entry, nth, mode % 2 == 0 ? PASSING : FATAL, mode >= 2))
            nth = nth < scaled(12, 4) ? nth + 1 : nth + nth / 4;
        failed += nth - 1;
    }
    swept += failed > 0;
}

/* ---- the library's own memory --------------------------------------------------------------- */

static _Thread_local unsigned asked, faulty;
static _Thread_local bool faults_go_on;

static bool refuse(size_t bytes)
{
    (void)bytes;
    asked++;
    return asked == faulty || (faults_go_on && asked > faulty);
}

/* False: the program asks for less. */
static bool run_without_memory(unsigned nth, bool for_ever)
{
    start(nth);
    asked = 0;
    faulty = nth;
    faults_go_on = for_ever;
    tide_os_fault = refuse;
    (void)run_program(streams[0], streams[1]);
    tide_os_fault = NULL;
    fake_synchronise_all();
    expect_no_harm("memory", nth, 0, false);
    if (asked < nth)
        assert_int_equal(refused, 0);
    return asked >= nth;
}

static void memory_fails_in_turn(void **state)
{
    (void)state;
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        unsigned nth = 1;
        while (nth < MOST && run_without_memory(nth, for_ever != 0))
            nth++;
        assert_in_range(nth, 10, MOST - 1);
    }
    start(1);
    assert_true(run_program(streams[0], streams[1]));
    assert_int_equal(refused, 0);
}

static void most_entry_points_are_called(void **state)
{
    (void)state;
    print_message("%u entry points failed\n", swept);
    assert_true(
        swept >=
        (paged ? 20 : 40)); /* the driver was loaded before, and may have words for nothing */
    assert_true((mapped != 0) == paged);
}

/* By the page only what has to do with memory is another. */
int main(void)
{
    static struct CMUnitTest tests[128];
    unsigned count = 0;
    const char *entry;
    double by_page = 0;
    expect_ok(tide_tune_get("cuda_memory", &by_page));
    paged = by_page == 1;
    for (unsigned i = 0; (entry = fake_entry(i)) != NULL; i++)
        if (!paged || strncmp(entry, "cuMem", 5) == 0)
            tests[count++] = (struct CMUnitTest){
                .name = entry, .test_func = sweep, .initial_state = (void *)(uintptr_t)entry};
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(memory_fails_in_turn);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(most_entry_points_are_called);
    tide_tune_set("background", 0);
    return _cmocka_run_group_tests("failing", tests, count, NULL, NULL);
}
