/* SPDX-License-Identifier: MIT */
/* Memory given back, and memory counted. */
#define _GNU_SOURCE
#include "forms.h"

#include <stdio.h>

#include <tidepool/dynamic.h>
#include <tidepool/upkeep.h>

static void take_four(tide_pool *pool, void *state)
{
    tide_type type = *(const tide_type *)state;
    for (unsigned i = 0; i < 4; i++)
        take(pool, type, 100, i);
    CHECK_POOL(pool);
}

/* ---- trim ---- */

static void trim_two_of_four(tide_pool *pool, void *state)
{
    tide_type type = *(const tide_type *)state;
    size_t slot_bytes = 100 * tide_type_size(type);
    uint8_t *first = take(pool, type, 100, 1), *second = take(pool, type, 100, 2);
    size_t live = tide_pool_active(pool, type);
    tide_pool_statistics before = stats_of(pool);
    tide_trim_summary freed = tide_pool_trim(pool, type);
    tide_pool_statistics after = stats_of(pool);
    CHECK_POOL(pool);
    assert_int_equal(freed.slots, 2);
    assert_true(freed.bytes >= 2 * slot_bytes);
    assert_int_equal(after.bytes_held, before.bytes_held - freed.bytes);
    assert_int_equal(after.slots, before.slots - 2);
    assert_int_equal(after.releases, before.releases + 2);
    assert_int_equal(tide_pool_active(pool, type), live);
    expect_bytes(first, slot_bytes, 1);
    expect_bytes(second, slot_bytes, 2);
    assert_int_equal(tide_pool_trim(pool, type).slots, 0);
    take(pool, type, 100, 3);
    expect_bytes(second, slot_bytes, 2);
    assert_int_equal(tide_pool_active(pool, type), live + 1);
}

static void trim_gives_free_slots_back_and_leaves_live_arrays_alone(const scene *s)
{
    static const tide_type types[] = {TIDE_F64, TIDE_F32, TIDE_C128};
    for (size_t i = 0; i < 3; i++) {
        tide_type type = types[i];
        counts before = counts_of(s->pool);
        form_run(s->form, s->pool, take_four, &type);
        form_run(s->form, s->pool, trim_two_of_four, &type);
        counts_same(before, s->pool);
    }
}

static void expect_nothing_freed(tide_trim_summary summary)
{
    assert_int_equal(summary.slots, 0);
    assert_int_equal(summary.bytes, 0);
}

/* ---- compact ---- */

enum { MIB = 1 << 20 };

static void take_bytes(tide_pool *pool, void *state)
{
    size_t n = *(const size_t *)state;
    uint8_t *data = tide_acquire(pool, uint8_t, n);
    assert_non_null(data);
    data[0] = data[n - 1] = 1;
}

/* Once `large` bytes and `small` ones, then, after the counting starts anew, only `small`. */
static tide_trim_summary compact_after(const scene *s, size_t large, size_t small)
{
    expect_ok(tide_pool_empty(s->pool));
    form_run(s->form, s->pool, take_bytes, &large);
    form_run(s->form, s->pool, take_bytes, &small);
    expect_nothing_freed(tide_pool_compact(s->pool, TIDE_U8));
    form_run(s->form, s->pool, take_bytes, &small);
    tide_pool_statistics before = stats_of(s->pool);
    tide_trim_summary freed = tide_pool_compact(s->pool, TIDE_U8);
    tide_pool_statistics after = stats_of(s->pool);
    CHECK_POOL(s->pool);
    assert_int_equal(before.bytes_held - after.bytes_held, freed.bytes);
    form_run(s->form, s->pool, take_bytes, &small);
    form_run(s->form, s->pool, take_bytes, &large);
    return freed;
}

static void compact_gives_back_what_is_ten_times_too_large(const scene *s)
{
    tide_trim_summary freed = compact_after(s, 2 * MIB, MIB / 8);
    assert_int_equal(freed.slots, 1);
    assert_true(freed.bytes >= 2 * MIB - MIB / 8);
    expect_nothing_freed(compact_after(s, 2 * MIB, MIB / 4)); /* eight times        */
    expect_nothing_freed(compact_after(s, MIB / 2, 100));     /* too little to gain */
}

/* ---- counting ---- */

static void statistics_add_up(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    tide_pool_statistics none = stats_of(pool), zero;
    memset(&zero, 0, sizeof zero);
    zero.bytes_limit = none.bytes_limit;
    assert_memory_equal(&none, &zero, sizeof none);
    for (unsigned i = 0; i < 3; i++)
        take(pool, TIDE_F64, 100, i);
    take(pool, TIDE_U8, 100, 3);
    tide_mark mark = tide_checkpoint(pool);
    take(pool, TIDE_U8, 100, 4);
    tide_pool_statistics now = stats_of(pool);
    assert_int_equal(now.slots, 5);
    assert_int_equal(now.slots_live, 5);
    assert_int_equal(now.shelves, 2);
    assert_int_equal(now.depth, 1);
    assert_int_equal(now.allocations, 5);
    assert_int_equal(now.bytes_live, now.bytes_held);
    assert_int_equal(now.bytes_peak, now.bytes_held);
    expect_ok(tide_rewind(pool, mark));
    assert_int_equal(stats_of(pool).slots_live, 4);
    expect_ok(tide_pool_empty(pool));
    assert_int_equal(stats_of(pool).releases, 5);
    assert_int_equal(stats_of(pool).bytes_peak, now.bytes_peak);
    expect_ok(tide_pool_destroy(pool));
}

static void the_printout_names_pool_and_types(void **state)
{
    (void)state;
    const tide_pool_options options = {.name = "printed"};
    tide_pool *pool = tide_pool_create(&options);
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    take(pool, TIDE_F64, 100, 1);
    take(pool, TIDE_U8, 100, 1);
    expect_ok(tide_pool_print(pool, out));
    assert_int_equal(fclose(out), 0);
    assert_non_null(strstr(text, "printed"));
    assert_non_null(strstr(text, "f64"));
    assert_non_null(strstr(text, "u8"));
    assert_null(strstr(text, "i32"));
    free(text);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

static const form_case cases[] = {
    CASE_SLOTS(trim_gives_free_slots_back_and_leaves_live_arrays_alone),
    CASE_SLOTS(compact_gives_back_what_is_ten_times_too_large),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(statistics_add_up),
    cmocka_unit_test(the_printout_names_pool_and_types),
};

int main(void)
{
    return FORMS_MAIN("memory", cases, others);
}
