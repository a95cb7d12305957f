/* SPDX-License-Identifier: MIT */
/* Counts in a shard, and takes them out. */
#include "profiler/shard.h"

#include <sched.h>
#include <string.h>

#include "profiler/add.h"
#include "runtime/base/assert.h"
#include "runtime/base/os.h"

_Static_assert(sizeof(tide_shard) == 64, "shards stand a cache line apart");

/* ---- in and out ------------------------------------------------------------------------- */

static bool shard_take(tide_shard *shard)
{
    return !__atomic_exchange_n(&shard->taken, true, __ATOMIC_ACQUIRE);
}

void tide_shard_leave(tide_shard *shard)
{
    tide_assert(__atomic_load_n(&shard->taken, __ATOMIC_RELAXED));
    __atomic_store_n(&shard->taken, false, __ATOMIC_RELEASE);
}

static tide_site_profile *shard_seen(const tide_shard *shard)
{
    return __atomic_load_n(&shard->seen, __ATOMIC_RELAXED);
}

bool tide_shard_has_figures(const tide_shard *shard)
{
    return shard_seen(shard) != NULL;
}

static bool shard_make_figures(tide_shard *shard)
{
    tide_site_profile *made = tide_os_resize(NULL, sizeof *made);
    if (made != NULL)
        memset(made, 0, sizeof *made);
    __atomic_store_n(&shard->seen, made, __ATOMIC_RELAXED);
    return made != NULL;
}

bool tide_shard_enter(tide_shard *shard)
{
    if (!shard_take(shard))
        return false;
    if (TIDE_LIKELY(shard_seen(shard) != NULL) || shard_make_figures(shard))
        return true;
    tide_shard_leave(shard);
    return false;
}

void tide_shard_discard(tide_shard *shard)
{
    tide_os_free(shard_seen(shard));
    __atomic_store_n(&shard->seen, NULL, __ATOMIC_RELAXED);
}

/* ---- counting --------------------------------------------------------------------------- */

static tide_site_profile *shard_inside(const tide_shard *shard)
{
    tide_site_profile *seen = shard_seen(shard);
    tide_assert(__atomic_load_n(&shard->taken, __ATOMIC_RELAXED) && seen != NULL);
    return seen;
}

void tide_shard_count(tide_shard *shard, const tide_generic *generic)
{
    tide_site_profile *seen = shard_inside(shard);
    tide_profile_add_generic(seen, generic);
    seen->scopes++;
}

void tide_shard_count_bytes(tide_shard *shard, uint64_t bytes)
{
    shard_inside(shard)->bytes += bytes;
}

void tide_shard_count_type(tide_shard *shard, tide_type type, uint32_t slots)
{
    tide_site_profile *seen = shard_inside(shard);
    uint32_t i = 0;
    tide_assert(type != TIDE_NO_TYPE && slots != 0);
    while (i < seen->type_count && seen->types[i].type != type)
        i++;
    if (i == TIDE_PROFILE_TYPES) {
        seen->other++;
        return;
    }
    if (i == seen->type_count)
        seen->types[seen->type_count++] = (tide_profile_type){.type = type};
    tide_profile_type *place = &seen->types[i];
    place->scopes++;
    place->slots += slots;
    place->slots_max = place->slots_max < slots ? slots : place->slots_max;
}

/* ---- reading ---------------------------------------------------------------------------- */

/* Who has it is about to leave, unless the system has stopped that thread. */
static bool shard_take_patiently(tide_shard *shard)
{
    enum { TRIES = 64 };
    for (int i = 0; i < TRIES; i++) {
        if (shard_take(shard))
            return true;
        (void)sched_yield();
    }
    return false;
}

void tide_shard_harvest(tide_shard *shard, tide_site_profile *into, bool keep)
{
    if (!tide_shard_has_figures(shard) || !shard_take_patiently(shard))
        return;
    tide_site_profile *seen = shard_inside(shard);
    tide_profile_add(into, seen, 1);
    if (keep)
        memset(seen, 0, sizeof *seen);
    else
        tide_shard_discard(shard);
    tide_shard_leave(shard);
}
