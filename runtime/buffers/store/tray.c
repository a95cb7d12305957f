/* SPDX-License-Identifier: MIT */
/* The tray: its room, and what goes on to the list. */
#include "runtime/buffers/store/tray.h"

#include <string.h>

#include "runtime/base/os.h"

/* More room, the first time a tray. False: there is no memory, or enough room. */
static bool tray_grow(tide_depot_bucket *depot)
{
    tide_tray *tray = depot->tray;
    uint32_t before = tray != NULL ? tray->room : 0;
    uint32_t room = before == 0 ? (uint32_t)TIDE_TRAY_FIRST : 2 * before + 2;
    tide_assert(before <= TIDE_TRAY_MAX);
    if (room > TIDE_TRAY_MAX)
        return false;
    tray = tide_os_resize(tray, sizeof *tray + room * sizeof tray->slots[0]);
    if (tray == NULL)
        return false;
    if (before == 0)
        tray->count = 0;
    tray->room = room;
    depot->tray = tray;
    return true;
}

uint32_t tide_tray_count(const tide_depot_bucket *depot, uint32_t count)
{
    uint32_t has = depot->tray != NULL ? depot->tray->count : 0;
    return has < count ? has : count;
}

/* The oldest of the tray go to the list, which has counted them already. */
static void tray_lower(tide_buffers *buffers, tide_depot_bucket *depot, uint32_t count)
{
    tide_tray *tray = depot->tray;
    tide_assert(tray != NULL && count <= tray->count);
    for (uint32_t i = 0; i < count; i++)
        tide_runs_add(buffers, depot, tray->slots[i]);
    tray->count -= count;
    memmove(tray->slots, tray->slots + count, tray->count * sizeof tray->slots[0]);
}

void tide_tray_lower_old(tide_buffers *buffers, tide_depot_bucket *depot, uint64_t tick)
{
    tide_tray *tray = depot->tray;
    uint32_t count = tray != NULL ? tray->count : 0, stay = 0;
    for (uint32_t i = 0; i < count; i++)
        if (tide_handle_at(buffers, tray->slots[i])->tick <= tick)
            tide_runs_add(buffers, depot, tray->slots[i]);
        else
            tray->slots[stay++] = tray->slots[i];
    if (tray != NULL)
        tray->count = stay;
    tide_assert(stay <= depot->cached && (depot->first != TIDE_NO_RECORD || stay == depot->cached));
}

uint32_t tide_tray_list(tide_buffers *buffers, tide_depot_bucket *depot, uint32_t count)
{
    uint32_t listed = depot->cached - tide_tray_count(depot, UINT32_MAX);
    tide_assert(count <= depot->cached);
    if (listed >= count)
        return listed;
    tray_lower(buffers, depot, count - listed);
    return count;
}

/* Room in the tray for so many, if need be by what lies lowest. False: there is no tray. */
static bool tray_make_room(tide_buffers *buffers, tide_depot_bucket *depot, uint32_t count)
{
    tide_assert(count <= TIDE_CELL_SLOTS);
    if (depot->tray != NULL && count <= depot->tray->room - depot->tray->count)
        return true;
    if (!tray_grow(depot) && depot->tray != NULL)
        tray_lower(buffers, depot, depot->tray->count / 2);
    return depot->tray != NULL;
}

void tide_tray_put(tide_buffers *buffers, tide_depot_bucket *depot, const uint32_t *slots,
                   uint32_t count)
{
    if (tray_make_room(buffers, depot, count)) {
        tide_assert(depot->tray->count + count <= depot->tray->room);
        memcpy(depot->tray->slots + depot->tray->count, slots, count * sizeof *slots);
        depot->tray->count += count;
    } else {
        for (uint32_t i = 0; i < count; i++)
            tide_runs_add(buffers, depot, slots[i]);
    }
    depot->cached += count;
    tide_assert(depot->cached <= depot->permits);
}

uint32_t tide_tray_take(tide_depot_bucket *depot, uint32_t *slots, uint32_t count)
{
    tide_tray *tray = depot->tray;
    count = tide_tray_count(depot, count);
    if (count == 0)
        return 0;
    tray->count -= count;
    memcpy(slots, tray->slots + tray->count, count * sizeof *slots);
    tide_depot_took(depot, count);
    return count;
}
