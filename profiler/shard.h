/* SPDX-License-Identifier: MIT */
/* Counts of one site that a few threads add to and one reader takes away, without locks.
 *
 * A type or a pattern claims a place when it is first seen; when all places are taken it counts
 * among the others. So that this does not hold for ever, the reader clears the places when it can:
 *
 *  1. Who counts enters the shard first, by `inside` + 1, and leaves it after.
 *  2. The reader makes the shard its own by turning `inside` from 0 to CLOSED. If somebody is
 *     inside it does without: it takes the figures away one by one and leaves the places as they
 *     are. (In the child of a fork a thread that is gone may stay inside for good.)
 *  3. Who finds a shard closed backs out, having touched nothing, and counts in another one:
 *     only one shard of a site is closed at a time, for as long as it takes to read it.
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

typedef struct tide_shard {
    int64_t inside;
    uint64_t scopes, other, pattern_other, nested;
    tide_shard_type types[TIDE_PROFILE_TYPES];
    tide_shard_pattern patterns[TIDE_PROFILE_PATTERNS];
} tide_shard;

/* False: closed just now, nothing happened. */
bool tide_shard_enter(tide_shard *shard);
void tide_shard_leave(tide_shard *shard);

/* Counting, inside. One use; then what it touched; then its pattern. */
void tide_shard_count(tide_shard *shard);
void tide_shard_count_type(tide_shard *shard, tide_type type, uint32_t slots);
void tide_shard_count_pattern(tide_shard *shard, const int64_t *words, uint32_t length);

void tide_shard_count_nested(tide_shard *shard);

/* Takes all figures away and adds them to `into`. One reader at a time. */
void tide_shard_harvest(tide_shard *shard, tide_site_profile *into);

#endif
