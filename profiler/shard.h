/* SPDX-License-Identifier: MIT */
/* Counts of one site that a few threads add to and one reader takes away, without locks.
 *
 * A type or a pattern claims a place when it is first seen; when all places are taken it counts
 * among the others. So that this does not hold for ever, the reader clears the places when it can:
 *
 *  1. Who counts enters the shard first, by `inside` + 1, and leaves it after.
 *  2. The reader makes the shard its own by turning `inside` from 0 to CLOSED. If somebody is
 *     inside it does without: it takes the figures away one by one and leaves the places as they
 *     are.
 *  3. Who finds a shard closed backs out, having touched nothing, and counts in another one:
 *     only one shard of a site is closed at a time, for as long as it takes to read it.
 *
 *  4. The figures themselves are made by the first who counts, inside, and freed by the reader,
 *     once the shard is his own and nobody is to count any more. Whoever comes later makes others.
 *
 * Shards live as long as their site's module, so that a thread may come in late. */
#ifndef TIDEPOOL_PROFILER_SHARD_H
#define TIDEPOOL_PROFILER_SHARD_H

#include <tidepool/profile.h>

/* Everything in here is atomic. */
typedef struct tide_shard_type {
    tide_type type; /* TIDE_NO_TYPE: a free place */
    uint32_t slots_max;
    uint64_t scopes, slots;
} tide_shard_type;

typedef struct tide_shard_pattern {
    uint64_t hash; /* 0: a free place; 1: being written; else of what stands here */
    uint64_t scopes;
    uint32_t length;
    int64_t words[TIDE_PATTERN_WORDS];
} tide_shard_pattern;

typedef struct tide_shard_figures {
    uint64_t scopes, bytes, other, pattern_other;
    tide_shard_type types[TIDE_PROFILE_TYPES];
    tide_shard_pattern patterns[TIDE_PROFILE_PATTERNS];
} tide_shard_figures;

typedef struct tide_shard {
    int64_t inside;
    tide_shard_figures *figures; /* NULL: nothing was counted since they were freed */
    char apart_[48];             /* two shards share no cache line                  */
} tide_shard;

/* Makes the shard's figures if it has none; false: no memory. Inside, or the reader. */
bool tide_shard_make(tide_shard *shard);

/* False: closed just now, or no memory; nothing happened. */
bool tide_shard_enter(tide_shard *shard);
void tide_shard_leave(tide_shard *shard);

/* Counting, inside. One use; then what it touched, and the bytes of that; then its pattern. */
void tide_shard_count(tide_shard *shard);
void tide_shard_count_bytes(tide_shard *shard, uint64_t bytes);
void tide_shard_count_type(tide_shard *shard, tide_type type, uint32_t slots);
void tide_shard_count_pattern(tide_shard *shard, const int64_t *words, uint32_t length);

/* Takes all figures away and adds them to `into`; frees their memory too, unless it is to be kept
 * or somebody is inside. One reader at a time. */
void tide_shard_harvest(tide_shard *shard, tide_site_profile *into, bool keep);

/* Frees the memory. Nobody can be inside. */
void tide_shard_discard(tide_shard *shard);

#endif
