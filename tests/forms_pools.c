/* SPDX-License-Identifier: MIT */
/* What every test asks: pools made, checked, compared with what they were; and under what it runs. */
#include "forms.h"

#include <tidepool/dynamic.h>
#include <tidepool/upkeep.h>

#include "runtime/pool/core.h"

#if defined(TIDE_HAVE_VALGRIND)
#include <valgrind/valgrind.h>
#endif

tide_pool *pool_of(tide_check check)
{
    const tide_pool_options options = {.check = check};
    tide_pool *pool = tide_pool_create(&options);
    assert_non_null(pool);
    return pool;
}

void check_pool(const tide_pool *pool, const char *file, int line)
{
    if (tide_pool_check(pool) == TIDE_OK)
        return;
    print_error("the pool is not sound: %s\n", tide_error_message());
    _fail(file, line);
}

void check_status(tide_status got, tide_status expected, const char *call, const char *file,
                  int line)
{
    if (got == expected)
        return;
    print_error("%s gave '%s', not '%s'; last message: %s\n", call, tide_status_name(got),
                tide_status_name(expected), tide_error_message());
    _fail(file, line);
}

tide_pool_statistics stats_of(const tide_pool *pool)
{
    tide_pool_statistics stats;
    expect_ok(tide_pool_stats(pool, &stats));
    return stats;
}

tide_check check_of(const tide_pool *pool)
{
    return pool->core->check;
}

bool is_open_and_asked_nothing(const tide_pool *pool)
{
    const tide_pool_core *core = pool->core;
    return pool->log_room == (core->careful ? core->log.start : core->log.end) &&
           core->requests.asked == 0;
}

bool is_open_and_deferred(const tide_pool *pool)
{
    const tide_pool_core *core = pool->core;
    return pool->log_room == core->log.end && core->requests.asked != 0 && core->requests.deferred;
}

size_t slots_with_memory(const tide_pool *pool, tide_type type)
{
    const tide_row *row = &pool->core->rows.by_type[type];
    size_t count = 0;
    for (uint32_t i = 0; i < row->count; i++)
        count += row->slots[i].data != NULL;
    return count;
}

snapshot snapshot_take(const tide_pool *pool)
{
    snapshot s = {pool->tag, pool->log_top, pool->log_room, tide_type_count() + 1,
                  NULL,      stats_of(pool)};
    s.shelves = malloc(s.shelf_count * sizeof *s.shelves);
    assert_non_null(s.shelves);
    memcpy(s.shelves, pool->shelves, s.shelf_count * sizeof *s.shelves);
    return s;
}

void snapshot_same(const snapshot *before, const tide_pool *pool)
{
    assert_int_equal(pool->tag, before->tag);
    assert_ptr_equal(pool->log_top, before->log_top);
    assert_ptr_equal(pool->log_room, before->log_room);
    for (uint32_t type = 0; type < before->shelf_count; type++) {
        const tide_shelf *was = &before->shelves[type], *is = &pool->shelves[type];
        assert_ptr_equal(is->next, was->next);
        assert_int_equal(is->bit, was->bit);
        assert_memory_equal(is, was, sizeof *is);
    }
    tide_pool_statistics now = stats_of(pool);
    assert_memory_equal(&now, &before->stats, sizeof now);
}

void snapshot_drop(snapshot *s)
{
    free(s->shelves);
    s->shelves = NULL;
}

counts counts_of(const tide_pool *pool)
{
    tide_pool_statistics stats = stats_of(pool);
    counts now = {tide_pool_depth(pool), stats.slots_live, stats.bytes_live, stats.log_entries};
    assert_int_equal(stats.depth, now.depth);
    return now;
}

/* A scope may have the level around it save types that it needs. That stays until the level ends:
 * one entry for a shelf that has not moved since. A request may wait there, too. */
static void check_added_entries(const tide_pool *pool, size_t first)
{
    const tide_log *log = &pool->core->log;
    for (const tide_entry *entry = log->start + first; entry < pool->log_top; entry++) {
        if (entry->shelf == &log->undo[TIDE_UNDO_REQUEST])
            continue;
        assert_true(tide_shelf_real(pool, entry->shelf));
        assert_ptr_equal(entry->next, entry->shelf->next);
        for (const tide_entry *other = entry + 1; other < pool->log_top; other++)
            assert_ptr_not_equal(entry->shelf, other->shelf);
    }
}

void counts_same(counts before, const tide_pool *pool)
{
    counts now = counts_of(pool);
    CHECK_POOL(pool);
    assert_int_equal(now.depth, before.depth);
    assert_int_equal(now.live, before.live);
    assert_int_equal(now.bytes_live, before.bytes_live);
    if (now.depth == 0)
        assert_int_equal(now.log_entries, 0);
    assert_true(now.log_entries >= before.log_entries);
    check_added_entries(pool, before.log_entries);
}

/* ---- under what it runs ---- */

#if defined(__has_feature)
#define HAS(feature) __has_feature(feature)
#else
#define HAS(feature) 0
#endif

/* A refused allocation is what some tests are about, not a reason to stop. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1:atexit_sleep_ms=50"; /* a second in each process else */
}

bool under_sanitizer(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#else
    return HAS(address_sanitizer) || HAS(thread_sanitizer);
#endif
}

bool under_thread_sanitizer(void)
{
#if defined(__SANITIZE_THREAD__)
    return true;
#else
    return HAS(thread_sanitizer);
#endif
}

bool under_valgrind(void)
{
#if defined(TIDE_HAVE_VALGRIND)
    return RUNNING_ON_VALGRIND != 0;
#else
    return false;
#endif
}
