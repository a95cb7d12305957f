/* SPDX-License-Identifier: MIT */
/* A facts document as metrics. */
#include "profiler/metrics/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/metrics/table.h"
#include "profiler/metrics/value.h"
#include "runtime/base/assert.h"

/* ---- the families ---- */

typedef struct metrics_family {
    const char *name; /* without _total */
    bool counter;
    const char *help;
    const char *value; /* the member; NULL: how many things */
    double scale;
} metrics_family;

enum { METRICS_FAMILIES = 11 };
typedef struct metrics_group {
    const tide_table_form *form;
    const char *labels[TIDE_TABLE_LABELS + 1]; /* as they are called here */
    bool sums;                                 /* else each row tells of its first thing alone */
    metrics_family families[METRICS_FAMILIES];
} metrics_group;

static const tide_table_form metrics_pools = {
    "pools",
    {"name", "device"},
    {"held_bytes", "live_bytes", "peak_bytes", "limit_bytes", "slots"}};
static const tide_table_form metrics_pools_counted = {
    "pools", {"name", "device"}, {"allocations", "releases", "exchanges"}};
static const tide_table_form metrics_sites = {"sites", {"name", "kind", "file"}, {NULL}};
static const tide_table_form metrics_sites_counted = {
    "sites", {"name", "kind", "file"}, {"misses", "compiles", "compile_ns", "uses"}};
static const tide_table_form metrics_buffers = {
    "buffers", {"name", "device"}, {"live", "cached", "live_bytes", "cached_bytes", "max_bytes"}};
static const tide_table_form metrics_buffers_counted = {"buffers",
                                                        {"name", "device"},
                                                        {"hits", "misses", "releases", "refused",
                                                         "dropped", "trimmed", "pressed", "failed",
                                                         "asked_bytes", "given_bytes"}};

static const metrics_group metrics_groups[] = {
    {&metrics_pools,
     {"pool", "device"},
     true,
     {{"tidepool_pools", false, "Pools of this name.", NULL, 1},
      {"tidepool_pool_held_bytes", false, "Memory that pools hold.", "held_bytes", 1},
      {"tidepool_pool_live_bytes", false, "Memory of pools that is in use.", "live_bytes", 1},
      {"tidepool_pool_peak_bytes", false, "Most memory held, each pool's own most added up.",
       "peak_bytes", 1},
      {"tidepool_pool_limit_bytes", false, "Limits of pools added up; 0 where there is none.",
       "limit_bytes", 1},
      {"tidepool_pool_slots", false, "Slots of pools.", "slots", 1}}},
    {&metrics_pools_counted,
     {"pool", "device"},
     true,
     {{"tidepool_pool_allocations", true, "Allocations of pools from their source.", "allocations",
       1},
      {"tidepool_pool_releases", true, "Allocations given back.", "releases", 1},
      {"tidepool_pool_exchanges", true, "Slots exchanged for larger ones.", "exchanges", 1}}},
    {&metrics_sites,
     {"site", "kind", "place"},
     false,
     {{"tidepool_site_tier", false, "Plan in force: 0 full, 1 table, 2 compiled.", "tier", 1},
      {"tidepool_site_use_seconds", false, "Time of one use by the plan in force; 0: not known.",
       "use_ns", 1e-9},
      {"tidepool_site_samples", false, "Uses in the profile of the site; a reset forgets them.",
       "samples", 1}}},
    {&metrics_sites_counted,
     {"site", "kind", "place"},
     true,
     {{"tidepool_site_misses", true, "Uses whose guard failed.", "misses", 1},
      {"tidepool_site_compiles", true, "Compiled plans made.", "compiles", 1},
      {"tidepool_site_compile_seconds", true, "Processor time of its compiles.", "compile_ns",
       1e-9},
      {"tidepool_site_uses", true, "Uses; of dispatches at least so many.", "uses", 1}}},
    {&metrics_buffers,
     {"buffers", "device"},
     true,
     {{"tidepool_buffers_live", false, "Buffers that the program holds.", "live", 1},
      {"tidepool_buffers_cached", false, "Buffers in the cache.", "cached", 1},
      {"tidepool_buffers_live_bytes", false, "Memory that the program holds.", "live_bytes", 1},
      {"tidepool_buffers_cached_bytes", false, "Memory in the cache.", "cached_bytes", 1},
      {"tidepool_buffers_max_bytes", false, "Most that may be cached.", "max_bytes", 1}}},
    {&metrics_buffers_counted,
     {"buffers", "device"},
     true,
     {{"tidepool_buffers_hits", true, "Requests served from the cache.", "hits", 1},
      {"tidepool_buffers_misses", true, "Requests that were allocated.", "misses", 1},
      {"tidepool_buffers_releases", true, "Buffers released.", "releases", 1},
      {"tidepool_buffers_refused", true, "Handles refused because they were stale.", "refused", 1},
      {"tidepool_buffers_dropped", true, "Released buffers for which there was no room.", "dropped",
       1},
      {"tidepool_buffers_trimmed", true,
       "Cached buffers given back later: by use, by age, by a trim, under pressure.", "trimmed", 1},
      {"tidepool_buffers_pressed", true,
       "Times that the device had no memory and the cache was given back.", "pressed", 1},
      {"tidepool_buffers_failed", true, "Requests that got no memory.", "failed", 1},
      {"tidepool_buffers_asked_bytes", true, "Memory asked for.", "asked_bytes", 1},
      {"tidepool_buffers_given_bytes", true, "Memory given.", "given_bytes", 1}}},
};
enum { METRICS_GROUPS = sizeof metrics_groups / sizeof *metrics_groups };

/* ---- what is gone ---- */

struct tide_metrics_memory {
    json_t *last;                    /* document, or NULL */
    tide_table gone[METRICS_GROUPS]; /* with a row for whatever was there, in the order it came */
};

/* Counters of things that may go while the process lives: pools, buffers, sites of a module. */
static bool metrics_may_go(const metrics_group *group)
{
    return group->form == &metrics_pools_counted || group->form == &metrics_buffers_counted ||
           group->form == &metrics_sites_counted;
}

static void metrics_table_begin(tide_table *table, const metrics_group *group)
{
    *table = (tide_table){.form = group->form, .most = TIDE_METRICS_SERIES};
}

tide_metrics_memory *tide_metrics_memory_new(void)
{
    tide_metrics_memory *memory = calloc(1, sizeof *memory);
    for (int i = 0; memory != NULL && i < METRICS_GROUPS; i++)
        metrics_table_begin(&memory->gone[i], &metrics_groups[i]);
    return memory;
}

static void metrics_forget(tide_metrics_memory *memory)
{
    for (int i = 0; i < METRICS_GROUPS; i++)
        tide_table_free(&memory->gone[i]);
    json_decref(memory->last);
    memory->last = NULL;
}

void tide_metrics_memory_free(tide_metrics_memory *memory)
{
    if (memory != NULL)
        metrics_forget(memory);
    free(memory);
}

/* Adds what of the document before is not in this one. False without memory. */
static bool metrics_remember_gone(tide_table *gone, const json_t *before, const json_t *now)
{
    tide_value_ids ids = tide_value_ids_of(json_object_get(now, gone->form->list));
    bool good = ids.each != NULL && tide_table_reserve(gone, now);
    const json_t *object;
    size_t i;
    json_array_foreach(json_object_get(before, gone->form->list), i, object)
    {
        if (good && !tide_value_ids_have(&ids, tide_value_count(object, "id")))
            good = tide_table_add(gone, object);
    }
    for (i = 0; i < gone->count; i++)
        gone->rows[i].first = NULL; /* a document's that is given back */
    free(ids.each);
    return good;
}

/* Is it of the same program, by the same copy of the library? Then its ids are the same things'. */
static bool metrics_is_same(const json_t *before, const json_t *now)
{
    return tide_value_count(before, "pid") == tide_value_count(now, "pid") &&
           tide_value_count(before, "since_ns") == tide_value_count(now, "since_ns") &&
           strcmp(tide_value_text(before, "program"), tide_value_text(now, "program")) == 0;
}

bool tide_metrics_remember(tide_metrics_memory *memory, json_t *facts)
{
    bool good = true;
    if (memory->last != NULL && !metrics_is_same(memory->last, facts))
        metrics_forget(memory);
    for (int i = 0; good && i < METRICS_GROUPS; i++)
        if (metrics_may_go(&metrics_groups[i]))
            good = metrics_remember_gone(&memory->gone[i], memory->last, facts);
    json_decref(memory->last);
    memory->last = json_incref(facts);
    return good;
}

/* ---- writing ---- */

static void metrics_head(FILE *out, const metrics_family *family)
{
    const char *total = family->counter ? "_total" : "";
    fprintf(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", family->name, total, family->help,
            family->name, total, family->counter ? "counter" : "gauge");
}

static void metrics_label(FILE *out, const char *text)
{
    for (; *text != 0; text++) {
        if (*text == '\\' || *text == '"')
            fputc('\\', out);
        if (*text == '\n')
            fputs("\\n", out);
        else
            fputc(*text, out);
    }
}

static void metrics_value(FILE *out, double value)
{
    if (value == floor(value) && fabs(value) < 9e15)
        fprintf(out, " %.0f\n", value);
    else
        fprintf(out, " %.9g\n", value);
}

static double metrics_tier(const char *tier)
{
    return strcmp(tier, "compiled") == 0 ? 2 : strcmp(tier, "table") == 0 ? 1 : 0;
}

static double metrics_of_row(const metrics_group *group, const metrics_family *family,
                             const tide_table_row *row)
{
    if (family->value == NULL)
        return row->things;
    if (!group->sums && strcmp(family->value, "tier") == 0)
        return metrics_tier(tide_value_text(row->first, "tier"));
    if (!group->sums)
        return tide_value_number(row->first, family->value) * family->scale;
    for (int i = 0; group->form->values[i] != NULL; i++) {
        if (strcmp(group->form->values[i], family->value) == 0)
            return row->values[i] * family->scale;
    }
    tide_assert(!"a family's value that its form adds up");
    return 0;
}

static void metrics_sample(FILE *out, const metrics_group *group, const metrics_family *family,
                           const tide_table_row *row)
{
    fprintf(out, "%s%s{", family->name, family->counter ? "_total" : "");
    for (int i = 0; group->labels[i] != NULL; i++) {
        fprintf(out, "%s%s=\"", i == 0 ? "" : ",", group->labels[i]);
        metrics_label(out, row->labels[i]);
        fputc('"', out);
    }
    fputc('}', out);
    metrics_value(out, metrics_of_row(group, family, row));
}

static bool metrics_write_group(FILE *out, const metrics_group *group, const json_t *facts,
                                const tide_table *gone)
{
    tide_table table;
    metrics_table_begin(&table, group);
    bool good = (gone == NULL || tide_table_merge(&table, gone)) && tide_table_fill(&table, facts);
    for (const metrics_family *family = group->families; good && family->name != NULL; family++) {
        metrics_head(out, family);
        for (size_t i = 0; i < table.count; i++) {
            if (group->sums || table.rows[i].first != NULL)
                metrics_sample(out, group, family, &table.rows[i]);
        }
    }
    tide_table_free(&table);
    return good;
}

/* A family with a label `result`, or with none (results NULL): members of an object of the
 * document. */
static void metrics_single(FILE *out, const metrics_family *family, const json_t *from,
                           const char *const *results)
{
    metrics_head(out, family);
    const char *total = family->counter ? "_total" : "";
    for (; results != NULL && *results != NULL; results++) {
        fprintf(out, "%s%s{result=\"%s\"}", family->name, total, *results);
        metrics_value(out, tide_value_number(from, *results) * family->scale);
    }
    if (family->value == NULL)
        return;
    fprintf(out, "%s%s", family->name, total);
    metrics_value(out, tide_value_number(from, family->value) * family->scale);
}

static void metrics_write_process(FILE *out, const json_t *facts)
{
    static const char *const compiles[] = {"compiled", "failed", NULL};
    static const char *const trials[] = {"won", "lost", NULL};
    static const metrics_family families[] = {
        {"tidepool_process_held_bytes", false, "Host memory of all pools and buffers.",
         "held_bytes", 1},
        {"tidepool_process_limit_bytes", false, "Limit of that; 0: none.", "limit_bytes", 1},
        {"tidepool_process_cpu_seconds", true, "Processor time of the process.", "process_cpu_ns",
         1e-9},
        {"tidepool_stager_compiles", true, "Sites sent to the stager, by what came of it.", NULL,
         1},
        {"tidepool_trials", true, "Trials of compiled code.", NULL, 1},
        {"tidepool_stager_seconds", true, "Processor time of compiles.", "spent_us", 1e-6},
        {"tidepool_rounds", true, "Rounds of learning.", "rounds", 1},
        {"tidepool_windows", true, "Windows read.", "windows", 1},
    };
    const json_t *process = json_object_get(facts, "process");
    const json_t *learning = json_object_get(facts, "learning");
    metrics_single(out, &families[0], process, NULL);
    metrics_single(out, &families[1], process, NULL);
    metrics_single(out, &families[2], facts, NULL);
    metrics_single(out, &families[3], learning, compiles);
    metrics_single(out, &families[4], learning, trials);
    for (int i = 5; i < 8; i++)
        metrics_single(out, &families[i], learning, NULL);
}

static void metrics_write_build(FILE *out, const json_t *facts)
{
    static const metrics_family build = {"tidepool_build_info", false,
                                         "The library in the process.", NULL, 1};
    metrics_head(out, &build);
    fputs("tidepool_build_info{version=\"", out);
    metrics_label(out, tide_value_text(facts, "version"));
    fputs("\",program=\"", out);
    metrics_label(out, tide_value_text(facts, "program"));
    fputs("\"} 1\n", out);
}

bool tide_metrics_of(FILE *out, const json_t *facts, const tide_metrics_memory *memory)
{
    bool good = true;
    metrics_write_build(out, facts);
    for (int i = 0; i < METRICS_GROUPS; i++)
        good = good && metrics_write_group(out, &metrics_groups[i], facts,
                                           memory != NULL ? &memory->gone[i] : NULL);
    metrics_write_process(out, facts);
    return good && !ferror(out);
}
