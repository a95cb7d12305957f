/* SPDX-License-Identifier: MIT */
/* Memory that follows the work: what compact takes for waste, and trims and compacts asked for
 * from anywhere, which the owner does where it next opens a scope at the root. */
#include "arrays_support.h"
#include "hooks.h"

#include <pthread.h>

#include <tidepool/learn.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

enum { MIB = 1 << 20, SMALL = 1000 };

static void leave_free_slots(tide_pool *pool)
{
    for (unsigned i = 0; i < 3; i++)
        take(pool, TIDE_F32, SMALL, i);
    expect_ok(tide_pool_reset(pool));
}

static void nothing(tide_pool *pool, void *state)
{
    (void)pool;
    (void)state;
}

/* ---- when it is served ---- */

struct inside {
    size_t slots;
    uint64_t served;
};

static void expect_inside(tide_pool *pool, void *state)
{
    const struct inside *expected = state;
    assert_int_equal(slots_with_memory(pool, TIDE_F32), expected->slots);
    assert_int_equal(stats_of(pool).requests, expected->served);
}

static void a_request_is_served_where_the_next_scope_opens_and_once(const scene *s)
{
    leave_free_slots(s->pool);
    size_t slots = slots_with_memory(s->pool, TIDE_F32);
    expect_ok(tide_pool_request(s->pool, TIDE_REQUEST_TRIM));
    expect_ok(tide_pool_request(s->pool, TIDE_REQUEST_TRIM | TIDE_REQUEST_COMPACT));
    tide_acquire(s->pool, double, 10); /* no scope */
    assert_int_equal(slots_with_memory(s->pool, TIDE_F32), slots);
    assert_int_equal(stats_of(s->pool).requests, 0);
    form_run(s->form, s->pool, expect_inside, &(struct inside){0, 1});
    assert_true(is_open_and_asked_nothing(s->pool));
    leave_free_slots(s->pool);
    form_run(s->form, s->pool, expect_inside, &(struct inside){slots, 1});
    form_repeat(s->form, s->pool, 3, expect_inside, &(struct inside){slots, 1});
    assert_int_equal(slots_with_memory(s->pool, TIDE_F32), slots);
}

static void ask_inside(tide_pool *pool, void *state)
{
    struct inside *now = state;
    void *live = take(pool, TIDE_F32, SMALL, 7);
    expect_ok(tide_pool_request(pool, TIDE_REQUEST_TRIM));
    EACH_FORM(inner)
    {
        form_run(inner, pool, expect_inside, now);
        form_repeat(inner, pool, 3, expect_inside, now);
    }
    expect_inside(pool, now); /* the unwinding of all those did not serve it */
    expect_bytes(live, SMALL * sizeof(float), 7);
}

static void a_request_waits_while_a_scope_is_open_and_while_it_unwinds(const scene *s)
{
    leave_free_slots(s->pool);
    struct inside now = {s->kind->disabled || s->kind->check == TIDE_CHECK_GUARD ? 1 : 3, 0};
    form_run(s->form, s->pool, ask_inside, &now);
    assert_int_equal(stats_of(s->pool).requests, 0);
    CHECK_POOL(s->pool);
    form_run(s->form, s->pool, expect_inside, &(struct inside){0, 1});
    assert_true(is_open_and_asked_nothing(s->pool));
}

/* The first entry after the request defers it. From then on fast paths pass, and write no log. */
static void a_long_scope_is_as_fast_after_a_request_as_before(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    leave_free_slots(pool);
    {
        TIDE_SCOPE(pool);
        {
            TIDE_SCOPE_TYPES(pool, double);
        }
        expect_ok(tide_pool_request(pool, TIDE_REQUEST_TRIM));
        assert_false(is_open_and_deferred(pool));
        size_t entries = stats_of(pool).log_entries;
        for (unsigned i = 0; i < 3; i++) {
            TIDE_SCOPE_TYPES(pool, double);
            (void)tide_acquire(pool, double, 10);
            assert_true(is_open_and_deferred(pool));
            assert_int_equal(stats_of(pool).log_entries, entries + 1 + (i == 0));
        }
        TIDE_LOOP(pool, j, 4)
        {
            TIDE_FRAME(pool, (double, a, 3), (float, b, SMALL));
            assert_true(a != NULL && b != NULL);
            assert_true(is_open_and_deferred(pool));
        }
        expect_ok(tide_pool_request(pool, TIDE_REQUEST_COMPACT)); /* another: it waits, too */
        {
            TIDE_SCOPE_TYPES(pool, double);
            assert_true(is_open_and_deferred(pool));
        }
        assert_int_not_equal(slots_with_memory(pool, TIDE_F32), 0);
    }
    assert_false(is_open_and_deferred(pool));
    assert_int_equal(stats_of(pool).requests, 0);
    {
        TIDE_SCOPE_TYPES(pool, double);
        assert_int_equal(slots_with_memory(pool, TIDE_F32), 0);
        assert_true(is_open_and_asked_nothing(pool));
    }
    assert_int_equal(stats_of(pool).requests, 1);
    CHECK_POOL(pool);
    expect_ok(tide_pool_destroy(pool));
}

static void ask_in_each_iteration(tide_pool *pool, void *state)
{
    struct inside *seen = state;
    seen->served = stats_of(pool).requests;
    take(pool, TIDE_F32, SMALL, 1);
    take(pool, TIDE_F64, SMALL, 2);
    expect_ok(tide_pool_request(pool, TIDE_REQUEST_TRIM));
}

/* A loop is entered once: its iterations are not. Others serve what the one before asked for. */
static void each_entry_at_the_root_serves_what_was_asked_before(const scene *s)
{
    struct inside seen = {0};
    form_repeat(s->form, s->pool, 5, ask_in_each_iteration, &seen);
    assert_int_equal(seen.served, s->form->repeat != NULL ? 0 : 4);
    form_run(s->form, s->pool, nothing, NULL);
    assert_int_equal(stats_of(s->pool).requests, s->form->repeat != NULL ? 1 : 5);
    assert_true(is_open_and_asked_nothing(s->pool));
}

static void what_was_taken_back_is_not_served_and_fast_paths_pass_again(const scene *s)
{
    leave_free_slots(s->pool);
    size_t slots = slots_with_memory(s->pool, TIDE_F32);
    expect_ok(tide_pool_request(s->pool, TIDE_REQUEST_TRIM));
    expect_ok(tide_pool_request(s->pool, 0));
    form_run(s->form, s->pool, expect_inside, &(struct inside){slots, 0});
    assert_true(is_open_and_asked_nothing(s->pool));
    expect_ok(tide_pool_request(s->pool, 0)); /* nothing to take back */
    assert_true(is_open_and_asked_nothing(s->pool));
}

static void a_bad_request_is_refused(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    expect_status(tide_pool_request(NULL, TIDE_REQUEST_TRIM), TIDE_ERROR_ARGUMENT);
    expect_error(TIDE_ERROR_ARGUMENT, "tide_pool_request");
    expect_status(tide_pool_request(pool, 4), TIDE_ERROR_ARGUMENT);
    expect_status(tide_pool_request(pool, UINT32_MAX), TIDE_ERROR_ARGUMENT);
    assert_true(is_open_and_asked_nothing(pool));
    expect_ok(tide_pool_destroy(pool));
}

/* ---- what is live stays ---- */

static void what_is_live_at_the_root_survives_every_request(const scene *s)
{
    take(s->pool, TIDE_U8, 4 * MIB, 1);
    expect_ok(tide_pool_reset(s->pool));
    tide_pool_compact(s->pool, TIDE_ALL_TYPES);
    uint8_t *few = take(s->pool, TIDE_U8, 100, 2); /* live, in a slot far too large */
    size_t held = stats_of(s->pool).bytes_held;
    for (uint32_t request = 1; request < 4; request++) {
        expect_ok(tide_pool_request(s->pool, request));
        form_run(s->form, s->pool, nothing, NULL);
        assert_int_equal(stats_of(s->pool).requests, request);
        expect_bytes(few, 100, 2);
    }
    assert_true(stats_of(s->pool).bytes_held + 64 * 16 >= held);
    expect_ok(tide_pool_reset(s->pool));
    expect_ok(tide_pool_request(s->pool, TIDE_REQUEST_COMPACT));
    form_run(s->form, s->pool, nothing, NULL);
    assert_true(stats_of(s->pool).bytes_held < MIB); /* free now, and waste */
}

/* ---- what compact takes for waste ---- */

/* A slot of `capacity` bytes, of which `recent` (SIZE_MAX: none at all) were used lately. */
static size_t gain_of(tide_check check, tide_type type, size_t capacity, size_t recent)
{
    tide_pool *pool = pool_of(check);
    assert_non_null(tide_acquire_type(pool, type, capacity));
    expect_ok(tide_pool_reset(pool));
    assert_int_equal(tide_pool_compact(pool, type).slots, 0); /* it was used in full */
    if (recent != SIZE_MAX)
        assert_non_null(tide_acquire_type(pool, type, recent));
    expect_ok(tide_pool_reset(pool));
    size_t held = stats_of(pool).bytes_held;
    tide_trim_summary freed = tide_pool_compact(pool, type);
    assert_int_equal(stats_of(pool).bytes_held, held - freed.bytes);
    assert_int_equal(freed.slots, freed.bytes != 0);
    CHECK_POOL(pool);
    expect_ok(tide_pool_destroy(pool));
    return freed.bytes;
}

static void ten_times_and_one_mebibyte_to_the_byte(void **state)
{
    (void)state;
    EACH_CHECK_LEVEL(check, TIDE_CHECK_POISON)
    {
        assert_int_equal(gain_of(check, TIDE_U8, 2000000, 200000), 2000000);
        assert_int_equal(gain_of(check, TIDE_U8, 2000000, 200001), 0);
        assert_int_equal(gain_of(check, TIDE_U8, MIB + 1024, 1024), MIB + 1024);
        assert_int_equal(gain_of(check, TIDE_U8, MIB + 1024, 1025), 0);
        assert_int_equal(gain_of(check, TIDE_U8, MIB, SIZE_MAX), MIB);
        assert_int_equal(gain_of(check, TIDE_U8, MIB - 64, SIZE_MAX), 0);
        assert_int_equal(gain_of(check, TIDE_F64, 250000, 25000), 2000000);
        assert_int_equal(gain_of(check, TIDE_F64, 250000, 25001), 0);
        assert_int_equal(gain_of(check, TIDE_BIT, 16000000, 1600000), 2000000);
        assert_int_equal(gain_of(check, TIDE_BIT, 16000000, 1600001), 0);
    }
}

struct rounds {
    size_t large, small;
};

static void use_both(tide_pool *pool, void *state)
{
    const struct rounds *use = state;
    take(pool, TIDE_U8, use->large, 1);
    take(pool, TIDE_U8, use->small, 2);
}

/* Recent use is that since the last compact, whatever path noticed it. */
static void recent_use_keeps_a_slot_and_one_compact_forgets_it(const scene *s)
{
    struct rounds use = {3 * MIB, 100};
    form_run(s->form, s->pool, use_both, &use);
    for (int i = 0; i < 3; i++) {
        form_repeat(s->form, s->pool, 2, use_both, &use);
        assert_int_equal(tide_pool_compact(s->pool, TIDE_U8).slots, 0);
    }
    use = (struct rounds){100, 100};
    form_repeat(s->form, s->pool, 2, use_both, &use);
    assert_int_equal(tide_pool_compact(s->pool, TIDE_U8).bytes, 3 * MIB);
    assert_int_equal(tide_pool_compact(s->pool, TIDE_U8).bytes, 0);
    form_repeat(s->form, s->pool, 2, use_both, &use);
    CHECK_POOL(s->pool);
}

/* ---- by the library itself ---- */

static void set_auto(double trim, double compact)
{
    expect_ok(tide_tune_set("auto_trim", trim));
    expect_ok(tide_tune_set("auto_compact", compact));
}

static void a_step_asks_for_what_the_settings_say(const scene *s)
{
    expect_ok(tide_tune_set("trim_after", 1));
    leave_free_slots(s->pool);
    size_t slots = slots_with_memory(s->pool, TIDE_F32);
    set_auto(0, 0);
    expect_ok(tide_step());
    form_run(s->form, s->pool, expect_inside, &(struct inside){slots, 0});
    set_auto(0, 1);
    expect_ok(tide_step());
    form_run(s->form, s->pool, expect_inside, &(struct inside){slots, 1}); /* no waste here */
    form_run(s->form, s->pool, expect_inside, &(struct inside){slots, 1});
    set_auto(1, 1);
    expect_ok(tide_step());
    expect_ok(tide_step());
    form_run(s->form, s->pool, expect_inside, &(struct inside){0, 2});
    form_run(s->form, s->pool, expect_inside, &(struct inside){0, 2});
    set_auto(0, 1);
    expect_ok(tide_tune_set("trim_after", 8));
}

static void a_step_takes_back_what_it_asked_for_and_nothing_else(const scene *s)
{
    leave_free_slots(s->pool);
    size_t slots = slots_with_memory(s->pool, TIDE_F32);
    set_auto(0, 1);
    expect_ok(tide_step());
    set_auto(0, 0);
    expect_ok(tide_step());
    form_run(s->form, s->pool, expect_inside, &(struct inside){slots, 0});
    expect_ok(tide_pool_request(s->pool, TIDE_REQUEST_TRIM));
    expect_ok(tide_step());
    form_run(s->form, s->pool, expect_inside, &(struct inside){0, 1});
    assert_true(is_open_and_asked_nothing(s->pool));
    set_auto(0, 1);
}

/* ---- from other threads, and the same results ---- */

struct asker {
    tide_pool *pool;
    uint32_t requests;
    int stop; /* atomic */
};

static void *ask_once(void *state)
{
    struct asker *asker = state;
    tide_pool_request(asker->pool, asker->requests);
    return NULL;
}

static void a_request_of_another_thread_is_served_by_the_owner(const scene *s)
{
    for (uint64_t round = 1; round <= 3; round++) {
        struct asker asker = {s->pool, TIDE_REQUEST_TRIM, 0};
        pthread_t thread;
        leave_free_slots(s->pool);
        assert_int_equal(pthread_create(&thread, NULL, ask_once, &asker), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        form_run(s->form, s->pool, expect_inside, &(struct inside){0, round});
        assert_true(is_open_and_asked_nothing(s->pool));
    }
}

static const form_case cases[] = {
    CASE_SLOTS(a_request_is_served_where_the_next_scope_opens_and_once),
    CASE(a_request_waits_while_a_scope_is_open_and_while_it_unwinds),
    CASE(each_entry_at_the_root_serves_what_was_asked_before),
    CASE(what_was_taken_back_is_not_served_and_fast_paths_pass_again),
    CASE_SLOTS(what_is_live_at_the_root_survives_every_request),
    CASE_SLOTS(recent_use_keeps_a_slot_and_one_compact_forgets_it),
    CASE_SLOTS(a_step_asks_for_what_the_settings_say),
    CASE_SLOTS(a_step_takes_back_what_it_asked_for_and_nothing_else),
    CASE(a_request_of_another_thread_is_served_by_the_owner),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(a_long_scope_is_as_fast_after_a_request_as_before),
    cmocka_unit_test(a_bad_request_is_refused),
    cmocka_unit_test(ten_times_and_one_mebibyte_to_the_byte),
};

int main(void)
{
    return FORMS_MAIN("requests", cases, others);
}
