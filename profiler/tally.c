/* SPDX-License-Identifier: MIT */
/* What the profiler keeps of one site, from its first observation until its module goes, and which
 * shard a thread counts in. */
#include "profiler/tally.h"

#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/os.h"

/* ---- made and discarded ----------------------------------------------------------------- */

tide_tally *tide_tally_of(const tide_site *site)
{
    const tide_site_record *record = site->record;
    return record != NULL ? __atomic_load_n(&record->profile, __ATOMIC_ACQUIRE) : NULL;
}

tide_tally *tide_tally_ensure(tide_site *site)
{
    tide_assert(site->record != NULL);
    tide_tally *tally = site->record->profile;
    if (tally != NULL || (tally = tide_os_resize(NULL, sizeof *tally)) == NULL)
        return tally;
    memset(tally, 0, sizeof *tally);
    tally->shards[0] = &tally->first;
    tide_assert(__atomic_load_n(&site->record->profile, __ATOMIC_RELAXED) == NULL);
    __atomic_store_n(&site->record->profile, tally, __ATOMIC_RELEASE);
    return tally;
}

void tide_tally_clear(tide_tally *tally)
{
    __atomic_store_n(&tally->remaining, 0, __ATOMIC_RELAXED);
    tide_tally_harvest(tally);
    memset(&tally->recent, 0, sizeof tally->recent);
    memset(&tally->before, 0, sizeof tally->before);
    tide_assert(tally->shards[0] == &tally->first);
}

void tide_tally_discard(tide_site *site)
{
    tide_assert(site->record != NULL);
    tide_tally *tally = site->record->profile;
    if (tally == NULL)
        return;
    tide_assert(tally->shards[0] == &tally->first);
    site->record->profile = NULL;
    for (uint32_t i = 1; i < TIDE_TALLY_SHARDS; i++)
        tide_os_free(tally->shards[i]);
    tide_os_free(tally);
}

/* ---- shards ----------------------------------------------------------------------------- */

/* Threads are numbered in the order in which they first count something. */
static uint32_t tally_thread_number(void)
{
    static uint32_t numbers;
    static _Thread_local uint32_t mine; /* one more than the number; 0: none yet */
    if (TIDE_UNLIKELY(mine == 0))
        mine = __atomic_fetch_add(&numbers, 1, __ATOMIC_RELAXED) % TIDE_TALLY_SHARDS + 1;
    tide_assert(mine >= 1 && mine <= TIDE_TALLY_SHARDS);
    return mine - 1;
}

/* Two threads may make one at once: the later one takes the other's. NULL when memory is short. */
static TIDE_COLD tide_shard *tally_make_shard(tide_shard **place)
{
    tide_shard *made = tide_os_resize(NULL, sizeof *made), *there = NULL;
    if (made == NULL)
        return NULL;
    memset(made, 0, sizeof *made);
    if (__atomic_compare_exchange_n(place, &there, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    tide_os_free(made);
    tide_assert(there != NULL);
    return there;
}

/* Without memory for a shard of its own a thread counts in the first one. */
static tide_shard *tally_shard_at(tide_tally *tally, uint32_t i)
{
    tide_shard **place = &tally->shards[i % TIDE_TALLY_SHARDS];
    tide_shard *shard = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (TIDE_UNLIKELY(shard == NULL))
        shard = tally_make_shard(place);
    return shard != NULL ? shard : &tally->first;
}

/* At most one shard is closed at a time, so the second try nearly always succeeds. */
tide_shard *tide_tally_enter(tide_tally *tally)
{
    for (uint32_t i = tally_thread_number(), tries = 0; tries < TIDE_TALLY_SHARDS; i++, tries++) {
        tide_shard *shard = tally_shard_at(tally, i);
        if (TIDE_LIKELY(tide_shard_enter(shard)))
            return shard;
    }
    return NULL;
}

void tide_tally_harvest(tide_tally *tally)
{
    for (uint32_t i = 0; i < TIDE_TALLY_SHARDS; i++) {
        tide_shard *shard = __atomic_load_n(&tally->shards[i], __ATOMIC_ACQUIRE);
        if (shard != NULL)
            tide_shard_harvest(shard, &tally->recent);
    }
}
