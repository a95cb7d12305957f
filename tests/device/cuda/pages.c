/* SPDX-License-Identifier: MIT */
/* Memory by the page (runtime/device/cuda/pages.c): blocks split, join and grow where they are, what is
 * free in the middle is unmapped, and any request is met that fits in what is free. */
#include <tidepool/buffers.h>
#include <tidepool/device_memory.h>
#include <tidepool/tune.h>

#include <pthread.h>
#include <sched.h>

#include "support.h"

#include "runtime/base/os.h"
#include "runtime/device/cuda/cuda.h"

/* LEAST: of which fewer bytes are the driver's pool's; so much is mapped at once, too. */
enum { GRANULE = 256 << 10, LEAST = 8 * GRANULE, MIB = 1 << 20 };

static bench start(uint32_t seed)
{
    expect_ok(tide_tune_set("cuda_memory", 1));
    bench b = bench_start(seed);
    expect_ok(tide_tune_set("cuda_memory", 0));
    assert_non_null(tide_cuda_of(b.device)->pages);
    return b;
}

static uint8_t *take(const bench *b, size_t bytes)
{
    void *data = NULL;
    return b->device->methods->allocate(b->device, b->stream, TIDE_MEMORY_DEVICE, bytes, 64,
                                        &data) == TIDE_OK
               ? data
               : NULL;
}

static void give(const bench *b, void *data)
{
    b->device->methods->release(b->device, b->stream, TIDE_MEMORY_DEVICE, data, 0);
}

/* ---- which memory it is --------------------------------------------------------------------- */

TEST(it_is_asked_for_and_where_it_cannot_be_had_the_pool_stays)
{
    bench b = bench_start(1);
    assert_null(tide_cuda_of(b.device)->pages);
    assert_non_null(memory_of(b.device).driver_pool);
    bench_end(&b);
    expect_ok(tide_tune_set("cuda_memory", 1));
    b = bench_start_without(1, FAKE_PAGES);
    assert_non_null(tide_cuda_of(b.device)->pool);
    assert_int_equal(fake_calls("cuMemAddressReserve"), 0);
    bench_end(&b);
    b = start(1);
    const tide_device_memory memory = memory_of(b.device);
    assert_true(memory.driver_known && memory.driver_pool != NULL && memory.driver_reserved == 0);
    uint8_t *small = take(&b, LEAST - 1); /* is the pool's */
    assert_int_equal(fake_calls("cuMemCreate"), 0);
    assert_int_equal(fake_calls("cuMemAllocFromPoolAsync"), 1);
    give(&b, small);
    bench_end(&b);
    assert_int_equal(fake_calls("cuMemAddressFree"), 1);
}

/* Addresses are short in a process with a bound on them. */
TEST(a_device_without_a_range_opens_with_the_pool)
{
    static const char *const entries[] = {"cuMemAddressReserve", "cuMemGetAllocationGranularity"};
    for (int i = 0; i < 2; i++) {
        fake_reset(1, 1);
        tide_cuda_driver_set(FAKE_CUDA);
        expect_ok(tide_tune_set("cuda_memory", 1));
        fake_fail(entries[i], 1, TIDE_CU_OUT_OF_MEMORY, false);
        tide_device *device = tide_device_open("cuda:0");
        expect_ok(tide_tune_set("cuda_memory", 0));
        assert_int_equal(fake_failures(), 1);
        assert_non_null(device);
        assert_null(tide_cuda_of(device)->pages);
        assert_non_null(tide_cuda_of(device)->pool);
        tide_pool *pool = tide_pool_create(&(tide_pool_options){.device = device});
        {
            TIDE_SCOPE(pool);
            assert_non_null(tide_acquire(pool, uint8_t, 2 * LEAST));
        }
        expect_ok(tide_pool_destroy(pool));
        expect_ok(tide_device_close(device));
        assert_int_equal(fake_calls("cuMemAddressFree"), 0);
    }
}

/* ---- blocks --------------------------------------------------------------------------------- */

TEST(blocks_split_and_join)
{
    bench b = start(2);
    uint8_t *whole = take(&b, 4 * LEAST);
    give(&b, whole);
    fake_synchronise_all();
    uint8_t *parts[4];
    for (int i = 0; i < 4; i++)
        parts[i] = take(&b, LEAST);
    for (int i = 0; i < 4; i++)
        assert_ptr_equal(parts[i], whole + i * LEAST);
    assert_int_equal(memory_of(b.device).driver_reserved, 4 * LEAST);
    uint8_t *odd = take(&b, LEAST + 1), *next = take(&b, LEAST);
    assert_ptr_equal(odd, whole + 4 * LEAST);
    assert_ptr_equal(next, odd + LEAST + GRANULE);
    for (int i = 0; i < 4; i++) {
        put(b.stream, parts[i], LEAST, 1);
        give(&b, parts[i]);
    }
    fake_synchronise_all();
    assert_ptr_equal(take(&b, 4 * LEAST), whole);
    assert_int_equal(memory_of(b.device).driver_used, 6 * LEAST + GRANULE);
    give(&b, odd);
    give(&b, next);
    give(&b, whole);
    bench_end(&b);
}

TEST(a_trim_unmaps_what_is_free_in_the_middle)
{
    bench b = start(3);
    uint8_t *first = take(&b, LEAST), *middle = take(&b, 4 * MIB), *last = take(&b, LEAST);
    put(b.stream, first, LEAST, 1);
    put(b.stream, last, LEAST, 2);
    give(&b, middle);
    expect_ok(tide_device_memory_trim(b.device, LEAST)); /* so much is kept */
    assert_int_equal(fake_live_bytes(), 3 * LEAST);
    expect_ok(tide_device_memory_trim(b.device, 0));
    assert_int_equal(fake_live_bytes(), 2 * LEAST);
    expect(b.stream, first, LEAST, 1);
    expect(b.stream, last, LEAST, 2);
    fake_synchronise_all();
    expect_order();
    give(&b, first);
    give(&b, last);
    bench_end(&b);
}

/* What was mapped for it goes back, also where the driver fails half-way. */
TEST(a_request_that_is_refused_holds_nothing)
{
    bench b = start(9);
    fake_limit(80 * MIB);
    assert_null(take(&b, 100 * MIB));
    assert_true(fake_calls("cuMemMap") > 0);
    assert_int_equal(fake_live_bytes(), 0);
    for (unsigned nth = 1; nth <= 3; nth++) {
        fake_fail("cuMemSetAccess", nth, 999, false);
        assert_null(take(&b, 4 * LEAST));
        assert_int_equal(fake_failures(), 1);
        assert_int_equal(fake_live_bytes(), 0);
    }
    assert_int_equal(memory_of(b.device).driver_reserved, 0);
    uint8_t *x = take(&b, 80 * MIB);
    assert_non_null(x);
    give(&b, x);
    bench_end(&b);
}

/* Nothing is tried, and what is free stays. */
TEST(more_than_the_device_has_is_refused_at_once)
{
    bench b = start(13);
    uint8_t *x = take(&b, 2 * LEAST), *y = take(&b, 2 * LEAST);
    give(&b, y);
    fake_synchronise_all();
    fake_count_anew();
    assert_null(take(&b, b.device->bytes - LEAST));
    expect_status(b.device->methods->extend(b.device, x, b.device->bytes + 1), TIDE_ERROR_MEMORY);
    assert_int_equal(fake_calls("cuMemCreate"), 0);
    assert_int_equal(fake_live_bytes(), 4 * LEAST);
    give(&b, x);
    bench_end(&b);
}

/* The pool's, too: of 80 MiB it keeps 60. */
TEST(what_the_pool_keeps_goes_back_before_pages_are_refused)
{
    bench b = start(10);
    uint8_t *small[60];
    fake_limit(80 * MIB);
    for (int i = 0; i < 60; i++)
        assert_non_null(small[i] = take(&b, MIB));
    for (int i = 0; i < 60; i++)
        give(&b, small[i]);
    fake_synchronise_all();
    uint8_t *x = take(&b, 70 * MIB);
    assert_non_null(x);
    const tide_device_memory memory = memory_of(b.device);
    assert_int_equal(memory.driver_reserved, 70 * MIB);
    assert_int_equal(memory.driver_reserved_peak,
                     70 * MIB); /* not what both had at different times */
    give(&b, x);
    bench_end(&b);
}

TEST(units_are_mapped_and_unmapped_several_at_once)
{
    bench b = start(11);
    uint8_t *x = take(&b, 8 * LEAST + GRANULE);
    assert_int_equal(fake_calls("cuMemCreate"), 9);
    assert_int_equal(fake_calls("cuMemSetAccess"), 9);
    give(&b, x);
    fake_synchronise_all();
    uint8_t *y =
        take(&b, LEAST + GRANULE); /* of two that were mapped at once the second has room left */
    assert_ptr_equal(y, x);
    expect_ok(tide_device_memory_trim(b.device, 0));
    assert_int_equal(fake_calls("cuMemUnmap"), 7);
    assert_int_equal(fake_live_bytes(), 2 * LEAST);
    give(&b, y);
    bench_end(&b);
}

/* Another thread. */
typedef struct other {
    const bench *b;
    int memory; /* what it takes */
    size_t bytes;
    pthread_t thread;
    int number; /* atomic; 0: not yet */
    bool done;  /* atomic             */
    void *got;
} other;

static bool other_is_done(const other *o)
{
    return __atomic_load_n(&o->done, __ATOMIC_ACQUIRE);
}

static bool other_sleeps(const other *o)
{
    const int number = __atomic_load_n(&o->number, __ATOMIC_ACQUIRE);
    return number != 0 && tide_os_thread_sleeps(number);
}

static void *other_takes(void *of)
{
    other *o = of;
    tide_device *device = o->b->device;
    __atomic_store_n(&o->number, tide_os_thread_number(), __ATOMIC_RELEASE);
    if (device->methods->allocate(device, o->b->stream, o->memory, o->bytes, 64, &o->got) !=
        TIDE_OK)
        o->got = NULL;
    __atomic_store_n(&o->done, true, __ATOMIC_RELEASE);
    return NULL;
}

static void *other_trims(void *of)
{
    other *o = of;
    expect_ok(o->b->device->methods->trim(o->b->device, 0));
    return NULL;
}

static void other_begin(other *o, void *(*run)(void *))
{
    assert_int_equal(pthread_create(&o->thread, NULL, run, o), 0);
}

/* Until it is in that call, which does not return. */
static void other_begin_held(other *o, void *(*run)(void *), const char *call)
{
    fake_hold_up(call);
    other_begin(o, run);
    while (fake_held_up() == 0)
        sched_yield();
}

/* And a trim that has nothing to give back is over. */
TEST(what_is_mapped_is_had_while_another_thread_maps)
{
    bench b = start(12);
    other maps = {.b = &b, .memory = TIDE_MEMORY_DEVICE, .bytes = 4 * LEAST};
    uint8_t *x = take(&b, LEAST), *behind = take(&b, LEAST);
    give(&b, x);
    fake_synchronise_all();
    other_begin_held(&maps, other_takes, "cuMemCreate");
    uint8_t *y = take(&b, LEAST);
    expect_ok(tide_device_memory_trim(b.device, 0));
    fake_hold_up(NULL);
    pthread_join(maps.thread, NULL);
    assert_true(y == x && maps.got != NULL && maps.got != y);
    give(&b, y);
    give(&b, maps.got);
    give(&b, behind);
    bench_end(&b);
}

/* It waits for that thread: of what the device has nothing is had meanwhile. */
TEST(nobody_is_refused_what_another_thread_gives_back)
{
    static const int memories[] = {TIDE_MEMORY_DEVICE, TIDE_MEMORY_MANAGED};
    for (int i = 0; i < 2; i++) {
        bench b = start(14);
        other trims = {.b = &b};
        other takes = {.b = &b, .memory = memories[i], .bytes = 4 * LEAST};
        fake_limit(4 * LEAST);
        give(&b, take(&b, 4 * LEAST));
        fake_synchronise_all();
        other_begin_held(&trims, other_trims, "cuMemUnmap");
        other_begin(&takes, other_takes);
        while (!other_is_done(&takes) && !other_sleeps(&takes) && fake_held_up() == 1)
            sched_yield();
        fake_hold_up(NULL);
        pthread_join(trims.thread, NULL);
        pthread_join(takes.thread, NULL);
        assert_non_null(takes.got);
        assert_int_equal(fake_live_bytes(), 4 * LEAST);
        b.device->methods->release(b.device, b.stream, memories[i], takes.got, 4 * LEAST);
        bench_end(&b);
    }
}

/* One has all there is, and is refused because it wants more. Another one wants what there is: it waits for
 * what the first one gives back. */
TEST(nobody_is_refused_what_another_thread_has_in_vain)
{
    bench b = start(16);
    other has = {.b = &b, .memory = TIDE_MEMORY_DEVICE, .bytes = 4 * LEAST};
    other takes = {.b = &b, .memory = TIDE_MEMORY_DEVICE, .bytes = LEAST};
    fake_limit(LEAST);
    other_begin_held(&has, other_takes, "cuMemMap");
    other_begin(&takes, other_takes);
    while (!other_is_done(&takes) && !other_sleeps(&takes))
        sched_yield();
    fake_hold_up(NULL);
    pthread_join(has.thread, NULL);
    pthread_join(takes.thread, NULL);
    assert_null(has.got);
    assert_non_null(takes.got);
    give(&b, takes.got);
    bench_end(&b);
}

static void *take_and_give(void *of)
{
    const bench *b = of;
    unsigned served = 0;
    for (int i = 0; i < 20; i++) {
        void *data = take(b, 3 * LEAST);
        served += data != NULL;
        if (data != NULL)
            give(b, data);
    }
    return (void *)(uintptr_t)served;
}

/* Several ask for more than there is, and give back what they got of it; each ends. */
TEST(threads_that_are_refused_beside_each_other_end)
{
    enum { THREADS = 3 };
    bench b = start(15);
    pthread_t threads[THREADS];
    fake_limit(2 * LEAST);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &b), 0);
    for (int i = 0; i < THREADS; i++) {
        void *served = &b;
        pthread_join(threads[i], &served);
        assert_null(served);
    }
    assert_int_equal(fake_live_bytes(), 0);
    bench_end(&b);
}

/* Managed and shared memory come from the driver, which knows nothing of what is mapped and free. */
TEST(what_is_free_goes_back_before_the_driver_refuses)
{
    bench b = start(5);
    void *managed = NULL;
    fake_limit(8 * MIB);
    uint8_t *x = take(&b, 6 * MIB);
    give(&b, x);
    fake_synchronise_all();
    expect_ok(b.device->methods->allocate(b.device, b.stream, TIDE_MEMORY_MANAGED, 6 * MIB, 64,
                                          &managed));
    b.device->methods->release(b.device, b.stream, TIDE_MEMORY_MANAGED, managed, 6 * MIB);
    assert_int_equal(fake_live_bytes(), 0);
    bench_end(&b);
}

/* ---- growing -------------------------------------------------------------------------------- */

TEST(a_live_array_grows_where_it_is)
{
    bench b = start(6);
    {
        TIDE_SCOPE(b.pool);
        uint8_t *x = tide_acquire(b.pool, uint8_t, 3 * LEAST), *was = x;
        put(b.stream, x, 3 * LEAST, 5);
        fake_count_anew();
        for (size_t n = 4; n <= 16; n *= 2) {
            x = tide_grow(b.pool, uint8_t, x, n * LEAST);
            assert_ptr_equal(x, was);
            put(b.stream, x + 3 * LEAST, (n - 3) * LEAST, 6);
        }
        assert_int_equal(fake_calls("cuMemcpyAsync"), 0);
        expect(b.stream, x, 3 * LEAST, 5);
        expect(b.stream, x + 3 * LEAST, 13 * LEAST, 6);
        assert_int_equal(stats_of(b.pool).bytes_held, memory_of(b.device).bytes_held);
        assert_int_equal(memory_of(b.device).bytes_held, memory_of(b.device).driver_used);
    }
    {
        TIDE_SCOPE(b.pool); /* a free slot, too */
        fake_count_anew();
        assert_non_null(tide_acquire(b.pool, uint8_t, 40 * LEAST));
        assert_int_equal(stats_of(b.pool).releases, 0);
    }
    bench_end(&b);
}

/* One that another one follows, as ever. */
TEST(an_array_that_cannot_grow_is_copied)
{
    bench b = start(7);
    {
        TIDE_SCOPE(b.pool);
        uint8_t *x = tide_acquire(b.pool, uint8_t, 2 * LEAST), *was = x;
        uint16_t *y = tide_acquire(b.pool, uint16_t, LEAST);
        assert_ptr_equal(y, x + 2 * LEAST);
        put(b.stream, x, 2 * LEAST, 5);
        x = tide_grow(b.pool, uint8_t, x, 9 * LEAST);
        assert_ptr_not_equal(x, was);
        expect(b.stream, x, 2 * LEAST, 5);
        expect_ok(tide_device_memory_set(b.device,
                                         &(tide_device_memory_options){.limit_bytes = 12 * LEAST}));
        assert_null(tide_grow(b.pool, uint8_t, x, 20 * LEAST));
        expect_status(tide_error_status(), TIDE_ERROR_LIMIT);
        expect_ok(tide_device_memory_set(b.device, NULL));
    }
    expect_ok(tide_pool_wait(b.pool));
    bench_end(&b);
}

/* What a graph was captured with stays its own. */
TEST(in_a_capture_nothing_grows_where_it_is)
{
    bench b = start(8);
    expect_ok(tide_capture_begin(b.pool));
    fake_capture_begin(b.stream);
    uint8_t *was = NULL;
    {
        TIDE_SCOPE(b.pool);
        uint8_t *x = was = tide_acquire(b.pool, uint8_t, LEAST);
        assert_non_null(x);
        put(b.stream, x, LEAST, 1);
        x = tide_grow(b.pool, uint8_t, x, 4 * LEAST);
        assert_true(x != NULL && x != was);
        put(b.stream, x, 4 * LEAST, 2);
    }
    void *graph = take_graph(b.stream);
    tide_capture *capture = tide_capture_end(b.pool);
    assert_non_null(capture);
    fake_graph_launch(graph, b.stream);
    uint8_t *y = take(&b, LEAST);
    assert_ptr_not_equal(y, was);
    give(&b, y);
    expect_ok(tide_capture_drop(capture, b.stream));
    fake_graph_destroy(graph);
    bench_end(&b);
}

int main(void)
{
    return RUN_TESTS("pages");
}
