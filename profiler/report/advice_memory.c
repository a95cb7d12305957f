/* SPDX-License-Identifier: MIT */
/* What pools and buffers could do with less: memory that grows, lies idle, or comes and goes. */
#include <stdio.h>
#include <string.h>

#include "profiler/record/value.h"
#include "profiler/report/advice.h"
#include "runtime/base/assert.h"

/* As few looks as can tell a trend, and as many as can tell a maximum. */
enum { MEMORY_LOOKS_TREND = 12, MEMORY_LOOKS_MANY = 50 };
static const double memory_worth = 1 << 20; /* bytes below which nothing is said */

static void memory_subject(const tide_thing *thing, const char *noun, tide_advice *advice)
{
    char name[64], thread[32];
    tide_value_plain(name, sizeof name, tide_value_text(thing->last, "name"));
    tide_value_plain(thread, sizeof thread, tide_value_text(thing->last, "thread_name"));
    TIDE_SAY(advice->subject, "%s %s%s%s%s", noun, name, thread[0] != 0 ? " (thread " : "", thread,
             thread[0] != 0 ? ")" : "");
}

/* The most that it held in one of three parts of the record. */
static double memory_most(const tide_history *history, const tide_thing *thing, int part, bool live)
{
    double third = tide_history_duration(history) / 3, most = 0;
    double from = (double)history->first_ns + third * part, to = from + third;
    for (size_t i = 0; i < thing->count; i++) {
        double begin = (double)thing->points[i].time_ns;
        double end = i + 1 < thing->count ? (double)thing->points[i + 1].time_ns : to;
        double value = live ? thing->points[i].second : thing->points[i].value;
        if (begin < to && end > from && value > most)
            most = value;
    }
    return most;
}

static void pool_advise_growth(const tide_history *history, const tide_thing *pool,
                               tide_advice_list *out)
{
    tide_advice advice = {.grade = TIDE_GRADE_SLOW, .alike = "growth of memory"};
    char a[TOOL_BYTES_TEXT], b[TOOL_BYTES_TEXT];
    double most[3];
    for (int part = 0; part < 3; part++)
        most[part] = memory_most(history, pool, part, false);
    if (history->documents < MEMORY_LOOKS_TREND || most[2] < memory_worth ||
        most[1] < 1.1 * most[0] || most[2] < 1.1 * most[1])
        return;
    memory_subject(pool, "pool", &advice);
    tide_advice_say(
        out, &advice,
        "It was still growing when the record ended.\n"
        "Most held in the first third of the record: %s, in the last: %s; %.0f levels are open.\n"
        "Arrays acquired outside of every scope, or in one that never ends, stay. Open a scope in "
        "the loop's body; tide_pool_print tells which types it is.",
        tool_bytes(most[0], a), tool_bytes(most[2], b), tide_value_number(pool->last, "depth"));
}

static void pool_advise_idle(const tide_history *history, const tide_thing *pool,
                             tide_advice_list *out)
{
    tide_advice advice = {.grade = TIDE_GRADE_SLOW, .alike = "idle of memory"};
    char a[TOOL_BYTES_TEXT], b[TOOL_BYTES_TEXT];
    double held = tide_value_number(pool->last, "held_bytes"), live = 0;
    for (int part = 0; part < 3; part++) {
        double most = memory_most(history, pool, part, true);
        live = most > live ? most : live;
    }
    if (history->documents < MEMORY_LOOKS_MANY || held < memory_worth || live == 0 ||
        held < 4 * live)
        return;
    memory_subject(pool, "pool", &advice);
    TIDE_SAY(advice.code, "tide_pool_trim(pool, TIDE_ALL_TYPES);");
    tide_advice_say(out, &advice,
                    "It holds %s and was never seen to use more than %s.\n"
                    "%.0f looks at it; slots keep the greatest length they ever had.\n"
                    "After a rare large round call tide_pool_trim, or set `auto_trim` to 1.",
                    tool_bytes(held, a), tool_bytes(live, b), (double)history->documents);
}

static void pool_advise_churn(const tide_history *history, const tide_thing *pool,
                              tide_advice_list *out)
{
    tide_advice advice = {.grade = TIDE_GRADE_SLOW, .alike = "churn of memory"};
    double seconds = tide_history_duration(history) / 1e9;
    char got[TOOL_COUNT_TEXT], back[TOOL_COUNT_TEXT], each[TOOL_COUNT_TEXT];
    double made = tide_history_grown(history, pool, "allocations");
    double gone = tide_history_grown(history, pool, "releases");
    double churn = made < gone ? made : gone;
    if (history->documents < 2 || churn < 1000 || churn / seconds < 50)
        return;
    memory_subject(pool, "pool", &advice);
    tide_advice_say(
        out, &advice,
        "It allocates and releases %s times a second.\n"
        "%s allocations and %s releases in %.3g s. A pool that fits its loop does neither.\n"
        "%s",
        tool_count(churn / seconds, each), tool_count(made, got), tool_count(gone, back), seconds,
        tide_value_flag(pool->last, "disabled")
            ? "It is a disabled pool: each acquire is an allocation. Take TIDEPOOL_DISABLE away."
            : "Is it made, trimmed or reset in each round? Keep it, and let scopes rewind it.");
}

static void pool_advise_limit(const tide_thing *pool, tide_advice_list *out)
{
    tide_advice advice = {.grade = TIDE_GRADE_SLOW, .alike = "limit of memory"};
    char a[TOOL_BYTES_TEXT], b[TOOL_BYTES_TEXT];
    double limit = tide_value_number(pool->last, "limit_bytes");
    double peak = tide_value_number(pool->last, "peak_bytes");
    if (limit <= 0 || peak < 0.9 * limit)
        return;
    memory_subject(pool, "pool", &advice);
    tide_advice_say(out, &advice,
                    "It is near its limit: %s of %s were held.\n"
                    "At its limit an acquire fails and gives NULL.\n"
                    "Raise the limit of the pool, or acquire less within one scope.",
                    tool_bytes(peak, a), tool_bytes(limit, b));
}

static void pool_advise_checks(const tide_things *pools, tide_advice_list *out)
{
    tide_advice advice = {.grade = TIDE_GRADE_NOTE};
    size_t checked = 0, disabled = 0;
    for (size_t i = 0; i < pools->count; i++) {
        checked += tide_value_number(pools->each[i]->last, "check") > 0;
        disabled += tide_value_flag(pools->each[i]->last, "disabled");
    }
    if (checked + disabled == 0)
        return;
    TIDE_SAY(advice.subject, "this record");
    tide_advice_say(
        out, &advice,
        "Its times are not those of a normal run.\n"
        "Of %zu pools %zu looked for misuse (check level 1 or 2), and %zu were disabled.\n"
        "Record once more without TIDEPOOL_CHECK and TIDEPOOL_DISABLE before you draw conclusions.",
        pools->count, checked, disabled);
}

/* ---- buffers ---- */

static void buffers_advise_misses(const tide_history *history, const tide_thing *buffers,
                                  tide_advice_list *out)
{
    tide_advice advice = {.grade = TIDE_GRADE_SLOW, .alike = "misses of memory"};
    double hits = tide_history_grown(history, buffers, "hits");
    double misses = tide_history_grown(history, buffers, "misses");
    double dropped = tide_history_grown(history, buffers, "dropped");
    double pressed = tide_history_grown(history, buffers, "pressed");
    char a[TOOL_COUNT_TEXT], b[TOOL_COUNT_TEXT], c[TOOL_COUNT_TEXT], d[TOOL_COUNT_TEXT];
    if (hits + misses < 1000 || misses < 0.1 * (hits + misses))
        return;
    memory_subject(buffers, "buffers", &advice);
    tide_advice_say(
        out, &advice,
        "%.2g %% of its requests are not served from the cache.\n"
        "%s hits, %s misses; %s released buffers found no room, %s were freed because the "
        "device was short.\n"
        "%s",
        100 * misses / (hits + misses), tool_count(hits, a), tool_count(misses, b),
        tool_count(dropped, c), tool_count(pressed, d),
        pressed > 0 ? "The device has too little memory for what the program holds at once."
        : dropped > 0
            ? "Raise bytes_max (or count_max) of the instance."
            : "Sizes differ too much: tidepool-replay tells from a trace which policy fits.");
}

static void buffers_advise_rounding(const tide_thing *buffers, tide_advice_list *out)
{
    tide_advice advice = {.grade = TIDE_GRADE_SLOW, .alike = "rounding of memory"};
    char a[TOOL_BYTES_TEXT];
    double asked = tide_value_number(buffers->last, "asked_bytes");
    double given = tide_value_number(buffers->last, "given_bytes");
    if (asked < memory_worth || given < 1.3 * asked)
        return;
    memory_subject(buffers, "buffers", &advice);
    tide_advice_say(out, &advice,
                    "It gives %.0f %% more memory than it is asked for.\n"
                    "%s were asked for; small sizes are rounded up to multiples of 64 bytes, and "
                    "large requests get cached buffers of up to twice their size.\n"
                    "Ask for sizes that come back; tidepool-replay shows for a trace how often "
                    "they do.",
                    100 * (given / asked - 1), tool_bytes(asked, a));
}

static void buffers_advise_wrong(const tide_history *history, const tide_thing *buffers,
                                 tide_advice_list *out)
{
    tide_advice advice = {.grade = TIDE_GRADE_WRONG};
    double refused = tide_history_grown(history, buffers, "refused");
    double failed = tide_history_grown(history, buffers, "failed");
    char a[TOOL_COUNT_TEXT], b[TOOL_COUNT_TEXT];
    if (refused == 0 && failed == 0)
        return;
    memory_subject(buffers, "buffers", &advice);
    tide_advice_say(
        out, &advice,
        "%s.\n"
        "%s handles were refused, %s requests failed.\n"
        "%s",
        refused > 0 ? "The program released or used buffers that it no longer owned"
                    : "Requests got no memory",
        tool_count(refused, a), tool_count(failed, b),
        refused > 0
            ? "A buffer is released once, by the last who uses it; TIDEPOOL_CHECK=1 under a "
              "sanitizer shows who is too late."
            : "The program must look at generation == 0, and hold less at once.");
}

void tide_advice_of_memory(const tide_history *history, tide_advice_list *out)
{
    for (size_t i = 0; i < history->pools.count; i++) {
        const tide_thing *pool = history->pools.each[i];
        tide_assert(pool->last != NULL);
        pool_advise_growth(history, pool, out);
        pool_advise_idle(history, pool, out);
        pool_advise_churn(history, pool, out);
        pool_advise_limit(pool, out);
    }
    for (size_t i = 0; i < history->buffers.count; i++) {
        const tide_thing *buffers = history->buffers.each[i];
        tide_assert(buffers->last != NULL);
        buffers_advise_misses(history, buffers, out);
        buffers_advise_rounding(buffers, out);
        buffers_advise_wrong(history, buffers, out);
    }
    pool_advise_checks(&history->pools, out);
}
