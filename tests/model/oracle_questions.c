/* SPDX-License-Identifier: MIT */
/* Questions to the pool: do its counts, statistics and arrays say what the oracle knows? */
#include "oracle_parts.h"

#include <string.h>

#include <tidepool/limit.h>
#include <tidepool/upkeep.h>

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
