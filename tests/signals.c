/* SPDX-License-Identifier: MIT */
/* What a signal handler may use (include/README.md lists it) works in the middle of any call of the
 * library: nothing is allocated, nothing changed, errno and the thread's message stay. */
#define _GNU_SOURCE
#include "forms.h"
#include "hooks.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include <tidepool/array.h>
#include <tidepool/bits.h>
#include <tidepool/dynamic.h>
#include <tidepool/half.h>
#include <tidepool/learn.h>
#include <tidepool/site.h>

enum { WANTED = 2000, N = 64 };

static struct {
    tide_pool *pool;
    const double *reals; /* an array of the interrupted code, at the root */
    const tide_array *array;
    tide_type record;
    volatile sig_atomic_t runs, wrong, allocations;
    int done; /* atomic: it is for the thread that sends */
} signals;

/* The background thread may allocate meanwhile: that is no handler's. */
static _Thread_local volatile sig_atomic_t signals_inside;

static bool signals_count_allocation(size_t bytes)
{
    (void)bytes;
    if (signals_inside != 0)
        signals.allocations++;
    return false;
}

#define SIGNALS_FACT(fact) (signals.wrong += !(fact))

static void signals_use_names(void)
{
    for (int i = TIDE_OK; i <= TIDE_ERROR_FILE; i++)
        SIGNALS_FACT(tide_status_name((tide_status)i)[0] != 0);
    SIGNALS_FACT(strcmp(tide_tier_name(TIDE_TIER_TABLE), "table") == 0);
    SIGNALS_FACT(strcmp(tide_kind_name(TIDE_KIND_SCOPE), "scope") == 0);
    SIGNALS_FACT(strcmp(tide_event_name(TIDE_EVENT_MISSED), "missed") == 0);
    SIGNALS_FACT(strcmp(tide_type_name(TIDE_F64), "f64") == 0);
    SIGNALS_FACT(strcmp(tide_type_name(signals.record), "a record of signals") == 0);
    SIGNALS_FACT(tide_type_size(signals.record) == 24 && tide_type_align(signals.record) == 8);
    SIGNALS_FACT(tide_type_count() >= signals.record);
}

static void signals_use_values(void)
{
    static const uint64_t bits[2] = {7, 1};
    double sum = 0;
    for (size_t i = 0; i < N; i++)
        sum += signals.reals[i];
    SIGNALS_FACT(sum == N);
    SIGNALS_FACT(tide_bits_count(bits, 65) == 4 && tide_bit_test(bits, 64));
    SIGNALS_FACT(tide_f16_to_float(tide_f16_from_float(0.5f)) == 0.5f);
    SIGNALS_FACT(tide_bf16_to_float(tide_bf16_from_float(0.5f)) == 0.5f);
    SIGNALS_FACT(((const double *)tide_array_data(signals.array))[N - 1] == 2);
}

/* The message may be half-way from one to the next, but it ends. */
static void signals_handle(int number)
{
    (void)number;
    int saved = errno;
    signals_inside = 1;
    SIGNALS_FACT(strnlen(tide_error_message(), 512) < 512);
    SIGNALS_FACT(strcmp(tide_status_name(tide_error_status()), "unknown") != 0);
    signals_use_names();
    signals_use_values();
    signals_inside = 0;
    signals.runs++;
    SIGNALS_FACT(errno == saved);
}

static void *signals_send(void *user)
{
    pthread_t to = *(pthread_t *)user;
    while (!__atomic_load_n(&signals.done, __ATOMIC_RELAXED))
        if (pthread_kill(to, SIGUSR1) != 0)
            return NULL;
    return NULL;
}

/* Whatever a program does: scopes, growth, failures, arrays, statistics. */
static void signals_work(tide_pool *pool, size_t round)
{
    const int64_t shape[] = {3, (int64_t)(round % 50)};
    char name[32];
    TIDE_SCOPE(pool);
    TIDE_FRAME(pool, (float, x, round % 500), (int32_t, y, 10));
    assert_true(x != NULL && y != NULL);
    TIDE_LOOP(pool, i, 3) assert_non_null(tide_fill(pool, uint16_t, round % 1000 + i, 1));
    assert_non_null(tide_array_acquire(pool, TIDE_F32, 2, shape));
    snprintf(name, sizeof name, "type %zu", round % 300);
    assert_int_not_equal(tide_type_register(name, 8, 8), TIDE_NO_TYPE);
    assert_null(tide_acquire(pool, double, SIZE_MAX));
    assert_int_equal(tide_error_status(), TIDE_ERROR_SIZE);
    assert_non_null(strstr(tide_error_message(), "tide_acquire: 18446744073709551615 elements"));
    if (round % 10 == 0)
        (void)tide_pool_trim(pool, TIDE_ALL_TYPES);
    assert_true(stats_of(pool).slots_live >= 5);
}

static void a_handler_may_use_what_only_reads(void **state)
{
    (void)state;
    EACH_CHECK_LEVEL(level, TIDE_CHECK_POISON)
    {
        tide_pool *pool = pool_of(level);
        const int64_t shape[] = {N};
        const double two = 2;
        signals.runs = signals.done = 0;
        signals.pool = pool;
        signals.record = tide_type_register("a record of signals", 24, 8);
        signals.reals = tide_ones(pool, double, N);
        signals.array = tide_array_fill(pool, TIDE_F64, 1, shape, &two);
        assert_true(signals.reals != NULL && signals.array != NULL);
        struct sigaction action = {.sa_handler = signals_handle, .sa_flags = SA_RESTART}, before;
        assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
        set_memory_fault(signals_count_allocation);
        pthread_t self = pthread_self(), sender;
        assert_int_equal(pthread_create(&sender, NULL, signals_send, &self), 0);
        for (size_t round = 0; signals.runs < (sig_atomic_t)scaled(WANTED, 100); round++)
            signals_work(pool, round);
        __atomic_store_n(&signals.done, 1, __ATOMIC_RELAXED);
        pthread_join(sender, NULL);
        set_memory_fault(NULL);
        assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
        assert_int_equal(signals.wrong, 0);
        assert_int_equal(signals.allocations, 0);
        CHECK_POOL(pool);
        expect_ok(tide_pool_reset(pool));
        expect_ok(tide_pool_destroy(pool));
    }
}

/* So a message that is being replaced ends all the same: its last byte is never anything else. */
static void every_byte_after_a_message_is_zero(void **state)
{
    (void)state;
    volatile char dirt[4096];
    for (size_t i = 0; i < sizeof dirt; i++)
        dirt[i] = 'x';
    assert_int_equal(dirt[4095], 'x');
    assert_null(tide_acquire(NULL, double, 1));
    const char *message = tide_error_message();
    for (size_t i = strlen(message); i < 512; i++)
        assert_int_equal(message[i], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_after_a_message_is_zero),
        cmocka_unit_test(a_handler_may_use_what_only_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
