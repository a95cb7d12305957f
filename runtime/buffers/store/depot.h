/* SPDX-License-Identifier: MIT */
/* The depot: what all threads share, behind the instance's mutex. Magazines come here when they are
 * empty or full; here memory is taken from the device and given back. */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_STORE_DEPOT_H
#define TIDEPOOL_RUNTIME_BUFFERS_STORE_DEPOT_H

#include "runtime/buffers/store/hand_over.h"
#include "runtime/buffers/store/magazine.h"
#include "runtime/device/lender.h"

/* One acquire. */
typedef struct tide_want {
    size_t bytes;
    unsigned key, bucket;
    tide_hand_over passing;
    const char *call;
    tide_yield yield; /* what may go for it */
} tide_want;

/* What the thread's cell could not give: from the depot or the device. TIDE_NO_RECORD with a message
 * when there is none. Counted. */
uint32_t tide_depot_acquire(tide_buffers *buffers, const tide_want *want, bool *hit);

/* Keeps a buffer whose handle has ended, or gives it back. Counted. `keep` false: it must not be
 * kept. */
void tide_depot_release(tide_buffers *buffers, uint32_t slot, const tide_hand_over *passing,
                        bool keep);

/* A magazine's buffers and counts become the depot's. Returns those that it does not keep, a list
 * for tide_depot_free_all. By its thread, or stopped; mutex held. */
uint32_t tide_depot_collect(tide_buffers *buffers, tide_magazine *magazine);

/* The buffer, taken out of its cell or array, is the next of the list of those that go. Mutex
 * held. */
void tide_depot_let_go(tide_buffers *buffers, uint32_t slot, uint32_t *going);

/* Their memory goes back to the device: on the stream of the release just now, or (NULL) on the one
 * each was kept for. Mutex not held. */
void tide_depot_free_all(tide_buffers *buffers, uint32_t going, const tide_hand_over *passing);

/* Node 0's. NULL: no buffer of the key was ever acquired. */
static inline tide_depot_bucket *tide_depot_at(const tide_buffers *buffers, unsigned key,
                                               unsigned bucket)
{
    tide_assert(key < TIDE_BUFFER_KEYS && bucket < TIDE_BUCKETS);
    return buffers->depot[key] != NULL ? &buffers->depot[key][bucket] : NULL;
}

/* Cached of all nodes. Mutex held. */
static inline uint32_t tide_depot_cached(const tide_depot_bucket *depot, unsigned nodes)
{
    uint32_t cached = 0;
    for (unsigned n = 0; n < nodes; n++)
        cached += depot[n * TIDE_BUCKETS].cached;
    return cached;
}

/* The entries from `to` on are those from `from` on. Mutex held. */
void tide_depot_close_gap(tide_buffers *buffers, tide_depot_bucket *depot, unsigned bucket,
                          uint32_t to, uint32_t from);

/* ---- runtime/buffers/store/allocate.c ---- */

/* Memory of the device for a buffer of so many bytes; where there is none, what `yield` lets go for it goes first. A
 * failure has a message. Mutex not held. */
tide_status tide_depot_allocate(tide_buffers *buffers, const tide_want *want, size_t bytes,
                                void **data);

/* ---- runtime/buffers/store/trim.c ---- */

/* Gives back what has been cached for so many ticks, of the device's memory (NULL: of all). `wait`: also
 * what work on its stream may still use; the device has that later. */
tide_trim_summary tide_depot_trim(tide_buffers *buffers, const tide_device *device, uint64_t ticks,
                                  bool wait);

/* What is older than the instance lets it be goes, if that was not looked for just now. */
void tide_depot_age(tide_buffers *buffers);

/* What buffers of all instances keep of a device's memory (runtime/device/budget.h). Pressed, all
 * that is cached goes back, whether it is more than is missing or not. */
size_t tide_depot_press(tide_device *device, int memory, size_t bytes);
void tide_depot_tell(const tide_device *device, char *text, size_t room);

#endif
