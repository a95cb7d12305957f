/* SPDX-License-Identifier: MIT */
/* A program writes its own metrics: they are what its pools say, also of a thread that has ended.
 */
#define _GNU_SOURCE
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <tidepool/metrics.h>
#include <tidepool/site.h>
#include <tidepool/tidepool.h>

static char *metrics_text(void)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert_int_equal(tide_metrics_write(out), TIDE_OK);
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
    char *text = metrics_text();
    assert_true(value_of(text, allocations) == (double)stats.allocations);
    assert_true(value_of(text, "\ntidepool_pool_held_bytes{pool=\"mine\",device=\"host\"} ") ==
                (double)stats.bytes_held);
    free(text);
    pthread_barrier_init(&both, NULL, 2);
    assert_int_equal(pthread_create(&worker, NULL, worker_run, NULL), 0);
    pthread_barrier_wait(&both);
    text = metrics_text();
    assert_true(value_of(text, allocations) == 2 * (double)stats.allocations);
    free(text);
    pthread_barrier_wait(&both);
    pthread_join(worker, NULL);
    text = metrics_text();
    assert_true(value_of(text, allocations) ==
                2 * (double)stats.allocations); /* it does not go back */
    assert_true(value_of(text, "\ntidepool_pools{pool=\"mine\",device=\"host\"} ") == 1);
    free(text);
    assert_int_equal(tide_metrics_write(NULL), TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
}

/* It has one thread, and what it counts is its own. It ends as another program, for what the other
 * thread had is nobody's there, and would be a leak. */
static void expect_a_child_writes(void)
{
    pid_t child = fork();
    if (child == 0) {
        alarm(120);
        free(metrics_text());
        execlp("true", "true", (char *)NULL);
        _exit(1);
    }
    int status = -1;
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
}

static void a_forked_child_writes_its_own(void **state)
{
    (void)state;
    free(metrics_text());
    expect_a_child_writes();
}

/* ---- where it is written to ---------------------------------------------------------------- */

static size_t written_within; /* bytes of what was written while something was written */

/* A stream of the program's that asks for the same. */
static ssize_t write_and_ask(void *unused, const char *bytes, size_t count)
{
    (void)unused;
    (void)bytes;
    char *text = metrics_text();
    written_within = strlen(text);
    free(text);
    return (ssize_t)count;
}

static void a_stream_may_ask_for_the_same(void **state)
{
    static const cookie_io_functions_t functions = {.write = write_and_ask};
    FILE *out = fopencookie(NULL, "w", functions);
    (void)state;
    assert_non_null(out);
    alarm(120);
    assert_int_equal(tide_metrics_write(out), TIDE_OK);
    alarm(0);
    assert_true(written_within > 100);
    fclose(out);
}

static void figures_have_dots_in_any_language(void **state)
{
    (void)state;
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL)
        skip(); /* it can neither be found nor made (Debian: locales) */
    char *text = metrics_text(), *end;
    const char *at = strstr(text, "\ntidepool_process_cpu_seconds_total ");
    assert_non_null(at);
    assert_null(memchr(at + 1, ',', strcspn(at + 1, "\n")));
    assert_int_equal(*localeconv()->decimal_point, ','); /* the program has its own again */
    assert_true(strtod("1,5", &end) == 1.5);
    setlocale(LC_ALL, "C");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_the_pools_own),
        cmocka_unit_test(a_forked_child_writes_its_own),
        cmocka_unit_test(a_stream_may_ask_for_the_same),
        cmocka_unit_test(figures_have_dots_in_any_language),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
