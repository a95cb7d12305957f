/* SPDX-License-Identifier: MIT */
/* Copies between pieces of the host's memory and a device, through pinned memory of the pool's own, which the
 * device reads by itself while the host goes on.
 *
 * A ring has up to four chunks, of which one is current. What is staged goes behind what has been
 * staged there, so nothing in the chunk is overwritten. When the chunk is full it gets a mark of
 * the stream. The next chunk becomes current once its own mark has been passed: all copies from
 * it came before that mark. So the host waits only when the whole ring is in flight, and pays
 * one event for a chunk, not for a copy. What is read is waited for. */
#ifndef TIDEPOOL_RUNTIME_TRANSFER_PINNED_RING_H
#define TIDEPOOL_RUNTIME_TRANSFER_PINNED_RING_H

#include "runtime/pool/core.h"
#include "runtime/transfer/frame_help.h"

enum { TIDE_RING_CHUNKS = 4 };

/* From the pieces into the block, which has so many bytes, if it is `up`: when it returns the host's memory has
 * been read; the device's is written when the stream comes to it. Or the other way round: when it
 * returns the pieces are there. TIDE_ERROR_STATE while a graph is captured on the pool's stream. */
tide_status tide_ring_copy(tide_pool *pool, void *block, size_t bytes, const tide_piece *pieces,
                           size_t count, bool up, const char *call);

/* Waits for what is in flight and gives the chunks back. */
void tide_ring_end(tide_pool *pool);

#endif
