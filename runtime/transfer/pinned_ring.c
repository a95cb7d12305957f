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
#include "runtime/transfer/copy.h"

enum {
    CHUNKS = TIDE_RING_CHUNKS,
    CHUNK_ALIGN = 4096,
    PIECE_ALIGN = 64
}; /* in bytes, but for the first */

_Static_assert(CHUNKS >= 2, "one chunk is filled while another is in flight");
_Static_assert(CHUNK_ALIGN % PIECE_ALIGN == 0, "what is aligned in a chunk is aligned in memory");

typedef struct chunk {
    char *data; /* NULL: not needed so far */
    void *mark; /* when passed, nothing uses the chunk; NULL: nothing does, or it is current */
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
    TIDE_FORWARD(tide_copy_check_capture(pool, call)); /* in vain nothing is taken */
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

/* The next chunk becomes current, once its mark has been passed. The one that was gets a mark, behind what is in
 * flight there; where something fails before that, it stays current, and full. */
static tide_status ring_advance(tide_pool *pool, tide_pinned_ring *ring, const char *call)
{
    tide_device *device = pool->core->device;
    const uint32_t next = (ring->current + 1) % CHUNKS;
    chunk *was = &ring->chunks[ring->current], *is = &ring->chunks[next];
    tide_assert(ring_chunk_full(ring) && was->mark == NULL);
    TIDE_FORWARD(tide_copy_check_capture(pool, call)); /* in vain nobody waits */
    TIDE_FORWARD(ring_give(pool, ring, next, call));
    if (is->mark != NULL) {
        if (!device->methods->mark_done(device, is->mark))
            TIDE_FORWARD(device->methods->mark_wait(device, is->mark));
        device->methods->mark_drop(device, is->mark);
        is->mark = NULL;
    }
    was->mark = device->methods->mark(device, pool->core->streams.own);
    if (was->mark == NULL)
        return tide_error_status();
    ring->current = next;
    ring->used = 0;
    return TIDE_OK;
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

/* ---- to the device, and from it -------------------------------------------------------------- */

/* Room for so many bytes, or for the first of them. */
static tide_status ring_take(tide_pool *pool, size_t wanted, char **staged, size_t *bytes,
                             const char *call)
{
    tide_pinned_ring *ring = ring_make_ready(pool, call);
    if (ring == NULL)
        return TIDE_ERROR_MEMORY;
    TIDE_FORWARD(ring_give(pool, ring, ring->current, call));
    if (ring_chunk_full(ring))
        TIDE_FORWARD(ring_advance(pool, ring, call));
    size_t room = ring->bytes - ring->used;
    *bytes = wanted < room ? wanted : room;
    *staged = ring->chunks[ring->current].data + ring->used;
    ring->used += ring_round_up(*bytes, PIECE_ALIGN);
    tide_assert(*bytes != 0 && ring->used <= ring->bytes);
    return TIDE_OK;
}

tide_status tide_ring_copy(tide_pool *pool, void *block, size_t bytes, const tide_piece *pieces,
                           size_t count, bool up, const char *call)
{
    const tide_pool_core *core = pool->core;
    size_t first = 0, n = 0;
    tide_assert(block != NULL && bytes != 0 && count != 0);
    for (size_t at = 0; at < bytes; at += n) {
        char *staged = NULL, *there = (char *)block + at;
        TIDE_FORWARD(ring_take(pool, bytes - at, &staged, &n, call));
        if (up)
            ring_move_pieces(pieces, count, &first, staged, at, n, false);
        TIDE_FORWARD(core->device->methods->copy(core->device, core->streams.own,
                                                 up ? there : staged, up ? staged : there, n,
                                                 up ? TIDE_COPY_STAGED : TIDE_COPY_WAITED));
        if (up)
            continue;
        core->ring->used = 0; /* the stream has come past all that was staged */
        ring_move_pieces(pieces, count, &first, staged, at, n, true);
    }
    return TIDE_OK;
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
