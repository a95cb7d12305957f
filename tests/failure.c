/* SPDX-License-Identifier: MIT */
/* What fails must fail clearly, and change nothing. */
#include "forms.h"
#include "hooks.h"

#include <stdio.h>

#include <tidepool/array.h>
#include <tidepool/dynamic.h>
#include <tidepool/generic.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/upkeep.h>

static size_t fail_from = SIZE_MAX; /* requests of this many bytes and more are refused */

static bool refuse_large(size_t bytes)
{
    return bytes >= fail_from;
}

static void refuse_from(size_t bytes)
{
    fail_from = bytes;
    set_memory_fault(refuse_large);
}

static void refuse_no_more(void)
{
    set_memory_fault(NULL);
}

/* The acquire fails so, its message holds `words`, and nothing is acquired or allocated. (What the
 * touch saved in the log may stay there.) What is free may have been given back where there was no
 * memory. */
static void expect_refused(tide_pool *pool, tide_type type, size_t n, tide_status why,
                           const char *words)
{
    tide_pool_statistics before = stats_of(pool);
    assert_null(tide_acquire_type(pool, type, n));
    assert_string_equal(tide_status_name(tide_error_status()), tide_status_name(why));
    if (strstr(tide_error_message(), words) == NULL)
        fail_msg("'%s' does not say '%s'", tide_error_message(), words);
    memory_fault *fault = get_memory_fault();
    set_memory_fault(NULL); /* the checker needs memory itself */
    CHECK_POOL(pool);
    set_memory_fault(fault);
    tide_pool_statistics after = stats_of(pool);
    after.log_entries = before.log_entries;
    after.shelves = before.shelves;
    if (why == TIDE_ERROR_MEMORY) {
        assert_int_equal(before.bytes_held - after.bytes_held == 0,
                         after.pressed == before.pressed);
        assert_int_equal(after.releases - before.releases, after.pressed - before.pressed);
        after.bytes_held = before.bytes_held;
        after.slots = before.slots;
        after.releases = before.releases;
        after.pressed = before.pressed;
    }
    assert_memory_equal(&after, &before, sizeof after);
}

/* ---- no memory ---- */

static void fail_to_grow(tide_pool *pool, void *state)
{
    (void)state;
    uint8_t *kept = take(pool, TIDE_F64, 100, 1);
    take(pool, TIDE_F32, 100, 2);
    tide_mark mark = tide_checkpoint(pool);
    take(pool, TIDE_F64, 100, 3);
    expect_ok(tide_rewind(pool, mark));
    refuse_from(1);
    expect_refused(pool, TIDE_F64, 100000, TIDE_ERROR_MEMORY, "800000");
    expect_refused(pool, TIDE_F64, 100000, TIDE_ERROR_MEMORY, "tide_acquire");
    refuse_from(100000);
    expect_refused(pool, TIDE_F64, 100000, TIDE_ERROR_MEMORY, "800000");
    take(pool, TIDE_F64, 90, 4);
    refuse_no_more();
    take(pool, TIDE_F64, 100000, 5);
    expect_bytes(kept, 100 * sizeof(double), 1);
    CHECK_POOL(pool);
}

static void a_failed_growth_gives_null_and_changes_nothing(const scene *s)
{
    counts before = counts_of(s->pool);
    form_run(s->form, s->pool, fail_to_grow, NULL);
    counts_same(before, s->pool);
    tide_pool_trim(s->pool, TIDE_F64); /* else the large one is there now */
    form_run(s->form, s->pool, fail_to_grow, NULL);
    counts_same(before, s->pool);
}

/* The process holds as much as is asked for, but most of it is live in another pool. */
static void what_is_too_small_to_help_is_kept(void **state)
{
    (void)state;
    tide_pool *other = tide_pool_create(NULL), *pool = tide_pool_create(NULL);
    take(other, TIDE_F64, 200000, 1);
    {
        TIDE_SCOPE(pool);
        take(pool, TIDE_U8, 1000, 2);
        take(pool, TIDE_F64, 10, 3);
    }
    refuse_from(100000);
    expect_refused(pool, TIDE_F64, 100000, TIDE_ERROR_MEMORY, "800000");
    refuse_no_more();
    assert_int_equal(stats_of(pool).pressed, 0);
    expect_ok(tide_pool_reset(other));
    expect_ok(tide_pool_destroy(other));
    expect_ok(tide_pool_destroy(pool));
}

static void reuse_while_memory_is_short(tide_pool *pool, void *state)
{
    (void)state;
    take(pool, TIDE_F64, 64, 1);
    take(pool, TIDE_F32, 64, 2);
    take(pool, TIDE_U8, 64, 3);
}

static void a_warm_scope_needs_no_memory(const scene *s)
{
    form_run(s->form, s->pool, reuse_while_memory_is_short, NULL);
    uint64_t allocations = stats_of(s->pool).allocations;
    refuse_from(1);
    form_run(s->form, s->pool, reuse_while_memory_is_short, NULL);
    form_repeat(s->form, s->pool, 3, reuse_while_memory_is_short, NULL);
    refuse_no_more();
    assert_int_equal(stats_of(s->pool).allocations, allocations);
}

/* ---- the pool's limit ---- */

static void hit_the_limit(tide_pool *pool, void *state)
{
    const char *limit = state;
    uint8_t *kept = take(pool, TIDE_F64, 1000, 1);
    expect_refused(pool, TIDE_F64, 4000, TIDE_ERROR_LIMIT, limit);
    expect_refused(pool, TIDE_F32, 8000, TIDE_ERROR_LIMIT, limit);
    take(pool, TIDE_F32, 100, 2);
    take(pool, TIDE_F64, 500, 3);
    expect_bytes(kept, 1000 * sizeof(double), 1);
    assert_true(stats_of(pool).bytes_held <= 32123);
}

static void at_the_byte_limit_an_acquire_names_it(const scene *s)
{
    const tide_pool_options options = {
        .limit_bytes = 32123, .check = s->kind->check, .disabled = s->kind->disabled};
    tide_pool *pool = tide_pool_create(&options);
    char limit[] = "32123";
    assert_non_null(pool);
    assert_int_equal(stats_of(pool).bytes_limit, 32123);
    for (size_t i = 0; i < 3; i++) {
        form_run(s->form, pool, hit_the_limit, limit);
        counts_same((counts){0, 0, 0, 0}, pool);
    }
    expect_ok(tide_pool_destroy(pool));
}

static void a_limit_leaves_room_again_after_empty(void **state)
{
    (void)state;
    const tide_pool_options options = {.limit_bytes = 10000};
    tide_pool *pool = tide_pool_create(&options);
    assert_non_null(pool);
    take(pool, TIDE_U8, 8000, 1);
    expect_refused(pool, TIDE_I8, 8000, TIDE_ERROR_LIMIT, "10000");
    expect_ok(tide_pool_empty(pool));
    take(pool, TIDE_I8, 8000, 1);
    expect_refused(pool, TIDE_U8, 8000, TIDE_ERROR_LIMIT, "10000");
    expect_ok(tide_pool_reset(pool));
    take(pool, TIDE_U8, 8000, 1); /* free slots are given back */
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

/* ---- frames ---- */

static void use_a_frame_that_cannot_be_had(tide_pool *pool, size_t n)
{
    counts before = counts_of(pool);
    {
        TIDE_FRAME(pool, (double, reals, 10), (int32_t, integers, n), (float, floats, 10));
        assert_null(reals);
        assert_null(integers);
        assert_null(floats);
        assert_int_not_equal(tide_error_status(), TIDE_OK);
        take(pool, TIDE_F64, 10, 1); /* its scope is open nevertheless */
    }
    counts_same(before, pool);
}

static void a_frame_gives_all_or_nothing(const scene *s)
{
    take(s->pool, TIDE_F64, 10, 1);
    use_a_frame_that_cannot_be_had(s->pool, SIZE_MAX);
    use_a_frame_that_cannot_be_had(s->pool, SIZE_MAX / 4 + 1);
    refuse_from(1000000);
    use_a_frame_that_cannot_be_had(s->pool, 1000000);
    use_a_frame_that_cannot_be_had(s->pool, 1000000);
    refuse_no_more();
    TIDE_FRAME(s->pool, (double, reals, 0), (int32_t, integers, 1000000), (double, more, 3));
    assert_non_null(reals);
    assert_non_null(more);
    assert_ptr_not_equal(reals, more);
    integers[999999] = 7;
    CHECK_POOL(s->pool);
    expect_ok(tide_pool_reset(s->pool));
}

/* ---- bad arguments ---- */

static void ask_for_nonsense(tide_pool *pool, void *state)
{
    static const tide_type sized[] = {TIDE_F64, TIDE_F32, TIDE_I32, TIDE_C128};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        size_t size = tide_type_size(sized[i]);
        expect_refused(pool, sized[i], (size_t)-1, TIDE_ERROR_SIZE, "tide_acquire");
        expect_refused(pool, sized[i], (size_t)-1000, TIDE_ERROR_SIZE, "tide_acquire");
        expect_refused(pool, sized[i], SIZE_MAX / size + 1, TIDE_ERROR_SIZE, "tide_acquire");
        expect_refused(pool, sized[i], PTRDIFF_MAX / size + 1, TIDE_ERROR_SIZE, "tide_acquire");
    }
    expect_refused(pool, TIDE_U8, (size_t)-1, TIDE_ERROR_SIZE, "tide_acquire");
    expect_refused(pool, TIDE_NO_TYPE, 1, TIDE_ERROR_TYPE, "0");
    expect_refused(pool, tide_type_count() + 1, 1, TIDE_ERROR_TYPE, "type");
    expect_refused(pool, TIDE_TYPE_LIMIT, 1, TIDE_ERROR_TYPE, "65536");
    expect_refused(pool, TIDE_TYPE_LIMIT + 1, 1, TIDE_ERROR_TYPE, "65537");
    expect_refused(pool, TIDE_ALL_TYPES, 1, TIDE_ERROR_TYPE, "type");
}

static void impossible_sizes_and_unknown_types_are_refused(const scene *s)
{
    form_run(s->form, s->pool, ask_for_nonsense, NULL);
    take(s->pool, TIDE_F64, 10, 1);
    form_run(s->form, s->pool, ask_for_nonsense, NULL);
    ask_for_nonsense(s->pool, NULL);
    assert_null(tide_acquire(s->pool, double, -1));
    assert_int_equal(tide_error_status(), TIDE_ERROR_SIZE);
    expect_ok(tide_pool_reset(s->pool));
}

/* Types beyond those that have a bit in the pool's word: the level saves one once, whatever is refused. */
static void refused_acquires_of_many_types_fill_no_log(void **state)
{
    (void)state;
    tide_type type = TIDE_NO_TYPE;
    tide_pool *pool = tide_pool_create(NULL);
    for (int i = 0; i < 64; i++) {
        char name[32];
        snprintf(name, sizeof name, "failure: many %d", i);
        type = tide_type_register(name, 8, 8);
        assert_non_null(tide_acquire_type(pool, type, 1));
    }
    {
        TIDE_SCOPE(pool);
        assert_null(tide_acquire_type(pool, type, SIZE_MAX));
        const size_t entries = stats_of(pool).log_entries;
        for (int i = 0; i < 100; i++) {
            assert_null(tide_acquire_type(pool, type, SIZE_MAX));
            assert_non_null(tide_acquire_type(pool, type, 1));
        }
        assert_int_equal(stats_of(pool).log_entries, entries);
        TIDE_SCOPE(pool);
        assert_non_null(tide_acquire(pool, double, 4));
    }
    expect_ok(tide_pool_destroy(pool));
}

static void acquire_from_nothing(tide_pool *pool, void *state)
{
    size_t *times = state;
    double one = 1;
    assert_null(pool);
    assert_null(tide_acquire(pool, double, 10));
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    assert_null(tide_acquire_type(pool, TIDE_F64, 10));
    assert_null(tide_zeros(pool, double, 10));
    assert_null(tide_ones(pool, double, 10));
    assert_null(tide_fill_type(pool, TIDE_F64, 10, &one));
    ++*times;
}

static void scopes_accept_a_null_pool_and_acquires_give_null(const scene *s)
{
    size_t times = 0;
    tide_status status = s->form->run(NULL, acquire_from_nothing, &times);
    expect_status(status, s->form->block ? TIDE_OK : TIDE_ERROR_ARGUMENT);
    assert_int_equal(times, 1);
}

static void a_frame_of_a_null_pool_holds_nulls(void **state)
{
    (void)state;
    TIDE_FRAME(NULL, (double, reals, 10), (int32_t, integers, 0));
    assert_null(reals);
    assert_null(integers);
}

static void calls_without_a_pool_are_refused(void **state)
{
    (void)state;
    tide_pool_statistics stats;
    expect_status(tide_pool_reset(NULL), TIDE_ERROR_ARGUMENT);
    expect_status(tide_pool_empty(NULL), TIDE_ERROR_ARGUMENT);
    expect_status(tide_pool_stats(NULL, &stats), TIDE_ERROR_ARGUMENT);
    expect_status(tide_pool_print(NULL, stderr), TIDE_ERROR_ARGUMENT);
    expect_status(tide_pool_check(NULL), TIDE_ERROR_ARGUMENT);
    expect_status(tide_pool_adopt(NULL), TIDE_ERROR_ARGUMENT);
    expect_ok(tide_pool_destroy(NULL));
    assert_int_equal(tide_pool_depth(NULL), 0);
    assert_int_equal(tide_pool_active(NULL, TIDE_F64), 0);
    assert_int_equal(tide_pool_trim(NULL, TIDE_F64).slots, 0);
    assert_int_equal(tide_pool_compact(NULL, TIDE_ALL_TYPES).bytes, 0);
    assert_null(tide_checkpoint(NULL).pool);
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
}

static void refuse_type(const char *name, size_t size, size_t align)
{
    uint32_t before = tide_type_count();
    assert_int_equal(tide_type_register(name, size, align), TIDE_NO_TYPE);
    assert_non_null(strstr(tide_error_message(), "tide_type_register"));
    assert_int_equal(tide_type_count(), before);
}

static void bad_types_are_not_registered(void **state)
{
    (void)state;
    refuse_type(NULL, 8, 8);
    refuse_type("", 8, 8);
    refuse_type("no size", 0, 1);
    refuse_type("no alignment", 8, 0);
    refuse_type("not a power of two", 24, 12);
    refuse_type("too much alignment", 8192, 8192);
    refuse_type("alignment above size", 8, 16);
    refuse_type("not a multiple", 12, 8);
    assert_null(tide_type_name(TIDE_NO_TYPE));
    assert_null(tide_type_name(tide_type_count() + 1));
    assert_int_equal(tide_type_size(TIDE_ALL_TYPES), 0);
    assert_int_equal(tide_type_align(TIDE_NO_TYPE), 0);
    tide_type aligned = tide_type_register("aligned to a page", 4096, 4096);
    assert_int_not_equal(aligned, TIDE_NO_TYPE);
    assert_int_equal(tide_type_register("aligned to a page", 4096, 4096), aligned);
    assert_int_not_equal(tide_type_register("aligned to a page", 4096, 64), aligned);
}

static void a_pool_is_not_destroyed_while_something_is_open(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    double *kept = take(pool, TIDE_F64, 10, 1);
    {
        TIDE_SCOPE(pool);
        expect_status(tide_pool_destroy(pool), TIDE_ERROR_STATE);
        assert_non_null(strstr(tide_error_message(), "tide_pool_destroy"));
    }
    tide_mark mark = tide_checkpoint(pool);
    expect_status(tide_pool_destroy(pool), TIDE_ERROR_STATE);
    expect_bytes(kept, 10 * sizeof *kept, 1);
    expect_ok(tide_rewind(pool, mark));
    expect_ok(tide_pool_destroy(pool));
}

static void every_status_has_a_name(void **state)
{
    (void)state;
    for (int i = TIDE_OK; i <= TIDE_ERROR_DEVICE; i++) {
        assert_non_null(tide_status_name((tide_status)i));
        for (int j = TIDE_OK; j < i; j++)
            assert_string_not_equal(tide_status_name((tide_status)i),
                                    tide_status_name((tide_status)j));
    }
    assert_non_null(tide_status_name((tide_status)999));
}

static const form_case cases[] = {
    CASE_SLOTS(a_failed_growth_gives_null_and_changes_nothing),
    CASE_SLOTS(a_warm_scope_needs_no_memory),
    CASE(at_the_byte_limit_an_acquire_names_it),
    CASE(a_frame_gives_all_or_nothing),
    CASE(impossible_sizes_and_unknown_types_are_refused),
    CASE(scopes_accept_a_null_pool_and_acquires_give_null),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(what_is_too_small_to_help_is_kept),
    cmocka_unit_test(a_limit_leaves_room_again_after_empty),
    cmocka_unit_test(a_frame_of_a_null_pool_holds_nulls),
    cmocka_unit_test(calls_without_a_pool_are_refused),
    cmocka_unit_test(bad_types_are_not_registered),
    cmocka_unit_test(a_pool_is_not_destroyed_while_something_is_open),
    cmocka_unit_test(every_status_has_a_name),
    cmocka_unit_test(refused_acquires_of_many_types_fill_no_log),
};

int main(void)
{
    return FORMS_MAIN("failure", cases, others);
}
