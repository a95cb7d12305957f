/* SPDX-License-Identifier: MIT */
/* A program writes its own metrics: they are what its pools say, also of a thread that has ended. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tidepool/metrics.h>
#include <tidepool/tidepool.h>

static char *metrics_text(bool openmetrics)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert_int_equal(tide_metrics_write(out, openmetrics), TIDE_OK);
    fclose(out);
    return text;
}

/* The value of a series, or -1. */
static double value_of(const char *text, const char *series)
{
    const char *at = strstr(text, series);
    return at != NULL ? strtod(at + strlen(series), NULL) : -1;
}

static pthread_barrier_t both;

static void *worker_run(void *unused)
{
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.name = "mine"});
    (void)unused;
    assert_non_null(pool);
    assert_non_null(tide_acquire(pool, double, 1000));
    pthread_barrier_wait(&both); /* now it is looked at */
    pthread_barrier_wait(&both);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
    return NULL;
}

static void figures_are_the_pools_own(void **state)
{
    static const char allocations[] =
        "\ntidepool_pool_allocations_total{pool=\"mine\",device=\"host\"} ";
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.name = "mine"});
    tide_pool_statistics stats;
    pthread_t worker;
    (void)state;
    assert_non_null(pool);
    assert_non_null(tide_acquire(pool, double, 1000));
    assert_int_equal(tide_pool_stats(pool, &stats), TIDE_OK);
    char *text = metrics_text(false);
    assert_true(value_of(text, allocations) == (double)stats.allocations);
    assert_true(value_of(text, "\ntidepool_pool_held_bytes{pool=\"mine\",device=\"host\"} ") ==
                (double)stats.bytes_held);
    free(text);
    pthread_barrier_init(&both, NULL, 2);
    assert_int_equal(pthread_create(&worker, NULL, worker_run, NULL), 0);
    pthread_barrier_wait(&both);
    text = metrics_text(false);
    assert_true(value_of(text, allocations) == 2 * (double)stats.allocations);
    free(text);
    pthread_barrier_wait(&both);
    pthread_join(worker, NULL);
    text = metrics_text(true);
    assert_true(value_of(text, allocations) ==
                2 * (double)stats.allocations); /* it does not go back */
    assert_true(value_of(text, "\ntidepool_pools{pool=\"mine\",device=\"host\"} ") == 1);
    assert_string_equal(text + strlen(text) - 6, "# EOF\n");
    free(text);
    assert_int_equal(tide_metrics_write(NULL, false), TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(figures_are_the_pools_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
