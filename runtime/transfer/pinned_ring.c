/* SPDX-License-Identifier: MIT */
/* The ring of pinned chunks through which a pool copies between the host and its device: pieces go
 * into a chunk and on to the device, or from the device into a chunk and on to the pieces. */
#include "runtime/transfer/pinned_ring.h"

#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/settings.h"
#include "runtime/device/budget.h"
#include "runtime/device/deferred.h"
#include "runtime/pool/memory.h"
#include "runtime/pool/streams.h"

enum {
    CHUNKS = TIDE_RING_CHUNKS,
    CHUNK_ALIGN = 4096,
    PIECE_ALIGN = 64
}; /* in bytes, but for the first */

_Static_assert(CHUNKS >= 2, "one chunk is filled while another is in flight");
_Static_assert(CHUNK_ALIGN % PIECE_ALIGN == 0, "what is aligned in a chunk is aligned in memory");

typedef struct chunk {
    char *data; /* NULL: not needed so far */
    void *mark; /* when passed, nothing uses the chunk; NULL: nothing does, or it has not been
                   closed since */
} chunk;

typedef struct tide_pinned_ring {
    tide_deferred deferred; /* first */
    size_t bytes;           /* of each chunk */
    size_t used;            /* of the current one */
    uint32_t current;
    chunk chunks[CHUNKS];
} tide_pinned_ring;

/* ---- the ring ------------------------------------------------------------------------------ */

/* The pool's ring, made on first use; NULL with a message when there is no memory. */
static tide_pinned_ring *ring_make_ready(tide_pool *pool, const char *call)
{
    tide_pool_core *core = pool->core;
    if (core->ring != NULL)
        return core->ring;
    tide_pinned_ring *made = tide_os_resize(NULL, sizeof *made);
    if (made == NULL) {
        tide_fail(TIDE_ERROR_MEMORY, call, "no %zu bytes to begin copies of pool '%s'",
                  sizeof *made, core->name);
        return NULL;
    }
    *made = (tide_pinned_ring){.bytes = (size_t)tide_setting_get(TIDE_SETTING_staging) * 1024};
    tide_assert(made->bytes >= PIECE_ALIGN && made->bytes % PIECE_ALIGN == 0);
    return core->ring = made;
}

/* Memory for a chunk that had none so far. */
static tide_status ring_give(tide_pool *pool, tide_pinned_ring *ring, uint32_t index,
                             const char *call)
{
    chunk *c = &ring->chunks[index];
    void *data = NULL;
    tide_assert(index < CHUNKS);
    if (c->data != NULL)
        return TIDE_OK;
    const tide_memory_want want = {.device = pool->core->device,
                                   .memory = TIDE_MEMORY_PINNED,
                                   .bytes = ring->bytes,
                                   .align = CHUNK_ALIGN};
    tide_status status = tide_memory_allocate(pool, &want, &data);
    if (status == TIDE_ERROR_MEMORY)
        return tide_fail(status, call, "no %zu bytes of pinned memory for copies of pool '%s'",
                         ring->bytes, pool->core->name);
    if (status == TIDE_OK)
        c->data = data;
    return status;
}

/* Is there no room left in the current chunk? */
static bool ring_chunk_full(const tide_pinned_ring *ring)
{
    tide_assert(ring->used <= ring->bytes && ring->used % PIECE_ALIGN == 0);
    return ring->bytes - ring->used < PIECE_ALIGN;
}

/* The current chunk is done with: a mark goes with what is in flight there. Without a mark the host
 * waits at once. It stays current, and full, until the next one is opened; where that fails it is
 * closed once more, or is closed already. */
static tide_status ring_close_chunk(const tide_pool_core *core, tide_pinned_ring *ring)
{
    tide_device *device = core->device;
    chunk *c = &ring->chunks[ring->current];
    tide_assert(ring_chunk_full(ring));
    if (c->mark != NULL)
        return TIDE_OK;
    c->mark = device->methods->mark(device, core->streams.own);
    return c->mark != NULL ? TIDE_OK : device->methods->wait(device, core->streams.own);
}

/* The chunk becomes current once its mark has been passed. */
static tide_status ring_open_chunk(const tide_pool_core *core, tide_pinned_ring *ring,
                                   uint32_t next)
{
    tide_device *device = core->device;
    chunk *c = &ring->chunks[next];
    tide_assert(next < CHUNKS && c->data != NULL && ring_chunk_full(ring));
    if (c->mark != NULL) {
        if (!device->methods->mark_done(device, c->mark))
            TIDE_FORWARD(device->methods->mark_wait(device, c->mark));
        device->methods->mark_drop(device, c->mark);
        c->mark = NULL;
    }
    ring->current = next;
    ring->used = 0;
    return TIDE_OK;
}

tide_status tide_ring_admit(const tide_pool *pool, const char *call)
{
    const tide_pool_core *core = pool->core;
    if (!tide_device_capturing(core->device, core->streams.own))
        return TIDE_OK;
    return tide_fail(TIDE_ERROR_STATE, call,
                     "a graph is captured on the stream of pool '%s': its replays would copy what "
                     "happens to be staged then",
                     core->name);
}

/* The ring, with memory for its current chunk. Refused while a graph is captured. */
static tide_status ring_begin(tide_pool *pool, tide_pinned_ring **ring, const char *call)
{
    TIDE_FORWARD(tide_ring_admit(pool, call));
    *ring = ring_make_ready(pool, call);
    return *ring != NULL ? ring_give(pool, *ring, (*ring)->current, call) : TIDE_ERROR_MEMORY;
}

static size_t ring_round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

/* ---- pieces -------------------------------------------------------------------------------- */

/* Copies what the pieces have in [at, at + bytes) of the block; `out`: from `staged` to the
 * pieces, else the other way round. `first` is the piece to look from; it is moved on past pieces
 * that end before. */
static void ring_move_pieces(const tide_piece *pieces, size_t count, size_t *first, char *staged,
                             size_t at, size_t bytes, bool out)
{
    tide_assert(bytes != 0 && *first <= count);
    while (*first < count && pieces[*first].at + pieces[*first].bytes <= at)
        ++*first;
    for (size_t i = *first; i < count && pieces[i].at < at + bytes; i++) {
        const tide_piece *p = &pieces[i];
        size_t begin = p->at > at ? p->at : at;
        size_t end = p->at + p->bytes < at + bytes ? p->at + p->bytes : at + bytes;
        if (begin >= end)
            continue;
        tide_assert(begin >= at && end <= at + bytes && end - begin <= p->bytes);
        if (out)
            memcpy(p->host + (begin - p->at), staged + (begin - at), end - begin);
        else
            memcpy(staged + (begin - at), p->host + (begin - p->at), end - begin);
    }
}

/* ---- to the device -------------------------------------------------------------------------- */

/* The next chunk becomes current. */
static tide_status ring_advance(tide_pool *pool, tide_pinned_ring *ring, const char *call)
{
    const uint32_t next = (ring->current + 1) % CHUNKS;
    TIDE_FORWARD(ring_give(pool, ring, next, call));
    TIDE_FORWARD(ring_close_chunk(pool->core, ring));
    return ring_open_chunk(pool->core, ring, next);
}

tide_status tide_ring_write(tide_pool *pool, void *block, size_t bytes, const tide_piece *pieces,
                            size_t count, const char *call)
{
    const tide_pool_core *core = pool->core;
    tide_pinned_ring *ring = NULL;
    tide_assert(block != NULL && bytes != 0 && count != 0);
    TIDE_FORWARD(ring_begin(pool, &ring, call));
    size_t first = 0;
    for (size_t at = 0, n; at < bytes; at += n) {
        if (ring_chunk_full(ring))
            TIDE_FORWARD(ring_advance(pool, ring, call));
        n = ring->bytes - ring->used;
        n = n < bytes - at ? n : bytes - at;
        tide_assert(n != 0);
        char *staged = ring->chunks[ring->current].data + ring->used;
        ring_move_pieces(pieces, count, &first, staged, at, n, false);
        ring->used += ring_round_up(n, PIECE_ALIGN);
        tide_assert(ring->used <= ring->bytes);
        TIDE_FORWARD(core->device->methods->copy(core->device, core->streams.own,
                                                 (char *)block + at, staged, n));
    }
    return TIDE_OK;
}

/* ---- from the device ------------------------------------------------------------------------ */

/* A copy into a chunk that has been queued and not yet been handed on to the pieces: at most one in
 * each. */
typedef struct arrival {
    char *staged;
    size_t at, bytes; /* 0 bytes: none */
    void *mark;       /* NULL: it is there */
} arrival;

typedef struct reading {
    tide_pool *pool;
    const tide_piece *pieces;
    size_t count, first;
    arrival arrivals[CHUNKS]; /* of each chunk */
} reading;

/* Waits for the chunk's arrival, if it has one, and copies it to the pieces. Gone in any case. */
static tide_status ring_hand_on(reading *r, uint32_t index)
{
    tide_assert(index < CHUNKS);
    tide_device *device = r->pool->core->device;
    const arrival a = r->arrivals[index];
    tide_status status = TIDE_OK;
    r->arrivals[index] = (arrival){.bytes = 0};
    if (a.mark != NULL) {
        status = device->methods->mark_wait(device, a.mark);
        device->methods->mark_drop(device, a.mark);
    }
    if (status == TIDE_OK && a.bytes != 0)
        ring_move_pieces(r->pieces, r->count, &r->first, a.staged, a.at, a.bytes, true);
    return status;
}

/* Queues the copy of the block's n bytes from `at` on, into the current chunk. */
static tide_status ring_queue_read(reading *r, tide_pinned_ring *ring, const char *from, size_t at,
                                   size_t n)
{
    tide_device *device = r->pool->core->device;
    tide_assert(n != 0 && n <= ring->bytes - ring->used);
    arrival a = {.staged = ring->chunks[ring->current].data + ring->used, .at = at, .bytes = n};
    ring->used += ring_round_up(n, PIECE_ALIGN);
    TIDE_FORWARD(device->methods->copy(device, r->pool->core->streams.own, a.staged, from, n));
    a.mark = device->methods->mark(device, r->pool->core->streams.own);
    if (a.mark == NULL)
        TIDE_FORWARD(device->methods->wait(device, r->pool->core->streams.own));
    tide_assert(r->arrivals[ring->current].bytes == 0);
    r->arrivals[ring->current] = a;
    return TIDE_OK;
}

/* On failure some arrivals may still be waiting. */
static tide_status ring_read_all(reading *r, tide_pinned_ring *ring, const char *from, size_t bytes,
                                 const char *call)
{
    for (size_t at = 0, n; at < bytes; at += n) {
        if (ring_chunk_full(ring)) { /* what is still to be read from the next is the oldest */
            TIDE_FORWARD(ring_hand_on(r, (ring->current + 1) % CHUNKS));
            TIDE_FORWARD(ring_advance(r->pool, ring, call));
        }
        n = ring->bytes - ring->used;
        n = n < bytes - at ? n : bytes - at;
        TIDE_FORWARD(ring_queue_read(r, ring, from + at, at, n));
    }
    for (uint32_t i = 1; i <= CHUNKS; i++)
        TIDE_FORWARD(ring_hand_on(r, (ring->current + i) % CHUNKS));
    return TIDE_OK;
}

tide_status tide_ring_read(tide_pool *pool, const void *block, size_t bytes,
                           const tide_piece *pieces, size_t count, const char *call)
{
    tide_pinned_ring *ring = NULL;
    tide_assert(block != NULL && bytes != 0 && count != 0);
    TIDE_FORWARD(ring_begin(pool, &ring, call));
    reading r = {.pool = pool, .pieces = pieces, .count = count};
    uint32_t current = ring->current;
    size_t used = ring->used;
    tide_status status = ring_read_all(&r, ring, block, bytes, call);
    for (uint32_t i = 0; i < CHUNKS; i++)
        if (r.arrivals[i].mark != NULL)
            pool->core->device->methods->mark_drop(pool->core->device, r.arrivals[i].mark);
    if (status == TIDE_OK && ring->current == current)
        ring->used = used; /* what arrived has been handed on */
    return status;
}

/* ---- end ----------------------------------------------------------------------------------- */

/* Nothing uses the chunks any more. */
static void ring_go(tide_device *device, tide_deferred *deferred)
{
    tide_pinned_ring *ring = (tide_pinned_ring *)(void *)deferred;
    for (uint32_t i = 0; i < CHUNKS; i++) {
        const chunk *c = &ring->chunks[i];
        if (c->mark != NULL)
            device->methods->mark_drop(device, c->mark);
        if (c->data != NULL)
            tide_budget_release(device, device->service, TIDE_MEMORY_PINNED, c->data, ring->bytes);
    }
    tide_os_free(ring);
}

void tide_ring_end(tide_pool *pool)
{
    tide_pool_core *core = pool->core;
    tide_pinned_ring *ring = core->ring;
    if (ring == NULL)
        return;
    core->ring = NULL;
    tide_deferred_put(core->device, tide_streams_last(pool), &ring->deferred, ring_go);
    (void)tide_deferred_settle(core->device, false);
}
