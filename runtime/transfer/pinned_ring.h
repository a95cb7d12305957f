/* SPDX-License-Identifier: MIT */
/* Copies between any memory of the host and a device. They go through pinned memory of the pool's
 * own, which the device reads or writes by itself while the host goes on.
 *
 * A ring has up to four chunks, of which one is current. What is staged goes behind what has been
 * staged there, so nothing in the chunk is overwritten. When the chunk is full it gets a mark of
 * the stream. The next chunk becomes current once its own mark has been passed: all copies from or
 * to it came before that mark. So the host waits only when the whole ring is in flight, and pays
 * one event for a chunk, not for a copy. */
#ifndef TIDEPOOL_RUNTIME_TRANSFER_PINNED_RING_H
#define TIDEPOOL_RUNTIME_TRANSFER_PINNED_RING_H

#include "runtime/pool/core.h"

enum { TIDE_RING_CHUNKS = 4 };

/* A piece of the host's memory, and where it lies in a block of the device's. Pieces are in order
 * and do not overlap; what is between them has no meaning. */
typedef struct tide_piece {
    char *host;
    size_t at, bytes;
} tide_piece;

/* TIDE_ERROR_STATE while a graph is captured on the pool's stream, as both calls below say; for who
 * would queue something before. */
tide_status tide_ring_admit(const tide_pool *pool, const char *call);

/* From the pieces into the block, which has so many bytes. When it returns the host's memory has
 * been read; the device's is written when the stream comes to it. */
tide_status tide_ring_write(tide_pool *pool, void *block, size_t bytes, const tide_piece *pieces,
                            size_t count, const char *call);

/* The other way round. When it returns the pieces are there. */
tide_status tide_ring_read(tide_pool *pool, const void *block, size_t bytes,
                           const tide_piece *pieces, size_t count, const char *call);

/* Waits for what is in flight and gives the chunks back. */
void tide_ring_end(tide_pool *pool);

#endif
