/* SPDX-License-Identifier: MIT */
#include "oracle.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/limit.h>
#include <tidepool/upkeep.h>

#include "runtime/pool/request.h"
#include "runtime/pool/row.h"
#include "tests/random.h"

void oracle_begin(struct oracle *oracle, tide_pool *pool)
{
    memset(oracle, 0, sizeof *oracle);
    oracle->pool = pool;
    tide_pool_stats(pool, &oracle->now);
}

static void hollow(struct place *place)
{
    free(place->copy);
    *place = (struct place){0};
}

static void forget_places(struct row *row, size_t from)
{
    seats_forget(row, from);
    while (row->count > from)
        hollow(&row->places[--row->count]);
}

void oracle_end(struct oracle *oracle)
{
    for (unsigned type = 0; type < MODEL_TYPES; type++) {
        forget_places(&oracle->rows[type], 0);
        free(oracle->rows[type].places);
        free(oracle->rows[type].seats);
    }
    while (oracle->live_count > 0)
        free(oracle->live[--oracle->live_count].nd);
    arrays_end(oracle);
}

static const tide_row *row_of(const struct oracle *oracle, unsigned type)
{
    return &oracle->pool->core->rows.by_type[model_types[type].id];
}

size_t oracle_sees_slot(const struct oracle *oracle, unsigned type, const tide_array *array)
{
    return (size_t)(array->slot - row_of(oracle, type)->slots);
}

bool oracle_sees_guard(const struct oracle *oracle, unsigned type, size_t place)
{
    return row_of(oracle, type)->records[place].guard != NULL;
}

void oracle_wrong(struct oracle *oracle, const char *format, ...)
{
    if (oracle->wrong[0] != '\0')
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(oracle->wrong, sizeof oracle->wrong, format, arguments);
    va_end(arguments);
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

/* ---- content ---------------------------------------------------------------------------- */

/* Small arrays are witnessed whole, large ones in ten windows: both ends and eight between, far
 * enough apart that none overlaps the next. */
enum { WHOLE = 2048, WINDOWS = 10, WINDOW_END = 128, WINDOW_INNER = 16 };

struct window {
    size_t offset, size;
};

static unsigned window_count(size_t bytes)
{
    return bytes <= WHOLE ? 1 : WINDOWS;
}

static struct window window_at(size_t bytes, unsigned i)
{
    if (bytes <= WHOLE)
        return (struct window){0, bytes};
    if (i == 0)
        return (struct window){0, WINDOW_END};
    if (i == WINDOWS - 1)
        return (struct window){bytes - WINDOW_END, WINDOW_END};
    return (struct window){bytes / (WINDOWS - 1) * i, WINDOW_INNER};
}

static size_t witness_bytes(size_t bytes)
{
    return bytes <= WHOLE ? bytes : 2 * WINDOW_END + (WINDOWS - 2) * WINDOW_INNER;
}

void place_write(const struct place *place)
{
    const unsigned char *from = place->copy;
    for (unsigned i = 0; i < window_count(place->bytes); i++) {
        struct window window = window_at(place->bytes, i);
        memcpy(place->data + window.offset, from, window.size);
        from += window.size;
    }
}

bool place_intact(const struct place *place)
{
    const unsigned char *expected = place->copy;
    for (unsigned i = 0; i < window_count(place->bytes); i++) {
        struct window window = window_at(place->bytes, i);
        if (memcmp(place->data + window.offset, expected, window.size) != 0)
            return false;
        expected += window.size;
    }
    return true;
}

/* A pattern that no other array of the program has. `copy` has room for a word more. */
void place_scramble(struct place *place, uint64_t seed)
{
    rng random = {seed};
    for (size_t i = 0; i < witness_bytes(place->bytes); i += sizeof(uint64_t)) {
        uint64_t word = rng_next(&random);
        memcpy(place->copy + i, &word, sizeof word);
    }
    place_write(place);
}

void place_witness(struct place *place, uint64_t seed)
{
    free(place->copy);
    place->copy = malloc(witness_bytes(place->bytes) + sizeof(uint64_t));
    place_scramble(place, seed);
}

unsigned char *place_copy_of(const struct place *place, size_t byte)
{
    size_t before = 0;
    for (unsigned i = 0; i < window_count(place->bytes); i++) {
        struct window window = window_at(place->bytes, i);
        if (byte >= window.offset && byte < window.offset + window.size)
            return place->copy + before + (byte - window.offset);
        before += window.size;
    }
    return NULL;
}

static bool all_ones(const unsigned char *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != 0xff)
            return false;
    return true;
}

static bool is_poisoned(const struct place *place, size_t bytes)
{
    size_t stained = place->stained < bytes ? place->stained : bytes;
    for (unsigned i = 0; i < window_count(bytes); i++) {
        struct window window = window_at(bytes, i);
        if (window.offset >= stained)
            return true;
        size_t size = stained - window.offset;
        if (!all_ones(place->data + window.offset, size < window.size ? size : window.size))
            return false;
    }
    return true;
}

/* What a free place must still hold when it is taken again for `bytes`. */
static void check_left_content(struct oracle *oracle, const struct place *place, size_t bytes,
                               unsigned type)
{
    bool careful = oracle->checked || oracle->disabled;
    if (careful && oracle->blind)
        return;
    if (oracle->poison) {
        if (!is_poisoned(place, bytes))
            oracle_wrong(oracle, "re-used %s lacks its poison", model_types[type].name);
        return;
    }
    size_t both = place->bytes < bytes ? place->bytes : bytes;
    bool known = place->copy != NULL && place->bytes <= WHOLE;
    if (known && memcmp(place->data, place->copy, both) != 0)
        oracle_wrong(oracle, "a free %s was written to before it was used again",
                     model_types[type].name);
}

/* ---- levels ----------------------------------------------------------------------------- */

uint64_t oracle_open(struct oracle *oracle)
{
    oracle_served(oracle);
    struct level *level = &oracle->levels[oracle->level_count++];
    *level = (struct level){++oracle->last_id, oracle->live_count, oracle->trade_count};
    return level->id;
}

static bool find_level(const struct oracle *oracle, uint64_t id, size_t *position)
{
    for (size_t i = oracle->level_count; i-- > 0;)
        if (oracle->levels[i].id == id) {
            *position = i;
            return true;
        }
    return false;
}

bool oracle_is_open(const struct oracle *oracle, uint64_t id)
{
    size_t position;
    return find_level(oracle, id, &position);
}

static void release_newest(struct oracle *oracle)
{
    struct live *newest = &oracle->live[--oracle->live_count];
    struct row *row = &oracle->rows[newest->type];
    struct place *place = &row->places[newest->place];
    row->live--;
    if (newest->place != row->live)
        oracle_wrong(oracle, "the oracle lost count of %s", model_types[newest->type].name);
    nd_release(oracle, newest);
    if (pins_release(oracle, place))
        return;
    if (oracle->disabled || place->guarded) {
        hollow(place);
        oracle->releases++;
    } else if (oracle->poison && place->bytes > place->stained) {
        place->stained = place->bytes;
    }
}

static void swap_places(struct row *row, size_t near, size_t far)
{
    struct place place = row->places[near];
    row->places[near] = row->places[far];
    row->places[far] = place;
}

static void trade_back(struct oracle *oracle)
{
    struct trade trade = oracle->trades[--oracle->trade_count];
    struct row *row = &oracle->rows[trade.type];
    if (trade.far < row->count) /* else it has been trimmed */
        swap_places(row, trade.near, trade.far);
}

bool oracle_close(struct oracle *oracle, uint64_t id)
{
    size_t position;
    if (!find_level(oracle, id, &position))
        return false;
    struct level level = oracle->levels[position];
    while (oracle->live_count > level.live)
        release_newest(oracle);
    while (oracle->trade_count > level.exchanges)
        trade_back(oracle);
    bool forgetful = oracle->plant == PLANT_LEAK;
    oracle->level_count = forgetful ? oracle->level_count - 1 : position;
    oracle_verify(oracle);
    return true;
}

void oracle_reset(struct oracle *oracle)
{
    if (oracle->level_count > 0)
        oracle_close(oracle, oracle->levels[0].id);
    while (oracle->live_count > 0)
        release_newest(oracle);
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
    forget_places(row, row->live);
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

/* ---- acquire ---------------------------------------------------------------------------- */

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
    bool for_good = !holds(next, bytes) && lately >= bytes / 2;
    oracle->exchanges++;
    if (oracle->level_count > 0 && !for_good && oracle->trade_count < ORACLE_TRADES)
        oracle->trades[oracle->trade_count++] = (struct trade){type, row->live, found};
    swap_places(row, row->live, found);
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

static void press_place(struct oracle *oracle, struct place *place)
{
    hollow(place);
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
        check_left_content(oracle, &row->places[row->live], bytes, type);
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

/* A few elements of a view; else all of an array. Headers are not the user's to write. */
void oracle_write(struct oracle *oracle, unsigned which, unsigned salt)
{
    if (oracle->live_count == 0)
        return;
    const struct live *live = &oracle->live[which % oracle->live_count];
    uint64_t seed = oracle->step * 64 + salt % 64;
    if (live->nd == NULL || (salt % 2 == 0 && live->type != MODEL_HEADER)) {
        place_scramble(&oracle->rows[live->type].places[live->place], seed);
        return;
    }
    size_t length = shape_length(&live->nd->shape);
    enum { ELEMENTS = 9 };
    for (size_t i = 0; i < ELEMENTS && length > 0; i++)
        oracle_write_element(oracle, live->nd, i == 0 ? length - 1 : seed * i * i % length,
                             seed * ELEMENTS + i);
}

/* ---- memory given back ------------------------------------------------------------------ */

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
            hollow(place);
            if (!taken)
                oracle_wrong(oracle, "memory that a consumer held stayed");
        }
        struct verdict verdict = judge(oracle, type, place, peak, requests);
        if (place->data != NULL && (taken ? !verdict.may : verdict.must))
            oracle_wrong(oracle, "%zu bytes %s of which %zu elements were used, lately %zu",
                         place->room, taken ? "went" : "stayed", peak, place->recent);
        if (place->data == NULL || !taken)
            continue;
        hollow(place);
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

/* ---- questions to the pool -------------------------------------------------------------- */

static void check_counts(struct oracle *oracle)
{
    for (unsigned type = 0; type < MODEL_TYPES; type++) {
        if (model_types[type].id == TIDE_NO_TYPE)
            continue;
        size_t active = tide_pool_active(oracle->pool, model_types[type].id);
        if (active != oracle->rows[type].live)
            oracle_wrong(oracle, "%zu of %s are active, must be %zu", active,
                         model_types[type].name, oracle->rows[type].live);
    }
    if (tide_pool_depth(oracle->pool) != oracle->level_count)
        oracle_wrong(oracle, "the depth is %zu, must be %zu", tide_pool_depth(oracle->pool),
                     oracle->level_count);
}

static void check_statistics(struct oracle *oracle, const tide_pool_statistics *now,
                             size_t live_bytes)
{
    if (now->slots_live != oracle->live_count || now->depth != oracle->level_count)
        oracle_wrong(oracle, "statistics: %zu live at depth %zu, must be %zu at %zu",
                     now->slots_live, now->depth, oracle->live_count, oracle->level_count);
    if (now->bytes_live < live_bytes || now->bytes_held < now->bytes_live ||
        now->bytes_peak < now->bytes_held || now->bytes_peak < oracle->now.bytes_peak)
        oracle_wrong(oracle, "statistics: %zu bytes used, %zu live, %zu held, %zu peak", live_bytes,
                     now->bytes_live, now->bytes_held, now->bytes_peak);
    if (now->allocations != oracle->allocations || now->releases != oracle->releases ||
        now->exchanges != oracle->exchanges)
        oracle_wrong(oracle,
                     "statistics: %llu allocations, %llu releases, %llu exchanges, must be %llu, "
                     "%llu, %llu",
                     (unsigned long long)now->allocations, (unsigned long long)now->releases,
                     (unsigned long long)now->exchanges, (unsigned long long)oracle->allocations,
                     (unsigned long long)oracle->releases, (unsigned long long)oracle->exchanges);
    if (now->allocations - now->releases - oracle->gone != now->slots ||
        now->bytes_exported != oracle->bytes_exported)
        oracle_wrong(oracle, "statistics: %zu slots; %zu bytes are pinned, must be %zu", now->slots,
                     now->bytes_exported, oracle->bytes_exported);
    if (now->requests != oracle->served)
        oracle_wrong(oracle, "statistics: %llu requests, must be %llu",
                     (unsigned long long)now->requests, (unsigned long long)oracle->served);
    if (now->bytes_limit != oracle->limit_bytes ||
        (now->bytes_limit != 0 && now->bytes_held > now->bytes_limit))
        oracle_wrong(oracle, "statistics: %zu bytes held, limit %zu, must be %zu", now->bytes_held,
                     now->bytes_limit, oracle->limit_bytes);
}

/* Nothing that the oracle's pool does takes the process past its limit. */
static void check_process(struct oracle *oracle)
{
    tide_limit_statistics process;
    if (tide_limit_stats(&process) != TIDE_OK ||
        (oracle->process && process.bytes_held > process.hard_bytes))
        oracle_wrong(oracle, "the process holds %zu bytes, its limit is %zu", process.bytes_held,
                     process.hard_bytes);
}

void oracle_check(struct oracle *oracle)
{
    size_t live_bytes = 0;
    oracle_pressed(oracle, MODEL_TYPES);
    for (size_t i = 0; i < oracle->live_count; i++) {
        struct live live = oracle->live[i];
        const struct place *place = &oracle->rows[live.type].places[live.place];
        live_bytes += place->pin == NULL ? place->bytes : 0;
        if (place->bytes > 0 && place->data[0] != place->copy[0])
            oracle_wrong(oracle, "live array %zu, of %s, was overwritten at its start", i,
                         model_types[live.type].name);
    }
    if (tide_pool_check(oracle->pool) != TIDE_OK)
        oracle_wrong(oracle, "invariant: %s", tide_error_message());
    if (model_overflows != 0)
        oracle_wrong(oracle, "the end of an array was written to");
    check_counts(oracle);
    arrays_check(oracle, false);
    tide_pool_statistics now;
    if (tide_pool_stats(oracle->pool, &now) != TIDE_OK)
        oracle_wrong(oracle, "no statistics: %s", tide_error_message());
    check_statistics(oracle, &now, live_bytes);
    check_process(oracle);
    oracle->now = now;
}

void oracle_verify(struct oracle *oracle)
{
    for (size_t i = 0; i < oracle->live_count; i++) {
        struct live live = oracle->live[i];
        if (!place_intact(&oracle->rows[live.type].places[live.place]))
            oracle_wrong(oracle, "live array %zu, of %s, was overwritten", i,
                         model_types[live.type].name);
    }
    arrays_check(oracle, true);
}

static uint64_t word_at(const unsigned char *data, size_t bytes)
{
    uint64_t word = 0;
    memcpy(&word, data, bytes < sizeof word ? bytes : sizeof word);
    return word;
}

uint64_t oracle_digest(const struct oracle *oracle)
{
    uint64_t digest = 0xcbf29ce484222325u;
    for (size_t i = 0; i < oracle->live_count; i++) {
        struct live live = oracle->live[i];
        const struct place *place = &oracle->rows[live.type].places[live.place];
        if (live.type == MODEL_HEADER)
            continue; /* pointers, another in each run */
        size_t last = place->bytes < 8 ? 0 : place->bytes - 8;
        digest = (digest ^ word_at(place->data, place->bytes)) * 0x100000001b3u;
        digest = (digest ^ word_at(place->data + last, place->bytes)) * 0x9e3779b97f4a7c15u;
    }
    return digest;
}
