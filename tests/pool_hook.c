/* SPDX-License-Identifier: MIT */
/* A pool's hook hears of all memory that its slots get and give back, and cannot disturb the pool. */
#define _GNU_SOURCE
#include "arrays_support.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidepool/array.h>
#include <tidepool/check.h>
#include <tidepool/dlpack.h>
#include <tidepool/tune.h>

struct heard {
    size_t sum, events, allocated, freed, exported, returned;
    tide_pool_event last; /* allocated */
    bool used_others;
};

/* Keeps books of its own, and tries to use the pool. */
static void hear(const tide_pool_event *event, void *user)
{
    struct heard *heard = user;
    bool more = event->happening == TIDE_POOL_ALLOCATED || event->happening == TIDE_POOL_RETURNED;
    heard->events++;
    heard->allocated += event->happening == TIDE_POOL_ALLOCATED;
    heard->freed += event->happening == TIDE_POOL_FREED;
    heard->exported += event->happening == TIDE_POOL_EXPORTED;
    heard->returned += event->happening == TIDE_POOL_RETURNED;
    heard->sum += more ? event->bytes : -event->bytes;
    assert_true(event->bytes > 0);
    assert_int_equal(event->held, heard->sum);
    assert_string_equal(event->name, "heard");
    assert_non_null(tide_type_name(event->type));
    if (event->happening == TIDE_POOL_ALLOCATED)
        heard->last = *event;
    assert_null(tide_acquire(event->pool, double, 1));
    assert_int_equal(tide_error_status(), TIDE_ERROR_STATE);
    assert_int_equal(tide_pool_reset(event->pool), TIDE_ERROR_STATE);
    assert_int_equal(tide_pool_destroy(event->pool), TIDE_ERROR_STATE);
    TIDE_FRAME(tide_pool_local(), (float, other, 10));
    heard->used_others = other != NULL;
}

static tide_pool *pool_heard(const scene *s, struct heard *heard)
{
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.name = "heard",
                                                            .check = s->kind->check,
                                                            .disabled = s->kind->disabled,
                                                            .hook = hear,
                                                            .user = heard});
    assert_non_null(pool);
    return pool;
}

static void work(tide_pool *pool, void *state)
{
    struct heard *heard = state;
    take(pool, TIDE_F64, 100, 1);
    take(pool, TIDE_I32, 50, 2);
    TAKE(pool, TIDE_F32, 5, 7);
    (void)tide_array_view(pool, TAKE(pool, TIDE_F32, 9), SHAPE(1), SHAPE(2), NULL);
    uint8_t *grown = take(pool, TIDE_U8, 10, 3);
    grown = tide_grow(pool, uint8_t, grown, 100000);
    expect_bytes(grown, 10, 3);
    assert_int_equal(stats_of(pool).bytes_held, heard->sum);
    tide_dl_managed *managed = tide_array_export(pool, TAKE(pool, TIDE_F64, 77));
    if (managed != NULL)
        managed->deleter(managed);
    CHECK_POOL(pool);
}

static void the_hook_hears_of_every_byte(const scene *s)
{
    struct heard heard = {0};
    tide_pool *pool = pool_heard(s, &heard);
    for (int i = 0; i < 3; i++) {
        form_run(s->form, pool, work, &heard);
        assert_int_equal(stats_of(pool).bytes_held, heard.sum);
        if (i == 1)
            tide_pool_trim(pool, TIDE_ALL_TYPES);
    }
    assert_int_equal(heard.allocated, stats_of(pool).allocations);
    assert_int_equal(heard.freed, stats_of(pool).releases);
    assert_true(heard.exported > 0 || s->kind->check == TIDE_CHECK_GUARD);
    assert_true(heard.used_others);
    expect_ok(tide_pool_destroy(pool));
    assert_int_equal(heard.sum, 0);
}

static void take_as_before(tide_pool *pool, void *state)
{
    (void)state;
    take(pool, TIDE_F64, 100, 1);
    take(pool, TIDE_I32, 50, 2);
}

static void steady_work_is_not_told(const scene *s)
{
    struct heard heard = {0};
    tide_pool *pool = pool_heard(s, &heard);
    form_repeat(s->form, pool, 2, take_as_before, NULL);
    size_t events = heard.events;
    form_repeat(s->form, pool, 10, take_as_before, NULL);
    assert_int_equal(heard.events, events);
    expect_ok(tide_pool_destroy(pool));
}

static void an_event_says_who_asked_for_what(void **state)
{
    (void)state;
    struct heard heard = {0};
    tide_pool *pool =
        tide_pool_create(&(tide_pool_options){.name = "heard", .hook = hear, .user = &heard});
    assert_non_null(tide_acquire(pool, int16_t, 1000));
    int line = __LINE__ - 1;
    assert_int_equal(heard.last.type, TIDE_I16);
    assert_int_equal(heard.last.elements, 1000);
    assert_in_range(heard.last.bytes, 2000, 2063);
    assert_non_null(strstr(heard.last.file, "pool_hook.c"));
    assert_string_equal(heard.last.function, __func__);
    assert_int_equal(heard.last.line, line);
    assert_null(heard.last.caller);
    assert_non_null(tide_acquire_type(pool, TIDE_F64, 10));
    assert_null(heard.last.file);
    assert_non_null(heard.last.caller);
    assert_ptr_equal(heard.last.pool, pool);
    expect_ok(tide_pool_destroy(pool));
}

static void memory_that_a_consumer_gives_back_returns(void **state)
{
    (void)state;
    struct heard heard = {0};
    tide_pool *pool =
        tide_pool_create(&(tide_pool_options){.name = "heard", .hook = hear, .user = &heard});
    for (int i = 0; i < 3; i++) {
        tide_dl_managed *managed = tide_array_export(pool, TAKE(pool, TIDE_F64, 40));
        assert_int_equal(heard.sum, 0);
        expect_ok(tide_pool_reset(pool));
        managed->deleter(managed);
    }
    assert_int_equal(heard.exported, 3);
    assert_int_equal(heard.returned, 2);
    assert_int_equal(heard.allocated, 1);
    expect_ok(tide_pool_destroy(pool));
    assert_int_equal(heard.sum, 0);
}

static const form_case cases[] = {
    CASE(the_hook_hears_of_every_byte),
    CASE_SLOTS(steady_work_is_not_told),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(an_event_says_who_asked_for_what),
    cmocka_unit_test(memory_that_a_consumer_gives_back_returns),
};

int main(void)
{
    return FORMS_MAIN("pool_hook", cases, others);
}
