/* SPDX-License-Identifier: MIT */
/* Guarded arrays (check level 2), looked at through the kernel so that nothing faults: where they
 * end, when they are out of reach, what is found at the rewind, how much they take. What a fault
 * says is in tests/misuse. */
#define _GNU_SOURCE
#include "forms.h"
#include "hooks.h"
#include "reports.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <tidepool/array.h>
#include <tidepool/check.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

enum { PAGE = 4096 };

static bool reachable(const void *address)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)address, 1};
    return syscall(SYS_process_vm_readv, getpid(), &here, 1L, &there, 1L, 0L) == 1;
}

static uint8_t byte_at(const void *address)
{
    uint8_t byte;
    read_behind(address, &byte, 1);
    return byte;
}

/* The level-2 pool of a test, with settings of its own. */
static tide_pool *guarded_pool(double sample, double quarantine)
{
    expect_ok(tide_tune_set("guard_sample", sample));
    set_constant("quarantine", quarantine);
    return pool_of(TIDE_CHECK_GUARD);
}

static int usual_settings(void **state)
{
    (void)state;
    tide_report_set_handler(NULL, NULL);
    expect_ok(tide_tune_set("guard_sample", 1));
    set_constant("quarantine", 1024);
    return 0;
}

/* ---- out of reach ---- */

typedef struct leavings {
    double *reals, *more;
    uint8_t *records;
    tide_type record;
} leavings;

static void leave_some(tide_pool *pool, void *state)
{
    leavings *left = state;
    left->reals = take(pool, TIDE_F64, 100, 1);
    left->more = take(pool, TIDE_F64, 7, 2);
    left->records = take(pool, left->record, 10, 3);
    assert_true(reachable(left->reals) && reachable(left->more) && reachable(left->records));
    CHECK_POOL(pool);
}

static void expect_gone(const leavings *left)
{
    assert_false(reachable(left->reals));
    assert_false(reachable((char *)left->reals + 799));
    assert_false(reachable(left->more));
    assert_false(reachable(left->records));
}

static void arrays_are_out_of_reach_after_each_form_of_scope(void **state)
{
    (void)state;
    EACH_FORM(f)
    {
        note("%s", f->name);
        tide_pool *pool = guarded_pool(1, 1024);
        leavings left = {.record = fresh_type()};
        double *outer = take(pool, TIDE_F64, 50, 9);
        form_run(f, pool, leave_some, &left);
        expect_gone(&left);
        form_repeat(f, pool, 3, leave_some, &left);
        expect_gone(&left);
        expect_bytes(outer, 50 * sizeof *outer, 9);
        CHECK_POOL(pool);
        expect_ok(tide_pool_reset(pool));
        assert_false(reachable(outer));
        expect_ok(tide_pool_destroy(pool));
    }
}

static void resetting_emptying_and_destroying_put_arrays_out_of_reach(void **state)
{
    (void)state;
    tide_pool *pool = guarded_pool(1, 1024);
    leavings left = {.record = fresh_type()};
    leave_some(pool, &left);
    tide_pool_trim(pool, TIDE_ALL_TYPES); /* they are live */
    assert_true(reachable(left.reals));
    expect_ok(tide_pool_reset(pool));
    expect_gone(&left);
    leave_some(pool, &left);
    expect_ok(tide_pool_empty(pool));
    expect_gone(&left);
    assert_int_equal(stats_of(pool).bytes_held, 0);
    leave_some(pool, &left);
    expect_ok(tide_pool_destroy(pool));
    expect_gone(&left);
}

static void a_scope_left_by_longjmp_is_put_out_of_reach(void **state)
{
    (void)state;
    tide_pool *pool = guarded_pool(1, 1024);
    static leavings left;
    static heard all;
    all = (heard){0};
    left.record = fresh_type();
    tide_report_set_handler(hear, &all);
    tide_mark outer = tide_checkpoint(pool);
    (void)tide_checkpoint(pool);
    leave_some(pool, &left);
    expect_ok(tide_rewind(pool, outer));
    expect_gone(&left);
    assert_int_equal(all.count, 1);
    assert_int_equal(all.kind, TIDE_REPORT_LEAK);
    expect_ok(tide_pool_destroy(pool));
}

/* ---- where an array ends ---- */

static void expect_end(tide_pool *pool, tide_type type, size_t n)
{
    size_t used = n * tide_type_size(type);
    char *data = take(pool, type, n, 5), *end = data + used;
    note("%zu of %s", n, tide_type_name(type));
    char *page = (char *)(((uintptr_t)end + PAGE - 1) / PAGE * PAGE);
    size_t gap = n == 0 ? 64 : (size_t)(page - end);
    assert_true(gap < PAGE);
    assert_false(reachable(data + used + gap));
    assert_true(used == 0 || reachable(end - 1));
    expect_bytes(data, used, 5);
}

static void arrays_end_at_a_page(void **state)
{
    (void)state;
    tide_pool *pool = guarded_pool(1, 16);
    for (size_t n = 0; n < 1200; n = n < 140 ? n + 1 : n + 53) {
        tide_mark mark = tide_checkpoint(pool);
        expect_end(pool, TIDE_U8, n);
        expect_end(pool, TIDE_F64, n);
        expect_end(pool, TIDE_C128, n);
        expect_ok(tide_rewind(pool, mark));
    }
    for (size_t n = 8; n < 4096; n *= 2) { /* sizes that leave no gap at all */
        char *data = take(pool, TIDE_F64, n, 6);
        assert_false(reachable(data + n * 8));
    }
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

static void every_alignment_is_guarded(void **state)
{
    (void)state;
    tide_pool *pool = guarded_pool(1, 16);
    for (size_t align = 1; align <= PAGE; align *= 2) {
        char name[40];
        snprintf(name, sizeof name, "guarded, aligned to %zu", align);
        tide_type type = tide_type_register(name, align, align);
        tide_mark mark = tide_checkpoint(pool);
        char *data = take(pool, type, 3, 1); /* checks the alignment */
        if (align >= 64)
            assert_false(reachable(data + 3 * align));
        expect_ok(tide_rewind(pool, mark));
        assert_false(reachable(data));
    }
    expect_ok(tide_pool_destroy(pool));
}

static void the_bytes_limit_holds_for_guarded_arrays(void **state)
{
    (void)state;
    expect_ok(tide_tune_set("guard_sample", 1));
    tide_pool *pool =
        tide_pool_create(&(tide_pool_options){.check = TIDE_CHECK_GUARD, .limit_bytes = 10 * PAGE});
    assert_non_null(pool);
    while (tide_acquire(pool, double, 8) != NULL)
        assert_true(stats_of(pool).bytes_held <= 10 * PAGE);
    assert_int_equal(tide_error_status(), TIDE_ERROR_LIMIT);
    assert_true(tide_pool_active(pool, TIDE_F64) >= 10);
    CHECK_POOL(pool);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

/* ---- what is found at the rewind ---- */

static void spoil(tide_pool *pool, size_t n, ptrdiff_t at, heard *all)
{
    *all = (heard){0};
    tide_report_set_handler(hear, all);
    tide_mark mark = tide_checkpoint(pool);
    char *data = take(pool, TIDE_U8, n, 1);
    char before = data[at];
    data[at] = (char)(before ^ 1);
    expect_ok(tide_rewind(pool, mark));
}

static void a_changed_byte_in_the_gap_is_found(void **state)
{
    (void)state;
    heard all;
    tide_pool *pool = guarded_pool(1, 16);
    static const size_t sizes[] = {0, 1, 63, 65, 100, 4095, 4097, 10000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i];
        note("%zu bytes", n);
        spoil(pool, n, (ptrdiff_t)n, &all);
        assert_int_equal(all.count, 1);
        assert_int_equal(all.kind, TIDE_REPORT_OVERFLOW);
        assert_non_null(strstr(all.text, "written past the end"));
        if (n > 0) {
            spoil(pool, n, (ptrdiff_t)n - 1, &all); /* its own */
            assert_int_equal(all.count, 0);
        }
        if (n == 4095)
            continue; /* starts with the page */
        spoil(pool, n, -1, &all);
        assert_int_equal(all.count, 1);
        assert_non_null(strstr(all.text, "written before the start: byte -1 "));
    }
    expect_ok(tide_pool_destroy(pool));
}

/* ---- sampling ---- */

static void one_in_n_is_guarded_and_the_others_use_their_memory_again(void **state)
{
    (void)state;
    const size_t samples[] = {2, 3, 7, 100};
    for (size_t s = 0; s < 4; s++) {
        size_t every = samples[s], guarded = 0, rounds = 60;
        tide_pool *pool = guarded_pool((double)every, 64);
        for (size_t i = 1; i <= every * rounds; i++) {
            tide_mark mark = tide_checkpoint(pool);
            char *data = take(pool, TIDE_F64, 100, 1);
            expect_ok(tide_rewind(pool, mark));
            bool gone = !reachable(data);
            guarded += gone;
            if (!gone)
                expect_bytes(data, 800, 1); /* the others are not poisoned either */
            if (i % every == 0)
                assert_int_equal(guarded, i / every);
        }
        /* Each guarded array takes memory of its own; what it replaced is acquired anew. */
        assert_true(stats_of(pool).allocations <= 2 * rounds + 1);
        expect_ok(tide_pool_destroy(pool));
    }
}

/* With a fixed step a loop of four acquires would see one of them guarded, the others never. */
static void every_acquire_of_a_loop_has_its_turn(void **state)
{
    (void)state;
    size_t turns[4] = {0};
    tide_pool *pool = guarded_pool(4, 64);
    for (int round = 0; round < 400; round++) {
        void *data[4];
        tide_mark mark = tide_checkpoint(pool);
        for (int i = 0; i < 4; i++)
            data[i] = tide_acquire(pool, double, 100);
        expect_ok(tide_rewind(pool, mark));
        for (int i = 0; i < 4; i++)
            turns[i] += !reachable(data[i]);
    }
    assert_int_equal(turns[0] + turns[1] + turns[2] + turns[3], 400);
    for (int i = 0; i < 4; i++)
        assert_true(turns[i] > 40);
    expect_ok(tide_pool_destroy(pool));
}

/* ---- how much they take ---- */

typedef struct usage {
    size_t mappings, kibibytes;
} usage;

static usage usage_now(void)
{
    usage now = {0};
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r"), *status = fopen("/proc/self/status", "r");
    assert_true(maps != NULL && status != NULL);
    while (fgets(line, sizeof line, maps) != NULL)
        now.mappings++;
    while (fgets(line, sizeof line, status) != NULL)
        sscanf(line, "VmSize: %zu", &now.kibibytes);
    fclose(maps);
    fclose(status);
    return now;
}

static void churn(tide_pool *pool, size_t scopes)
{
    for (size_t i = 0; i < scopes; i++) {
        tide_mark mark = tide_checkpoint(pool);
        double *data = tide_acquire(pool, double, 1 + i % 3000);
        assert_non_null(data);
        data[0] = 1;
        expect_ok(tide_rewind(pool, mark));
    }
}

static void the_quarantine_is_bounded(void **state)
{
    (void)state;
    tide_pool *pool = guarded_pool(1, 100);
    churn(pool, 1000);
    usage before = usage_now();
    churn(pool, under_valgrind() ? 3000 : scaled(100000, 5000));
    usage after = usage_now();
    assert_true(after.mappings < before.mappings + 220);
    if (!under_sanitizer() && !under_valgrind())
        assert_true(after.kibibytes < before.kibibytes + 100 * 28);
    expect_ok(tide_pool_destroy(pool));
}

/* ---- when the system says no ---- */

static _Thread_local size_t faults;

static bool fail_guarded(size_t bytes)
{
    return bytes % PAGE == 0 && faults > 0 && faults-- > 0;
}

/* The slots of the type are there: what fails from now on are guards. */
static void use_bytes_once(tide_pool *pool)
{
    tide_mark mark = tide_checkpoint(pool);
    assert_non_null(tide_acquire_type(pool, TIDE_U8, 1));
    expect_ok(tide_rewind(pool, mark));
}

static void without_a_mapping_the_array_is_not_guarded(void **state)
{
    (void)state;
    tide_pool *pool = guarded_pool(1, 1024);
    churn(pool, 20);
    use_bytes_once(pool);
    tide_mark mark = tide_checkpoint(pool);
    faults = 1;
    set_memory_fault(fail_guarded);
    char *data = tide_acquire_type(pool, TIDE_U8, 100);
    set_memory_fault(NULL);
    assert_non_null(data);
    expect_ok(tide_rewind(pool, mark));
    assert_true(reachable(data));
    assert_int_equal(byte_at(data), 0xFF);
    CHECK_POOL(pool);
    expect_ok(tide_pool_destroy(pool));
}

/* The pages of the guard were not asked for: it grows to its size, not to a quarter more than they are. */
static void what_grows_without_its_guard_is_as_large_as_it_must_be(void **state)
{
    (void)state;
    tide_pool *pool = guarded_pool(1, 1024);
    tide_mark mark = tide_checkpoint(pool);
    uint8_t *data = tide_acquire_type(pool, TIDE_U8, PAGE);
    assert_non_null(data);
    faults = 1;
    set_memory_fault(fail_guarded);
    data = tide_grow(pool, uint8_t, data, PAGE + 1);
    set_memory_fault(NULL);
    assert_non_null(data);
    assert_int_equal(stats_of(pool).bytes_held, PAGE + 64);
    CHECK_POOL(pool);
    expect_ok(tide_rewind(pool, mark));
    expect_ok(tide_pool_destroy(pool));
}

/* ---- with everything else ---- */

static void arrays_and_views_are_guarded_and_not_exported(void **state)
{
    (void)state;
    tide_pool *pool = guarded_pool(1, 1024);
    const int64_t shape[] = {5, 7}, flat[] = {35}, start[] = {1, 1}, extent[] = {2, 2};
    for (int i = 0; i < 3; i++) {
        tide_mark mark = tide_checkpoint(pool);
        tide_array *array = tide_array_acquire(pool, TIDE_F32, 2, shape);
        tide_array *view = tide_array_view(pool, array, start, extent, NULL);
        tide_array *line = tide_array_reshape(pool, array, 1, flat);
        assert_true(array != NULL && view != NULL && line != NULL);
        float *data = tide_array_data(array);
        data[34] = 1;
        assert_ptr_equal(tide_array_data(view), data + 8);
        assert_null(tide_array_export(pool, array));
        assert_int_equal(tide_error_status(), TIDE_ERROR_STATE);
        assert_null(tide_array_export(pool, view));
        expect_ok(tide_rewind(pool, mark));
        assert_false(reachable(data) || reachable(data + 34));
        assert_false(reachable(view));
    }
    expect_ok(tide_pool_destroy(pool));
}

static void *work_alone(void *user)
{
    size_t *good = user;
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.check = TIDE_CHECK_GUARD});
    for (int i = 0; i < 500; i++) {
        TIDE_SCOPE(pool);
        double *data = tide_acquire(pool, double, 1 + i % 700);
        data[i % 700] = i;
        *good += data[i % 700] == i && tide_escape_check(&i);
    }
    *good += tide_pool_destroy(pool) == TIDE_OK;
    return NULL;
}

static void threads_share_the_quarantine(void **state)
{
    (void)state;
    pthread_t threads[4];
    size_t good[4] = {0};
    expect_ok(tide_tune_set("guard_sample", 1));
    set_constant("quarantine", 7);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work_alone, &good[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(good[i], 501);
    }
}

#define TEST(name) cmocka_unit_test_teardown(name, usual_settings)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(arrays_are_out_of_reach_after_each_form_of_scope),
        TEST(resetting_emptying_and_destroying_put_arrays_out_of_reach),
        TEST(a_scope_left_by_longjmp_is_put_out_of_reach),
        TEST(arrays_end_at_a_page),
        TEST(every_alignment_is_guarded),
        TEST(the_bytes_limit_holds_for_guarded_arrays),
        TEST(a_changed_byte_in_the_gap_is_found),
        TEST(one_in_n_is_guarded_and_the_others_use_their_memory_again),
        TEST(every_acquire_of_a_loop_has_its_turn),
        TEST(the_quarantine_is_bounded),
        TEST(without_a_mapping_the_array_is_not_guarded),
        TEST(what_grows_without_its_guard_is_as_large_as_it_must_be),
        TEST(arrays_and_views_are_guarded_and_not_exported),
        TEST(threads_share_the_quarantine),
    };
    forms_prepare_all();
    return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
