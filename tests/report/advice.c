/* SPDX-License-Identifier: MIT */
/* What is said of a record, and how much of it a page holds. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "profiler/record/value.h"
#include "profiler/report/advice.h"
#include "profiler/report/data.h"
#include "profiler/report/page.h"

/* A facts document at this many seconds, with these lists. */
static json_t *facts_at(double seconds, const char *sites, const char *pools, const char *buffers)
{
    json_t *facts =
        json_pack("{s:s,s:i,s:I,s:I,s:s,s:s}", "format", "tidepool-facts", "format_version", 1,
                  "time_ns", (json_int_t)(1000e9 + seconds * 1e9), "process_cpu_ns",
                  (json_int_t)(seconds * 2e9), "program", "p", "version", "0");
    const char *const keys[] = {"sites", "pools", "buffers"};
    const char *const lists[] = {sites, pools, buffers};
    for (int i = 0; i < 3; i++)
        json_object_set_new(facts, keys[i], json_loads(lists[i], 0, NULL));
    assert_true(tide_record_is_facts(facts, NULL));
    return facts;
}

static void add_facts(tide_history *history, double seconds, const char *sites, const char *pools,
                      const char *buffers)
{
    json_t *facts = facts_at(seconds, sites, pools, buffers);
    assert_true(tide_history_add(TIDE_RECORD_FACTS, facts, history));
    json_decref(facts);
}

static const tide_advice *said(const tide_advice_list *list, const char *words)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strstr(list->each[i].what, words) != NULL)
            return &list->each[i];
    }
    return NULL;
}

/* A record of 10 s with one site, whose members these are. */
static tide_advice_list of_site(const char *members)
{
    tide_history history = {0};
    tide_advice_list list;
    char sites[1024];
    add_facts(&history, 0, "[]", "[]", "[]");
    snprintf(sites, sizeof sites,
             "[{\"id\":1,\"name\":\"solve\",\"file\":\"src/solve.c\",\"line\":12,%s}]", members);
    add_facts(&history, 10, sites, "[]", "[]");
    tide_advice_of(&history, &list);
    tide_history_free(&history);
    return list;
}

static void known_types_are_named(void **state)
{
    tide_advice_list list =
        of_site("\"kind\":\"scope\",\"tier\":\"table\",\"types\":[\"f64\",\"i32\"],\"uses\":4e7,"
                "\"use_ns\":14,\"rivals\":[{\"tier\":\"compiled\",\"ns\":5}]");
    (void)state;
    assert_int_equal(list.count, 1);
    assert_string_equal(list.each[0].what,
                        "`solve` always takes f64 and i32: TIDE_SCOPE_TYPES saves 9 ns a "
                        "use, 1.8 % of the program's processor time.");
    assert_string_equal(list.each[0].code, "TIDE_SCOPE_TYPES(pool, double, int32_t);");
    assert_string_equal(list.each[0].subject, "solve (solve.c:12)");
    assert_true(list.each[0].share > 0.0179 && list.each[0].share < 0.0181); /* 0.36 s of 20 s */
    list =
        of_site("\"kind\":\"frame\",\"tier\":\"full\",\"types\":[\"f32\",\"point\"],\"uses\":4e7,"
                "\"use_ns\":14,\"rivals\":[{\"tier\":\"compiled\",\"ns\":5}]");
    assert_string_equal(list.each[0].code, "TIDE_FRAME(pool, (float, a, n), (point, b, n));");
    list = of_site("\"kind\":\"acquire\",\"tier\":\"full\",\"types\":[\"bit\"],\"uses\":4e7");
    assert_string_equal(list.each[0].code, "tide_acquire(pool, uint64_t, n)");
    assert_true(list.each[0].cost_ns == 0); /* nothing was measured: no figure is made up */
}

static void types_are_not_named_where_that_is_wrong(void **state)
{
    (void)state;
    const char *const members[] = {
        "\"kind\":\"scope\",\"tier\":\"compiled\",\"types\":[\"f64\"],\"uses\":4e7",
        "\"kind\":\"scope\",\"tier\":\"table\",\"types\":[\"f64\"],\"uses\":4e7,\"misses\":60000",
        "\"kind\":\"scope\",\"tier\":\"full\",\"types\":[],\"uses\":4e7",
        "\"kind\":\"scope\",\"tier\":\"table\",\"types\":[\"f64\"],\"uses\":999",
        "\"kind\":\"acquire\",\"tier\":\"full\",\"types\":[\"f64\",\"i32\"],\"uses\":4e7",
        "\"kind\":\"array\",\"tier\":\"full\",\"types\":[\"f64\"],\"uses\":4e7",
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        tide_advice_list list = of_site(members[i]);
        assert_null(said(&list, "always"));
    }
}

/* Each phase of the program has types of its own. */
static void types_that_changed_are_not_named(void **state)
{
    const char *const plans[] = {"[]", "[\"f64\"]", "[\"i32\"]", "[\"f64\"]"};
    (void)state;
    for (int changes = 0; changes < 2; changes++) {
        tide_history history = {0};
        tide_advice_list list;
        for (int i = 0; i < 4; i++) {
            char sites[256];
            snprintf(
                sites, sizeof sites,
                "[{\"id\":1,\"name\":\"solve\",\"kind\":\"scope\",\"tier\":\"table\",\"types\":%s,"
                "\"uses\":%d}]",
                plans[changes == 0 && i == 2 ? 1 : i], i * 10000000);
            add_facts(&history, i, sites, "[]", "[]");
        }
        tide_advice_of(&history, &list);
        assert_true((said(&list, "always") != NULL) == (changes == 0));
        tide_history_free(&history);
    }
}

static void misses_and_reasons_are_explained(void **state)
{
    (void)state;
    tide_advice_list list = of_site(
        "\"kind\":\"scope\",\"tier\":\"table\",\"types\":[\"f64\"],\"uses\":1e6,\"misses\":3e4,"
        "\"use_ns\":10,\"rivals\":[{\"tier\":\"full\",\"ns\":110}]");
    const tide_advice *advice = said(&list, "3 % of the uses of `solve`");
    assert_non_null(advice);
    assert_true(advice->cost_ns == 3e6); /* 30 000 misses of 100 ns */
    list = of_site(
        "\"kind\":\"dispatch\",\"tier\":\"full\",\"uses\":1e6,\"reason_code\":\"megamorphic\"");
    assert_non_null(said(&list, "more different types or shapes"));
    list =
        of_site("\"kind\":\"dispatch\",\"tier\":\"full\",\"uses\":1e6,\"reason_code\":\"unpaid\"");
    assert_int_equal(list.count, 0);
    list = of_site("\"kind\":\"scope\",\"tier\":\"compiled\",\"uses\":1e6,\"compiles\":9,\"compile_"
                   "ns\":4e8,\"saved_ns\":1e8");
    assert_non_null(said(&list, "has cost more than it has saved"));
}

static void memory_is_explained(void **state)
{
    tide_history history = {0};
    tide_advice_list list;
    char pools[512];
    (void)state;
    for (int i = 0; i <= 60; i++) {
        snprintf(pools, sizeof pools,
                 "[{\"id\":1,\"name\":\"grows\",\"held_bytes\":%d,\"live_bytes\":%d},"
                 "{\"id\":2,\"name\":\"idle\",\"held_bytes\":80000000,\"live_bytes\":1000},"
                 "{\"id\":3,\"name\":\"near\",\"limit_bytes\":100,\"peak_bytes\":95,\"check\":1}]",
                 i * 1000000, i * 1000000);
        add_facts(
            &history, i, "[]", pools,
            "[{\"id\":1,\"name\":\"b\",\"hits\":1000,\"misses\":900,\"dropped\":5,\"refused\":2}]");
    }
    tide_advice_of(&history, &list);
    assert_non_null(said(&list, "still growing"));
    assert_null(strstr(said(&list, "still growing")->subject, "idle"));
    assert_non_null(said(&list, "76.3 MiB and was never seen to use more than 1000 B"));
    assert_non_null(said(&list, "near its limit"));
    assert_non_null(said(&list, "not those of a normal run"));
    assert_null(said(&list, "served from the cache")); /* nothing was missed in the record itself */
    assert_null(said(&list, "no longer owned"));
    tide_history_free(&history);
    add_facts(&history, 0, "[]", "[]",
              "[{\"id\":1,\"name\":\"b\",\"hits\":1000,\"misses\":900,\"refused\":2}]");
    tide_advice_of(&history, &list);
    assert_non_null(said(&list, "not served from the cache"));
    assert_int_equal(list.each[0].grade, TIDE_GRADE_WRONG); /* stands first */
    tide_history_free(&history);
}

/* ---- the verdict, and what is worth a line ---- */

/* Two looks, 10 s and 20 s of the processor apart, at these sites; the second one's are grown. */
static tide_verdict judged_with(const char *program, const char *sites, const char *buffers,
                                tide_advice_list *list)
{
    tide_history history = {0};
    tide_verdict verdict;
    add_facts(&history, 0, "[]", "[]", "[]");
    json_t *facts = facts_at(10, sites, "[]", buffers);
    json_object_set_new(facts, "program", json_string(program));
    assert_true(tide_history_add(TIDE_RECORD_FACTS, facts, &history));
    json_decref(facts);
    tide_advice_of(&history, list);
    tide_advice_judge(&history, list, &verdict);
    tide_history_free(&history);
    return verdict;
}

static tide_verdict judged(const char *program, const char *sites, tide_advice_list *list)
{
    return judged_with(program, sites, "[]", list);
}

static void the_verdict_says_what_the_sites_took(void **state)
{
    tide_advice_list list;
    (void)state;
    tide_verdict v =
        judged("p",
               "[{\"id\":1,\"kind\":\"scope\",\"uses\":3000000,\"use_ns\":10,\"use_measured\":true,"
               "\"uses_counted\":true,\"use_arrays\":4,\"use_bytes\":400,\"tier\":\"compiled\"},"
               "{\"id\":2,\"kind\":\"frame\",\"uses\":100,\"use_ns\":20,\"use_measured\":true,"
               "\"tier\":\"compiled\"}]",
               &list);
    assert_string_equal(
        v.words, "Nothing to do: the call sites take 0.15 % of the processor (30.0 ms of 20.0 s, "
                 "measured); the same arrays from malloc would take about 144 ms, by a model.");
    assert_true(v.taken_ns == 30002000 && v.malloc_ns == 144e6);
    v = judged("p",
               "[{\"id\":1,\"kind\":\"scope\",\"uses\":30,\"use_ns\":10,\"tier\":\"full\"},"
               "{\"id\":2,\"kind\":\"dispatch\",\"uses\":9,\"uses_counted\":false}]",
               &list);
    assert_string_equal(v.words, "Nothing to do: the call sites take less than 0.01 % of the "
                                 "processor (300 ns of 20.0 s, by a model); 1 site is not counted "
                                 "in full.");
    v = judged("p", "[{\"id\":1,\"uses\":-5,\"use_ns\":1e308,\"use_arrays\":-1}]", &list);
    assert_true(v.taken_ns == 0 && v.malloc_ns == 0);
}

#define HOST_BUFFERS \
    "{\"id\":1,\"device\":\"host\",\"hits\":990,\"misses\":10,\"asked_bytes\":409600000}"
#define DEVICE_BUFFERS \
    "{\"id\":2,\"device\":\"cuda:0\",\"hits\":9000,\"misses\":9,\"asked_bytes\":9e9}"

static void the_verdict_says_what_came_from_buffers(void **state)
{
    tide_advice_list list;
    (void)state;
    tide_verdict v = judged_with("python3", "[]", "[" HOST_BUFFERS "," DEVICE_BUFFERS "]", &list);
    assert_string_equal(v.words, "Nothing to do: the call sites take 0 % of the processor (0 ns of "
                                 "20.0 s); 100 % of the arrays (1.00 k) came from buffers, 99 % of "
                                 "these from the cache; the same arrays from malloc would take "
                                 "about 40.1 ms, by a model.");
    v = judged_with("python3",
                    "[{\"id\":1,\"kind\":\"scope\",\"uses\":500,\"use_ns\":10,\"use_arrays\":6,"
                    "\"use_bytes\":60}]",
                    "[" HOST_BUFFERS "]", &list);
    assert_non_null(strstr(v.words, "; 25 % of the arrays (1.00 k) came from buffers, "));
    assert_true(v.malloc_ns == 3000 * 12 + 1000 * (120 + 100 * 400));
    v = judged_with("p", "[]", "[" DEVICE_BUFFERS "]", &list);
    assert_true(v.buffer_arrays == 0 && v.malloc_ns == 0);
    v = judged_with("p", "[]", "[{\"id\":1,\"device\":\"host\",\"hits\":1e300,\"asked_bytes\":-1}]",
                    &list);
    assert_true(v.buffer_arrays == 0 && v.cached_arrays == 0 && v.malloc_ns == 0);
}

#define SITE_OF(id, uses)                                           \
    "{\"id\":" #id ",\"name\":\"s" #id                              \
    "\",\"kind\":\"scope\",\"tier\":\"table\",\"types\":[\"f64\"]," \
    "\"uses\":" #uses ",\"use_ns\":14,\"rivals\":[{\"tier\":\"compiled\",\"ns\":4}]}"

static void advice_that_saves_little_is_one_line(void **state)
{
    tide_advice_list list;
    char small[200];
    (void)state;
    tide_verdict v = judged("p", "[" SITE_OF(1, 1000000) "]", &list); /* 10 ms of 20 s */
    assert_true(list.count == 1 && list.worth == 0);
    assert_string_equal(tide_advice_of_small(&list, small, sizeof small),
                        "1 piece of advice would save 0.05 % of the processor time.");
    assert_non_null(strstr(v.words, "Nothing to do"));
    v = judged("p", "[" SITE_OF(1, 100000000) "]", &list); /* 1 s of it */
    assert_true(list.count == 1 && list.worth == 1);
    assert_string_equal(tide_advice_of_small(&list, small, sizeof small), "");
    assert_non_null(strstr(v.words, "1 thing to do: "));
}

/* Each of them alone would not be worth a line. */
static void the_same_advice_is_given_once(void **state)
{
    tide_advice_list list;
    (void)state;
    (void)judged("p", "[" SITE_OF(1, 9000000) "," SITE_OF(2, 10000000) "," SITE_OF(3, 9000000) "]",
                 &list);
    assert_true(list.count == 1 && list.worth == 1 && list.each[0].others == 2);
    assert_string_equal(list.each[0].subject, "s2");
    assert_true(list.each[0].share > 0.0139 && list.each[0].share < 0.0141);
}

static void a_python_program_is_told_no_macros(void **state)
{
    tide_advice_list list;
    (void)state;
    (void)judged("python3", "[" SITE_OF(1, 100000000) "]", &list);
    assert_int_equal(list.count, 0);
    (void)judged("python3",
                 "[{\"id\":1,\"name\":\"f\",\"kind\":\"scope\",\"tier\":\"table\",\"uses\":1e8,"
                 "\"misses\":5e7,\"use_ns\":10,\"rivals\":[{\"tier\":\"full\",\"ns\":110}]}]",
                 &list);
    assert_int_equal(list.worth, 1);
    assert_non_null(strstr(list.each[0].code, "with pool.scope("));
    assert_null(strstr(list.each[0].instead, "tide_"));
}

static void the_worst_comes_first(void **state)
{
    static tide_advice_list list;
    (void)state;
    for (int i = 0; i < TIDE_ADVICE_MAX + 10; i++) {
        tide_advice advice = {.grade = i % 3 == 0 ? TIDE_GRADE_NOTE : TIDE_GRADE_SLOW,
                              .what = "x",
                              .cost_ns = i * 37 % 50};
        tide_advice_put(&list, &advice);
    }
    assert_int_equal(list.count, TIDE_ADVICE_MAX);
    assert_int_equal(list.room_lacked, 10);
    for (size_t i = 1; i < list.count; i++)
        assert_true(list.each[i - 1].grade > list.each[i].grade ||
                    (list.each[i - 1].grade == list.each[i].grade &&
                     list.each[i - 1].cost_ns >= list.each[i].cost_ns));
}

static void a_history_is_bounded_and_keeps_tiers(void **state)
{
    tide_history history = {0};
    (void)state;
    for (int i = 0; i < 3 * TIDE_HISTORY_POINTS; i++) {
        char sites[160];
        snprintf(sites, sizeof sites, "[{\"id\":1,\"name\":\"s\",\"tier\":\"%s\",\"use_ns\":%d}]",
                 i < 100    ? "full"
                 : i == 100 ? "table"
                            : "compiled",
                 i % 97 + 1);
        add_facts(&history, i, sites, "[]", "[]");
    }
    const tide_thing *site = history.sites.each[0];
    bool table = false;
    assert_in_range(site->count, TIDE_HISTORY_POINTS / 2, TIDE_HISTORY_POINTS);
    for (size_t i = 0; i < site->count; i++) {
        table = table || site->points[i].tier == 1;
        assert_true(i == 0 || site->points[i].time_ns > site->points[i - 1].time_ns);
    }
    assert_true(table); /* the one look at which it had that tier */
    tide_history_free(&history);
}

/* Many sites with long names that must be escaped, for long: as bad as it gets. */
static void a_page_keeps_its_size(void **state)
{
    tide_history history = {0};
    char name[800];
    (void)state;
    memset(name, '<', sizeof name - 1);
    name[sizeof name - 1] = 0;
    for (int look = 0; look < 3; look++) {
        json_t *sites = json_array();
        for (int i = 1; i <= TIDE_HISTORY_THINGS + 5; i++)
            json_array_append_new(sites, json_pack("{s:i,s:s,s:s,s:s,s:s,s:f,s:i}", "id", i, "name",
                                                   name, "file", name, "reason", name, "tier",
                                                   look % 2 ? "full" : "table", "use_ns",
                                                   look * 1.2345 + i, "uses", look));
        char *text = json_dumps(sites, JSON_COMPACT);
        add_facts(&history, look, text, "[]", "[]");
        free(text);
        json_decref(sites);
    }
    assert_true(history.sites.left_out > 0);
    char *data = tide_page_data(&history, "a </script> damage");
    assert_non_null(data);
    assert_null(strpbrk(data, "<>&"));
    json_t *read = json_loads(data, 0, NULL);
    assert_non_null(read);
    assert_string_equal(tide_value_text(read, "damage"), "a </script> damage");
    assert_true(json_array_size(json_object_get(read, "sites")) >= 10);
    json_decref(read);
    if (tide_page_is_built()) {
        char *page = NULL;
        size_t bytes = 0;
        FILE *out = open_memstream(&page, &bytes);
        tide_page_write(out, data, false);
        fclose(out);
        assert_in_range(bytes, 200000, TIDE_PAGE_BYTES - 1);
        assert_null(strstr(page, "{{"));
        free(page);
    }
    free(data);
    tide_history_free(&history);
}

/* What the page has no place for is not in its data: else they would never fit. */
static void a_page_takes_what_it_draws(void **state)
{
    tide_history history = {0};
    char *long_text = malloc(TIDE_PAGE_BYTES + 1);
    (void)state;
    memset(long_text, 'x', TIDE_PAGE_BYTES);
    long_text[TIDE_PAGE_BYTES] = 0;
    json_t *facts = facts_at(0, "[]", "[]", "[]");
    json_object_set_new(
        facts, "learning",
        json_pack("{s:s,s:i,s:s}", "what", long_text, "compiled", 7, "won", long_text));
    assert_true(tide_history_add(TIDE_RECORD_FACTS, facts, &history));
    alarm(60); /* it went on for ever to take less */
    char *data = tide_page_data(&history, "");
    alarm(0);
    json_t *read = json_loads(data, 0, NULL), *learning = json_object_get(read, "learning");
    assert_int_equal(tide_value_count(learning, "compiled"), 7);
    assert_true(json_is_integer(json_object_get(learning, "won")));
    assert_in_range(strlen(data), 100, 5000);
    json_decref(read);
    json_decref(facts);
    free(data);
    free(long_text);
    tide_history_free(&history);
}

/* Of learning: a note where nothing can have been learned, and none where it was. */
static void a_thread_that_ended_is_none_that_never_was(void **state)
{
    (void)state;
    for (int rounds = 0; rounds < 2; rounds++) {
        tide_history history = {0};
        tide_advice_list list;
        json_t *facts = facts_at(0, "[]", "[]", "[]");
        json_object_set_new(
            facts, "learning",
            json_pack("{s:b,s:b,s:i}", "enabled", 1, "background", 0, "rounds", rounds));
        assert_true(tide_history_add(TIDE_RECORD_FACTS, facts, &history));
        tide_advice_of(&history, &list);
        assert_true((said(&list, "no background thread") != NULL) == (rounds == 0));
        json_decref(facts);
        tide_history_free(&history);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_types_are_named),
        cmocka_unit_test(types_are_not_named_where_that_is_wrong),
        cmocka_unit_test(types_that_changed_are_not_named),
        cmocka_unit_test(misses_and_reasons_are_explained),
        cmocka_unit_test(memory_is_explained),
        cmocka_unit_test(the_verdict_says_what_the_sites_took),
        cmocka_unit_test(the_verdict_says_what_came_from_buffers),
        cmocka_unit_test(advice_that_saves_little_is_one_line),
        cmocka_unit_test(the_same_advice_is_given_once),
        cmocka_unit_test(a_python_program_is_told_no_macros),
        cmocka_unit_test(the_worst_comes_first),
        cmocka_unit_test(a_history_is_bounded_and_keeps_tiers),
        cmocka_unit_test(a_page_keeps_its_size),
        cmocka_unit_test(a_page_takes_what_it_draws),
        cmocka_unit_test(a_thread_that_ended_is_none_that_never_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
