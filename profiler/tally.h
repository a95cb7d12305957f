/* SPDX-License-Identifier: MIT */
/* What is kept of one observed site: the window that is open, the shards that threads count in, and
 * what was taken from them. Made when the site is first observed; stays until its module goes,
 * because a scope may be inside. */
#ifndef TIDEPOOL_PROFILER_TALLY_H
#define TIDEPOOL_PROFILER_TALLY_H

#include "profiler/add.h"
#include "profiler/shard.h"
#include "runtime/scope/site.h"

enum { TIDE_TALLY_SHARDS = 8 };

_Static_assert((TIDE_TALLY_SHARDS & (TIDE_TALLY_SHARDS - 1)) == 0,
               "numbers of threads that wrap at 2^32 go on with the next shard");

typedef struct tide_tally {
    int64_t remaining; /* atomic: uses until the window is full; else 0 or less */
    tide_shard shards[TIDE_TALLY_SHARDS]; /* by thread */
    tide_site_profile
        *recent; /* harvested, not taken by learning; NULL: nothing. Registry locked */
    tide_packed_profile *before; /* all that learning took. Registry locked */
} tide_tally;

/* The site's tally or NULL. Any thread that is inside the site, or the registry locked. */
tide_tally *tide_tally_of(const tide_site *site);

/* The same, made if need be; NULL when memory is short. Registry locked, site listed. */
tide_tally *tide_tally_ensure(tide_site *site);

/* A shard to count in, entered: of the calling thread if there is memory. NULL: this use
 * cannot be counted. */
tide_shard *tide_tally_enter(tide_tally *tally);

/* Are uses counted: is a window open, or is everything observed? */
bool tide_tally_counting(const tide_tally *tally);

/* Empties the shards into `recent`; without memory for that they stay as they are. What a window
 * that is over counted in is freed. Registry locked. */
void tide_tally_harvest(tide_tally *tally);

/* All that was seen, taken by learning or not. Registry locked. */
void tide_tally_read(tide_tally *tally, tide_site_profile *out);

/* Forgets all counts and closes the window. Registry locked. */
void tide_tally_clear(tide_tally *tally);

/* Nobody can be inside. Registry locked. */
void tide_tally_discard(tide_site *site);

#endif
