/* SPDX-License-Identifier: MIT */
/* The three sources of temporaries: equal results, honest counts, and what happens when each
 * has no memory left. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "engine.h"

static const char *const queries[] = {
    "*",
    "symbol, mass / density as volume, length(name) where melting is not null",
    "if(stable, upper(name), coalesce(phase, text(number))) order by mass desc",
    ("category, phase, count(*), sum(number), avg(mass), min(name), max(melting) "
     "group by category, phase order by 1, 2"),
    "count(*), sum(real(number) * \"group\"), max(substr(name, 2, 3)) where block != 'p'",
};
enum { QUERIES = sizeof queries / sizeof *queries };

static const columns_heap plain = {malloc, free};

static columns_job *job_of(columns_table *table, const char *query)
{
    columns_error error = {.text = ""};
    columns_job *job = columns_job_create(table, query, 0, &error);
    if (job == NULL)
        fail_msg("%s", error.text);
    return job;
}

static columns_table *elements(size_t times)
{
    columns_error error = {.text = ""};
    columns_table *once = columns_table_elements(&error);
    columns_table *table = once == NULL ? NULL : columns_table_repeat(once, times, &error);
    assert_non_null(table);
    columns_table_destroy(once);
    return table;
}

static columns_table *run_static(columns_job *job, size_t bytes, columns_error *error)
{
    columns_region region = {aligned_alloc(64, bytes), bytes};
    columns_table *result = columns_run_static(job, &region, error);
    free(region.memory);
    return result;
}

static void all_give_the_same(void **state)
{
    (void)state;
    columns_table *table = elements(150);
    for (size_t i = 0; i < QUERIES; i++) {
        columns_error error = {.text = ""};
        columns_job *job = job_of(table, queries[i]);
        columns_table *tide = columns_run_tide(job, tide_pool_local(), &error);
        columns_table *heap = columns_run_heap(job, &plain, &error);
        size_t need = columns_region_need(job, &error);
        columns_table *fixed = run_static(job, need, &error);
        assert_true(tide != NULL && heap != NULL && fixed != NULL);
        assert_true(columns_table_rows(tide) > 0);
        assert_true(columns_table_equal(tide, heap));
        assert_true(columns_table_equal(tide, fixed));
        columns_table_destroy(tide);
        columns_table_destroy(heap);
        columns_table_destroy(fixed);
        columns_job_destroy(job);
    }
    columns_table_destroy(table);
}

static void the_default_job_is_the_same_in_all_and_depends_on_its_size(void **state)
{
    (void)state;
    columns_error error = {.text = ""};
    columns_job *job = columns_default_job(40, &error), *other = columns_default_job(41, &error);
    assert_true(job != NULL && other != NULL);
    assert_int_equal(columns_table_rows(columns_job_table(job)), 40 * 118);
    columns_table *tide = columns_run_tide(job, tide_pool_local(), &error);
    columns_table *heap = columns_run_heap(job, &plain, &error);
    columns_table *more = columns_run_tide(other, tide_pool_local(), &error);
    assert_true(columns_table_equal(tide, heap));
    assert_false(columns_table_equal(tide, more));
    columns_table_destroy(tide);
    columns_table_destroy(heap);
    columns_table_destroy(more);
    columns_job_destroy(job);
    columns_job_destroy(other);
}

/* After the first run a pool allocates nothing, is at its root, and has nothing live. */
static void a_warm_pool_allocates_nothing(void **state)
{
    (void)state;
    columns_error error = {.text = ""};
    columns_table *table = elements(100);
    tide_pool *pool = tide_pool_create(NULL);
    for (size_t i = 0; i < QUERIES; i++) {
        columns_job *job = job_of(table, queries[i]);
        tide_pool_statistics cold, warm;
        columns_table_destroy(columns_run_tide(job, pool, &error));
        tide_pool_stats(pool, &cold);
        for (int again = 0; again < 3; again++)
            columns_table_destroy(columns_run_tide(job, pool, &error));
        tide_pool_stats(pool, &warm);
        assert_int_equal(warm.allocations, cold.allocations);
        assert_int_equal(warm.depth, 0);
        assert_int_equal(warm.slots_live, 0);
        assert_int_equal(tide_pool_check(pool), TIDE_OK);
        columns_job_destroy(job);
    }
    tide_pool_statistics all;
    tide_pool_stats(pool, &all);
    assert_true(all.allocations > 0);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
    columns_table_destroy(table);
}

static size_t steps, last_done;

static void watch(const char *doing, size_t done, size_t of)
{
    if (strcmp(doing, "computing") != 0)
        return;
    assert_int_equal(of, 118 * 200);
    assert_true(done < of && (steps == 0 || done > last_done));
    last_done = done;
    steps++;
}

static void whoever_watches_is_told_of_every_batch(void **state)
{
    (void)state;
    columns_error error = {.text = ""};
    columns_table *table = elements(200);
    columns_job *job = job_of(table, "name where mass > 1000");
    columns_watch(watch);
    columns_table_destroy(columns_run_tide(job, tide_pool_local(), &error));
    columns_watch(NULL);
    assert_int_equal(steps, (118 * 200 + 4095) / 4096);
    columns_table_destroy(columns_run_tide(job, tide_pool_local(), &error));
    assert_int_equal(steps, (118 * 200 + 4095) / 4096);
    columns_job_destroy(job);
    columns_table_destroy(table);
}

/* ---- counting ---- */

static size_t calls, fail_at, held;
static bool fail_ever_after;

static void *failing_allocate(size_t bytes)
{
    calls++;
    if (calls == fail_at || (fail_ever_after && calls > fail_at))
        return NULL;
    held++;
    return malloc(bytes);
}

static void counting_release(void *memory)
{
    assert_non_null(memory);
    held--;
    free(memory);
}

static const columns_heap watched = {failing_allocate, counting_release};

static columns_table *run_watched(columns_job *job, size_t nth, bool ever_after,
                                  columns_error *error)
{
    calls = held = 0;
    fail_at = nth;
    fail_ever_after = ever_after;
    return columns_run_heap(job, &watched, error);
}

static void the_count_is_what_a_heap_sees(void **state)
{
    (void)state;
    columns_error error = {.text = ""};
    columns_table *table = elements(90);
    for (size_t i = 0; i < QUERIES; i++) {
        columns_job *job = job_of(table, queries[i]);
        columns_need need;
        columns_table *result = run_watched(job, 0, false, &error);
        assert_true(columns_count(job, &need, &error));
        assert_int_equal(need.allocations, calls);
        assert_int_equal(held, 0);
        columns_table_destroy(result);
        columns_job_destroy(job);
    }
    columns_table_destroy(table);
}

/* ---- out of memory ---- */

static void a_heap_that_fails_anywhere_gives_an_error_and_no_leak(void **state)
{
    (void)state;
    columns_table *table = elements(40);
    for (size_t i = 0; i < QUERIES; i++) {
        columns_error error = {.text = ""};
        columns_job *job = job_of(table, queries[i]);
        columns_table_destroy(run_watched(job, 0, false, &error));
        size_t all = calls;
        for (size_t nth = 1; nth <= all; nth++) {
            columns_table *result = run_watched(job, nth, nth % 2 == 0, &error);
            assert_null(result);
            assert_int_equal(held, 0);
            assert_memory_equal(error.text, "no memory for temporaries: ", 27);
        }
        columns_table *result = run_watched(job, all + 1, true, &error);
        assert_non_null(result);
        columns_table_destroy(result);
        columns_job_destroy(job);
    }
    columns_table_destroy(table);
}

static void a_region_is_exactly_as_large_as_needed(void **state)
{
    (void)state;
    columns_table *table = elements(50);
    for (size_t i = 1; i < QUERIES; i++) { /* a bare `*` needs none */
        columns_error error = {.text = ""};
        columns_job *job = job_of(table, queries[i]);
        size_t need = columns_region_need(job, &error);
        columns_table *result = run_static(job, need, &error);
        assert_non_null(result);
        columns_table_destroy(result);
        if (need > 64)
            assert_null(run_static(job, need - 64, &error));
        columns_job_destroy(job);
    }
    columns_table_destroy(table);
}

static void a_pool_at_its_limit_gives_an_error_that_names_it(void **state)
{
    (void)state;
    columns_error error = {.text = ""};
    columns_table *table = elements(50);
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.limit_bytes = 20000});
    columns_job *job = job_of(table, queries[1]);
    assert_null(columns_run_tide(job, pool, &error));
    assert_contains(error.text, "no memory for temporaries: ");
    assert_contains(error.text, "20000");
    assert_int_equal(tide_pool_depth(pool), 0);
    columns_job *small = job_of(table, "count(*)");
    columns_table *result = columns_run_tide(small, pool, &error);
    assert_non_null(result);
    columns_table_destroy(result);
    columns_job_destroy(small);
    columns_job_destroy(job);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
    columns_table_destroy(table);
}

/* What a scope leaves behind is poisoned: nothing may be read that was not written. */
static void a_pool_that_poisons_changes_no_result(void **state)
{
    (void)state;
    columns_error error = {.text = ""};
    columns_table *table = elements(80);
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.check = TIDE_CHECK_POISON});
    for (size_t i = 0; i < QUERIES; i++) {
        columns_job *job = job_of(table, queries[i]);
        columns_table *want = columns_run_heap(job, &plain, &error);
        for (int again = 0; again < 2; again++) {
            columns_table *result = columns_run_tide(job, pool, &error);
            assert_non_null(result);
            assert_true(columns_table_equal(result, want));
            columns_table_destroy(result);
        }
        columns_table_destroy(want);
        columns_job_destroy(job);
    }
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
    columns_table_destroy(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_give_the_same),
        cmocka_unit_test(the_default_job_is_the_same_in_all_and_depends_on_its_size),
        cmocka_unit_test(a_warm_pool_allocates_nothing),
        cmocka_unit_test(whoever_watches_is_told_of_every_batch),
        cmocka_unit_test(the_count_is_what_a_heap_sees),
        cmocka_unit_test(a_heap_that_fails_anywhere_gives_an_error_and_no_leak),
        cmocka_unit_test(a_region_is_exactly_as_large_as_needed),
        cmocka_unit_test(a_pool_at_its_limit_gives_an_error_that_names_it),
        cmocka_unit_test(a_pool_that_poisons_changes_no_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
