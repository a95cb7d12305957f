/* SPDX-License-Identifier: MIT */
/* The tray of a depot's bucket: what threads' cells gave it last, in front of its list. Numbers of
 * buffers go from a cell to the tray and from there to a cell of another thread; their records,
 * which the processor of the thread that released them has, are read by neither. All with the
 * mutex held.
 *
 *  1. The latest is on top. What has no room goes on to the list, the oldest first.
 *  2. Only plain buffers come here: any of them can be used at once, so none has to be looked for.
 *  3. What is in the tray counts as in the list (`cached`), with its permit. Who looks for what is
 *     old or unused in the list has such buffers of the tray go there before; the others stay.
 *  4. A bucket has its tray from the first time that a cell spills; without memory for it, what
 *     comes goes to the list at once. */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_STORE_TRAY_H
#define TIDEPOOL_RUNTIME_BUFFERS_STORE_TRAY_H

#include "runtime/buffers/store/cell.h"

enum {
    TIDE_TRAY_FIRST = 62, /* a tray's room at first, in buffers; it doubles with need up to MAX */
    TIDE_TRAY_MAX = 1022
};

struct tide_tray {
    uint32_t count, room;
    uint32_t slots[];
};

_Static_assert((int)TIDE_TRAY_FIRST >= 2 * (int)TIDE_CELL_SLOTS, "what a cell spills has room");

/* More room, the first time a tray. False: there is no memory, or enough room. */
static inline bool tide_tray_grow(tide_depot_bucket *depot)
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

/* Of so many that are wanted, how many the tray has. */
static inline uint32_t tide_tray_count(const tide_depot_bucket *depot, uint32_t count)
{
    uint32_t has = depot->tray != NULL ? depot->tray->count : 0;
    return has < count ? has : count;
}

/* The oldest of the tray go to the list, which has counted them already. */
static inline void tide_tray_lower(tide_buffers *buffers, tide_depot_bucket *depot, uint32_t count)
{
    tide_tray *tray = depot->tray;
    tide_assert(tray != NULL && count <= tray->count);
    for (uint32_t i = 0; i < count; i++)
        tide_runs_add(buffers, depot, tray->slots[i]);
    tray->count -= count;
    memmove(tray->slots, tray->slots + count, tray->count * sizeof tray->slots[0]);
}

/* Those that were released at that tick or before go to the list. They may lie anywhere: a cell
 * gives what it has whenever it is full. */
static inline void tide_tray_lower_old(tide_buffers *buffers, tide_depot_bucket *depot,
                                       uint64_t tick)
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

/* So many, at least, are in the list afterwards; returns how many are. */
static inline uint32_t tide_tray_list(tide_buffers *buffers, tide_depot_bucket *depot,
                                      uint32_t count)
{
    uint32_t listed = depot->cached - tide_tray_count(depot, UINT32_MAX);
    tide_assert(count <= depot->cached);
    if (listed >= count)
        return listed;
    tide_tray_lower(buffers, depot, count - listed);
    return count;
}

/* Room in the tray for so many, if need be by what lies lowest. False: there is no tray. */
static inline bool tide_tray_make_room(tide_buffers *buffers, tide_depot_bucket *depot,
                                       uint32_t count)
{
    tide_assert(count <= TIDE_CELL_SLOTS);
    if (depot->tray != NULL && count <= depot->tray->room - depot->tray->count)
        return true;
    if (!tide_tray_grow(depot) && depot->tray != NULL)
        tide_tray_lower(buffers, depot, depot->tray->count / 2);
    return depot->tray != NULL;
}

/* A cell's plain buffers, the oldest first; the depot has permits for them. */
static inline void tide_tray_put(tide_buffers *buffers, tide_depot_bucket *depot,
                                 const uint32_t *slots, uint32_t count)
{
    if (tide_tray_make_room(buffers, depot, count)) {
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

/* The latest of the tray, in the order in which a cell has them, with their permits; how many: at
 * most `count`. */
static inline uint32_t tide_tray_take(tide_depot_bucket *depot, uint32_t *slots, uint32_t count)
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

#endif
