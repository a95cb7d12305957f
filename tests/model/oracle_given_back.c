/* SPDX-License-Identifier: MIT */
/* Memory given back: by a trim, a compact, a request, or because memory was short. */
#include "oracle_parts.h"

#include <tidepool/upkeep.h>

#include "runtime/pool/request.h"

static void press_place(struct oracle *oracle, struct place *place)
{
    place_hollow(place);
    oracle->releases++;
    oracle->pressed++;
}

/* Which slots go is the pool's affair. The one that is replaced has memory again. */
void oracle_pressed(struct oracle *oracle, unsigned type)
{
    tide_pool_statistics now;
    if (tide_pool_stats(oracle->pool, &now) != TIDE_OK || now.pressed == oracle->pressed)
        return;
    for (unsigned each = 0; each < MODEL_TYPES; each++) {
        struct row *row = &oracle->rows[each];
        const tide_row *theirs = &oracle->pool->core->rows.by_type[model_types[each].id];
        for (size_t i = row->live; i < row->count; i++)
            if (row->places[i].data != NULL && row->places[i].pin == NULL &&
                theirs->slots[i].data == NULL)
                press_place(oracle, &row->places[i]);
    }
    if (type != MODEL_TYPES && now.pressed == oracle->pressed + 1) {
        struct row *row = &oracle->rows[type];
        if (row->live < row->count && row->places[row->live].data != NULL)
            press_place(oracle, &row->places[row->live]);
    }
    if (now.pressed != oracle->pressed)
        oracle_wrong(oracle, "%llu free slots were given back, seen are %llu",
                     (unsigned long long)now.pressed, (unsigned long long)oracle->pressed);
}

/* Of a step that is asked for these: it asks for what was not used, or wasted, lately. */
uint32_t oracle_lately(uint32_t requests)
{
    return ((requests & TIDE_REQUEST_TRIM) != 0 ? TIDE_REQUEST_TRIM_UNUSED : 0) |
           ((requests & TIDE_REQUEST_COMPACT) != 0 ? TIDE_REQUEST_TRIM_WASTED : 0);
}

void oracle_serve(struct oracle *oracle)
{
    tide_request_serve(oracle->pool);
    oracle_served(oracle);
}

/* The free places of a type, and the memory in them, are gone. What consumers are done with comes
 * back first, if the limit allows. */
static void forget_memory(struct oracle *oracle, unsigned type)
{
    struct row *row = &oracle->rows[type];
    for (size_t i = row->live; i < row->count; i++) {
        if (row->places[i].pin != NULL)
            pins_forget(oracle, &row->places[i]);
        oracle->releases += row->places[i].data != NULL;
    }
    row_forget(row, row->live);
}

static void begin_trim(struct oracle *oracle)
{
    oracle->back_min = oracle->back_max = oracle->slots_unsure = 0;
}

/* Whether memory came back before it went depends, near the limit, on what went before it; the
 * pool's count tells. */
static void end_trim(struct oracle *oracle)
{
    tide_pool_statistics now;
    tide_pool_stats(oracle->pool, &now);
    uint64_t came = now.releases - oracle->releases;
    if (came > oracle->slots_unsure)
        oracle_wrong(oracle, "a trim released %llu, must be %llu to %llu",
                     (unsigned long long)now.releases, (unsigned long long)oracle->releases,
                     (unsigned long long)(oracle->releases + oracle->slots_unsure));
    oracle->releases += came;
    oracle->came_unsure += came;
    oracle->gone -= came;
}

static void forget_types(struct oracle *oracle, unsigned meant)
{
    begin_trim(oracle);
    for (unsigned type = 0; type < MODEL_TYPES; type++)
        if (type == meant || meant == MODEL_TYPES)
            forget_memory(oracle, type);
    end_trim(oracle);
}

void oracle_emptied(struct oracle *oracle)
{
    forget_types(oracle, MODEL_TYPES);
    tide_pool_statistics after;
    tide_pool_stats(oracle->pool, &after);
    if (after.bytes_held != 0 || after.slots != 0)
        oracle_wrong(oracle, "an emptied pool holds %zu bytes in %zu slots", after.bytes_held,
                     after.slots);
}

static void check_summary(struct oracle *oracle, tide_trim_summary summary, const char *what)
{
    tide_pool_statistics now;
    tide_pool_stats(oracle->pool, &now);
    size_t less = oracle->now.bytes_held - now.bytes_held;
    if (less + oracle->back_min > summary.bytes || less + oracle->back_max < summary.bytes)
        oracle_wrong(oracle, "%s says %zu bytes were given back, of %zu %zu are left", what,
                     summary.bytes, oracle->now.bytes_held, now.bytes_held);
    if (oracle->now.bytes_live != now.bytes_live)
        oracle_wrong(oracle, "%s changed the bytes that are live from %zu to %zu", what,
                     oracle->now.bytes_live, now.bytes_live);
    if ((summary.slots == 0) != (summary.bytes == 0))
        oracle_wrong(oracle, "%s gave back %zu bytes in %zu slots", what, summary.bytes,
                     summary.slots);
}

static bool is_meant(unsigned type, unsigned meant)
{
    return meant == type || meant == MODEL_TYPES;
}

void oracle_trimmed(struct oracle *oracle, unsigned type, tide_trim_summary summary)
{
    uint64_t releases = oracle->releases;
    forget_types(oracle, type);
    check_summary(oracle, summary, "trim");
    if (oracle->releases - releases != summary.slots)
        oracle_wrong(oracle, "trim gave back %zu slots, must be %llu", summary.slots,
                     (unsigned long long)(oracle->releases - releases));
    tide_pool_statistics now;
    tide_pool_stats(oracle->pool, &now);
    if (type == MODEL_TYPES && (now.bytes_held != now.bytes_live || now.slots > now.slots_live))
        oracle_wrong(oracle, "after a trim of everything %zu bytes are held, %zu live",
                     now.bytes_held, now.bytes_live);
}

/* What must go, and what may. The oracle knows only bounds of what memory holds: what was used of
 * it, and a quarter and a page more. */
struct verdict {
    bool must, may;
};

/* A compact takes what holds ten times its use and gains enough. */
static void judge_wasted(const struct oracle *oracle, const struct place *place, size_t used,
                         struct verdict *verdict)
{
    enum { FACTOR = 10, PAGE = 4096 };
    size_t most = place->room + place->room / 4 + PAGE;
    most = oracle->buffers ? 2 * most : most;
    verdict->may |= most >= FACTOR * used && most - used >= oracle->compact_gain;
    verdict->must |= place->room >= FACTOR * used && place->room - used >= oracle->compact_gain;
}

/* A new peak begins; the last one counts for what the place was used for lately. */
static void note_peak(struct place *place)
{
    bool more = place->peak >= place->recent;
    if (more)
        place->recent = place->peak;
    place->since = more ? 0 : place->since > place->peak ? place->since : place->peak;
    place->less = more ? 0 : place->less;
    place->peak = 0;
}

/* The same when a pass of a step ends: so many that saw less count (the setting `trim_after`). */
static void end_pass(const struct oracle *oracle, struct place *place)
{
    bool less = place->peak < place->recent;
    note_peak(place);
    place->less += less;
    if (!less || place->less < oracle->trim_after)
        return;
    place->recent = place->since;
    place->since = place->less = 0;
}

static struct verdict judge(const struct oracle *oracle, unsigned type, const struct place *place,
                            size_t peak, uint32_t requests)
{
    bool idle = (requests & TIDE_REQUEST_TRIM_UNUSED) != 0 && place->recent == 0;
    struct verdict verdict = {idle, idle};
    if ((requests & TIDE_REQUEST_TRIM_WASTED) != 0)
        judge_wasted(oracle, place, model_bytes(type, place->recent), &verdict);
    if ((requests & TIDE_REQUEST_COMPACT) != 0)
        judge_wasted(oracle, place, model_bytes(type, peak), &verdict);
    return verdict;
}

/* Which places were taken the pool tells, by the layout of its rows. */
static void compacted_row(struct oracle *oracle, unsigned type, uint32_t requests)
{
    bool unused = (requests & TIDE_REQUEST_TRIM_UNUSED) != 0;
    bool pass = (requests & (TIDE_REQUEST_TRIM_UNUSED | TIDE_REQUEST_TRIM_WASTED)) != 0;
    struct row *row = &oracle->rows[type];
    for (size_t i = row->live; i < row->count; i++) {
        struct place *place = &row->places[i];
        bool taken = oracle->pool->core->rows.by_type[model_types[type].id].slots[i].data == NULL;
        size_t peak = place->peak;
        if (pass)
            end_pass(oracle, place);
        else
            note_peak(place);
        if (unused && place->pin != NULL && place->recent == 0) { /* what comes back goes */
            pins_forget(oracle, place);
            place_hollow(place);
            if (!taken)
                oracle_wrong(oracle, "memory that a consumer held stayed");
        }
        struct verdict verdict = judge(oracle, type, place, peak, requests);
        if (place->data != NULL && (taken ? !verdict.may : verdict.must))
            oracle_wrong(oracle, "%zu bytes %s of which %zu elements were used, lately %zu",
                         place->room, taken ? "went" : "stayed", peak, place->recent);
        if (place->data == NULL || !taken)
            continue;
        place_hollow(place);
        oracle->releases++;
    }
}

static void serve_compact(struct oracle *oracle)
{
    begin_trim(oracle);
    for (unsigned type = 0; type < MODEL_TYPES; type++)
        compacted_row(oracle, type, oracle->requests);
    end_trim(oracle);
}

void oracle_served(struct oracle *oracle)
{
    if (oracle->requests == 0 || oracle->level_count > 0)
        return;
    if ((oracle->requests & TIDE_REQUEST_TRIM) != 0)
        forget_types(oracle, MODEL_TYPES);
    else
        serve_compact(oracle);
    oracle->requests = 0;
    oracle->served++;
}

void oracle_compacted(struct oracle *oracle, unsigned type, tide_trim_summary summary)
{
    begin_trim(oracle);
    check_summary(oracle, summary, "compact");
    uint64_t releases = oracle->releases;
    for (unsigned i = 0; i < MODEL_TYPES; i++)
        if (is_meant(i, type))
            compacted_row(oracle, i, TIDE_REQUEST_COMPACT);
    if (oracle->releases - releases != summary.slots)
        oracle_wrong(oracle, "compact gave back %llu slots but says %zu",
                     (unsigned long long)(oracle->releases - releases), summary.slots);
}
