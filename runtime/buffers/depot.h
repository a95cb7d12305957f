/* SPDX-License-Identifier: MIT */
/* The depot: what all threads share, behind the instance's mutex. Magazines come here when they are
 * empty or full; here permits are given out, memory is taken from the device and given back. */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_DEPOT_H
#define TIDEPOOL_RUNTIME_BUFFERS_DEPOT_H

#include "runtime/buffers/hand_over.h"
#include "runtime/buffers/magazine.h"

/* One acquire. */
typedef struct tide_want {
    size_t bytes;
    unsigned key, bucket;
    tide_hand_over passing;
    const char *call;
} tide_want;

/* The first buffer of a cell that may be used on the stream, the latest first; TIDE_NO_RECORD:
 * none. By the cell's thread, or stopped. */
uint32_t tide_cell_find(const tide_buffers *buffers, tide_cell *cell, const tide_want *want);

/* What the cell could not give: from the depot, another's cell, or the device. TIDE_NO_RECORD with
 * a message when there is none. Counted. The magazine is the thread's, or NULL. */
uint32_t tide_depot_acquire(tide_buffers *buffers, tide_magazine *magazine, const tide_want *want,
                            bool *hit);

/* Keeps what the cell had no credit for, or gives it back. Counted. `keep` false: it
 * must not be kept. */
void tide_depot_release(tide_buffers *buffers, tide_magazine *magazine, uint32_t slot,
                        const tide_hand_over *passing, bool keep);

/* Gives back what has been cached for so many ticks. `wait`: also what must be waited for. */
tide_trim_summary tide_depot_trim(tide_buffers *buffers, uint64_t ticks, bool wait);

#endif
