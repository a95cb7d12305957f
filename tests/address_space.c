/* SPDX-License-Identifier: MIT */
/* Pools where address space is short, counted or locked: each reserves in steps, and what is
 * refused changes nothing. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#include <tidepool/tidepool.h>
#include <tidepool/upkeep.h>

#include "runtime/base/shim.h"
#include "runtime/base/test_hooks.h"
#include "runtime/pool/core.h"
#include "support.h"

enum { MIB = 1 << 20 };

static size_t status_kib(const char *name)
{
    char text[4096];
    int from = open("/proc/self/status", O_RDONLY);
    size_t bytes = read_to_end(from, text, sizeof text - 1);
    text[bytes] = 0;
    const char *at = strstr(text, name);
    return at != NULL ? strtoul(at + strlen(name), NULL, 10) : 0;
}

static tide_pool *make(void)
{
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.check = TIDE_CHECK_NONE});
    assert_non_null(pool);
    return pool;
}

static void use_two_types(tide_pool *pool)
{
    CHILD_MUST(tide_acquire(pool, double, 10) != NULL && tide_acquire(pool, float, 10) != NULL);
    CHILD_MUST(tide_pool_check(pool) == TIDE_OK);
}

/* ---- what a pool reserves ---- */

static void a_pool_reserves_some_mebibytes(void **state)
{
    (void)state;
    tide_pool *first = make(); /* with it comes what the library has but once */
    size_t before = status_kib("VmSize:");
    tide_pool *pool = make();
    assert_in_range(status_kib("VmSize:") - before, 1, 6 * 1024);
    use_two_types(pool);
    assert_in_range(status_kib("VmSize:") - before, 1, 11 * 1024);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
    assert_int_equal(tide_pool_destroy(first), TIDE_OK);
}

static void so_five_find_room_where_one_did_not(void **state)
{
    (void)state;
    (void)tide_pool_destroy(make());
    pid_t child = fork_child(60);
    if (child == 0) {
        size_t most = status_kib("VmSize:") * 1024 + 60 * (size_t)MIB;
        CHILD_MUST(setrlimit(RLIMIT_AS, &(struct rlimit){most, most}) == 0);
        tide_pool *pools[5];
        for (int i = 0; i < 5; i++) {
            CHILD_MUST((pools[i] = tide_pool_create(NULL)) != NULL);
            use_two_types(pools[i]);
        }
        for (int i = 0; i < 20; i++) /* until there is none left */
            if (tide_pool_create(NULL) == NULL)
                break;
        CHILD_MUST(tide_error_status() == TIDE_ERROR_MEMORY);
        for (int i = 0; i < 5; i++)
            CHILD_MUST(tide_pool_destroy(pools[i]) == TIDE_OK);
        _exit(0);
    }
    expect_child_ends_well(child);
}

/* Where all that is mapped is made resident at once. */
static void locked_memory_holds_what_was_reserved(void **state)
{
    (void)state;
    pid_t child = fork_child(60);
    if (child == 0) {
        (void)tide_pool_destroy(tide_pool_create(NULL));
        (void)tide_pool_trim(tide_pool_local(), TIDE_ALL_TYPES);
        enum { ENOUGH = 32 << 20 };
        if (mlockall(MCL_FUTURE) != 0)
            _exit(0); /* not allowed here */
        void *probe = mmap(NULL, ENOUGH, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (probe == MAP_FAILED)
            _exit(0); /* up to a limit only */
        munmap(probe, ENOUGH);
        size_t before = status_kib("VmRSS:");
        use_two_types(tide_pool_create(NULL));
        CHILD_MUST(status_kib("VmRSS:") - before <= 12 * 1024);
        _exit(0);
    }
    expect_child_ends_well(child);
}

/* ---- the log's steps ---- */

static bool refuse_all(size_t bytes)
{
    (void)bytes;
    return true;
}

static bool refuse_once(size_t bytes)
{
    (void)bytes;
    tide_os_fault = NULL;
    return true;
}

/* As many marks as the log has room for, up to so many. */
static size_t push_marks(tide_pool *pool, size_t most)
{
    size_t count = 0;
    while (count < most && tide_checkpoint(pool).pool != NULL)
        count++;
    return count;
}

static void a_log_that_cannot_grow_refuses_and_goes_on_later(void **state)
{
    (void)state;
    bool (*const faults[])(size_t) = {refuse_once, refuse_all};
    for (size_t i = 0; i < 2; i++) {
        tide_pool *pool = make();
        tide_mark first = tide_checkpoint(pool);
        const tide_entry *end = pool->core->log.end;
        tide_os_fault = faults[i];
        size_t count = push_marks(pool, 100000);
        tide_os_fault = NULL;
        if (i == 0) /* a first try, made before there was need, may fail */
            assert_int_equal(count, 100000);
        else
            assert_in_range(count, 1000, 5000);
        assert_true(i == 0 || tide_error_status() == TIDE_ERROR_MEMORY);
        assert_true(i == 0 || pool->core->log.end == end);
        assert_int_equal(tide_pool_check(pool), TIDE_OK);
        assert_int_equal(push_marks(pool, 100000), 100000);
        assert_true(pool->core->log.end > end && pool->log_room == pool->core->log.end);
        assert_int_equal(tide_pool_check(pool), TIDE_OK);
        assert_int_equal(tide_rewind(pool, first), TIDE_OK);
        assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
    }
}

static void nothing_is_mapped_over_what_others_have_mapped(void **state)
{
    (void)state;
    tide_pool *pool = make();
    const tide_span *span = &pool->core->log.span;
    if (span->mapped == span->bytes) { /* all at once: there is no step to be refused */
        assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
        return;
    }
    char *behind = span->start + span->mapped;
    char *theirs =
        mmap(behind, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    assert_ptr_equal(theirs, behind);
    memset(theirs, 77, 4096);
    tide_mark first = tide_checkpoint(pool);
    assert_in_range(push_marks(pool, 100000), 1000, 5000);
    assert_int_equal(tide_error_status(), TIDE_ERROR_MEMORY);
    for (size_t i = 0; i < 4096; i++)
        assert_int_equal(theirs[i], 77);
    assert_int_equal(tide_rewind(pool, first), TIDE_OK);
    assert_int_equal(munmap(theirs, 4096), 0);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
}

/* A log that is open at its end is grown by whatever comes there by cold code. */
static void scopes_deep_down_are_fast_again(void **state)
{
    (void)state;
    tide_pool *pool = make();
    tide_mark first = tide_checkpoint(pool);
    const tide_entry *end = pool->core->log.end;
    while (pool->log_top < end)
        assert_non_null(tide_checkpoint(pool).pool);
    {
        TIDE_SCOPE(pool);
        assert_non_null(tide_acquire(pool, double, 10));
    }
    assert_true(pool->core->log.end > end && pool->log_room == pool->core->log.end);
    assert_int_equal(tide_rewind(pool, first), TIDE_OK);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
}

/* ---- resets under open scopes, more than a pool has room for by itself ---- */

static void open_and_reset(tide_pool *pool, size_t depth)
{
    TIDE_SCOPE(pool);
    tide_mark mark = tide_checkpoint(pool);
    {
        TIDE_SCOPE(pool);
        assert_int_equal(tide_rewind(pool, mark), TIDE_OK); /* below an open scope */
    }
    if (depth > 0)
        open_and_reset(pool, depth - 1);
    else
        assert_in_range(pool->core->abandoned.count, 2 * TIDE_ABANDON_FIRST, TIDE_ABANDON_MAX);
}

static void many_levels_may_be_rewound_under(void **state)
{
    (void)state;
    tide_pool *pool = make();
    open_and_reset(pool, 100);
    assert_int_equal(tide_pool_depth(pool), 0);
    assert_int_equal(tide_pool_check(pool), TIDE_OK);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
}

/* ---- many ---- */

static void thousands_of_pools_are_there_at_once(void **state)
{
    (void)state;
    size_t count = scaled(4000, 200);
    tide_pool **pools = calloc(count, sizeof(tide_pool *));
    assert_non_null(pools);
    for (size_t i = 0; i < count; i++)
        assert_non_null(tide_acquire(pools[i] = make(), double, 4));
    for (size_t i = 0; i < count; i++)
        assert_int_equal(tide_pool_destroy(pools[i]), TIDE_OK);
    free(pools);
}

/* And leave the process most of the mappings that it may have. */
static void many_spans_are_mapped_at_once(void **state)
{
    (void)state;
    enum { SPANS = TIDE_SPANS_PLACED + 100 };
    tide_span *spans = calloc(SPANS, sizeof *spans);
    size_t placed = 0;
    assert_non_null(spans);
    for (size_t i = 0; i < SPANS; i++) {
        assert_true(tide_span_make(&spans[i], 65536, 4096));
        assert_int_equal(spans[i].mapped, spans[i].placed ? 4096 : 65536);
        placed += spans[i].placed;
        spans[i].start[spans[i].mapped - 1] = 1;
    }
    assert_true(placed <= TIDE_SPANS_PLACED);
    bool possible = placed > TIDE_SPANS_PLACED - 100; /* pools of this process have some */
    assert_true(possible || placed == 0);
    if (possible)
        assert_true(tide_span_grow(&spans[0], 65536) && spans[0].start[65535] == 0);
    for (size_t i = 0; i < SPANS; i++)
        tide_span_end(&spans[i]);
    assert_true(tide_span_make(&spans[0], 65536, 4096));
    assert_int_equal(spans[0].placed, possible);
    tide_span_end(&spans[0]);
    free(spans);
}

/* ---- a stack that lies low ---- */

static ucontext_t low_outside, low_inside;
static tide_span low_span;
static bool low_made;

static void make_span_here(void)
{
    low_made = tide_span_make(&low_span, 65536, 4096);
}

/* The first span's place is chosen by where the stack is; this one is that of a coroutine, near
 * nothing. Must be the first to make a span. */
static void a_low_stack_draws_no_span_down(void **state)
{
    (void)state;
    size_t bytes = 1 << 20;
    void *stack =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    assert_true(stack != MAP_FAILED);
    assert_int_equal(getcontext(&low_inside), 0);
    low_inside.uc_stack = (stack_t){.ss_sp = stack, .ss_size = bytes};
    low_inside.uc_link = &low_outside;
    makecontext(&low_inside, make_span_here, 0);
    assert_int_equal(swapcontext(&low_outside, &low_inside), 0);
    assert_true(low_made);
    assert_true((uintptr_t)low_span.start >= 65536);
    tide_span_end(&low_span);
    assert_int_equal(munmap(stack, bytes), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_low_stack_draws_no_span_down),
        cmocka_unit_test(a_pool_reserves_some_mebibytes),
        cmocka_unit_test(so_five_find_room_where_one_did_not),
        cmocka_unit_test(locked_memory_holds_what_was_reserved),
        cmocka_unit_test(a_log_that_cannot_grow_refuses_and_goes_on_later),
        cmocka_unit_test(nothing_is_mapped_over_what_others_have_mapped),
        cmocka_unit_test(scopes_deep_down_are_fast_again),
        cmocka_unit_test(many_levels_may_be_rewound_under),
        cmocka_unit_test(many_spans_are_mapped_at_once),
        cmocka_unit_test(thousands_of_pools_are_there_at_once),
    };
    if (tide_shim_chooses_addresses())
        return 0; /* all is mapped at once */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
