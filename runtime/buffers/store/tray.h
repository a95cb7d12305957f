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

/* Of so many that are wanted, how many the tray has. */
uint32_t tide_tray_count(const tide_depot_bucket *depot, uint32_t count);

/* Those that were released at that tick or before go to the list. They may lie anywhere: a cell
 * gives what it has whenever it is full. */
void tide_tray_lower_old(tide_buffers *buffers, tide_depot_bucket *depot, uint64_t tick);

/* So many, at least, are in the list afterwards; returns how many are. */
uint32_t tide_tray_list(tide_buffers *buffers, tide_depot_bucket *depot, uint32_t count);

/* A cell's plain buffers, the oldest first; the depot has permits for them. */
void tide_tray_put(tide_buffers *buffers, tide_depot_bucket *depot, const uint32_t *slots,
                   uint32_t count);

/* The latest of the tray, in the order in which a cell has them, with their permits; how many: at
 * most `count`. */
uint32_t tide_tray_take(tide_depot_bucket *depot, uint32_t *slots, uint32_t count);

#endif
