/* SPDX-License-Identifier: MIT */
/* Pools in memory that the program gives: every array lies in it, what does not fit is refused with
 * how much is missing, and the memory is the program's again when the pool is gone. */
#define _GNU_SOURCE
#include "arrays_support.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/dlpack.h>
#include <tidepool/dynamic.h>

#include "random.h"

enum { ROOM = 256 * 1024, EDGE = 4096 };

/* Beside the memory given, which begins at no multiple of anything, nothing may change. */
struct given {
    uint8_t before[EDGE + 3];
    uint8_t room[ROOM];
    uint8_t after[EDGE];
};

static struct given *given;

static tide_pool *pool_in(void *memory, size_t bytes, tide_check check, bool disabled)
{
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.name = "given",
                                                            .memory = memory,
                                                            .memory_bytes = bytes,
                                                            .check = check,
                                                            .disabled = disabled});
    if (pool == NULL)
        fail_msg("a pool in memory: %s", tide_error_message());
    return pool;
}

static tide_pool *pool_given(tide_check check, bool disabled)
{
    if (given == NULL)
        given = test_malloc(sizeof *given);
    fill_bytes(given->before, sizeof given->before, 1);
    fill_bytes(given->after, sizeof given->after, 2);
    return pool_in(given->room, ROOM, check, disabled);
}

static void give_up(tide_pool *pool)
{
    CHECK_POOL(pool);
    expect_ok(tide_pool_destroy(pool));
    expect_bytes(given->before, sizeof given->before, 1);
    expect_bytes(given->after, sizeof given->after, 2);
    memset(given->room, 0x11, ROOM); /* a sanitizer says so if any of it is still forbidden */
    test_free(given);
    given = NULL;
}

static void expect_inside(const void *data, size_t bytes)
{
    const uint8_t *at = data;
    assert_true(at >= given->room && at + bytes <= given->room + ROOM);
}

/* ---- every array lies in it ---- */

static void take_inside(tide_pool *pool, void *state)
{
    static const tide_type types[] = {TIDE_F64, TIDE_U8, TIDE_C128, TIDE_I32, TIDE_BIT};
    (void)state;
    for (unsigned i = 0; i < 40; i++) {
        tide_type type = types[i % 5];
        size_t n = 1 + i * 7,
               bytes = type == TIDE_BIT ? (n + 63) / 64 * 8 : n * tide_type_size(type);
        expect_inside(take(pool, type, n, i), bytes);
    }
    double *grown = tide_grow(pool, double, tide_acquire(pool, double, 3), 2000);
    expect_inside(grown, 2000 * sizeof *grown);
    fill_bytes(grown, 2000 * sizeof *grown, 5);
    tide_array *array = TAKE(pool, TIDE_F32, 5, 7);
    expect_inside(tide_array_data(array), 140);
    expect_inside(tide_array_view(pool, array, SHAPE(1, 1), SHAPE(2, 2), NULL), sizeof *array);
    CHECK_POOL(pool);
    tide_pool_trim(pool, TIDE_ALL_TYPES);
    CHECK_POOL(pool);
}

static void every_array_lies_in_the_memory_given(const scene *s)
{
    tide_pool *pool = pool_given(s->kind->check, s->kind->disabled);
    counts before = counts_of(pool);
    for (int i = 0; i < 5; i++)
        form_run(s->form, pool, take_inside, NULL);
    form_repeat(s->form, pool, 3, take_inside, NULL);
    counts_same(before, pool);
    assert_int_equal(stats_of(pool).bytes_limit, (ROOM - 64) / 64 * 64);
    give_up(pool);
}

static void fill_up(tide_pool *pool, void *state)
{
    size_t *most = state, count = 0;
    uint8_t *last = NULL;
    for (uint8_t *at = tide_acquire(pool, uint8_t, 5000); at != NULL;
         at = tide_acquire(pool, uint8_t, 5000)) {
        fill_bytes(at, 5000, (unsigned)++count);
        last = at;
    }
    expect_error(TIDE_ERROR_LIMIT, "missing");
    assert_non_null(last);
    expect_bytes(last, 5000, (unsigned)count);
    assert_true(*most == 0 || *most == count); /* nothing got lost */
    *most = count;
    tide_pool_trim(pool, TIDE_ALL_TYPES);
}

static void what_does_not_fit_is_refused_and_nothing_gets_lost(const scene *s)
{
    tide_pool *pool = pool_given(s->kind->check, s->kind->disabled);
    size_t most = 0;
    for (int i = 0; i < 4; i++) {
        form_run(s->form, pool, fill_up, &most);
        tide_pool_trim(pool, TIDE_ALL_TYPES);
    }
    assert_in_range(most, (ROOM - 10000) / 5056, ROOM / 5000);
    give_up(pool);
}

/* ---- pieces ---- */

static void the_message_says_how_much_is_missing(void **state)
{
    (void)state;
    _Alignas(64) static uint8_t memory[1024 + 5];
    tide_pool *pool = pool_in(memory, sizeof memory, TIDE_CHECK_NONE, false);
    assert_int_equal(stats_of(pool).bytes_limit, 1024);
    assert_null(tide_acquire(pool, uint8_t, 1100));
    expect_error(TIDE_ERROR_LIMIT, "128 are missing");
    assert_non_null(tide_acquire(pool, uint8_t, 512));
    assert_null(tide_acquire(pool, uint8_t, 640));
    expect_error(TIDE_ERROR_LIMIT, "128 are missing");
    assert_non_null(tide_acquire(pool, int32_t, 64)); /* 256 of the 512 */
    tide_mark mark = tide_checkpoint(pool);
    assert_non_null(tide_acquire(pool, double, 24)); /* 192 of the 256 */
    assert_non_null(tide_acquire(pool, float, 16));  /* and the last 64 */
    expect_ok(tide_rewind(pool, mark));
    tide_pool_trim(pool, TIDE_F64);
    assert_null(tide_acquire(pool, int64_t, 40));
    expect_error(TIDE_ERROR_LIMIT, "64 are missing; 768 are live");
    assert_non_null(tide_acquire(pool, int64_t, 32)); /* both pieces, joined */
    expect_ok(tide_pool_destroy(pool));
}

/* ---- consumers ---- */

static void a_consumer_may_outlive_the_pool(void **state)
{
    (void)state;
    tide_pool *pool = pool_given(TIDE_CHECK_NONE, false);
    tide_array *array = TAKE(pool, TIDE_F64, 100);
    fill_bytes(tide_array_data(array), 800, 3);
    tide_dl_managed *managed = tide_array_export(pool, array);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
    expect_bytes(managed->tensor.data, 800, 3);
    managed->deleter(managed);
    test_free(given);
    given = NULL;
}

/* ---- shared ---- */

static void a_child_reads_shared_memory_that_its_parent_fills(void **state)
{
    (void)state;
    size_t bytes = 64 * 1024;
    void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    tide_pool *pool = pool_in(shared, bytes, TIDE_CHECK_NONE, false);
    uint8_t *array = take(pool, TIDE_U8, 5000, 1);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        char go;
        bool told = read(ends[0], &go, 1) == 1;
        _exit(told && array[0] == 0xAB && array[4999] == 0xCD ? 0 : 1);
    }
    array[0] = 0xAB;
    array[4999] = 0xCD;
    assert_int_equal(write(ends[1], "x", 1), 1);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(ends[0]);
    close(ends[1]);
    expect_ok(tide_pool_destroy(pool));
    munmap(shared, bytes);
}

/* ---- refused ---- */

/* It is memory of the host, like that of any other pool there. */
static void copies_go_in_and_out(void **unused)
{
    (void)unused;
    uint8_t room[2][4096];
    tide_pool *one = pool_in(room[0], sizeof room[0], TIDE_CHECK_NONE, false);
    tide_pool *other = pool_in(room[1], sizeof room[1], TIDE_CHECK_NONE, false);
    tide_pool *plain = tide_pool_local();
    {
        TIDE_SCOPE(one);
        TIDE_SCOPE(other);
        TIDE_SCOPE(plain);
        uint8_t *x = tide_acquire(one, uint8_t, 100), *y = tide_acquire(other, uint8_t, 100);
        uint8_t *z = tide_acquire(plain, uint8_t, 100);
        memset(x, 7, 100);
        expect_ok(tide_copy_from(other, y, one, x, 100));
        expect_ok(tide_copy_from(plain, z, other, y, 100));
        memset(y, 0, 100);
        expect_ok(tide_copy_from(other, y, plain, z, 100));
        assert_memory_equal(y, x, 100);
    }
    expect_ok(tide_pool_destroy(one));
    expect_ok(tide_pool_destroy(other));
}

static void options_that_do_not_go_together_are_refused(void **state)
{
    (void)state;
    static uint8_t memory[8192];
    tide_buffers *buffers = tide_buffers_create(NULL, NULL);
    assert_null(tide_pool_create(&(tide_pool_options){.memory = memory}));
    expect_error(TIDE_ERROR_ARGUMENT, "0 bytes of memory");
    assert_null(tide_pool_create(&(tide_pool_options){.memory_bytes = 10}));
    expect_error(TIDE_ERROR_ARGUMENT, "10 bytes of memory");
    assert_null(tide_pool_create(
        &(tide_pool_options){.memory = memory, .memory_bytes = sizeof memory, .buffers = buffers}));
    expect_error(TIDE_ERROR_ARGUMENT, "buffers");
    assert_null(tide_pool_create(&(tide_pool_options){.memory = memory + 1, .memory_bytes = 63}));
    expect_error(TIDE_ERROR_SIZE, "63 bytes");
    assert_null(tide_pool_create(
        &(tide_pool_options){.memory = memory, .memory_bytes = sizeof memory, .stream = memory}));
    expect_error(TIDE_ERROR_ARGUMENT, "stream");
    tide_pool *pool = tide_pool_create(
        &(tide_pool_options){.memory = memory, .memory_bytes = sizeof memory, .limit_bytes = 1024});
    assert_int_equal(stats_of(pool).bytes_limit, 1024);
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_buffers_destroy(buffers));
}

static const form_case cases[] = {
    CASE(every_array_lies_in_the_memory_given),
    CASE(what_does_not_fit_is_refused_and_nothing_gets_lost),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(the_message_says_how_much_is_missing),
    cmocka_unit_test(a_consumer_may_outlive_the_pool),
    cmocka_unit_test(a_child_reads_shared_memory_that_its_parent_fills),
    cmocka_unit_test(copies_go_in_and_out),
    cmocka_unit_test(options_that_do_not_go_together_are_refused),
};

int main(void)
{
    return FORMS_MAIN("memory_given", cases, others);
}
