/* SPDX-License-Identifier: MIT */
/* Counts of one site without locks: threads add, one reader takes away. shard.h has the proof. */
#include "profiler/shard.h"

#include <string.h>

#include "profiler/window.h"
#include "runtime/base/assert.h"
#include "runtime/base/os.h"

#define CLOSED (INT64_MIN / 2)

enum { PLACE_FREE = 0, PLACE_CLAIMED = 1 };

_Static_assert(PLACE_FREE == 0 && TIDE_NO_TYPE == 0, "in figures of zeros every place is free");
_Static_assert(sizeof(tide_shard) == 64, "shards stand a cache line apart");

/* ---- figures ---------------------------------------------------------------------------- */

/* There are some for whoever is inside. */
static tide_shard_figures *shard_figures(const tide_shard *shard)
{
    return __atomic_load_n(&shard->figures, __ATOMIC_ACQUIRE);
}

/* Two threads may make them at once: the later one takes the other's. */
bool tide_shard_make(tide_shard *shard)
{
    tide_shard_figures *there = shard_figures(shard);
    if (TIDE_LIKELY(there != NULL))
        return true;
    tide_shard_figures *made = tide_os_resize(NULL, sizeof *made);
    if (made == NULL)
        return false;
    memset(made, 0, sizeof *made);
    if (!__atomic_compare_exchange_n(&shard->figures, &there, made, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        tide_os_free(made);
    return true;
}

void tide_shard_discard(tide_shard *shard)
{
    tide_assert(__atomic_load_n(&shard->inside, __ATOMIC_RELAXED) <= 0);
    tide_os_free(shard_figures(shard));
    __atomic_store_n(&shard->figures, NULL, __ATOMIC_RELAXED);
}

/* ---- in and out ------------------------------------------------------------------------- */

bool tide_shard_enter(tide_shard *shard)
{
    if (TIDE_LIKELY(__atomic_fetch_add(&shard->inside, 1, __ATOMIC_ACQUIRE) >= 0 &&
                    tide_shard_make(shard)))
        return true;
    tide_shard_leave(shard);
    return false;
}

void tide_shard_leave(tide_shard *shard)
{
    int64_t inside = __atomic_fetch_sub(&shard->inside, 1, __ATOMIC_RELEASE);
    tide_assert(inside != 0);
    (void)inside;
}

/* Makes the shard the reader's own, if nobody is inside. */
static bool shard_close(tide_shard *shard)
{
    int64_t nobody = 0;
    return __atomic_compare_exchange_n(&shard->inside, &nobody, CLOSED, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static void shard_open(tide_shard *shard)
{
    int64_t inside = __atomic_fetch_sub(&shard->inside, CLOSED, __ATOMIC_RELEASE);
    tide_assert(inside < 0);
    (void)inside;
}

/* ---- counting --------------------------------------------------------------------------- */

/* Released: who takes a type's count away also finds the use that it belongs to. So neither a type
 * nor the patterns ever show more uses than there were. */
static void shard_add(uint64_t *counter, uint64_t amount)
{
    __atomic_fetch_add(counter, amount, __ATOMIC_RELEASE);
}

static void shard_raise_to(uint32_t *most, uint32_t value)
{
    uint32_t seen = __atomic_load_n(most, __ATOMIC_RELAXED);
    while (seen < value && !__atomic_compare_exchange_n(most, &seen, value, true, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED))
        continue;
}

/* While a thread is inside, nobody can close the shard: `inside` is above 0 for as long. */
void tide_shard_count(tide_shard *shard)
{
    tide_assert(__atomic_load_n(&shard->inside, __ATOMIC_RELAXED) > 0);
    shard_add(&shard_figures(shard)->scopes, 1);
}

void tide_shard_count_bytes(tide_shard *shard, uint64_t bytes)
{
    tide_assert(__atomic_load_n(&shard->inside, __ATOMIC_RELAXED) > 0);
    shard_add(&shard_figures(shard)->bytes, bytes);
}

/* The place of a type, claimed when the type is first seen; NULL when all places are taken. */
static tide_shard_type *shard_claim_type_place(tide_shard_figures *figures, tide_type type)
{
    for (uint32_t i = 0; i < TIDE_PROFILE_TYPES; i++) {
        tide_shard_type *place = &figures->types[i];
        tide_type seen = __atomic_load_n(&place->type, __ATOMIC_RELAXED);
        if (seen == TIDE_NO_TYPE && __atomic_compare_exchange_n(&place->type, &seen, type, false,
                                                                __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return place;
        if (seen == type)
            return place;
    }
    return NULL;
}

void tide_shard_count_type(tide_shard *shard, tide_type type, uint32_t slots)
{
    tide_assert(type != TIDE_NO_TYPE && slots != 0);
    tide_assert(__atomic_load_n(&shard->inside, __ATOMIC_RELAXED) > 0);
    tide_shard_type *place = shard_claim_type_place(shard_figures(shard), type);
    if (place == NULL) {
        shard_add(&shard_figures(shard)->other, 1);
        return;
    }
    shard_raise_to(&place->slots_max, slots);
    shard_add(&place->slots, slots);
    shard_add(&place->scopes, 1);
}

/* FNV-1a of the words, but never PLACE_FREE or PLACE_CLAIMED. */
static uint64_t shard_hash_of(const int64_t *words, uint32_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ length;
    for (uint32_t i = 0; i < length; i++) {
        hash = (hash ^ (uint64_t)words[i]) * UINT64_C(0x100000001b3);
        hash ^= hash >> 32;
    }
    return hash > PLACE_CLAIMED ? hash : hash + 2;
}

/* The place was claimed by this thread; the hash publishes what stands in it. */
static void shard_write_pattern(tide_shard_pattern *place, const int64_t *words, uint32_t length,
                                uint64_t hash)
{
    tide_assert(hash > PLACE_CLAIMED && length <= TIDE_PATTERN_WORDS);
    tide_assert(__atomic_load_n(&place->hash, __ATOMIC_RELAXED) == PLACE_CLAIMED);
    place->length = length;
    if (length != 0)
        memcpy(place->words, words, length * sizeof *words);
    __atomic_store_n(&place->hash, hash, __ATOMIC_RELEASE);
}

/* Passes over a place that another thread is writing just now. At worst one pattern then has two
 * places, and the reader adds them up. */
static tide_shard_pattern *shard_claim_pattern_place(tide_shard_figures *figures,
                                                     const int64_t *words, uint32_t length)
{
    uint64_t hash = shard_hash_of(words, length);
    for (uint32_t i = 0; i < TIDE_PROFILE_PATTERNS; i++) {
        tide_shard_pattern *place = &figures->patterns[i];
        uint64_t seen = __atomic_load_n(&place->hash, __ATOMIC_ACQUIRE);
        if (seen == PLACE_FREE &&
            __atomic_compare_exchange_n(&place->hash, &seen, PLACE_CLAIMED, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_ACQUIRE)) {
            shard_write_pattern(place, words, length, hash);
            return place;
        }
        if (seen == hash && place->length == length &&
            (length == 0 || memcmp(place->words, words, length * sizeof *words) == 0))
            return place;
    }
    return NULL;
}

void tide_shard_count_pattern(tide_shard *shard, const int64_t *words, uint32_t length)
{
    tide_assert(__atomic_load_n(&shard->inside, __ATOMIC_RELAXED) > 0);
    tide_shard_figures *figures = shard_figures(shard);
    tide_shard_pattern *place =
        length <= TIDE_PATTERN_WORDS ? shard_claim_pattern_place(figures, words, length) : NULL;
    shard_add(place != NULL ? &place->scopes : &figures->pattern_other, 1);
}

/* ---- reading ---------------------------------------------------------------------------- */

static uint64_t shard_take_counter(uint64_t *counter)
{
    return __atomic_exchange_n(counter, 0, __ATOMIC_ACQUIRE);
}

/* Which type a place is of is asked after its uses were taken: a thread may claim a free place and
 * count in it just now, and whoever finds its count finds the type that was stored before it. The
 * same with slots, which are counted before the use; without uses they are left for the next time.
 * In a closed shard the places become free again. */
static void shard_take_types(tide_shard_figures *figures, tide_site_profile *seen, bool closed)
{
    for (uint32_t i = 0; i < TIDE_PROFILE_TYPES; i++) {
        tide_shard_type *place = &figures->types[i];
        uint64_t scopes = shard_take_counter(&place->scopes);
        if (scopes != 0) {
            tide_assert(seen->type_count < TIDE_PROFILE_TYPES);
            seen->types[seen->type_count++] = (tide_profile_type){
                .type = __atomic_load_n(&place->type, __ATOMIC_RELAXED),
                .scopes = scopes,
                .slots = shard_take_counter(&place->slots),
                .slots_max = __atomic_exchange_n(&place->slots_max, 0, __ATOMIC_RELAXED),
            };
            tide_assert(seen->types[seen->type_count - 1].type != TIDE_NO_TYPE);
        }
        if (closed)
            __atomic_store_n(&place->type, TIDE_NO_TYPE, __ATOMIC_RELAXED);
    }
}

static void shard_take_patterns(tide_shard_figures *figures, tide_site_profile *seen, bool closed)
{
    for (uint32_t i = 0; i < TIDE_PROFILE_PATTERNS; i++) {
        tide_shard_pattern *place = &figures->patterns[i];
        if (__atomic_load_n(&place->hash, __ATOMIC_ACQUIRE) <= PLACE_CLAIMED)
            continue;
        tide_profile_pattern pattern = {.scopes = shard_take_counter(&place->scopes),
                                        .length = place->length};
        tide_assert(pattern.length <= TIDE_PATTERN_WORDS);
        memcpy(pattern.words, place->words, place->length * sizeof *place->words);
        tide_assert(seen->pattern_count < TIDE_PROFILE_PATTERNS);
        if (pattern.scopes != 0)
            seen->patterns[seen->pattern_count++] = pattern;
        if (closed)
            __atomic_store_n(&place->hash, PLACE_FREE, __ATOMIC_RELAXED);
    }
}

/* Takes the uses last: shard_add says why. */
static void shard_take(tide_shard_figures *figures, tide_site_profile *seen, bool closed)
{
    shard_take_types(figures, seen, closed);
    shard_take_patterns(figures, seen, closed);
    seen->bytes = shard_take_counter(&figures->bytes);
    seen->other = shard_take_counter(&figures->other);
    seen->pattern_other = shard_take_counter(&figures->pattern_other);
    seen->scopes = shard_take_counter(&figures->scopes);
}

void tide_shard_harvest(tide_shard *shard, tide_site_profile *into, bool keep)
{
    tide_site_profile seen = {0};
    tide_shard_figures *figures = shard_figures(shard);
    if (figures == NULL)
        return;
    bool closed = shard_close(shard);
    shard_take(figures, &seen, closed);
    if (closed && !keep)
        tide_shard_discard(shard);
    if (closed)
        shard_open(shard);
    tide_profile_add(into, &seen, 1);
}
