/* SPDX-License-Identifier: MIT */
/* Exported memory: it was a slot's and is now in the hands of consumers.
 *
 * It has one holder for the slot's position and one for each consumer. The position lets go when
 * it next needs memory: if it is the last holder, the memory simply becomes the slot's again; else
 * it is freed by whoever is last, on whatever thread, through its device.
 *
 * On a device the position lets go when what the pool has queued on the memory is over
 * (runtime/device/deferred.h). What a consumer queued itself it has to have finished, or ordered
 * before the pool's stream, when it runs the deleter (<tidepool/array.h>). So the memory goes by the
 * device's service stream, at once: of the pool's nobody knows whether it is still there. */
#ifndef TIDEPOOL_RUNTIME_POOL_EXPORT_H
#define TIDEPOOL_RUNTIME_POOL_EXPORT_H

#include "runtime/device/deferred.h"
#include "runtime/pool/row.h"

typedef struct tide_export {
    tide_deferred deferred; /* first */
    uint32_t holders;       /* atomic */
    void *data;
    size_t bytes, capacity;
    tide_device *device;   /* held */
    tide_buffers *buffers; /* held; where the memory goes back to, NULL: the device */
    tide_buffer buffer;
    bool captured; /* a graph may have used it where no stream of the pool saw: never the slot's
                      again */
} tide_export;

/* What a captured graph uses: a hold on each (runtime/graph/capture.c). */
struct tide_capture {
    tide_deferred deferred; /* first */
    tide_device *device;    /* held, once it has ended */
    size_t count, room;
    tide_export **held;
    struct tide_capture *next; /* of those that have ended and are not dropped */
    bool launched;
    void *last; /* the stream of the last launch that was told */
};

/* Room for so many more. */
bool tide_capture_make_room(struct tide_capture *capture, size_t more);

/* Memory that a slot of a captured pool has given up: the graph may use it, so the slot's hold is the
 * capture's now. False: no memory. */
bool tide_capture_keep(struct tide_capture *capture, tide_export *exported);

/* Takes the slot's memory out of the pool, or finds it taken; one holder more. NULL when there
 * is no memory for the descriptor; then nothing has changed. */
tide_export *tide_export_slot(tide_pool *pool, tide_row *row, tide_slot *slot);

/* Memory of a slot with one holder, for who cannot give it back now: `data` and what the record
 * says of it. NULL when there is no memory for the descriptor. */
tide_export *tide_export_make(tide_pool *pool, const tide_row *row, void *data,
                              const tide_slot_record *record);

/* One holder less. Any thread, even after the pool is gone. */
void tide_export_drop(tide_export *exported);

/* The same for the slot's position in the pool, which is done with it on the pool's stream. */
void tide_export_drop_of_pool(tide_pool *pool, tide_export *exported);

/* The position's turn: takes the memory back if nobody else holds it, else lets go of it. */
void tide_export_settle(tide_pool *pool, tide_row *row, tide_slot *slot);

#endif
