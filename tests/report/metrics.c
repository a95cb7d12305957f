/* SPDX-License-Identifier: MIT */
/* Metrics of documents: labels that are bounded and escaped, counters that never go back. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "profiler/metrics/metrics.h"
#include "tests/support.h"

static json_t *document(const char *members)
{
    char text[8192];
    snprintf(text, sizeof text, "{\"pid\":7,\"program\":\"p\",\"version\":\"1\",%s}", members);
    json_t *facts = json_loads(text, 0, NULL);
    assert_non_null(facts);
    return facts;
}

static char *written(const json_t *facts, const tide_metrics_memory *memory)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert_true(tide_metrics_of(out, facts, memory));
    fclose(out);
    return text;
}

static void expect_line(const char *text, const char *line)
{
    char whole[512];
    snprintf(whole, sizeof whole, "\n%s\n", line);
    if (strstr(text, whole) == NULL)
        fail_msg("no line '%s' in:\n%s", line, text);
}

static void things_are_added_up_by_label(void **state)
{
    json_t *facts = document(
        "\"pools\":[{\"id\":1,\"name\":\"pool\",\"device\":\"host\",\"held_bytes\":5,"
        "\"allocations\":2},"
        "{\"id\":2,\"name\":\"pool\",\"device\":\"host\",\"held_bytes\":7,\"allocations\":3},"
        "{\"id\":3,\"name\":\"a\\\\b\\\"c\\nd\",\"device\":\"cuda:0\",\"held_bytes\":1}],"
        "\"sites\":[{\"id\":1,\"name\":\"solve\",\"kind\":\"scope\",\"file\":\"/x/"
        "solve.c\",\"line\":12,\"tier\":\"compiled\","
        "\"use_ns\":2.5,\"misses\":4}],\"learning\":{\"compiled\":3,\"failed\":1,"
        "\"spent_us\":1500000},"
        "\"buffers\":[{\"id\":1,\"name\":\"b\",\"device\":\"host\",\"hits\":9}]");
    char *text = written(facts, NULL);
    (void)state;
    expect_line(text, "tidepool_pools{pool=\"pool\",device=\"host\"} 2");
    expect_line(text, "tidepool_pool_held_bytes{pool=\"pool\",device=\"host\"} 12");
    expect_line(text, "tidepool_pool_allocations_total{pool=\"pool\",device=\"host\"} 5");
    expect_line(text, "tidepool_pool_held_bytes{pool=\"a\\\\b\\\"c?d\",device=\"cuda:0\"} 1");
    expect_line(text, "tidepool_site_tier{site=\"solve\",kind=\"scope\",place=\"solve.c:12\"} 2");
    expect_line(
        text,
        "tidepool_site_use_seconds{site=\"solve\",kind=\"scope\",place=\"solve.c:12\"} 2.5e-09");
    expect_line(text,
                "tidepool_site_misses_total{site=\"solve\",kind=\"scope\",place=\"solve.c:12\"} 4");
    expect_line(text, "tidepool_stager_compiles_total{result=\"failed\"} 1");
    expect_line(text, "tidepool_stager_seconds_total 1.5");
    expect_line(text, "tidepool_buffers_hits_total{buffers=\"b\",device=\"host\"} 9");
    expect_line(text, "tidepool_build_info{version=\"1\",program=\"p\"} 1");
    expect_line(text, "# TYPE tidepool_pool_allocations_total counter");
    free(text);
    json_decref(facts);
}

static void labels_are_bounded(void **state)
{
    json_t *facts = document("\"sites\":[]"), *sites = json_object_get(facts, "sites");
    (void)state;
    for (int i = 1; i <= TIDE_METRICS_SERIES + 50; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        json_array_append_new(sites, json_pack("{s:i,s:s,s:s,s:s,s:i}", "id", i, "name", name,
                                               "kind", "scope", "tier", "table", "misses", 2));
    }
    char *text = written(facts, NULL);
    size_t series = 0;
    for (const char *at = text; (at = strstr(at, "\ntidepool_site_misses_total{")) != NULL; at++)
        series++;
    assert_int_equal(series, TIDE_METRICS_SERIES + 1);
    expect_line(text, "tidepool_site_misses_total{site=\"s1\",kind=\"scope\",place=\"\"} 2");
    expect_line(text,
                "tidepool_site_misses_total{site=\"other\",kind=\"other\",place=\"other\"} 100");
    assert_null(
        strstr(text, "tidepool_site_tier{site=\"other\"")); /* a sum of tiers says nothing */
    free(text);
    json_decref(facts);
}

/* A scrape with these pools, remembered. */
static void expect_after(tide_metrics_memory *memory, const char *pools, const char *line)
{
    json_t *facts = document(pools);
    assert_true(tide_metrics_remember(memory, facts));
    char *text = written(facts, memory);
    expect_line(text, line);
    free(text);
    json_decref(facts);
}

static void counters_do_not_go_back_with_a_pool(void **state)
{
    tide_metrics_memory *memory = tide_metrics_memory_new();
    (void)state;
#define POOL(id, n)                                                                              \
    "{\"id\":" id ",\"name\":\"pool\",\"device\":\"host\",\"allocations\":" n ",\"held_bytes\":" \
    "10}"
    const char *line = "tidepool_pool_allocations_total{pool=\"pool\",device=\"host\"} %d";
    char wanted[128];
    snprintf(wanted, sizeof wanted, line, 30);
    expect_after(memory, "\"pools\":[" POOL("1", "10") "," POOL("2", "20") "]", wanted);
    snprintf(wanted, sizeof wanted, line, 31);
    expect_after(memory, "\"pools\":[" POOL("1", "11") "]", wanted); /* thread 2 has ended */
    expect_after(memory, "\"pools\":[" POOL("1", "11") "]",
                 "tidepool_pool_held_bytes{pool=\"pool\",device=\"host\"} 10");
    snprintf(wanted, sizeof wanted, line, 36);
    expect_after(memory, "\"pools\":[" POOL("1", "11") "," POOL("3", "5") "]", wanted);
    expect_after(memory, "\"pools\":[]", wanted);
    json_t *other =
        json_loads("{\"pid\":8,\"pools\":[" POOL("1", "1") "]}", 0, NULL); /* another process */
    assert_true(tide_metrics_remember(memory, other));
    char *text = written(other, memory);
    snprintf(wanted, sizeof wanted, line, 1);
    expect_line(text, wanted);
    free(text);
    json_decref(other);
    tide_metrics_memory_free(memory);
}

static void counters_do_not_go_back_with_a_module(void **state)
{
    tide_metrics_memory *memory = tide_metrics_memory_new();
    const char *line = "tidepool_site_misses_total{site=\"s\",kind=\"scope\",place=\"\"} 7";
    (void)state;
    expect_after(memory, "\"sites\":[{\"id\":1,\"name\":\"s\",\"kind\":\"scope\",\"misses\":7}]",
                 line);
    expect_after(memory, "\"sites\":[]", line);
    expect_after(memory, "\"sites\":[{\"id\":2,\"name\":\"s\",\"kind\":\"scope\",\"misses\":0}]",
                 line);
    tide_metrics_memory_free(memory);
}

/* Pools of names of their own, from one number to another, that have made so many allocations. */
static json_t *pools_between(int from, int to)
{
    json_t *facts = document("\"pools\":[]");
    for (int i = from; i <= to; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        json_array_append_new(json_object_get(facts, "pools"),
                              json_pack("{s:i,s:s,s:s,s:i}", "id", i, "name", name, "device",
                                        "host", "allocations", 1000 + i));
    }
    return facts;
}

static void what_was_summed_as_other_stays_so(void **state)
{
    tide_metrics_memory *memory = tide_metrics_memory_new();
    const int most = TIDE_METRICS_SERIES;
    char own[128], other[128];
    (void)state;
    snprintf(own, sizeof own, "tidepool_pool_allocations_total{pool=\"p%d\",device=\"host\"} %d",
             most, 1000 + most);
    snprintf(other, sizeof other,
             "tidepool_pool_allocations_total{pool=\"other\",device=\"other\"} %d",
             1000 + most + 1);
    for (int gone = 0; gone < 2; gone++) {
        json_t *facts = pools_between(1, most + 1 - gone);
        assert_true(tide_metrics_remember(memory, facts));
        char *text = written(facts, memory);
        expect_line(text, own);
        expect_line(text, other);
        free(text);
        json_decref(facts);
    }
    tide_metrics_memory_free(memory);
}

static void another_program_of_the_process_begins_anew(void **state)
{
    tide_metrics_memory *memory = tide_metrics_memory_new();
    (void)state;
    const char *line = "tidepool_pool_allocations_total{pool=\"pool\",device=\"host\"} %d";
    char wanted[128];
    snprintf(wanted, sizeof wanted, line, 10);
    expect_after(memory, "\"since_ns\":1,\"pools\":[" POOL("1", "10") "]", wanted);
    expect_after(memory, "\"since_ns\":1,\"pools\":[]", wanted);
    snprintf(wanted, sizeof wanted, line, 3);
    expect_after(memory, "\"since_ns\":2,\"pools\":[" POOL("1", "3") "]", wanted);
    tide_metrics_memory_free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(things_are_added_up_by_label),
        cmocka_unit_test(labels_are_bounded),
        cmocka_unit_test(counters_do_not_go_back_with_a_pool),
        cmocka_unit_test(counters_do_not_go_back_with_a_module),
        cmocka_unit_test(what_was_summed_as_other_stays_so),
        cmocka_unit_test(another_program_of_the_process_begins_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
