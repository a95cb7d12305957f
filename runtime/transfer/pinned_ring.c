/* SPDX-License-Identifier: MIT */
#include "runtime/transfer/pinned_ring.h"

#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/settings.h"
#include "runtime/pool/streams.h"

enum { CHUNKS = 4, CHUNK_ALIGN = 4096, PIECE_ALIGN = 64 };

typedef struct chunk {
    char *data; /* NULL: not needed so far */
    void *mark; /* when passed, nothing uses the chunk; NULL: nothing does, or it is current */
} chunk;

typedef struct tide_staging {
    size_t bytes; /* of each chunk */
    size_t used;  /* of the current one */
    uint32_t current;
    chunk chunks[CHUNKS];
} tide_staging;

/* ---- the ring ------------------------------------------------------------------------------ */

static tide_staging *ready(tide_pool *pool, const char *call)
{
    tide_pool_core *core = pool->core;
    if (core->staging != NULL)
        return core->staging;
    tide_staging *made = tide_os_resize(NULL, sizeof *made);
    if (made == NULL) {
        tide_fail(TIDE_ERROR_MEMORY, call, "no %zu bytes to begin copies of pool '%s'",
                  sizeof *made, core->name);
        return NULL;
    }
    *made = (tide_staging){.bytes = (size_t)tide_setting_get(TIDE_SETTING_staging) * 1024};
    return core->staging = made;
}

/* TIDE_ERROR_MEMORY, without a message, when there is none. */
static tide_status give_memory(const tide_pool_core *core, const tide_staging *staging, chunk *c)
{
    if (c->data != NULL)
        return TIDE_OK;
    void *data = NULL;
    tide_status status = core->device->methods->allocate(
        core->device, core->stream, TIDE_MEMORY_PINNED, staging->bytes, CHUNK_ALIGN, &data);
    if (status == TIDE_OK)
        c->data = data;
    return status;
}

/* The chunk after the current one. Where there is no memory for one more, the first serves again.
 */
static tide_status next_chunk(const tide_pool_core *core, tide_staging *staging, uint32_t *next)
{
    *next = (staging->current + 1) % CHUNKS;
    tide_status status = give_memory(core, staging, &staging->chunks[*next]);
    if (status != TIDE_ERROR_MEMORY)
        return status;
    *next = 0;
    return TIDE_OK;
}

/* Without a mark the host waits at once. */
static tide_status close_chunk(const tide_pool_core *core, tide_staging *staging)
{
    tide_device *device = core->device;
    chunk *c = &staging->chunks[staging->current];
    tide_assert(c->mark == NULL);
    if (staging->used == 0)
        return TIDE_OK;
    c->mark = device->methods->mark(device, core->stream);
    if (c->mark == NULL)
        TIDE_FORWARD(device->methods->wait(device, core->stream));
    staging->used = 0;
    return TIDE_OK;
}

static tide_status open_chunk(const tide_pool_core *core, tide_staging *staging, uint32_t next)
{
    tide_device *device = core->device;
    chunk *c = &staging->chunks[next];
    tide_assert(staging->used == 0);
    if (c->mark != NULL) {
        if (!device->methods->mark_done(device, c->mark))
            TIDE_FORWARD(device->methods->mark_wait(device, c->mark));
        device->methods->mark_drop(device, c->mark);
        c->mark = NULL;
    }
    staging->current = next;
    return TIDE_OK;
}

/* Is there no room left in the current chunk? */
static bool full(const tide_staging *staging)
{
    return staging->bytes - staging->used < PIECE_ALIGN;
}

static tide_status begin(tide_pool *pool, tide_staging **staging, const char *call)
{
    const tide_pool_core *core = pool->core;
    if (core->device->methods->capturing(core->device, core->stream))
        return tide_fail(TIDE_ERROR_STATE, call,
                         "a graph is captured on the stream of pool '%s': its replays would copy "
                         "what happens to be staged then",
                         core->name);
    *staging = ready(pool, call);
    if (*staging == NULL)
        return TIDE_ERROR_MEMORY;
    tide_status status = give_memory(core, *staging, &(*staging)->chunks[(*staging)->current]);
    if (status == TIDE_ERROR_MEMORY)
        tide_fail(status, call, "no %zu bytes of pinned memory for copies of pool '%s'",
                  (*staging)->bytes, core->name);
    return status;
}

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

/* ---- pieces -------------------------------------------------------------------------------- */

/* Copies the part of the pieces that lies in [at, at + bytes) of the block to or from `staged`.
 * `first` is where to look from; moved on past pieces that end before. */
static void move_pieces(const tide_piece *pieces, size_t count, size_t *first, char *staged,
                        size_t at, size_t bytes, bool out)
{
    while (*first < count && pieces[*first].at + pieces[*first].bytes <= at)
        ++*first;
    for (size_t i = *first; i < count && pieces[i].at < at + bytes; i++) {
        const tide_piece *p = &pieces[i];
        size_t begin = p->at > at ? p->at : at;
        size_t end = p->at + p->bytes < at + bytes ? p->at + p->bytes : at + bytes;
        if (begin >= end)
            continue;
        if (out)
            memcpy(p->host + (begin - p->at), staged + (begin - at), end - begin);
        else
            memcpy(staged + (begin - at), p->host + (begin - p->at), end - begin);
    }
}

/* ---- to the device -------------------------------------------------------------------------- */

static tide_status advance(const tide_pool_core *core, tide_staging *staging)
{
    uint32_t next = 0;
    TIDE_FORWARD(next_chunk(core, staging, &next));
    TIDE_FORWARD(close_chunk(core, staging));
    return open_chunk(core, staging, next);
}

tide_status tide_staging_write(tide_pool *pool, void *block, size_t bytes, const tide_piece *pieces,
                               size_t count, const char *call)
{
    const tide_pool_core *core = pool->core;
    tide_staging *staging = NULL;
    TIDE_FORWARD(begin(pool, &staging, call));
    size_t first = 0;
    for (size_t at = 0, n; at < bytes; at += n) {
        if (full(staging))
            TIDE_FORWARD(advance(core, staging));
        n = staging->bytes - staging->used;
        n = n < bytes - at ? n : bytes - at;
        char *staged = staging->chunks[staging->current].data + staging->used;
        move_pieces(pieces, count, &first, staged, at, n, false);
        staging->used += round_up(n, PIECE_ALIGN);
        TIDE_FORWARD(
            core->device->methods->copy(core->device, core->stream, (char *)block + at, staged, n));
    }
    return TIDE_OK;
}

/* ---- from the device ------------------------------------------------------------------------ */

/* What has been queued and not yet been handed on. */
typedef struct arrival {
    char *staged;
    size_t at, bytes;
    void *mark; /* NULL: it is there */
    uint32_t chunk;
} arrival;

typedef struct reading {
    tide_pool_core *core;
    const tide_piece *pieces;
    size_t count, first;
    arrival arrivals[CHUNKS];
    uint32_t oldest, waiting;
} reading;

static tide_status arrive(reading *r)
{
    tide_device *device = r->core->device;
    arrival *a = &r->arrivals[r->oldest];
    tide_status status = TIDE_OK;
    if (a->mark != NULL) {
        status = device->methods->mark_wait(device, a->mark);
        device->methods->mark_drop(device, a->mark);
    }
    r->oldest = (r->oldest + 1) % CHUNKS;
    r->waiting--;
    if (status == TIDE_OK)
        move_pieces(r->pieces, r->count, &r->first, a->staged, a->at, a->bytes, true);
    return status;
}

static bool awaited(const reading *r, uint32_t index)
{
    for (uint32_t i = 0; i < r->waiting; i++)
        if (r->arrivals[(r->oldest + i) % CHUNKS].chunk == index)
            return true;
    return false;
}

/* The next chunk, once what is still to be read from it has been handed on. */
static tide_status advance_reading(reading *r, tide_staging *staging)
{
    uint32_t next = 0;
    TIDE_FORWARD(next_chunk(r->core, staging, &next));
    TIDE_FORWARD(close_chunk(r->core, staging));
    while (awaited(r, next))
        TIDE_FORWARD(arrive(r));
    return open_chunk(r->core, staging, next);
}

static tide_status queue(reading *r, tide_staging *staging, const char *from, size_t at, size_t n)
{
    tide_device *device = r->core->device;
    tide_assert(r->waiting < CHUNKS);
    arrival a = {.staged = staging->chunks[staging->current].data + staging->used,
                 .at = at,
                 .bytes = n,
                 .chunk = staging->current};
    staging->used += round_up(n, PIECE_ALIGN);
    TIDE_FORWARD(device->methods->copy(device, r->core->stream, a.staged, from, n));
    a.mark = device->methods->mark(device, r->core->stream);
    if (a.mark == NULL)
        TIDE_FORWARD(device->methods->wait(device, r->core->stream));
    r->arrivals[(r->oldest + r->waiting++) % CHUNKS] = a;
    return TIDE_OK;
}

static tide_status read_all(reading *r, tide_staging *staging, const char *from, size_t bytes)
{
    for (size_t at = 0, n; at < bytes; at += n) {
        if (full(staging))
            TIDE_FORWARD(advance_reading(r, staging));
        n = staging->bytes - staging->used;
        n = n < bytes - at ? n : bytes - at;
        if (r->waiting == CHUNKS)
            TIDE_FORWARD(arrive(r));
        TIDE_FORWARD(queue(r, staging, from + at, at, n));
    }
    while (r->waiting > 0)
        TIDE_FORWARD(arrive(r));
    return TIDE_OK;
}

tide_status tide_staging_read(tide_pool *pool, const void *block, size_t bytes,
                              const tide_piece *pieces, size_t count, const char *call)
{
    tide_staging *staging = NULL;
    TIDE_FORWARD(begin(pool, &staging, call));
    reading r = {.core = pool->core, .pieces = pieces, .count = count};
    uint32_t current = staging->current;
    size_t used = staging->used;
    tide_status status = read_all(&r, staging, block, bytes);
    for (; r.waiting > 0; r.waiting--, r.oldest = (r.oldest + 1) % CHUNKS)
        if (r.arrivals[r.oldest].mark != NULL)
            pool->core->device->methods->mark_drop(pool->core->device, r.arrivals[r.oldest].mark);
    if (status == TIDE_OK && staging->current == current)
        staging->used = used; /* what arrived has been handed on */
    return status;
}

/* ---- end ----------------------------------------------------------------------------------- */

/* A device that cannot be waited for runs nothing any more. */
void tide_staging_end(tide_pool *pool)
{
    tide_pool_core *core = pool->core;
    tide_device *device = core->device;
    tide_staging *staging = core->staging;
    if (staging == NULL)
        return;
    void *stream = tide_streams_last(pool);
    (void)device->methods->wait(device, stream);
    for (uint32_t i = 0; i < CHUNKS; i++) {
        chunk *c = &staging->chunks[i];
        if (c->mark != NULL)
            device->methods->mark_drop(device, c->mark);
        if (c->data != NULL)
            device->methods->release(device, stream, TIDE_MEMORY_PINNED, c->data, staging->bytes);
    }
    tide_os_free(staging);
    core->staging = NULL;
}
