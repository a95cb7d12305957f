/* SPDX-License-Identifier: MIT */
/* What the profiler keeps of one site, from its first observation until its module goes, and which
 * shard a thread counts in. */
#include "profiler/tally.h"

#include <sched.h>
#include <string.h>

#include "profiler/observe.h"
#include "runtime/base/assert.h"
#include "runtime/base/os.h"

/* ---- made and discarded ----------------------------------------------------------------- */

tide_tally *tide_tally_of(const tide_site *site)
{
    const tide_site_record *record = site->record;
    return record != NULL ? __atomic_load_n(&record->profile, __ATOMIC_ACQUIRE) : NULL;
}

/* Room for what is harvested. */
static bool tally_reserve(tide_tally *tally)
{
    if (tally->recent != NULL)
        return true;
    tally->recent = tide_os_resize(NULL, sizeof *tally->recent);
    if (tally->recent == NULL)
        return false;
    memset(tally->recent, 0, sizeof *tally->recent);
    return true;
}

/* The first shard has figures before a window opens, so whoever has no memory for more counts there. */
static bool tally_reserve_first(tide_shard *shard)
{
    if (tide_shard_has_figures(shard))
        return true;
    bool made = tide_shard_enter(shard);
    if (made)
        tide_shard_leave(shard);
    return made;
}

/* There is room as well for who reads them, so whoever harvests needs no memory. */
static tide_tally *tally_prepare(tide_tally *tally)
{
    return tally_reserve(tally) && tally_reserve_first(&tally->shards[0]) ? tally : NULL;
}

static void tally_drop_figures(tide_tally *tally)
{
    tide_os_free(tally->recent);
    tide_os_free(tally->before);
    tally->recent = NULL;
    tally->before = NULL;
}

tide_tally *tide_tally_ensure(tide_site *site)
{
    tide_assert(site->record != NULL);
    tide_tally *tally = site->record->profile;
    if (tally != NULL)
        return tally_prepare(tally);
    tally = tide_os_resize(NULL, sizeof *tally);
    if (tally == NULL)
        return NULL;
    memset(tally, 0, sizeof *tally);
    if (tally_prepare(tally) == NULL) {
        tally_drop_figures(tally);
        tide_os_free(tally);
        return NULL;
    }
    tide_assert(__atomic_load_n(&site->record->profile, __ATOMIC_RELAXED) == NULL);
    __atomic_store_n(&site->record->profile, tally, __ATOMIC_RELEASE);
    return tally;
}

void tide_tally_clear(tide_tally *tally)
{
    __atomic_store_n(&tally->remaining, 0, __ATOMIC_RELAXED);
    tide_tally_harvest(tally);
    tally_drop_figures(tally);
}

void tide_tally_discard(tide_site *site)
{
    tide_assert(site->record != NULL);
    tide_tally *tally = site->record->profile;
    if (tally == NULL)
        return;
    site->record->profile = NULL;
    for (uint32_t i = 0; i < TIDE_TALLY_SHARDS; i++)
        tide_shard_discard(&tally->shards[i]);
    tally_drop_figures(tally);
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

/* With memory one is free nearly always; where there is none, the first one has figures. */
tide_shard *tide_tally_enter(tide_tally *tally)
{
    enum { ROUNDS = 16 };
    uint32_t mine = tally_thread_number();
    for (uint32_t i = 0; i < ROUNDS * TIDE_TALLY_SHARDS; i++) {
        tide_shard *shard = &tally->shards[(mine + i) % TIDE_TALLY_SHARDS];
        if (TIDE_LIKELY(tide_shard_enter(shard)))
            return shard;
        if (i % TIDE_TALLY_SHARDS == TIDE_TALLY_SHARDS - 1)
            (void)sched_yield();
    }
    return NULL;
}

/* ---- harvested -------------------------------------------------------------------------- */

/* Is there anything to harvest? */
static bool tally_counted(const tide_tally *tally)
{
    for (uint32_t i = 0; i < TIDE_TALLY_SHARDS; i++)
        if (tide_shard_has_figures(&tally->shards[i]))
            return true;
    return false;
}

bool tide_tally_counting(const tide_tally *tally)
{
    return tide_observe_always_on() || __atomic_load_n(&tally->remaining, __ATOMIC_RELAXED) > 0;
}

void tide_tally_harvest(tide_tally *tally)
{
    bool keep = tide_tally_counting(tally);
    if (!tally_counted(tally) || !tally_reserve(tally))
        return;
    for (uint32_t i = 0; i < TIDE_TALLY_SHARDS; i++)
        tide_shard_harvest(&tally->shards[i], tally->recent, keep);
}

void tide_tally_read(tide_tally *tally, tide_site_profile *out)
{
    tide_tally_harvest(tally);
    tide_profile_unpack(tally->before, out);
    if (tally->recent != NULL)
        tide_profile_add(out, tally->recent, 1);
}
