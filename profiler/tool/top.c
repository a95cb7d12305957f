/* SPDX-License-Identifier: MIT */
/* tidepool top: a process's pools and sites, drawn anew each second; once, where the standard output
 * is no terminal. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "profiler/record/need.h"
#include "profiler/tool/client.h"
#include "profiler/tool/print.h"
#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"

enum { PERIOD_MS = 1000, LINE = 512, ROWS = 24, COLUMNS = 80, POOLS_PART = 4 };

typedef struct top_state {
    tool_client client;
    const tool_options *options;
    json_t *facts, *before;  /* the last and the one before it, or NULL */
    int rows, columns, next; /* of the terminal; the row that is written next */
    bool terminal;
} top_state;

/* ---- order ---------------------------------------------------------------------------------- */

static const char *const top_sorts[] = {"load", "uses", "misses", "use_ns", "name"};

/* The largest first, and names as in a book; those alike by their number. */
static int top_compare(const void *a, const void *b, void *user)
{
    const char *key = user;
    const json_t *left = *(json_t *const *)a, *right = *(json_t *const *)b;
    double l = tide_value_number(left, key), r = tide_value_number(right, key);
    int order = (l < r) - (l > r);
    if (order == 0)
        order = strcmp(tide_value_text(left, key), tide_value_text(right, key));
    if (order != 0)
        return order;
    return tide_value_number(left, "id") < tide_value_number(right, "id") ? -1 : 1;
}

/* The caller frees it. */
static json_t **top_sort(const json_t *list, size_t *count, const char *key)
{
    size_t i;
    json_t *one;
    *count = json_array_size(list);
    json_t **sorted = tide_need(malloc((*count + 1) * sizeof *sorted));
    json_array_foreach(list, i, one) sorted[i] = one;
    qsort_r(sorted, *count, sizeof *sorted, top_compare, (void *)(uintptr_t)key);
    return sorted;
}

static double top_uses_before(const top_state *top, double id)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(top->before, "sites"), i, one)
    {
        if (tide_value_number(one, "id") == id)
            return tide_value_number(one, "uses");
    }
    return 0;
}

/* Of a second of one thread, the part that went into this site's uses since the facts before, or
 * since the process began. */
static double top_load(const top_state *top, const json_t *site)
{
    double uses =
        tide_value_number(site, "uses") - top_uses_before(top, tide_value_number(site, "id"));
    double since = top->before != NULL ? tide_value_number(top->before, "time_ns")
                                       : tide_value_number(top->facts, "since_ns");
    double ns = tide_value_number(top->facts, "time_ns") - since;
    return ns > 0 && uses > 0 ? uses * tide_value_number(site, "use_ns") / ns : 0;
}

/* ---- lines ---------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void top_say(top_state *top, const char *format, ...)
{
    char line[LINE], cut[LINE];
    va_list values;
    va_start(values, format);
    (void)vsnprintf(line, sizeof line, format, values);
    va_end(values);
    if (top->next++ >= top->rows)
        return;
    size_t room = (size_t)top->columns + 1;
    printf("%s%s%s", tool_clean(line, cut, room < sizeof cut ? room : sizeof cut),
           top->terminal ? "\033[K" : "", top->next < top->rows ? "\n" : "");
}

static void top_say_head(top_state *top)
{
    const json_t *facts = top->facts, *pools = json_object_get(facts, "pools");
    char held[TOOL_BYTES_TEXT], live[TOOL_BYTES_TEXT], cached[TOOL_BYTES_TEXT];
    top_say(top, "tidepool top   %s, process %.0f, version %s   processor %.1f s",
            tide_value_text(facts, "program"), tide_value_number(facts, "pid"),
            tide_value_text(facts, "version"), tide_value_number(facts, "process_cpu_ns") * 1e-9);
    top_say(top, "%zu sites   %zu pools hold %s, %s of it live   buffers cache %s",
            json_array_size(json_object_get(facts, "sites")), json_array_size(pools),
            tool_bytes(tool_sum(pools, "held_bytes"), held),
            tool_bytes(tool_sum(pools, "live_bytes"), live),
            tool_bytes(tool_sum(json_object_get(facts, "buffers"), "cached_bytes"), cached));
}

static void top_say_pool(top_state *top, const json_t *pool)
{
    char held[TOOL_BYTES_TEXT], live[TOOL_BYTES_TEXT], peak[TOOL_BYTES_TEXT],
        limit[TOOL_BYTES_TEXT], allocations[TOOL_COUNT_TEXT];
    double most = tide_value_number(pool, "limit_bytes");
    top_say(top, "%5.0f %9s %9s %9s %9s %8s  %s (%s)", tide_value_number(pool, "id"),
            tool_bytes(tide_value_number(pool, "held_bytes"), held),
            tool_bytes(tide_value_number(pool, "live_bytes"), live),
            tool_bytes(tide_value_number(pool, "peak_bytes"), peak),
            most > 0 ? tool_bytes(most, limit) : "-",
            tool_count(tide_value_number(pool, "allocations"), allocations),
            tide_value_text(pool, "name"), tide_value_text(pool, "thread_name"));
}

static void top_say_site(top_state *top, const json_t *site)
{
    char uses[TOOL_COUNT_TEXT], ns[TOOL_TIME_TEXT], misses[TOOL_COUNT_TEXT], types[100];
    double use = tide_value_number(site, "use_ns");
    top_say(top, "%5.0f %-8s %-8s%s %8s %9s %6.2f%% %7s  %s  %s", tide_value_number(site, "id"),
            tide_value_text(site, "kind"), tide_value_text(site, "tier"),
            tide_value_flag(site, "pinned") ? "*" : " ",
            tool_count(tide_value_number(site, "uses"), uses), use > 0 ? tool_time(use, ns) : "-",
            100 * tide_value_number(site, "load"),
            tool_count(tide_value_number(site, "misses"), misses), tide_value_text(site, "name"),
            tool_words(json_object_get(site, "types"), types, sizeof types));
}

static void top_say_pools(top_state *top)
{
    size_t count, most = (size_t)(top->terminal ? top->rows / POOLS_PART : top->rows);
    json_t **sorted = top_sort(json_object_get(top->facts, "pools"), &count, "held_bytes");
    top_say(top, "%5s %9s %9s %9s %9s %8s  %s", "POOL", "HELD", "LIVE", "PEAK", "LIMIT", "ALLOCS",
            "NAME (THREAD)");
    for (size_t i = 0; i < count && i < most; i++)
        top_say_pool(top, sorted[i]);
    if (count > most)
        top_say(top, "      ... %zu more", count - most);
    free(sorted);
}

/* `load` becomes a member of each. */
static void top_say_sites(top_state *top)
{
    size_t count, i;
    json_t *site;
    json_t *list = json_object_get(top->facts, "sites");
    json_array_foreach(list, i, site)
        json_object_set_new(site, "load", json_real(top_load(top, site)));
    json_t **sorted = top_sort(list, &count, top->options->sort);
    top_say(top, "%5s %-8s %-9s %8s %9s %7s %7s  %s", "SITE", "KIND", "TIER", "USES", "USE", "LOAD",
            "MISSES", "NAME  TYPES");
    for (i = 0; i < count; i++)
        top_say_site(top, sorted[i]);
    free(sorted);
}

static void top_draw(top_state *top)
{
    struct winsize size = {.ws_row = ROWS, .ws_col = COLUMNS};
    top->terminal = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    top->rows = top->terminal && size.ws_row > 0 ? size.ws_row : top->terminal ? ROWS : INT32_MAX;
    top->columns = !top->terminal ? LINE - 1 : size.ws_col > 0 ? size.ws_col : COLUMNS;
    top->next = 0;
    (void)fputs(top->terminal ? "\033[H" : "", stdout);
    top_say_head(top);
    top_say_pools(top);
    top_say_sites(top);
    (void)fputs(top->terminal ? "\033[J" : "", stdout);
    (void)fflush(stdout);
}

/* ---- the command ---------------------------------------------------------------------------- */

static volatile sig_atomic_t top_over;

static void top_end(int number)
{
    (void)number;
    top_over = 1;
}

/* Until the user interrupts it, or the process ends; the screen is whole then. */
static int top_run(top_state *top)
{
    int period = top->options->period_ms > PERIOD_MS ? top->options->period_ms : PERIOD_MS;
    struct sigaction end = {.sa_handler = top_end};
    int code = TOOL_OK;
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGTERM, &end, NULL);
    while (top_over == 0 && code == TOOL_OK) {
        json_t *facts;
        code = tool_client_facts(&top->client, &facts);
        if (code != TOOL_OK)
            break;
        json_decref(top->before);
        top->before = top->facts;
        top->facts = facts;
        top_draw(top);
        if (!top->terminal)
            break;
        struct timespec pause = {period / 1000, period % 1000 * 1000000L};
        (void)nanosleep(&pause, NULL);
    }
    (void)fputs(top->terminal ? "\n" : "", stdout);
    if (top_over != 0)
        return TOOL_OK;
    return code == TOOL_OK ? code : tool_client_complain(&top->client, code);
}

/* The member by which sites are sorted, or NULL. */
static const char *top_find_sort(const char *name)
{
    if (strcmp(name, "use") == 0)
        name = "use_ns";
    for (size_t i = 0; i < sizeof top_sorts / sizeof *top_sorts; i++)
        if (strcmp(top_sorts[i], name) == 0)
            return top_sorts[i];
    return NULL;
}

int tool_top(int count, char **args)
{
    tool_options options;
    top_state top = {.options = &options};
    int code = tool_options_read(&count, args, "tdSp", 1, 1, &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    options.sort = top_find_sort(options.sort != NULL ? options.sort : "load");
    if (options.sort == NULL)
        return tool_complain(TOOL_USAGE, "top sorts by load, uses, misses, use or name");
    code = tool_client_open_named(&top.client, args[1], &options);
    if (code != TOOL_OK)
        return code;
    code = top_run(&top);
    json_decref(top.facts);
    json_decref(top.before);
    tool_client_close(&top.client);
    return code;
}
