/* SPDX-License-Identifier: MIT */
/* What `top` shows: a head, the pools by bytes held, the sites by what they cost. */
#define _GNU_SOURCE
#include "profiler/tool/screen.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/record/need.h"
#include "profiler/tool/print.h"
#include "runtime/base/assert.h"

enum { HEAD_ROWS = 3, HELP_ROWS = 1, POOLS_LEAST = 2 };

typedef void (*screen_put)(int row, tool_screen_look look, const char *line);

typedef struct screen_rows {
    const tool_screen *screen;
    screen_put put;
    int next;
} screen_rows;

static const char *const screen_sorts[TOOL_SORTS] = {"load", "uses", "misses", "use", "name"};

const char *tool_screen_sort_name(int sort)
{
    tide_assert(sort >= 0 && sort < TOOL_SORTS);
    return screen_sorts[sort];
}

__attribute__((format(printf, 3, 4))) static void
screen_add(screen_rows *rows, tool_screen_look look, const char *format, ...)
{
    char line[TOOL_SCREEN_LINE], cut[TOOL_SCREEN_LINE];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    size_t room = (size_t)rows->screen->columns + 1;
    if (rows->next < rows->screen->rows)
        rows->put(rows->next, look, tool_clean(line, cut, room < sizeof cut ? room : sizeof cut));
    rows->next++;
}

/* ---- order -------------------------------------------------------------------------------- */

static const json_t *screen_find(const json_t *facts, double id)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(facts, "sites"), i, one)
    {
        if (tide_value_number(one, "id") == id)
            return one;
    }
    return NULL;
}

/* Of a second of one thread, the part that went into this site's uses since the facts before, or
 * since the process began. */
static double screen_load(const tool_screen *screen, const json_t *facts, const json_t *site)
{
    double since = tide_value_number(facts, "since_ns"), uses = tide_value_number(site, "uses");
    if (screen->before != NULL) {
        const json_t *was = screen_find(screen->before, tide_value_number(site, "id"));
        since = tide_value_number(screen->before, "time_ns");
        uses -= was != NULL ? tide_value_number(was, "uses") : 0;
    }
    double ns = tide_value_number(facts, "time_ns") - since;
    return ns > 0 && uses > 0 ? uses * tide_value_number(site, "use_ns") / ns : 0;
}

static double screen_key(const json_t *site, int sort)
{
    switch (sort) {
    case 0: return tide_value_number(site, "load");
    case 1: return tide_value_number(site, "uses");
    case 2: return tide_value_number(site, "misses");
    case 3: return tide_value_number(site, "use_ns");
    default: return 0;
    }
}

/* The largest first, and names as in a book; those alike by their number. */
static int screen_compare_sites(const void *a, const void *b, void *user)
{
    const tool_screen *screen = user;
    const json_t *left = *(json_t *const *)a, *right = *(json_t *const *)b;
    double l = screen_key(left, screen->sort), r = screen_key(right, screen->sort);
    int order = (l < r) - (l > r);
    if (order == 0 && strcmp(screen_sorts[screen->sort], "name") == 0)
        order = strcmp(tide_value_text(left, "name"), tide_value_text(right, "name"));
    if (order == 0)
        return tide_value_number(left, "id") < tide_value_number(right, "id") ? -1 : 1;
    return screen->reversed ? -order : order;
}

static int screen_compare_pools(const void *a, const void *b, void *unused)
{
    const json_t *left = *(json_t *const *)a, *right = *(json_t *const *)b;
    double l = tide_value_number(left, "held_bytes"), r = tide_value_number(right, "held_bytes");
    (void)unused;
    if (l != r)
        return l < r ? 1 : -1;
    return tide_value_number(left, "id") < tide_value_number(right, "id") ? -1 : 1;
}

/* The caller frees it. */
static const json_t **screen_sort(const json_t *list, size_t *count,
                                  int (*compare)(const void *, const void *, void *), void *user)
{
    size_t i;
    json_t *one;
    *count = json_array_size(list);
    const json_t **sorted = tide_need(malloc((*count + 1) * sizeof(const json_t *)));
    json_array_foreach(list, i, one) sorted[i] = one;
    qsort_r(sorted, *count, sizeof(const json_t *), compare, user);
    return sorted;
}

/* ---- lines -------------------------------------------------------------------------------- */

static void screen_add_head(screen_rows *rows, const json_t *facts)
{
    const json_t *pools = json_object_get(facts, "pools"), *sites = json_object_get(facts, "sites");
    const json_t *learning = json_object_get(facts, "learning");
    char held[TOOL_BYTES_TEXT], live[TOOL_BYTES_TEXT], cached[TOOL_BYTES_TEXT];
    screen_add(rows, TOOL_LOOK_TITLE, "tidepool top   %s, process %.0f, version %s",
               tide_value_text(facts, "program"), tide_value_number(facts, "pid"),
               tide_value_text(facts, "version"));
    screen_add(rows, TOOL_LOOK_PLAIN,
               "%zu pools hold %s, %s of it live   buffers cache %s   processor %.1f s",
               json_array_size(pools), tool_bytes(tool_sum(pools, "held_bytes"), held),
               tool_bytes(tool_sum(pools, "live_bytes"), live),
               tool_bytes(tool_sum(json_object_get(facts, "buffers"), "cached_bytes"), cached),
               tide_value_number(facts, "process_cpu_ns") * 1e-9);
    screen_add(rows, TOOL_LOOK_PLAIN, "%zu sites   compiled %.0f, failed %.0f, won %.0f, lost %.0f",
               json_array_size(sites), tide_value_number(learning, "compiled"),
               tide_value_number(learning, "failed"), tide_value_number(learning, "won"),
               tide_value_number(learning, "lost"));
}

static void screen_add_pool(screen_rows *rows, const json_t *pool)
{
    char name[24], thread[20], held[TOOL_BYTES_TEXT], live[TOOL_BYTES_TEXT], peak[TOOL_BYTES_TEXT],
        limit[TOOL_BYTES_TEXT], allocations[TOOL_COUNT_TEXT];
    double most = tide_value_number(pool, "limit_bytes");
    screen_add(rows, TOOL_LOOK_PLAIN, "%5.0f %-18s %-15s %9s %9s %9s %9s %8s",
               tide_value_number(pool, "id"), tool_clean(tide_value_text(pool, "name"), name, 19),
               tool_clean(tide_value_text(pool, "thread_name"), thread, 16),
               tool_bytes(tide_value_number(pool, "held_bytes"), held),
               tool_bytes(tide_value_number(pool, "live_bytes"), live),
               tool_bytes(tide_value_number(pool, "peak_bytes"), peak),
               most > 0 ? tool_bytes(most, limit) : "-",
               tool_count(tide_value_number(pool, "allocations"), allocations));
}

static void screen_add_site(screen_rows *rows, const json_t *site)
{
    char name[24], uses[TOOL_COUNT_TEXT], ns[TOOL_TIME_TEXT], misses[TOOL_COUNT_TEXT], types[100];
    double use = tide_value_number(site, "use_ns");
    screen_add(rows, TOOL_LOOK_PLAIN, "%5.0f %-18s %-8s %-8s%s %8s %9s %6.2f%% %7s  %s",
               tide_value_number(site, "id"), tool_clean(tide_value_text(site, "name"), name, 19),
               tide_value_text(site, "kind"), tide_value_text(site, "tier"),
               tide_value_flag(site, "pinned") ? "*" : " ",
               tool_count(tide_value_number(site, "uses"), uses),
               use > 0 ? tool_time(use, ns) : "-", 100 * tide_value_number(site, "load"),
               tool_count(tide_value_number(site, "misses"), misses),
               tool_words(json_object_get(site, "types"), types, sizeof types));
}

/* At most so many rows; the last of them says how many are left out. */
static void screen_add_pools(screen_rows *rows, const json_t *facts, int most)
{
    size_t count;
    const json_t **sorted =
        screen_sort(json_object_get(facts, "pools"), &count, screen_compare_pools, NULL);
    screen_add(rows, TOOL_LOOK_HEAD, "%5s %-18s %-15s %9s %9s %9s %9s %8s", "POOL", "NAME",
               "THREAD", "HELD", "LIVE", "PEAK", "LIMIT", "ALLOCS");
    size_t shown = count <= (size_t)most ? count : (size_t)(most > 1 ? most - 1 : 0);
    for (size_t i = 0; i < shown; i++)
        screen_add_pool(rows, sorted[i]);
    if (shown < count)
        screen_add(rows, TOOL_LOOK_PLAIN, "      ... %zu more", count - shown);
    free(sorted);
}

/* `load` becomes a member of each. */
static void screen_add_sites(screen_rows *rows, tool_screen *screen, const json_t *facts)
{
    size_t count, at;
    json_t *site;
    json_array_foreach(json_object_get(facts, "sites"), at, site)
        json_object_set_new(site, "load", json_real(screen_load(screen, facts, site)));
    const json_t **sorted =
        screen_sort(json_object_get(facts, "sites"), &count, screen_compare_sites, screen);
    screen_add(rows, TOOL_LOOK_HEAD, "%5s %-18s %-8s %-9s %8s %9s %7s %7s  %s", "SITE", "NAME",
               "KIND", "TIER", "USES", "USE", "LOAD", "MISSES", "TYPES");
    if (screen->first >= (int)count)
        screen->first = count > 0 ? (int)count - 1 : 0;
    tide_assert(screen->first >= 0);
    for (size_t i = (size_t)screen->first; i < count && rows->next < screen->rows - HELP_ROWS; i++)
        screen_add_site(rows, sorted[i]);
    free(sorted);
}

void tool_screen_draw(tool_screen *screen, const json_t *facts, screen_put put)
{
    screen_rows rows = {.screen = screen, .put = put};
    int half = (screen->rows - HEAD_ROWS - HELP_ROWS) / 2 - 2;
    if (facts != NULL) {
        screen_add_head(&rows, facts);
        screen_add_pools(&rows, facts, half > POOLS_LEAST ? half : POOLS_LEAST);
        screen_add_sites(&rows, screen, facts);
    }
    rows.next = screen->rows > 1 ? screen->rows - 2 : 0;
    if (screen->notice[0] != '\0')
        screen_add(&rows, TOOL_LOOK_TITLE, "%-*s", screen->columns, screen->notice);
    rows.next = screen->rows > 0 ? screen->rows - 1 : 0;
    screen_add(
        &rows, TOOL_LOOK_HEAD,
        "q quit  s sort: %s%s  r reverse  up/down scroll  n next process  +/- faster, slower",
        screen_sorts[screen->sort], screen->reversed ? " (reversed)" : "");
}
