/* SPDX-License-Identifier: MIT */
/* Shards: the counts of a few threads of one site.
 *
 * Who counts takes the shard for the time of one use's counts, and so does who reads; nothing of the
 * program's runs meanwhile. Nobody waits for a shard: a thread that finds one taken counts in another
 * one, and a reader leaves it for the next time. So what stands in a shard is whole: no type is seen in
 * more uses than there were. A shard that another thread had when the process forked stays taken in
 * the child.
 *
 * The figures are made by the first who counts, and freed by the reader once nobody is to count any
 * more. Shards live as long as their site's module, so that a thread may come in late. */
#ifndef TIDEPOOL_PROFILER_SHARD_H
#define TIDEPOOL_PROFILER_SHARD_H

#include <tidepool/generic.h>
#include <tidepool/profile.h>

typedef struct tide_shard {
    bool taken; /* atomic */
    /* NULL: nothing was counted since it was freed. Atomic, and what it points to is of who has taken
     * the shard. */
    tide_site_profile *seen;
    char apart_[48]; /* two shards share no cache line */
} tide_shard;

/* False: somebody has it, or there is no memory for its figures. */
bool tide_shard_enter(tide_shard *shard);
void tide_shard_leave(tide_shard *shard);

/* Counting, inside. One use, of a dispatch: of that generic function (a scope's: NULL); then what it
 * touched, and the bytes of that. */
void tide_shard_count(tide_shard *shard, const tide_generic *generic);
void tide_shard_count_bytes(tide_shard *shard, uint64_t bytes);
void tide_shard_count_type(tide_shard *shard, tide_type type, uint32_t slots);

/* Are there figures? Any thread. */
bool tide_shard_has_figures(const tide_shard *shard);

/* Takes all figures away and adds them to `into`; frees their memory too, unless it is to be kept. Not
 * if somebody has the shard for long. */
void tide_shard_harvest(tide_shard *shard, tide_site_profile *into, bool keep);

/* Frees the memory. Nobody can be inside. */
void tide_shard_discard(tide_shard *shard);

#endif
