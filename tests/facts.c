/* SPDX-License-Identifier: MIT */
/* What any thread may ask about the pools and buffers of the process, while others use them. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/dlpack.h>
#include <tidepool/dynamic.h>
#include <tidepool/facts.h>
#include <tidepool/learn.h>
#include <tidepool/tidepool.h>
#include <tidepool/upkeep.h>

#include "support.h"

/* ---- one pool ---------------------------------------------------------------------------- */

typedef struct seen_pool {
    const char *name; /* whose facts are wanted */
    tide_pool_information pool;
    size_t count, all;
    uint64_t last;
} seen_pool;

static bool see_pool(const tide_pool_information *pool, void *user)
{
    seen_pool *seen = user;
    assert_true(pool->id > seen->last); /* the oldest first */
    seen->last = pool->id;
    seen->all++;
    if (strcmp(pool->name, seen->name) == 0) {
        seen->pool = *pool;
        seen->count++;
    }
    return true;
}

static tide_pool_information find_pool(const char *name)
{
    seen_pool seen = {.name = name};
    assert_int_equal(tide_pool_each(see_pool, &seen), TIDE_OK);
    assert_int_equal(seen.count, 1);
    return seen.pool;
}

static void expect_same(const tide_pool *pool, const tide_pool_information *seen)
{
    tide_pool_statistics stats;
    assert_int_equal(tide_pool_stats(pool, &stats), TIDE_OK);
    assert_memory_equal(&seen->statistics, &stats, sizeof stats);
}

static void a_pool_is_seen_as_its_owner_sees_it(void **state)
{
    (void)state;
    tide_pool *pool = tide_pool_create(
        &(tide_pool_options){.name = "seen", .limit_bytes = 1 << 26, .check = TIDE_CHECK_NONE});
    assert_non_null(pool);
    {
        TIDE_SCOPE_TYPES(pool, double, int);
        for (size_t i = 0; i < 20; i++)
            assert_non_null(tide_acquire(pool, double, 1000 + i));
        assert_non_null(tide_acquire(pool, int, 50000));
        tide_pool_information seen = find_pool("seen");
        expect_same(pool, &seen);
        assert_int_equal(seen.statistics.depth, 1);
        assert_int_equal(seen.statistics.slots_live, 21);
        assert_int_equal(seen.statistics.bytes_limit, 1 << 26);
        assert_int_equal(seen.check, 0);
        assert_int_equal(seen.thread, gettid());
        assert_string_equal(seen.device, "host");
        assert_false(seen.local || seen.disabled);
    }
    tide_pool_information after = find_pool("seen");
    assert_int_equal(
        after.statistics.slots_live + after.statistics.bytes_live + after.statistics.depth, 0);
    tide_pool_trim(pool, TIDE_ALL_TYPES);
    after = find_pool("seen");
    expect_same(pool, &after);
    assert_int_equal(after.statistics.releases, 21);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
    seen_pool gone = {.name = "seen"};
    assert_int_equal(tide_pool_each(see_pool, &gone), TIDE_OK);
    assert_int_equal(gone.count, 0);
}

static void a_pool_is_asked_by_its_id(void **state)
{
    (void)state;
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.name = "asked"});
    {
        TIDE_SCOPE_TYPES(pool, double);
        assert_non_null(tide_acquire(pool, double, 1000));
    }
    uint64_t id = find_pool("asked").id;
    assert_int_equal(tide_pool_request_by_id(id, TIDE_REQUEST_TRIM), TIDE_OK);
    assert_int_equal(tide_pool_request_by_id(id, 1u << 20), TIDE_ERROR_ARGUMENT);
    assert_true(find_pool("asked").statistics.bytes_held != 0);
    {
        TIDE_SCOPE(pool);
        assert_int_equal(find_pool("asked").statistics.bytes_held, 0);
    }
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
    assert_int_equal(tide_pool_request_by_id(id, TIDE_REQUEST_TRIM), TIDE_ERROR_NAME);
}

/* ---- many pools at work ------------------------------------------------------------------ */

enum { WORKERS = 4, POOLS_OF_EACH = 16, TYPES = 6, POOLS = WORKERS * POOLS_OF_EACH };

static int work_ends;

/* All that changes what is listed: first uses of types, new slots, growth, exchanges, levels,
 * trims, hand-overs to the thread itself. */
static void work_once(tide_pool *pool, size_t turn)
{
    TIDE_SCOPE_TYPES(pool, double, int32_t);
    tide_type type = (tide_type)(TIDE_I32 + turn % TYPES);
    size_t n = turn % 7 == 0 ? 20000 : 100 + turn % 300;
    assert_non_null(tide_acquire_type(pool, type, n));
    for (size_t i = 0; i < 12 + turn % 30; i++)
        assert_non_null(tide_acquire(pool, double, n / (i + 1) + 1));
    if (turn % 50 == 0)
        tide_pool_trim(pool, TIDE_ALL_TYPES);
    if (turn % 64 == 0)
        assert_int_equal(tide_pool_adopt(pool), TIDE_OK);
}

static void *work_in_pools(void *user)
{
    char name[TIDE_NAME_BYTES];
    tide_pool *pools[POOLS_OF_EACH];
    for (size_t i = 0; i < POOLS_OF_EACH; i++) {
        snprintf(name, sizeof name, "work %zu.%zu", (size_t)(uintptr_t)user, i);
        pools[i] = tide_pool_create(&(tide_pool_options){.name = name, .limit_bytes = 1 << 24});
        if (pools[i] == NULL)
            return "no pool";
    }
    for (size_t turn = 0; !__atomic_load_n(&work_ends, __ATOMIC_RELAXED); turn++)
        work_once(pools[turn % POOLS_OF_EACH], turn);
    for (size_t i = 0; i < POOLS_OF_EACH; i++)
        if (tide_pool_destroy(pools[i]) != TIDE_OK)
            return "not destroyed";
    return NULL;
}

typedef struct watched {
    size_t count;
    uint64_t allocations;
} watched;

static bool watch_pool(const tide_pool_information *pool, void *user)
{
    watched *all = user;
    const tide_pool_statistics *s = &pool->statistics;
    if (strncmp(pool->name, "work ", 5) != 0)
        return true;
    all->count++;
    all->allocations += s->allocations;
    assert_true(s->bytes_held <= 1 << 24 && s->bytes_limit == 1 << 24);
    assert_true(s->slots_live <= 64 * TYPES && s->slots <= 64 * TYPES);
    assert_true(s->shelves <= TYPES + 1 && s->depth <= 1);
    assert_true(pool->thread > 0 && pool->thread != gettid());
    return true;
}

static void pools_are_listed_while_their_owners_work(void **state)
{
    (void)state;
    pthread_t workers[WORKERS];
    uint64_t allocations = 0;
    size_t full = 0, looks = scaled(2000, 100);
    for (size_t i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&workers[i], NULL, work_in_pools, (void *)i), 0);
    while (full < looks) {
        watched all = {0};
        assert_int_equal(tide_pool_each(watch_pool, &all), TIDE_OK);
        assert_true(all.count <= POOLS && all.allocations >= allocations);
        allocations = all.allocations;
        full += all.count == POOLS;
    }
    __atomic_store_n(&work_ends, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < WORKERS; i++) {
        void *said = NULL;
        assert_int_equal(pthread_join(workers[i], &said), 0);
        assert_null(said);
    }
    assert_true(allocations > POOLS);
}

/* ---- buffers ----------------------------------------------------------------------------- */

static bool see_buffers(const tide_buffers_information *buffers, void *user)
{
    if (strcmp(buffers->name, "seen") != 0)
        return true;
    *(tide_buffers_information *)user = *buffers;
    return false;
}

static void buffers_are_seen_as_their_statistics(void **state)
{
    (void)state;
    tide_buffers *buffers = tide_buffers_create(NULL, &(tide_buffers_options){.name = "seen"});
    tide_buffers_information seen = {0};
    tide_buffers_statistics stats;
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(tide_buffer_release(buffers, tide_buffer_acquire(buffers, 5000)), TIDE_OK);
    tide_buffer live = tide_buffer_acquire(buffers, 5000);
    assert_int_equal(tide_buffers_stats(buffers, &stats, NULL, 0), TIDE_OK);
    assert_int_equal(tide_buffers_each(see_buffers, &seen), TIDE_OK);
    assert_true(seen.id != 0);
    assert_string_equal(seen.device, "host");
    assert_memory_equal(&seen.statistics, &stats, sizeof stats);
    assert_int_equal(stats.hits, 2);
    assert_int_equal(seen.statistics.live, 1);
    assert_int_equal(tide_buffer_release(buffers, live), TIDE_OK);
    assert_int_equal(tide_buffers_destroy(buffers), TIDE_OK);
}

typedef struct visited {
    tide_buffers *made[2], *shared;
    size_t visits, refused;
    uint64_t last;
} visited;

/* Makes an instance in its first visits, and tries at once to destroy it, and to give a share back that
 * is not the last. */
static bool change_the_list(const tide_buffers_information *buffers, void *user)
{
    visited *all = user;
    assert_true(all->last == 0 || buffers->id < all->last); /* the youngest first */
    all->last = buffers->id;
    if (all->visits++ >= sizeof all->made / sizeof *all->made)
        return true;
    tide_buffers *made = tide_buffers_create(NULL, NULL);
    assert_non_null(made);
    all->made[all->visits - 1] = made;
    all->refused += tide_buffers_destroy(made) == TIDE_ERROR_STATE;
    assert_non_null(strstr(tide_error_message(), "tide_buffers_each"));
    all->refused += tide_buffers_destroy(all->shared) == TIDE_ERROR_STATE;
    return true;
}

static void who_is_shown_buffers_may_make_some_and_ends_none(void **state)
{
    (void)state;
    tide_buffers *own[] = {tide_buffers_create(NULL, NULL), tide_buffers_create(NULL, NULL)};
    tide_buffers *shared = tide_buffers_shared(NULL, TIDE_BUFFER_HOST);
    visited all = {.shared = tide_buffers_shared(NULL, TIDE_BUFFER_HOST)}, after = {0};
    assert_int_equal(tide_buffers_each(change_the_list, &all), TIDE_OK);
    assert_true(all.visits >= 2 && all.refused == 4);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(tide_buffers_destroy(all.made[i]), TIDE_OK);
        assert_int_equal(tide_buffers_destroy(own[i]), TIDE_OK);
    }
    after.visits = 2; /* it only looks */
    assert_int_equal(tide_buffers_each(change_the_list, &after), TIDE_OK);
    assert_int_equal(after.visits, all.visits);
    assert_int_equal(tide_buffers_destroy(all.shared), TIDE_OK);
    assert_int_equal(tide_buffers_destroy(shared), TIDE_OK);
}

/* ---- types ------------------------------------------------------------------------------- */

static void types_are_found_by_name(void **state)
{
    (void)state;
    assert_int_equal(tide_type_find("f64"), TIDE_F64);
    assert_int_equal(tide_type_find("bit"), TIDE_BIT);
    assert_int_equal(tide_type_find("vec3"), TIDE_NO_TYPE);
    assert_int_equal(tide_error_status(), TIDE_ERROR_NAME);
    tide_type vec3 = tide_type_register("vec3", 12, 4);
    assert_int_equal(tide_type_register("vec3", 24, 8) != vec3, true);
    assert_int_equal(tide_type_find("vec3"), vec3); /* the first */
    assert_int_equal(tide_type_find(NULL), TIDE_NO_TYPE);
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
}

/* ---- documents --------------------------------------------------------------------------- */

static void documents_that_cannot_be_written_are_refused(void **state)
{
    (void)state;
    FILE *full = fopen("/dev/full", "w");
    tide_event event = {.kind = TIDE_EVENT_FOUND, .name = "", .reason = "", .detail = ""};
    assert_non_null(full);
    assert_int_equal(tide_facts_write(NULL), TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_event_write(stdout, NULL), TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_event_write(NULL, &event), TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_facts_write(full), TIDE_ERROR_FILE);
    assert_non_null(strstr(tide_error_message(), "No space left"));
    assert_int_equal(tide_event_write(full, &event), TIDE_ERROR_FILE);
    fclose(full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_is_seen_as_its_owner_sees_it),
        cmocka_unit_test(a_pool_is_asked_by_its_id),
        cmocka_unit_test(pools_are_listed_while_their_owners_work),
        cmocka_unit_test(buffers_are_seen_as_their_statistics),
        cmocka_unit_test(who_is_shown_buffers_may_make_some_and_ends_none),
        cmocka_unit_test(types_are_found_by_name),
        cmocka_unit_test(documents_that_cannot_be_written_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
