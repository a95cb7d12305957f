/* SPDX-License-Identifier: MIT */
/* Buffers on the host, one behaviour each. */
#define _GNU_SOURCE
#include "bed.h"

#include "runtime/buffers/buffers.h"

#include <stdio.h>

#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/learn.h>
#include <tidepool/tune.h>

#include "runtime/base/test_hooks.h"
#include "runtime/buffers/store/buckets.h"

/* ---- handles -------------------------------------------------------------------------------- */

static void a_second_release_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    tide_buffer b = acquired(buffers, 1000);
    expect_ok(tide_buffer_release(buffers, b));
    tide_buffers_statistics before = stats_of(buffers);
    expect_refused(tide_buffer_release(buffers, b), TIDE_ERROR_STALE, "has been released");
    expect_refused(tide_buffer_release_on(buffers, b, NULL), TIDE_ERROR_STALE, "has been released");
    expect_unchanged(buffers, &before);
    assert_int_equal(stats_of(buffers).refused, 2);
    expect_ok(tide_buffers_destroy(buffers));
}

static void a_release_after_the_memory_was_handed_out_again_is_refused(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    tide_buffer old = acquired(buffers, 1000);
    void *memory = tide_buffer_pointer(buffers, old);
    expect_ok(tide_buffer_release(buffers, old));
    tide_buffer young = acquired(buffers, 900);
    assert_ptr_equal(tide_buffer_pointer(buffers, young), memory);
    assert_int_equal(young.slot, old.slot);
    tide_buffers_statistics before = stats_of(buffers);
    expect_refused(tide_buffer_release(buffers, old), TIDE_ERROR_STALE, "acquired again");
    expect_unchanged(buffers, &before);
    assert_null(tide_buffer_pointer(buffers, old));
    assert_int_equal(tide_buffer_bytes(buffers, old), 0);
    assert_ptr_equal(tide_buffer_pointer(buffers, young), memory);
    expect_ok(tide_buffer_release(buffers, young));
    expect_ok(tide_buffers_destroy(buffers));
}

/* New, from the thread's own cell, at each check level, and too large. */
static void an_acquire_says_where_the_buffer_lies(void **state)
{
    (void)state;
    for (unsigned check = 0; check <= 1; check++) {
        expect_ok(tide_tune_set("check", check));
        tide_buffers *buffers = made(NULL);
        for (unsigned i = 0; i < 3; i++) {
            void *pointer = NULL;
            tide_buffer b = tide_buffer_acquire_pointer(buffers, 1000, &pointer);
            assert_non_null(pointer);
            assert_ptr_equal(pointer, tide_buffer_pointer(buffers, b));
            memset(pointer, (int)i, 1000);
            expect_ok(tide_buffer_release(buffers, b));
        }
        assert_int_equal(stats_of(buffers).hits, 2);
        void *pointer = buffers;
        assert_int_equal(tide_buffer_acquire_pointer(buffers, SIZE_MAX, &pointer).generation, 0);
        assert_null(pointer);
        assert_non_null(strstr(tide_error_message(), "tide_buffer_acquire_pointer: "));
        assert_int_equal(tide_buffer_acquire_pointer(NULL, 1, &pointer).generation, 0);
        assert_int_equal(tide_buffer_acquire_pointer(buffers, 1, NULL).generation, 0);
        assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
        assert_int_equal(stats_of(buffers).live, 0);
        expect_ok(tide_buffers_destroy(buffers));
    }
    expect_ok(tide_tune_set("check", 0));
}

static void forged_handles_and_those_of_others_are_refused(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL), *others = made(&(tide_buffers_options){.name = "others"});
    tide_buffer b = acquired(buffers, 1000), other = acquired(others, 1000);
    assert_int_equal(b.slot, other.slot);
    const tide_buffer forged[] = {{0, 0},
                                  {b.slot, 1},
                                  {b.slot, b.generation + 1},
                                  {b.slot, b.generation + 2},
                                  {b.slot, b.generation - 1},
                                  {b.slot + 1, b.generation},
                                  {UINT64_MAX, b.generation},
                                  {(uint64_t)1 << 32 ^ b.slot, b.generation},
                                  {(uint64_t)1 << 40 | b.slot, b.generation},
                                  other};
    tide_buffers_statistics before = stats_of(buffers);
    for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
        assert_int_equal(tide_buffer_release(buffers, forged[i]), TIDE_ERROR_STALE);
        assert_null(tide_buffer_pointer(buffers, forged[i]));
    }
    expect_unchanged(buffers, &before);
    expect_ok(tide_buffer_release(buffers, b));
    expect_ok(tide_buffer_release(others, other));
    expect_ok(tide_buffers_destroy(others));
    expect_ok(tide_buffers_destroy(buffers));
}

/* ---- keys ----------------------------------------------------------------------------------- */

static void other_flags_are_never_handed_out_for_each_other(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    enum { KINDS = 3 };
    void *seen[KINDS * TIDE_BUFFER_TAGS];
    size_t count = 0;
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        for (uint32_t tag = 0; tag < TIDE_BUFFER_TAGS; tag++) {
            tide_buffer b =
                tide_buffer_acquire_on(buffers, 1000, kind | TIDE_BUFFER_TAG(tag), NULL);
            seen[count] = tide_buffer_pointer(buffers, b);
            assert_non_null(seen[count]);
            for (size_t i = 0; i < count; i++)
                assert_ptr_not_equal(seen[i], seen[count]);
            count++;
            expect_ok(tide_buffer_release(buffers, b));
        }
    }
    assert_int_equal(stats_of(buffers).misses, KINDS * TIDE_BUFFER_TAGS);
    assert_int_equal(stats_of(buffers).hits, 0);
    tide_buffer again = tide_buffer_acquire_on(buffers, 1000, 2 | TIDE_BUFFER_TAG(5), NULL);
    assert_ptr_equal(tide_buffer_pointer(buffers, again), seen[2 * TIDE_BUFFER_TAGS + 5]);
    assert_int_equal(stats_of(buffers).hits, 1);
    expect_ok(tide_buffer_release(buffers, again));
    expect_ok(tide_buffers_destroy(buffers));
}

/* ---- bounds --------------------------------------------------------------------------------- */

/* Acquires `count`, releases them all. */
static void cycle(tide_buffers *buffers, size_t count, size_t bytes)
{
    tide_buffer held[64];
    assert_true(count <= 64);
    for (size_t i = 0; i < count; i++)
        held[i] = acquired(buffers, bytes);
    for (size_t i = 0; i < count; i++)
        expect_ok(tide_buffer_release(buffers, held[i]));
}

static void a_full_bucket_drops_and_counts(void **state)
{
    (void)state;
    tide_buffers *buffers = made(&(tide_buffers_options){.count_max = 16});
    cycle(buffers, 40, 1000);
    tide_buffers_statistics s = stats_of(buffers);
    assert_int_equal(s.cached, 16);
    assert_int_equal(s.dropped, 24);
    assert_int_equal(s.live, 0);
    assert_int_equal(s.bytes_cached, 16 * KIB);
    assert_int_equal(s.bytes_high, 40 * KIB);
    cycle(buffers, 5, 2000); /* another bucket has a bound of its own */
    assert_int_equal(stats_of(buffers).cached, 21);
    cycle(buffers, 16, 1000);
    s = stats_of(buffers);
    assert_int_equal(s.hits, 16);
    assert_int_equal(s.dropped, 24);
    expect_ok(tide_buffers_destroy(buffers));
}

/* ---- memory runs out ------------------------------------------------------------------------ */

static size_t faults_left, fault_from;

static bool refuse_large(size_t bytes)
{
    if (bytes < fault_from || faults_left == 0)
        return false;
    faults_left--;
    return true;
}

static void without_memory_the_cache_is_given_back_and_the_system_asked_again(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    cycle(buffers, 10, 1000);
    tide_os_fault = refuse_large;
    faults_left = 1;
    fault_from = MIB;
    tide_buffer b = acquired(buffers, MIB);
    tide_os_fault = NULL;
    tide_buffers_statistics s = stats_of(buffers);
    assert_int_equal(s.pressed, 1);
    assert_int_equal(s.trimmed, 10);
    assert_int_equal(s.cached, 0);
    assert_int_equal(s.failed, 0);
    assert_int_equal(s.live, 1);
    expect_ok(tide_buffer_release(buffers, b));
    expect_ok(tide_buffers_destroy(buffers));
}

static void when_that_does_not_help_the_error_is_clear(void **state)
{
    (void)state;
    tide_buffers *buffers = made(&(tide_buffers_options){.name = "staging"});
    cycle(buffers, 10, 1000);
    tide_os_fault = refuse_large;
    faults_left = 2;
    fault_from = MIB;
    tide_buffer b = tide_buffer_acquire(buffers, MIB);
    tide_os_fault = NULL;
    assert_int_equal(b.generation, 0);
    expect_refused(tide_error_status(), TIDE_ERROR_MEMORY, "1048576");
    expect_refused(tide_error_status(), TIDE_ERROR_MEMORY, "staging");
    assert_int_equal(faults_left, 0); /* asked twice */
    tide_buffers_statistics s = stats_of(buffers);
    assert_int_equal(s.failed, 1);
    assert_int_equal(s.live, 0);
    assert_int_equal(s.misses, 10);
    cycle(buffers, 1, MIB); /* and nothing is the worse for it */
    expect_ok(tide_buffers_destroy(buffers));
}

/* ---- sizes ---------------------------------------------------------------------------------- */

static void a_buffer_wastes_less_than_a_quarter(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    tide_buffer b = acquired(buffers, 64 * KIB + 1);
    size_t bytes = tide_buffer_bytes(buffers, b);
    assert_true(bytes > 64 * KIB && bytes < (64 * KIB + 1) * 5 / 4);
    assert_int_equal(bytes, tide_buffers_round_up(buffers, 64 * KIB + 1));
    assert_true(stats_of(buffers).waste < 0.25);
    memset(tide_buffer_pointer(buffers, b), 1, 64 * KIB + 1);
    expect_ok(tide_buffer_release(buffers, b));
    expect_ok(tide_buffers_destroy(buffers));
}

static void expect_tight(size_t bytes, double most)
{
    unsigned bucket = tide_bucket_of(bytes);
    size_t got = tide_bucket_bytes(bucket);
    assert_true(bucket < TIDE_BUCKETS && got >= bytes && got % TIDE_BUCKET_MIN == 0);
    assert_true(bucket == 0 || tide_bucket_bytes(bucket - 1) < bytes);
    assert_int_equal(tide_bucket_of(got), bucket);
    assert_true((double)got <= most * (double)bytes || got <= 256);
}

static void every_size_gets_the_smallest_bucket_that_holds_it(void **state)
{
    (void)state;
    for (size_t bytes = 0; bytes < 100000; bytes++)
        expect_tight(bytes, 1.25);
    for (unsigned shift = 10; shift < 46; shift++)
        for (int off = -2; off <= 2; off++)
            for (size_t quarter = 4; quarter < 8; quarter++)
                expect_tight((quarter << shift >> 2) + (size_t)off, 1.25);
    expect_tight(TIDE_BUCKET_MAX, 1);
}

static void a_hit_never_shows_the_size_of_the_last_holder(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    cycle(buffers, 1, 1024);
    tide_buffer b = acquired(buffers, 897);
    assert_int_equal(tide_buffer_bytes(buffers, b), 1024);
    tide_buffers_statistics s = stats_of(buffers);
    assert_int_equal(s.hits, 1);
    assert_int_equal(s.bytes_asked, 1024 + 897);
    assert_int_equal(s.bytes_given, 2 * 1024);
    expect_ok(tide_buffer_release(buffers, b));
    expect_ok(tide_buffers_destroy(buffers));
}

static void sizes_that_cannot_be_are_refused(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    assert_int_equal(tide_buffer_acquire(buffers, SIZE_MAX).generation, 0);
    expect_refused(tide_error_status(), TIDE_ERROR_SIZE, "limit");
    assert_int_equal(tide_buffers_round_up(buffers, SIZE_MAX), 0);
    tide_buffer none = acquired(buffers, 0), other = acquired(buffers, 0);
    assert_non_null(tide_buffer_pointer(buffers, none));
    assert_ptr_not_equal(tide_buffer_pointer(buffers, none), tide_buffer_pointer(buffers, other));
    expect_ok(tide_buffer_release(buffers, none));
    expect_ok(tide_buffer_release(buffers, other));
    expect_ok(tide_buffers_destroy(buffers));
}

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    int not_a_stream = 0;
    assert_null(tide_buffers_create(NULL, &(tide_buffers_options){.flags = 7}));
    expect_refused(tide_error_status(), TIDE_ERROR_ARGUMENT, "0x7");
    assert_null(tide_buffers_create(NULL, &(tide_buffers_options){.stream = &not_a_stream}));
    expect_refused(tide_error_status(), TIDE_ERROR_ARGUMENT, "stream");
    assert_int_equal(tide_buffer_acquire_on(buffers, 1, TIDE_BUFFER_IPC + 1, NULL).generation, 0);
    assert_int_equal(tide_buffer_acquire_on(buffers, 1, TIDE_BUFFER_TAG(16), NULL).generation, 0);
    assert_int_equal(tide_buffer_acquire_on(buffers, 1, 3 << 16, NULL).generation, 0);
    expect_refused(tide_error_status(), TIDE_ERROR_ARGUMENT, "TIDE_BUFFER_PAGE_ALIGNED");
    assert_int_equal(tide_buffer_acquire_on(buffers, 1, 0, &not_a_stream).generation, 0);
    expect_refused(tide_error_status(), TIDE_ERROR_ARGUMENT, "no stream");
    assert_int_equal(tide_buffer_acquire(NULL, 1).generation, 0);
    assert_int_equal(tide_buffer_release(NULL, (tide_buffer){0}), TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_buffers_stats(buffers, NULL, NULL, 0), TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_buffers_trim(NULL, 0).slots, 0);
    assert_null(tide_buffers_shared(NULL, TIDE_BUFFER_IPC + 1));
    expect_ok(tide_buffers_destroy(NULL));
    assert_int_equal(stats_of(buffers).misses, 0);
    expect_ok(tide_buffers_destroy(buffers));
}

/* ---- given back ------------------------------------------------------------------------------ */

static void what_is_old_goes_with_the_ticks(void **state)
{
    (void)state;
    expect_ok(tide_tune_set("learn", 0));
    tide_buffers *buffers = made(&(tide_buffers_options){.age_max = 16});
    cycle(buffers, 10, 1000);
    cycle(buffers, 3, 5000);
    for (unsigned i = 0; i < 15; i++) {
        expect_ok(tide_step());
        cycle(buffers, 1, 5000);
    }
    assert_int_equal(stats_of(buffers).cached, 13);
    for (unsigned i = 0; i < 4; i++) {
        expect_ok(tide_step());
        cycle(buffers, 1, 5000); /* this one is in use */
    }
    assert_int_equal(stats_of(buffers).cached, 1);
    assert_int_equal(stats_of(buffers).trimmed, 12);
    assert_int_equal(tide_buffers_trim(buffers, 1).slots, 0); /* too young */
    expect_ok(tide_step());
    assert_int_equal(tide_buffers_trim(buffers, 1).slots, 1);
    expect_ok(tide_buffers_destroy(buffers));
}

static void trim_gives_back_what_is_cached_and_only_that(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    tide_buffer live = acquired(buffers, 1000);
    memset(tide_buffer_pointer(buffers, live), 7, 1000);
    cycle(buffers, 12, 1000);
    tide_trim_summary summary = tide_buffers_trim(buffers, 0);
    assert_int_equal(summary.slots, 12);
    assert_int_equal(summary.bytes, 12 * KIB);
    tide_buffers_statistics s = stats_of(buffers);
    assert_int_equal(s.cached, 0);
    assert_int_equal(s.live, 1);
    assert_int_equal(*(char *)tide_buffer_pointer(buffers, live), 7);
    assert_int_equal(tide_buffers_trim(buffers, 0).slots, 0);
    expect_refused(tide_buffers_destroy(buffers), TIDE_ERROR_STATE, "1 buffers");
    expect_ok(tide_buffer_release(buffers, live));
    expect_ok(tide_buffers_destroy(buffers));
}

static void the_shared_instance_is_one_until_all_have_let_go(void **state)
{
    (void)state;
    tide_buffers *first = tide_buffers_shared(NULL, TIDE_BUFFER_DEVICE);
    tide_buffers *second = tide_buffers_shared(tide_device_open("host"), TIDE_BUFFER_DEVICE);
    tide_buffers *pinned = tide_buffers_shared(NULL, TIDE_BUFFER_PINNED);
    assert_non_null(first);
    assert_ptr_equal(first, second);
    assert_ptr_not_equal(first, pinned);
    cycle(first, 1, 1000);
    expect_ok(tide_buffers_destroy(first));
    cycle(second, 1, 1000);
    assert_int_equal(stats_of(second).hits, 1);
    expect_ok(tide_buffers_destroy(second));
    expect_ok(tide_buffers_destroy(pinned));
    first = tide_buffers_shared(NULL, TIDE_BUFFER_DEVICE);
    assert_int_equal(stats_of(first).hits, 0);
    expect_ok(tide_buffers_destroy(first));
}

/* Whatever bounds the program asks for; batches and zeroed ones too. */
static void disabled_buffers_cache_nothing(void **state)
{
    (void)state;
    expect_ok(tide_tune_set("disable", 1));
    tide_buffers *buffers = made(&(tide_buffers_options){.count_max = 100, .bytes_max = 64 * MIB});
    expect_ok(tide_tune_set("disable", 0));
    cycle(buffers, 3, 1000);
    tide_buffer held[40];
    expect_ok(tide_buffer_acquire_many(buffers, 300 * KIB, 40, held));
    expect_ok(tide_buffer_release_many(buffers, held, 40));
    tide_buffer zeroed = tide_buffer_acquire_zeroed(buffers, 1000);
    assert_int_equal(*(char *)tide_buffer_pointer(buffers, zeroed), 0);
    expect_ok(tide_buffer_release(buffers, zeroed));
    expect_refused(tide_buffer_release(buffers, zeroed), TIDE_ERROR_STALE, "released");
    tide_buffers_statistics s = stats_of(buffers);
    assert_int_equal(s.cached + s.hits + s.live, 0);
    assert_int_equal(s.dropped, 44);
    expect_ok(tide_buffers_destroy(buffers));
}

__attribute__((weak)) int __asan_address_is_poisoned(void const volatile *address);

static void expect_touchable(const char *memory, bool touchable)
{
    if (__asan_address_is_poisoned != NULL)
        assert_true((__asan_address_is_poisoned(memory) == 0) == touchable);
}

static void at_check_level_1_sanitizers_know_what_is_live(void **state)
{
    (void)state;
    expect_ok(tide_tune_set("check", 1));
    tide_buffers *buffers = made(NULL);
    expect_ok(tide_tune_set("check", 0));
    tide_buffer b = acquired(buffers, 1000);
    char *memory = tide_buffer_pointer(buffers, b);
    memset(memory, 1, 1000);
    expect_touchable(memory + 999, true);
    size_t bytes = tide_buffer_bytes(buffers, b);
    assert_int_equal(bytes, 1024); /* more than was asked for, and the program's all the same */
    expect_touchable(memory + 1008, true);
    expect_touchable(memory + 1023, true);
    memset(memory, 3, bytes);
    expect_ok(tide_buffer_release(buffers, b));
    expect_touchable(memory, false);
    b = acquired(buffers, 1024);
    assert_ptr_equal(tide_buffer_pointer(buffers, b), memory);
    memset(memory, 2, 1024);
    expect_ok(tide_buffer_release(buffers, b));
    assert_int_equal(tide_buffers_trim(buffers, 0).slots, 1);
    expect_ok(tide_buffers_destroy(buffers));
}

/* ---- seen ------------------------------------------------------------------------------------ */

typedef struct memory_seen {
    void *live, *cached;
    size_t bytes;
} memory_seen;

static void see_memory(void *user, void *data, size_t bytes, bool live)
{
    memory_seen *seen = user;
    void **where = live ? &seen->live : &seen->cached;
    assert_null(*where);
    *where = data;
    seen->bytes += bytes;
}

static void all_memory_can_be_listed(void **state)
{
    (void)state;
    memory_seen seen = {0};
    tide_buffers *buffers = made(NULL);
    tide_buffer kept = acquired(buffers, 1000), gone = acquired(buffers, 5000);
    void *memory = tide_buffer_pointer(buffers, gone);
    expect_ok(tide_buffer_release(buffers, gone));
    expect_ok(tide_buffer_each(buffers, see_memory, &seen));
    assert_ptr_equal(seen.live, tide_buffer_pointer(buffers, kept));
    assert_ptr_equal(seen.cached, memory);
    tide_buffers_statistics now = stats_of(buffers);
    assert_int_equal(seen.bytes, now.bytes_live + now.bytes_cached);
    assert_int_equal(tide_buffer_each(NULL, see_memory, &seen), TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_buffer_each(buffers, NULL, NULL), TIDE_ERROR_ARGUMENT);
    expect_ok(tide_buffer_release(buffers, kept));
    expect_ok(tide_buffers_destroy(buffers));
}

static void statistics_are_there_by_bucket_and_as_a_page(void **state)
{
    (void)state;
    tide_buffers *buffers = made(&(tide_buffers_options){.name = "seen"});
    cycle(buffers, 2, 1000);
    cycle(buffers, 1, 1000);
    tide_buffer live = acquired(buffers, 3 * MIB);
    tide_buffers_statistics s;
    tide_bucket_statistics b[4];
    expect_ok(tide_buffers_stats(buffers, &s, b, 4));
    assert_int_equal(s.buckets, 2);
    assert_int_equal(b[0].bytes, KIB);
    assert_int_equal(b[0].hits, 1);
    assert_int_equal(b[0].misses, 2);
    assert_int_equal(b[0].cached, 2);
    assert_int_equal(b[0].live, 0);
    assert_int_equal(b[0].bytes_asked, 3000);
    assert_int_equal(b[1].bytes, 3 * MIB);
    assert_int_equal(b[1].live, 1);
    assert_true(s.hit_rate == 0.25);
    expect_ok(tide_buffers_stats(buffers, &s, b, 1));
    assert_int_equal(s.buckets, 2);
    char page[4096] = "";
    FILE *out = fmemopen(page, sizeof page, "w");
    expect_ok(tide_buffers_print(buffers, out));
    fclose(out);
    assert_non_null(strstr(page, "'seen' on host: 1 live"));
    assert_non_null(strstr(page, "25.00% of 4 acquires hit"));
    assert_non_null(strstr(page, "3.0 MiB"));
    expect_ok(tide_buffer_release(buffers, live));
    expect_ok(tide_buffers_destroy(buffers));
}

struct heard {
    size_t count[4];
    size_t bytes;
    bool hit;
};

static void listen(const tide_buffer_event *event, void *user)
{
    struct heard *heard = user;
    heard->count[event->happening]++;
    if (event->happening == TIDE_BUFFER_ALLOCATED)
        heard->bytes += event->bytes;
    if (event->happening == TIDE_BUFFER_FREED)
        heard->bytes -= event->bytes;
    if (event->happening == TIDE_BUFFER_ACQUIRED)
        heard->hit = event->hit;
}

static void the_hook_hears_all_that_happens(void **state)
{
    (void)state;
    struct heard heard = {0};
    tide_buffers *buffers =
        made(&(tide_buffers_options){.hook = listen, .user = &heard, .count_max = 16});
    cycle(buffers, 20, 1000);
    assert_false(heard.hit);
    assert_int_equal(heard.bytes, 16 * KIB);
    cycle(buffers, 1, 1000);
    assert_true(heard.hit);
    expect_ok(tide_buffers_destroy(buffers));
    assert_int_equal(heard.count[TIDE_BUFFER_ACQUIRED], 21);
    assert_int_equal(heard.count[TIDE_BUFFER_RELEASED], 21);
    assert_int_equal(heard.count[TIDE_BUFFER_ALLOCATED], 20);
    assert_int_equal(heard.count[TIDE_BUFFER_FREED], 20);
    assert_int_equal(heard.bytes, 0);
}

static void a_trace_has_a_line_for_each_acquire_and_release(void **state)
{
    (void)state;
    char text[1024] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    tide_buffers *buffers = made(&(tide_buffers_options){.hook = tide_buffer_trace, .user = out});
    tide_buffer b = acquired(buffers, 777);
    expect_ok(tide_buffer_release(buffers, b));
    fclose(out);
    unsigned long long time[2], stream[2], slot[2];
    unsigned thread[2], flags[2];
    size_t bytes[2];
    int read = sscanf(text, "%llu %u %llu acquire %llu %zu %u %llu %u %llu release %llu %zu %u",
                      &time[0], &thread[0], &stream[0], &slot[0], &bytes[0], &flags[0], &time[1],
                      &thread[1], &stream[1], &slot[1], &bytes[1], &flags[1]);
    assert_int_equal(read, 12);
    assert_true(time[1] >= time[0] && thread[0] == thread[1] && slot[0] == slot[1]);
    assert_true(bytes[0] == 777 && bytes[1] == 777 && flags[0] == 0);
    expect_ok(tide_buffers_destroy(buffers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_release_is_refused_and_changes_nothing),
        cmocka_unit_test(a_release_after_the_memory_was_handed_out_again_is_refused),
        cmocka_unit_test(an_acquire_says_where_the_buffer_lies),
        cmocka_unit_test(forged_handles_and_those_of_others_are_refused),
        cmocka_unit_test(other_flags_are_never_handed_out_for_each_other),
        cmocka_unit_test(a_full_bucket_drops_and_counts),
        cmocka_unit_test(without_memory_the_cache_is_given_back_and_the_system_asked_again),
        cmocka_unit_test(when_that_does_not_help_the_error_is_clear),
        cmocka_unit_test(a_buffer_wastes_less_than_a_quarter),
        cmocka_unit_test(every_size_gets_the_smallest_bucket_that_holds_it),
        cmocka_unit_test(a_hit_never_shows_the_size_of_the_last_holder),
        cmocka_unit_test(sizes_that_cannot_be_are_refused),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(what_is_old_goes_with_the_ticks),
        cmocka_unit_test(trim_gives_back_what_is_cached_and_only_that),
        cmocka_unit_test(the_shared_instance_is_one_until_all_have_let_go),
        cmocka_unit_test(disabled_buffers_cache_nothing),
        cmocka_unit_test(at_check_level_1_sanitizers_know_what_is_live),
        cmocka_unit_test(all_memory_can_be_listed),
        cmocka_unit_test(statistics_are_there_by_bucket_and_as_a_page),
        cmocka_unit_test(the_hook_hears_all_that_happens),
        cmocka_unit_test(a_trace_has_a_line_for_each_acquire_and_release),
    };
    return cmocka_run_group_tests_name("buffers", tests, NULL, NULL);
}
