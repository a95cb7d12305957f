/* SPDX-License-Identifier: MIT */
#include "profiler/watch.h"

#include <string.h>

#include "runtime/assert.h"
#include "runtime/os.h"

/* ---- made and discarded ----------------------------------------------------------------- */

tide_watch *tide_watch_of(const tide_site *site)
{
    const tide_site_record *record = site->record;
    return record != NULL ? __atomic_load_n(&record->profile, __ATOMIC_ACQUIRE) : NULL;
}

tide_watch *tide_watch_ensure(tide_site *site)
{
    tide_assert(site->record != NULL);
    tide_watch *watch = site->record->profile;
    if (watch != NULL || (watch = tide_os_resize(NULL, sizeof *watch)) == NULL)
        return watch;
    memset(watch, 0, sizeof *watch);
    watch->shards[0] = &watch->first;
    __atomic_store_n(&site->record->profile, watch, __ATOMIC_RELEASE);
    return watch;
}

void tide_watch_clear(tide_watch *watch)
{
    __atomic_store_n(&watch->remaining, 0, __ATOMIC_RELAXED);
    tide_watch_harvest(watch);
    memset(&watch->recent, 0, sizeof watch->recent);
    memset(&watch->before, 0, sizeof watch->before);
}

void tide_watch_discard(tide_site *site)
{
    tide_watch *watch = site->record->profile;
    if (watch == NULL)
        return;
    site->record->profile = NULL;
    for (uint32_t i = 1; i < TIDE_WATCH_SHARDS; i++)
        tide_os_free(watch->shards[i]);
    tide_os_free(watch);
}

/* ---- shards ----------------------------------------------------------------------------- */

/* Threads are numbered as they first count something. */
static uint32_t thread_number(void)
{
    static uint32_t numbers;
    static _Thread_local uint32_t mine; /* one more than the number; 0: none yet */
    if (TIDE_UNLIKELY(mine == 0))
        mine = __atomic_fetch_add(&numbers, 1, __ATOMIC_RELAXED) % TIDE_WATCH_SHARDS + 1;
    return mine - 1;
}

static TIDE_COLD tide_shard *make_shard(tide_shard **place)
{
    tide_shard *made = tide_os_resize(NULL, sizeof *made), *there = NULL;
    if (made == NULL)
        return NULL;
    memset(made, 0, sizeof *made);
    if (__atomic_compare_exchange_n(place, &there, made, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return made;
    tide_os_free(made);
    return there;
}

static tide_shard *shard_at(tide_watch *watch, uint32_t i)
{
    tide_shard **place = &watch->shards[i % TIDE_WATCH_SHARDS];
    tide_shard *shard = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (TIDE_UNLIKELY(shard == NULL))
        shard = make_shard(place);
    return shard != NULL ? shard : &watch->first;
}

/* One shard at most is closed at a time, so the second try is as good as certain. */
tide_shard *tide_watch_enter(tide_watch *watch)
{
    for (uint32_t i = thread_number(), tries = 0; tries < TIDE_WATCH_SHARDS; i++, tries++) {
        tide_shard *shard = shard_at(watch, i);
        if (TIDE_LIKELY(tide_shard_enter(shard)))
            return shard;
    }
    return NULL;
}

void tide_watch_harvest(tide_watch *watch)
{
    for (uint32_t i = 0; i < TIDE_WATCH_SHARDS; i++) {
        tide_shard *shard = __atomic_load_n(&watch->shards[i], __ATOMIC_ACQUIRE);
        if (shard != NULL)
            tide_shard_harvest(shard, &watch->recent);
    }
}
