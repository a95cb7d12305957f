/* SPDX-License-Identifier: MIT */
/* Which memory an acquire may be given: the next place, another that is free, or new memory. */
#include "oracle_parts.h"

#include <stdlib.h>
#include <string.h>

#include <tidepool/limit.h>

#include "runtime/pool/row.h"

static bool holds(const struct place *place, size_t bytes)
{
    return place->data != NULL && place->room >= bytes;
}

bool oracle_serves(const struct oracle *oracle, unsigned type, size_t n)
{
    const struct row *row = &oracle->rows[type];
    size_t bytes = model_bytes(type, n);
    if (oracle->due || row->live == row->count)
        return false;
    if (holds(&row->places[row->live], bytes))
        return true;
    if (bytes < oracle->exchange_bytes || oracle->disabled)
        return false;
    for (size_t i = row->live; i < row->count; i++)
        if (holds(&row->places[i], bytes))
            return true;
    return false;
}

bool oracle_may_lack(const struct oracle *oracle, size_t bytes, tide_status status)
{
    enum { ROUNDING = 4096 };
    tide_limit_statistics process;
    tide_limit_stats(&process);
    if (status == TIDE_ERROR_MEMORY)
        return oracle->faults > 0;
    if (status != TIDE_ERROR_LIMIT)
        return false;
    return oracle->piecemeal ||
           (oracle->process && process.bytes_held + bytes + ROUNDING > process.hard_bytes) ||
           (oracle->limit_bytes != 0 &&
            oracle->now.bytes_held + bytes + ROUNDING > oracle->limit_bytes);
}

static void check_pointer(struct oracle *oracle, unsigned type, const unsigned char *data,
                          size_t bytes)
{
    const struct model_type *facts = &model_types[type];
    size_t align = facts->align > 64 ? facts->align : 64;
    if ((uintptr_t)data % align != 0)
        oracle_wrong(oracle, "%s at %p is not aligned to %zu", facts->name, (const void *)data,
                     align);
    const unsigned char *end = data + (bytes > 0 ? bytes : 1);
    for (size_t i = 0; i < oracle->live_count; i++) {
        struct live live = oracle->live[i];
        const struct place *other = &oracle->rows[live.type].places[live.place];
        if (other->data == NULL)
            continue;
        const unsigned char *other_end = other->data + (other->bytes > 0 ? other->bytes : 1);
        if (data < other_end && other->data < end)
            oracle_wrong(oracle, "%s of %zu bytes overlaps a live %s of %zu", facts->name, bytes,
                         model_types[live.type].name, other->bytes);
    }
    for (size_t i = 0; i < oracle->pin_count; i++) {
        const struct place *away = &oracle->pins[i]->memory;
        if (!oracle->pins[i]->live && data < away->data + away->bytes && away->data < end)
            oracle_wrong(oracle, "%s of %zu bytes overlaps an exported array of %zu", facts->name,
                         bytes, away->bytes);
    }
}

void oracle_check_apart(struct oracle *oracle, const struct live *live)
{
    struct place *place = &oracle->rows[live->type].places[live->place];
    unsigned char *data = place->data;
    size_t bytes = place->bytes;
    place->data = NULL; /* not with itself */
    place->bytes = 0;
    check_pointer(oracle, live->type, data, bytes);
    place->data = data;
    place->bytes = bytes;
}

static size_t find_place(const struct row *row, const unsigned char *data)
{
    for (size_t i = row->live; i < row->count; i++)
        if (row->places[i].data == data)
            return i;
    return row->count;
}

/* Memory of a place further along: the next was too small, and the two traded. */
static void trade_places(struct oracle *oracle, unsigned type, size_t found, size_t bytes)
{
    struct row *row = &oracle->rows[type];
    const tide_row *theirs = &oracle->pool->core->rows.by_type[model_types[type].id];
    if (holds(&row->places[row->live], bytes) && theirs->records[found].bytes < 2 * bytes &&
        (row->places[row->live].room + 63) / 64 * 64 < 2 * bytes)
        oracle_wrong(oracle, "%s was exchanged though the next was large enough",
                     model_types[type].name);
    const struct place *next = &row->places[row->live];
    size_t lately = model_bytes(type, next->peak > next->recent ? next->peak : next->recent);
    bool near = lately >= bytes / 2 && theirs->records[row->live].bytes / 2 < bytes;
    bool for_good = !holds(next, bytes) && near;
    oracle->exchanges++;
    if (oracle->level_count > 0 && !for_good && oracle->trade_count < ORACLE_TRADES)
        oracle->trades[oracle->trade_count++] = (struct trade){type, row->live, found};
    row_swap(row, row->live, found);
}

static void append_place(struct row *row)
{
    if (row->count == row->room) {
        row->room = row->room == 0 ? 8 : 2 * row->room;
        row->places = realloc(row->places, row->room * sizeof *row->places);
        row->seats = realloc(row->seats, row->room * sizeof *row->seats);
    }
    row->seats[row->count] = NULL;
    row->places[row->count++] = (struct place){0};
}

static void take_new_memory(struct oracle *oracle, unsigned type, unsigned char *data, size_t n)
{
    struct row *row = &oracle->rows[type];
    const tide_row *theirs = &oracle->pool->core->rows.by_type[model_types[type].id];
    bool less = row->live < row->count && row->places[row->live].room >= oracle->exchange_bytes &&
                theirs->records[row->live].bytes < row->places[row->live].room + 64;
    if (oracle_serves(oracle, type, n) && !less) /* a slot that had far too much has less now */
        oracle_wrong(oracle, "%s of %zu elements was allocated though there was a free one",
                     model_types[type].name, n);
    if (row->live == row->count)
        append_place(row);
    struct place *place = &row->places[row->live];
    oracle->allocations++;
    oracle->releases += place->data != NULL;
    free(place->copy);
    *place = (struct place){.data = data};
}

/* A guard that cannot be had, for lack of memory or room, is done without. Then old memory serves
 * that is large enough. */
static void judge_guard(struct oracle *oracle, unsigned type, const struct place *place, bool fresh,
                        bool fitted)
{
    bool may_lack = oracle->faults > 0 || oracle->limit_bytes != 0 || oracle->process;
    if (oracle->due && !fresh && !may_lack)
        oracle_wrong(oracle, "%s was to be guarded, but is of old memory", model_types[type].name);
    if (oracle->due && fresh && fitted && !place->guarded)
        oracle_wrong(oracle, "%s got new memory without a guard, for old that was large enough",
                     model_types[type].name);
    if (fresh && place->guarded != oracle->due && (place->guarded || !may_lack))
        oracle_wrong(oracle, "%s %s guarded", model_types[type].name,
                     place->guarded ? "must not be" : "must be");
}

static void occupy(struct oracle *oracle, unsigned type, size_t n, enum content content)
{
    size_t bytes = model_bytes(type, n);
    struct row *row = &oracle->rows[type];
    struct place *place = &row->places[row->live];
    place->bytes = bytes;
    if (bytes > place->room)
        place->room = bytes;
    if (n > place->peak)
        place->peak = n;
    if (content == CONTENT_KEPT) {
        free(place->copy);
        place->copy = malloc(bytes);
        memcpy(place->copy, place->data, bytes);
    } else {
        place_witness(place, oracle->step * 64 + oracle->live_count);
    }
    oracle->live[oracle->live_count++] = (struct live){type, row->live++, NULL};
}

/* Which arrays are guarded is drawn at random; but forms could not be compared if they drew apart,
 * so the pool is told: every third, say. */
void oracle_draw_guard(struct oracle *oracle)
{
    oracle->guard_in = oracle->pool->core->guards.in = oracle->guard_every;
}

void oracle_reached(struct oracle *oracle, unsigned type)
{
    const tide_row *row = &oracle->pool->core->rows.by_type[model_types[type].id];
    oracle->due = false;
    if (row->shelf == NULL)
        return;
    if (oracle->guard_every != 0 && --oracle->guard_in == 0) {
        oracle_draw_guard(oracle);
        oracle->due = true;
    }
    struct row *mine = &oracle->rows[type];
    if (mine->live < mine->count && mine->places[mine->live].pin != NULL)
        pins_settle(oracle, &mine->places[mine->live]);
}

/* Memory that is in the row already was there before; what is not must have been allocated. The
 * pool's counters tell, at the next check, whether it sees that the same way. */
static void find_memory(struct oracle *oracle, unsigned type, void *data, size_t n)
{
    struct row *row = &oracle->rows[type];
    size_t bytes = model_bytes(type, n), found = find_place(row, data);
    bool fresh = found == row->count;
    bool fitted = row->live < row->count && holds(&row->places[row->live], bytes);
    if (fresh)
        take_new_memory(oracle, type, data, n);
    else if (found != row->live)
        trade_places(oracle, type, found, bytes);
    const tide_row *theirs = &oracle->pool->core->rows.by_type[model_types[type].id];
    row->places[row->live].guarded = theirs->records[row->live].guard != NULL;
    judge_guard(oracle, type, &row->places[row->live], fresh, fitted);
}

void oracle_acquired(struct oracle *oracle, unsigned type, void *data, size_t n,
                     enum content content)
{
    struct row *row = &oracle->rows[type];
    size_t bytes = model_bytes(type, n);
    oracle_reached(oracle, type);
    oracle_pressed(oracle, type);
    check_pointer(oracle, type, data, bytes);
    find_memory(oracle, type, data, n);
    if (oracle->wrong[0] != '\0')
        return;
    if (content == CONTENT_LEFT)
        place_check_left(oracle, &row->places[row->live], bytes, type);
    occupy(oracle, type, n, content);
}

/* Memory may have been found before the header could not be: it stays, for the next attempt. */
void oracle_array_refused(struct oracle *oracle, unsigned type, size_t n)
{
    struct row *row = &oracle->rows[type];
    const tide_row *theirs = &oracle->pool->core->rows.by_type[model_types[type].id];
    if (theirs->shelf == NULL || row->live >= theirs->count || oracle->faults == 0)
        return;
    unsigned char *data = theirs->slots[row->live].data;
    bool known = row->live < row->count && row->places[row->live].data == data;
    oracle_pressed(oracle, known ? MODEL_TYPES : type);
    if (data == NULL || known)
        return;
    find_memory(oracle, type, data, n);
    if (row->places[row->live].room == 0)
        row->places[row->live].room = model_bytes(type, n);
    tide_pool_stats(oracle->pool, &oracle->now);
}

/* A refused call changes nothing that can be counted, but for free memory that has gone. */
void oracle_refused(struct oracle *oracle, const char *what)
{
    tide_pool_statistics *old = &oracle->now;
    tide_pool_statistics now;
    oracle_pressed(oracle, MODEL_TYPES);
    tide_pool_stats(oracle->pool, &now);
    if (now.pressed != old->pressed && now.bytes_held < old->bytes_held) {
        old->bytes_held = now.bytes_held;
        old->slots -= now.pressed - old->pressed;
        old->releases += now.pressed - old->pressed;
    }
    if (now.bytes_held != old->bytes_held || now.bytes_live != old->bytes_live ||
        now.slots != old->slots || now.slots_live != old->slots_live || now.depth != old->depth ||
        now.allocations != old->allocations || now.releases != old->releases)
        oracle_wrong(oracle, "%s was refused but changed the pool", what);
    if (tide_error_status() == TIDE_OK || tide_error_message()[0] == '\0')
        oracle_wrong(oracle, "%s was refused without a message", what);
}
