/* SPDX-License-Identifier: MIT */
/* tidepool sites, pools, buffers, tunables: the lists of a facts document as tables. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/record/need.h"
#include "profiler/report/advice.h"
#include "profiler/tool/client.h"
#include "profiler/tool/print.h"
#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"

typedef void lists_print(const json_t *one);

static void lists_print_site(const json_t *site)
{
    char name[32], types[40], uses[TOOL_COUNT_TEXT], ns[TOOL_TIME_TEXT], why[80];
    tool_say(
        "%4.0f  %-20s %-8s %-8s%s %8s %9s %8.0f  %-16s %s", tide_value_number(site, "id"),
        tool_clean(tide_value_text(site, "name"), name, 21), tide_value_text(site, "kind"),
        tide_value_text(site, "tier"), tide_value_flag(site, "pinned") ? "*" : " ",
        tool_count(tide_value_number(site, "uses"), uses),
        tide_value_number(site, "use_ns") > 0 ? tool_time(tide_value_number(site, "use_ns"), ns)
                                              : "-",
        tide_value_number(site, "misses"), tool_words(json_object_get(site, "types"), types, 40),
        tool_clean(tide_value_text(site, "reason"), why, sizeof why));
}

static void lists_print_pool(const json_t *pool)
{
    char name[32], thread[20], held[TOOL_BYTES_TEXT], live[TOOL_BYTES_TEXT], peak[TOOL_BYTES_TEXT],
        limit[TOOL_BYTES_TEXT];
    double most = tide_value_number(pool, "limit_bytes");
    tool_say("%4.0f  %-16s %-15s %-8s %10s %10s %10s %10s %8.0f %8.0f",
             tide_value_number(pool, "id"), tool_clean(tide_value_text(pool, "name"), name, 17),
             tool_clean(tide_value_text(pool, "thread_name"), thread, 16),
             tide_value_text(pool, "device"),
             tool_bytes(tide_value_number(pool, "held_bytes"), held),
             tool_bytes(tide_value_number(pool, "live_bytes"), live),
             tool_bytes(tide_value_number(pool, "peak_bytes"), peak),
             most > 0 ? tool_bytes(most, limit) : "-", tide_value_number(pool, "allocations"),
             tide_value_number(pool, "exchanges"));
}

static void lists_print_buffers(const json_t *one)
{
    char name[32], live[TOOL_BYTES_TEXT], cached[TOOL_BYTES_TEXT], most[TOOL_BYTES_TEXT];
    double hits = tide_value_number(one, "hits"), all = hits + tide_value_number(one, "misses");
    tool_say("%4.0f  %-16s %-8s %10.0f %10.0f %5.1f%% %10s %10s %10s", tide_value_number(one, "id"),
             tool_clean(tide_value_text(one, "name"), name, 17), tide_value_text(one, "device"),
             hits, tide_value_number(one, "misses"), all > 0 ? 100 * hits / all : 0,
             tool_bytes(tide_value_number(one, "live_bytes"), live),
             tool_bytes(tide_value_number(one, "cached_bytes"), cached),
             tool_bytes(tide_value_number(one, "max_bytes"), most));
}

static void lists_print_tunable_row(const json_t *row, const char *name)
{
    char text[32], took[TOOL_TIME_TEXT], error[TOOL_TIME_TEXT];
    const char *choice = tide_value_text(row, "choice");
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(row, "candidates"), i, one)
    {
        const char *variant = tide_value_text(one, "name");
        bool chosen = strcmp(variant, choice) == 0;
        tool_say("%-24s %10.0f  %-20s %8.0f %9s ± %9s %s", name, tide_value_number(row, "key"),
                 tool_clean(variant, text, 21), tide_value_number(one, "uses"),
                 tool_time(tide_value_number(one, "ns"), took),
                 tool_time(tide_value_number(one, "error_ns"), error),
                 !chosen                           ? ""
                 : tide_value_flag(row, "pinned")  ? "pinned"
                 : tide_value_flag(row, "settled") ? "chosen"
                                                   : "ahead");
    }
}

static void lists_print_tunable(const json_t *tunable)
{
    char name[32];
    size_t i;
    json_t *row;
    (void)tool_clean(tide_value_text(tunable, "name"), name, 25);
    if (json_object_get(tunable, "value") != NULL)
        tool_say("%-24s %10s  %.0f of %.0f to %.0f", name, "", tide_value_number(tunable, "value"),
                 tide_value_number(tunable, "low"), tide_value_number(tunable, "high"));
    json_array_foreach(json_object_get(tunable, "rows"), i, row) lists_print_tunable_row(row, name);
}

static void lists_show(const json_t *facts, const char *member, bool as_json, const char *head,
                       lists_print *print)
{
    const json_t *list = json_object_get(facts, member);
    size_t i;
    json_t *one;
    tide_assert(json_is_array(list));
    if (as_json) {
        tool_print_json(list);
        return;
    }
    puts(head);
    json_array_foreach(list, i, one) print(one);
}

/* What all of it comes to, in one sentence below the list of sites. */
static void lists_say_verdict(json_t *facts)
{
    tide_history history = {0};
    tide_advice_list *advice = tide_need(malloc(sizeof *advice));
    tide_verdict verdict;
    (void)tide_history_add(TIDE_RECORD_FACTS, facts, &history);
    tide_advice_of(&history, advice);
    tide_advice_judge(&history, advice, &verdict);
    puts("");
    tool_say("%s", verdict.words);
    tide_history_free(&history);
    free(advice);
}

static int lists_run(int count, char **args, const char *member, const char *head,
                     lists_print *print)
{
    tool_options options;
    tool_client client;
    json_t *facts = NULL;
    int code = tool_options_read(&count, args, "jtd", 1, 1, &options);
    if (code == TOOL_OK)
        code = tool_client_facts_of(&client, args[1], &options, &facts);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    lists_show(facts, member, options.json, head, print);
    if (!options.json && strcmp(member, "sites") == 0)
        lists_say_verdict(facts);
    json_decref(facts);
    tool_client_close(&client);
    return code;
}

int tool_sites(int count, char **args)
{
    return lists_run(count, args, "sites",
                     "  ID  NAME                 KIND     TIER         USES       USE   MISSES  "
                     "TYPES            WHY",
                     lists_print_site);
}

int tool_pools(int count, char **args)
{
    return lists_run(count, args, "pools",
                     "  ID  NAME             THREAD          DEVICE         HELD       LIVE       "
                     "PEAK      LIMIT   ALLOCS  EXCHGES",
                     lists_print_pool);
}

int tool_buffers(int count, char **args)
{
    return lists_run(count, args, "buffers",
                     "  ID  NAME             DEVICE         HITS     MISSES    HIT       LIVE     "
                     "CACHED        MAX",
                     lists_print_buffers);
}

int tool_tunables(int count, char **args)
{
    return lists_run(
        count, args, "tunables",
        "TUNABLE                         KEY  VARIANT                 TIMED       USE       "
        "ERROR",
        lists_print_tunable);
}
