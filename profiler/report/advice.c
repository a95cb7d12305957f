/* SPDX-License-Identifier: MIT */
/* All advice about a record, and what is said of the whole process. */
#define _GNU_SOURCE
#include "profiler/report/advice.h"

#include <stdarg.h>
#include <string.h>

#include "profiler/record/value.h"
#include "profiler/tool/print.h"
#include "runtime/base/assert.h"

static bool advice_is_worth(const tide_advice *a)
{
    return a->site == 0 || a->grade == TIDE_GRADE_WRONG || a->share >= TIDE_ADVICE_WORTH;
}

/* Those that are worth a line stand before those that are not. */
static bool advice_is_worse(const tide_advice *a, const tide_advice *b)
{
    if (advice_is_worth(a) != advice_is_worth(b))
        return advice_is_worth(a);
    return a->grade != b->grade ? a->grade > b->grade : a->cost_ns > b->cost_ns;
}

/* Takes out what says the same of something else, and adds that to this. */
static void advice_merge(tide_advice_list *list, tide_advice *advice)
{
    for (size_t i = 0; advice->alike != NULL && i < list->count; i++) {
        const tide_advice old = list->each[i];
        if (old.alike != advice->alike || strcmp(old.code, advice->code) != 0)
            continue;
        double cost_ns = old.cost_ns + advice->cost_ns, share = old.share + advice->share;
        size_t others = old.others + advice->others + 1;
        if (old.cost_ns >= advice->cost_ns)
            *advice = old;
        advice->cost_ns = cost_ns;
        advice->share = share < 1 ? share : 1;
        advice->others = others;
        list->count--;
        memmove(&list->each[i], &list->each[i + 1], (list->count - i) * sizeof *advice);
        return;
    }
}

static void advice_insert(tide_advice_list *list, const tide_advice *advice)
{
    size_t at = list->count;
    while (at > 0 && advice_is_worse(advice, &list->each[at - 1]))
        at--;
    if (list->count == TIDE_ADVICE_MAX) {
        const tide_advice *last = at == list->count ? advice : &list->each[list->count - 1];
        list->room_lacked++;
        list->small_share += last->share;
        if (at == list->count)
            return;
        list->count--;
    }
    memmove(&list->each[at + 1], &list->each[at], (list->count - at) * sizeof *advice);
    list->each[at] = *advice;
    list->count++;
    tide_assert(at == 0 || !advice_is_worse(advice, &list->each[at - 1]));
}

void tide_advice_put(tide_advice_list *list, const tide_advice *advice)
{
    tide_advice merged = *advice;
    tide_assert(advice->what[0] != 0 && advice->grade < TIDE_GRADE_COUNT);
    tide_assert(advice->share >= 0 && advice->share <= 1);
    advice_merge(list, &merged);
    advice_insert(list, &merged);
}

void tide_advice_say(tide_advice_list *list, tide_advice *advice, const char *format, ...)
{
    char text[1024], *rest = text;
    va_list values;
    va_start(values, format);
    (void)vsnprintf(text, sizeof text, format, values);
    va_end(values);
    TIDE_SAY(advice->what, "%s", strsep(&rest, "\n"));
    TIDE_SAY(advice->why, "%s", rest != NULL ? strsep(&rest, "\n") : "");
    TIDE_SAY(advice->instead, "%s", rest != NULL ? rest : "");
    tide_advice_put(list, advice);
}

double tide_advice_busy(const tide_history *history)
{
    double busy = tide_value_number(history->last, "process_cpu_ns");
    if (history->documents > 1)
        busy -= tide_value_number(history->first, "process_cpu_ns");
    return busy > 0 ? busy : tide_history_duration(history);
}

double tide_advice_share(const tide_history *history, double cost_ns)
{
    double busy = tide_advice_busy(history);
    return cost_ns >= busy ? 1 : cost_ns / busy;
}

/* ---- the verdict -------------------------------------------------------------------------- */

typedef struct advice_arrays {
    double count, malloc_ns;
} advice_arrays;

/* That many arrays of `bytes` bytes each: what malloc and free of them take from glibc as it comes. A
 * loop over four of them, and the pages of large ones, which are mapped anew (both measured:
 * profiler/README.md). It is a model: other programs take more or less. */
static void advice_add_arrays(advice_arrays *sum, double count, double bytes)
{
    double ns = bytes < 4096 ? 12 : bytes < 262144 ? 60 : 120 + bytes / 4096 * 400;
    if (!(count > 0 && bytes >= 0 && count * ns < 1e30))
        return; /* nothing that there can have been */
    sum->count += count;
    sum->malloc_ns += count * ns;
}

/* An array that a site acquires within a scope stands in the scope's figures, too; so the larger of
 * both sums is the least there can have been. */
static advice_arrays advice_arrays_of_sites(const tide_history *history)
{
    advice_arrays levels = {0}, acquires = {0};
    for (size_t i = 0; i < history->sites.count; i++) {
        const json_t *site = history->sites.each[i]->last;
        const char *kind = tide_value_text(site, "kind");
        double each = tide_value_number(site, "use_arrays");
        double uses = tide_history_grown(history, history->sites.each[i], "uses");
        bool level = strcmp(kind, "scope") == 0 || strcmp(kind, "frame") == 0;
        if (each > 0 && strcmp(kind, "dispatch") != 0)
            advice_add_arrays(level ? &levels : &acquires, uses * each,
                              tide_value_number(site, "use_bytes") / each);
    }
    return levels.malloc_ns > acquires.malloc_ns ? levels : acquires;
}

/* Of the host's memory; a device's comes from no malloc. `cached`: how many the caches had. */
static advice_arrays advice_arrays_of_buffers(const tide_history *history, double *cached)
{
    advice_arrays sum = {0};
    *cached = 0;
    for (size_t i = 0; i < history->buffers.count; i++) {
        const tide_thing *buffers = history->buffers.each[i];
        double hits = tide_history_grown(history, buffers, "hits");
        double all = hits + tide_history_grown(history, buffers, "misses"), before = sum.count;
        if (all > 0 && strcmp(tide_value_text(buffers->last, "device"), "host") == 0)
            advice_add_arrays(&sum, all, tide_history_grown(history, buffers, "asked_bytes") / all);
        *cached += sum.count > before ? hits : 0;
    }
    return sum;
}

/* "0.02 %"; "less than 0.01 %". */
static const char *advice_percent(double share, char *out, size_t size)
{
    if (share > 0 && share < 1e-4)
        snprintf(out, size, "less than 0.01 %%");
    else
        snprintf(out, size, share < 0.1 ? "%.2g %%" : "%.0f %%", 100 * share);
    return out;
}

enum { ADVICE_SHORT = 24, ADVICE_LONG = 160 };

/* "the call sites take 2 % of the processor (40 ms of 2 s, measured)" */
static void advice_put_taken(const tide_verdict *v, char *out, size_t size)
{
    char taken[TOOL_TIME_TEXT], busy[TOOL_TIME_TEXT], share[ADVICE_SHORT];
    char how[ADVICE_LONG] = ", by a model";
    if (v->capped)
        snprintf(how, sizeof how, ", at most");
    else if (v->measured_ns >= 0.995 * v->taken_ns)
        snprintf(how, sizeof how, "%s", v->taken_ns > 0 ? ", measured" : "");
    else if (v->measured_ns > 0)
        snprintf(how, sizeof how, ", %.0f %% of that measured, the rest by a model",
                 100 * v->measured_ns / v->taken_ns);
    snprintf(out, size, "the call sites take %s of the processor (%s of %s%s)",
             advice_percent(v->taken_ns / v->busy_ns, share, sizeof share),
             tool_time(v->taken_ns, taken), tool_time(v->busy_ns, busy), how);
}

/* "; 96 % of the arrays came from buffers, 99 % of these from what they had cached" */
static void advice_put_buffers(const tide_verdict *v, char *out, size_t size)
{
    char part[ADVICE_SHORT], cached[ADVICE_SHORT], number[TOOL_COUNT_TEXT];
    double share = v->buffer_arrays / (v->buffer_arrays + v->scope_arrays);
    out[0] = 0;
    if (v->buffer_arrays > 0)
        snprintf(out, size, "; %s of the arrays (%s) came from buffers, %s of these from the cache",
                 advice_percent(share, part, sizeof part), tool_count(v->buffer_arrays, number),
                 advice_percent(v->cached_arrays / v->buffer_arrays, cached, sizeof cached));
}

static void advice_put_words(const tide_advice_list *list, tide_verdict *v)
{
    char head[ADVICE_SHORT], taken[ADVICE_LONG], buffers[ADVICE_LONG], other[TOOL_TIME_TEXT];
    char malloced[ADVICE_LONG] = "", least[ADVICE_LONG] = "";
    size_t due = 0;
    for (size_t i = 0; i < list->worth; i++)
        due += list->each[i].grade != TIDE_GRADE_NOTE;
    snprintf(head, sizeof head, due == 0 ? "Nothing to do" : "%zu thing%s to do", due,
             due == 1 ? "" : "s");
    advice_put_taken(v, taken, sizeof taken);
    advice_put_buffers(v, buffers, sizeof buffers);
    if (v->malloc_ns > 0)
        snprintf(malloced, sizeof malloced,
                 "; the same arrays from malloc would take about %s, by a model",
                 tool_time(v->malloc_ns, other));
    if (v->uncounted != 0)
        snprintf(least, sizeof least, "; %zu site%s not counted in full", v->uncounted,
                 v->uncounted == 1 ? " is" : "s are");
    TIDE_SAY(v->words, "%s: %s%s%s%s.", head, taken, buffers, malloced, least);
}

void tide_advice_judge(const tide_history *history, const tide_advice_list *list, tide_verdict *out)
{
    *out = (tide_verdict){.busy_ns = tide_advice_busy(history)};
    for (size_t i = 0; i < history->sites.count; i++) {
        const tide_thing *site = history->sites.each[i];
        double ns =
            tide_history_grown(history, site, "uses") * tide_value_number(site->last, "use_ns");
        out->uncounted += json_is_false(json_object_get(site->last, "uses_counted"));
        if (!(ns > 0 && ns < 1e30))
            continue; /* no time that there can have been */
        out->taken_ns += ns;
        out->measured_ns += tide_value_flag(site->last, "use_measured") ? ns : 0;
    }
    out->capped = out->taken_ns > out->busy_ns; /* what a use takes now may be more than it did */
    if (out->capped)
        out->taken_ns = out->busy_ns;
    if (out->measured_ns > out->taken_ns)
        out->measured_ns = out->taken_ns;
    advice_arrays sites = advice_arrays_of_sites(history);
    advice_arrays buffers = advice_arrays_of_buffers(history, &out->cached_arrays);
    out->scope_arrays = sites.count;
    out->buffer_arrays = buffers.count;
    out->malloc_ns = sites.malloc_ns + buffers.malloc_ns;
    tide_assert(out->busy_ns > 0 && out->measured_ns <= out->taken_ns);
    advice_put_words(list, out);
}

const char *tide_advice_of_small(const tide_advice_list *list, char *out, size_t size)
{
    char share[24];
    size_t small = list->count - list->worth + list->room_lacked;
    tide_assert(size > 0 && list->worth <= list->count);
    out[0] = 0;
    if (small != 0)
        snprintf(out, size, "%zu %spiece%s of advice would save %s of the processor time%s.", small,
                 list->worth != 0 ? "more " : "", small == 1 ? "" : "s",
                 advice_percent(list->small_share, share, sizeof share),
                 small == 1 ? "" : " together");
    return out;
}

/* ---- all of it ---------------------------------------------------------------------------- */

static void advice_of_learning(const tide_history *history, tide_advice_list *out)
{
    const json_t *learning = json_object_get(history->last, "learning");
    tide_advice advice = {.grade = TIDE_GRADE_NOTE, .subject = "learning"};
    if (json_is_false(json_object_get(learning, "enabled"))) {

        tide_advice_say(
            out, &advice,
            "Learning was switched off: every site stayed as it was.\n"
            "The setting `learn` was 0.\n"
            "Record once more without TIDEPOOL_LEARN=0 to see what sites would become.");
    } else if (json_is_false(json_object_get(learning, "background")) &&
               tide_value_count(learning, "rounds") == 0) { /* else there was one, and it ended */

        tide_advice_say(
            out, &advice,
            "There was no background thread: nothing is compiled unless the program calls "
            "tide_step.\n"
            "The setting `background` is 0, or no site was used often enough for it to "
            "start.\n"
            "If sites are used often here: set `background` to 1, or call tide_step now and then.");
    }
}

void tide_advice_of(const tide_history *history, tide_advice_list *out)
{
    *out = (tide_advice_list){0};
    if (history->last == NULL)
        return;
    tide_advice_of_sites(history, out);
    tide_advice_of_memory(history, out);
    advice_of_learning(history, out);
    while (out->worth < out->count && advice_is_worth(&out->each[out->worth]))
        out->worth++;
    for (size_t i = out->worth; i < out->count; i++)
        out->small_share += out->each[i].share;
}
