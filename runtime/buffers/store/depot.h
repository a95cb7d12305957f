/* SPDX-License-Identifier: MIT */
/* The depot: what all threads share, behind the instance's mutex. Magazines come here when they are
 * empty or full; here permits are given out, memory is taken from the device and given back. */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_STORE_DEPOT_H
#define TIDEPOOL_RUNTIME_BUFFERS_STORE_DEPOT_H

#include "runtime/buffers/store/hand_over.h"
#include "runtime/buffers/store/magazine.h"

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

/* The latest of the tray or the list that may be used on the stream, of the first few; without a
 * permit now. TIDE_NO_RECORD: none. Mutex held. */
uint32_t tide_depot_find(tide_buffers *buffers, tide_depot_bucket *depot, const tide_want *want);

/* A cached buffer of a larger bucket, and which that is: runtime/buffers/store/borrow.c.
 * TIDE_NO_RECORD: none. The magazine is the thread's, or NULL. Mutex held. */
uint32_t tide_depot_borrow(tide_buffers *buffers, tide_magazine *magazine, const tide_want *want,
                           unsigned *bucket);

/* What the cell could not give: from the depot, another's cell, or the device. TIDE_NO_RECORD with
 * a message when there is none. Counted. The magazine is the thread's, or NULL. */
uint32_t tide_depot_acquire(tide_buffers *buffers, tide_magazine *magazine, const tide_want *want,
                            bool *hit);

/* Keeps what the cell had no credit for, or gives it back. Counted. `keep` false: it
 * must not be kept. */
void tide_depot_release(tide_buffers *buffers, tide_magazine *magazine, uint32_t slot,
                        const tide_hand_over *passing, bool keep);

/* The buffer's memory goes back to the device: on the stream of its release just now, or (NULL) on
 * the one it was kept for. Mutex not held. */
void tide_depot_free(tide_buffers *buffers, uint32_t slot, const tide_hand_over *passing);

/* ---- runtime/buffers/store/trim.c ---- */

/* So many bytes were allocated. True: a round of use has ended. Mutex held. */
bool tide_depot_use_moved(tide_buffers *buffers, size_t bytes);

/* Gives back what was not needed in the last two rounds of use; nobody waits. */
void tide_depot_trim_unused(tide_buffers *buffers, const tide_want *want);

/* Gives back what has been cached for so many ticks. `wait`: also what work on its stream may still
 * use; the device has that later. */
tide_trim_summary tide_depot_trim(tide_buffers *buffers, uint64_t ticks, bool wait);

/* What is older than the instance lets it be goes, if that was not looked for just now. */
void tide_depot_age(tide_buffers *buffers);

/* All that is cached of the device's memory, of every instance, goes back to it. Nothing is locked.
 * True: there was some. */
bool tide_depot_press(tide_device *device);

/* ---- runtime/buffers/store/purge.c ---- */

/* Gives pages back of what has been cached for a part of the longest age; the buffers stay cached.
 * The host's memory only; not where checks watch it. Nothing where another thread does it just
 * now. */
void tide_depot_purge(tide_buffers *buffers, uint64_t now);

/* In the child of a fork: who did it is not there, or goes on and finds nothing. Mutex held. */
void tide_depot_forget_purge(tide_buffers *buffers);

#endif
