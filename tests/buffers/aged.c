/* SPDX-License-Identifier: MIT */
/* What a trim by age looks at: buffers that are old enough, not all that are idle. */
#include <tidepool/buffers.h>
#include <tidepool/tune.h>

#include "bed.h"

#include "runtime/base/test_hooks.h"
#include "runtime/buffers/buffers.h"
#include "runtime/buffers/store/cell.h"
#include "tests/random.h"

enum { IDLE = 100000, ROUNDS = 10, EACH = IDLE / ROUNDS };

/* Most that the magazine of one thread keeps of them. */
enum { IN_CELL = TIDE_CELL_SLOTS };

static uint64_t visited_by_trim(tide_buffers *buffers, uint32_t ticks, size_t *taken)
{
    uint64_t before = buffers->visited;
    *taken = tide_buffers_trim(buffers, ticks).slots;
    return buffers->visited - before;
}

/* A tenth of them is released in each round. */
static tide_buffers *idle_of_ages(void)
{
    static tide_buffer held[IDLE];
    tide_buffers *buffers = made(&(tide_buffers_options){.age_max = 1000});
    expect_ok(tide_buffer_acquire_many(buffers, 64, IDLE, held));
    for (size_t round = 0; round < ROUNDS; round++) {
        expect_ok(tide_buffer_release_many(buffers, held + round * EACH, EACH));
        tide_buffers_tick(1);
    }
    return buffers;
}

static void a_trim_costs_by_what_it_takes(void **state)
{
    (void)state;
    tide_buffers *buffers = idle_of_ages();
    size_t taken = 0;
    assert_int_equal(visited_by_trim(buffers, ROUNDS + 1, &taken), 0);
    assert_int_equal(taken, 0);
    for (uint32_t ticks = ROUNDS; ticks > 0; ticks--) {
        uint64_t visited = visited_by_trim(buffers, ticks, &taken);
        assert_in_range(taken, EACH - IN_CELL, EACH + IN_CELL);
        assert_true(visited <= taken);
        assert_int_equal(visited_by_trim(buffers, ticks, &taken), 0); /* once more */
    }
    assert_int_equal(stats_of(buffers).cached, 0);
    expect_ok(tide_buffers_destroy(buffers));
}

/* As the rounds do it, of themselves. */
static void so_does_the_trim_of_each_age(void **state)
{
    (void)state;
    tide_buffers *buffers = idle_of_ages();
    uint64_t before = buffers->visited;
    for (unsigned i = 0; i < 1000 - ROUNDS - 1; i++)
        tide_buffers_tick(1);
    assert_int_equal(buffers->visited, before);
    assert_int_equal(stats_of(buffers).cached, IDLE);
    for (unsigned i = 0; i < 1000; i++)
        tide_buffers_tick(1);
    assert_int_equal(stats_of(buffers).cached, 0);
    assert_true(buffers->visited - before <= IDLE);
    expect_ok(tide_buffers_destroy(buffers));
}

/* As many ages as buffers: each trim would move all runs for each that goes. */
static void a_long_age_has_few_runs(void **state)
{
    (void)state;
    enum { BUFFERS = 20000, LONG = 50000 };
    static tide_buffer held[BUFFERS];
    tide_buffers *buffers = made(&(tide_buffers_options){.age_max = LONG});
    expect_ok(tide_buffer_acquire_many(buffers, 1024, BUFFERS, held));
    for (size_t i = 0; i < BUFFERS; i++) {
        expect_ok(tide_buffer_release(buffers, held[i]));
        tide_buffers_tick(1);
    }
    const tide_depot_bucket *depot =
        tide_depot_at(buffers, buffers->key, (unsigned)(held[0].slot >> 32));
    assert_in_range(depot->cached, BUFFERS - IN_CELL, BUFFERS);
    assert_in_range(depot->run_count, BUFFERS / (LONG / 1000), 1024);
    size_t taken = 0;
    uint64_t visited = visited_by_trim(buffers, BUFFERS / 2, &taken);
    assert_in_range(taken, BUFFERS / 2 - IN_CELL, BUFFERS / 2 + IN_CELL);
    assert_true(visited <= taken + LONG / 1000);
    expect_ok(tide_buffers_destroy(buffers));
}

/* ---- any order, and no memory for runs ----------------------------------------------------- */

enum { RECORDS = 400, STEPS = 200000 };

typedef struct list {
    tide_buffers *buffers;
    tide_depot_bucket *depot;
    bool in[RECORDS];
    uint32_t count;
    rng random;
} list;

static bool refuse(size_t bytes)
{
    (void)bytes;
    return true;
}

/* The chain is all that is in the list, its runs one after the other, each with its ticks. */
static void expect_list(const list *l)
{
    const tide_depot_bucket *depot = l->depot;
    uint32_t seen = 0, slot = depot->first;
    for (uint32_t run = depot->run_count; run-- > 0;) {
        const tide_run *r = &depot->runs[run];
        uint64_t end = run + 1 < depot->run_count ? depot->runs[run + 1].tick : UINT64_MAX;
        assert_int_equal(slot, r->first);
        assert_true(r->tick <= r->until && r->until < end);
        for (bool last = false; !last; seen++) {
            const tide_buffer_record *record = &l->buffers->records[slot];
            assert_true(l->in[slot] && record->tick >= r->tick && record->tick <= r->until);
            last = slot == r->last;
            slot = record->next;
        }
    }
    assert_int_equal(slot, TIDE_NO_RECORD);
    assert_int_equal(seen, l->count);
}

static void put_some(list *l, uint64_t tick)
{
    uint32_t slot = (uint32_t)(rng_next(&l->random) % RECORDS);
    if (l->in[slot])
        return;
    l->buffers->records[slot].tick = tick;
    tide_depot_push(l->buffers, l->depot, slot);
    l->in[slot] = true;
    l->count++;
}

static void take_some(list *l, uint32_t far)
{
    uint32_t *link = &l->depot->first;
    for (uint32_t i = far > 0 ? (uint32_t)(rng_next(&l->random) % far) : 0;
         i > 0 && *link != TIDE_NO_RECORD; i--)
        link = &l->buffers->records[*link].next;
    if (*link == TIDE_NO_RECORD)
        return;
    uint32_t slot = tide_depot_take(l->buffers, l->depot, link);
    assert_true(l->in[slot]);
    l->in[slot] = false;
    l->count--;
}

static void any_order_is_kept(void **state)
{
    (void)state;
    list l = {.buffers = calloc(1, sizeof(tide_buffers)), .random = {7}};
    tide_depot_bucket depot = {.first = TIDE_NO_RECORD, .permits = RECORDS};
    void *records = aligned_alloc(64, RECORDS * sizeof(tide_buffer_record));
    uint32_t most = 0;
    assert_true(l.buffers != NULL && records != NULL);
    memset(records, 0, RECORDS * sizeof(tide_buffer_record));
    l.buffers->records = records;
    l.buffers->record_count = RECORDS;
    l.buffers->purge_at = l.buffers->purge_next = TIDE_NO_RECORD;
    l.depot = &depot;
    for (uint32_t step = 0, steps = (uint32_t)scaled(STEPS, 20000); step < steps; step++) {
        uint64_t r = rng_next(&l.random), now = 100 + step / 50;
        tide_os_fault = step < steps / 4 ? refuse : NULL;
        l.buffers->age_max = step < steps / 2 ? 1000 : 1024 * 8; /* runs of a tick, of eight */
        if (r % 5 < 2)
            put_some(&l, now - (r / 8 % 3 == 0 ? r / 64 % 100 : 0));
        else if (r % 5 < 4)
            take_some(&l, r / 8 % 2 == 0 ? 0 : RECORDS);
        else if (r / 8 % 50 == 0)
            while (l.count > r / 512 % 20)
                take_some(&l, 1);
        most = depot.run_count > most ? depot.run_count : most;
        expect_list(&l);
    }
    tide_os_fault = NULL;
    assert_true(most > 10); /* and one only, at first */
    tide_runs_free(&depot);
    free(records);
    free(l.buffers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trim_costs_by_what_it_takes),
        cmocka_unit_test(so_does_the_trim_of_each_age),
        cmocka_unit_test(a_long_age_has_few_runs),
        cmocka_unit_test(any_order_is_kept),
    };
    expect_ok(tide_tune_set("learn", 0));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
