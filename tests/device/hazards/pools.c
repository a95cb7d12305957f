/* SPDX-License-Identifier: MIT */
/* Steps that are a pool's. */
#include <string.h>

#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/dynamic.h>
#include <tidepool/learn.h>
#include <tidepool/upkeep.h>

#include "world.h"

static pool *pool_of(uint8_t a)
{
    pool *p = &w.pools[a % POOLS];
    return p->pool != NULL ? p : NULL;
}

static int number_of(const pool *p)
{
    return (int)(p - w.pools);
}

/* A pool may refuse while its stream is captured, and only then. */
static void refused(const pool *p)
{
    bool captured = world_group(p->stream) != NULL || p->group != NOBODY;
    if (tide_error_status() != TIDE_ERROR_STATE || !captured)
        world_wrong("pool %d: %s", number_of(p), tide_error_message());
}

static bool passed(const pool *p, tide_status status)
{
    if (status != TIDE_OK)
        refused(p);
    return status == TIDE_OK;
}

/* ---- pools ----------------------------------------------------------------------------------- */

void pools_open(int i, int stream, uint8_t how)
{
    pool *p = &w.pools[i];
    *p = (pool){.stream = stream, .group = NOBODY};
    p->pool = tide_pool_create(
        &(tide_pool_options){.device = w.device,
                             .stream = w.streams[stream],
                             .buffers = how % 4 == 1 ? w.buffers : NULL,
                             .disabled = how % 8 == 2,
                             .check = how % 8 == 3 ? TIDE_CHECK_POISON : TIDE_CHECK_NONE});
    if (p->pool == NULL)
        world_wrong("%s", tide_error_message());
}

static void let_go_above(const pool *p, int depth)
{
    for (claim *c = w.claims; c < w.claims + CLAIMS; c++)
        if ((c->holders & BY_ARRAY) != 0 && c->pool == number_of(p) && c->level > depth)
            world_let_go(c, BY_ARRAY);
}

/* The library has put the pool's stream behind what was declared. */
static void streams_rejoined(const pool *p, unsigned declared)
{
    for (claim *c = w.claims; c < w.claims + CLAIMS; c++)
        if ((c->holders & (BY_ARRAY | BY_CONSUMER)) != 0 && c->pool == number_of(p) &&
            *world_last(c) != NOBODY && (declared >> *world_last(c) & 1) != 0)
            *world_told(c) |= 1u << p->stream;
}

static void reset(pool *p)
{
    streams_rejoined(p, world_declared(p));
    let_go_above(p, NOBODY);
    p->depth = 0;
}

void pools_close(int i)
{
    pool *p = &w.pools[i];
    if (p->pool == NULL)
        return;
    if (tide_pool_reset(p->pool) != TIDE_OK || tide_pool_check(p->pool) != TIDE_OK ||
        tide_pool_destroy(p->pool) != TIDE_OK)
        world_wrong("pool %d: %s", i, tide_error_message());
    reset(p);
    p->pool = NULL;
    for (claim *c = w.claims; c < w.claims + CLAIMS; c++)
        if (c->holders != 0 && c->pool == i)
            c->pool = NOBODY;
}

void step_pool(const step *s)
{
    int i = s->a % POOLS, stream = s->b % STREAMS;
    if (w.pools[i].pool != NULL &&
        (w.pools[i].group != NOBODY || world_group(w.pools[i].stream) != NULL))
        return;
    if (w.pools[i].pool != NULL)
        pools_close(i);
    else if (world_group(stream) == NULL)
        pools_open(i, stream, s->c);
}

/* ---- levels ---------------------------------------------------------------------------------- */

void step_enter(const step *s)
{
    pool *p = pool_of(s->a);
    if (p == NULL || p->depth == DEEPEST)
        return;
    level *l = &p->levels[p->depth];
    *l = (level){.scoped = s->b % 2 == 0};
    if (!l->scoped)
        l->mark = tide_checkpoint(p->pool);
    else if (!passed(p, tide_scope_enter(p->pool, NULL, &l->scope)))
        return;
    p->depth++;
}

void step_leave(const step *s)
{
    pool *p = pool_of(s->a);
    if (p == NULL || p->depth == 0)
        return;
    level *l = &p->levels[p->depth - 1];
    if (!passed(p, l->scoped ? tide_scope_leave(&l->scope) : tide_rewind(p->pool, l->mark)))
        return;
    streams_rejoined(p, l->declared);
    p->depth--;
    let_go_above(p, p->depth);
}

static bool has_pools(int stream)
{
    for (int i = 0; i < POOLS; i++)
        if (w.pools[i].pool != NULL && w.pools[i].stream == stream)
            return true;
    return false;
}

/* A stream that is not captured joins the capture of the pool's. */
void step_declare(const step *s)
{
    pool *p = pool_of(s->a);
    int on = s->b % STREAMS;
    if (p == NULL || p->depth == 0 || on == p->stream)
        return;
    group *own = world_group(p->stream), *other = world_group(on);
    if (own != NULL &&
        (p->group == NOBODY || (other == NULL && (has_pools(on) || world_is_declared(on))) ||
         (other != NULL && other != own)))
        return;
    if (own == NULL && other != NULL) { /* it would end that capture */
        if (tide_pool_use_on(p->pool, w.streams[on]) != TIDE_ERROR_STATE)
            world_wrong("a captured stream was declared to pool %d", number_of(p));
        return;
    }
    if (w.plant == PLANT_DECLARE)
        fake_order(w.streams[p->stream], w.streams[on]);
    else if (!passed(p, tide_pool_use_on(p->pool, w.streams[on])))
        return;
    p->levels[p->depth - 1].declared |= (world_declared(p) >> on & 1) != 0 ? 0 : 1u << on;
    if (own != NULL)
        own->members |= 1u << on;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static size_t size_of(uint8_t b)
{
    return b < 200 ? 1 + (size_t)b * 5 : (size_t)(b - 199) * 700;
}

/* Declared streams come after whatever the library has queued for it. */
static claim *claim_array(pool *p, void *data, size_t bytes)
{
    claim *c = world_claim(BY_ARRAY, number_of(p), data, bytes, p->stream);
    if (c == NULL)
        return NULL;
    c->level = p->depth;
    c->told = world_declared(p);
    c->in_capture = world_group(p->stream) != NULL && p->group != NOBODY;
    return c;
}

void step_acquire(const step *s)
{
    static const tide_type types[] = {TIDE_F32, TIDE_U8, TIDE_F64, TIDE_F16};
    pool *p = pool_of(s->a);
    if (p == NULL)
        return;
    const tide_type type = types[s->c % 4];
    const size_t n = size_of(s->b), bytes = n * tide_type_size(type);
    tide_array *array = NULL;
    void *data;
    if (s->c % 3 == 0) {
        array = tide_array_acquire(p->pool, type, 1, (const int64_t[]){(int64_t)n});
        data = array != NULL ? tide_array_data(array) : NULL;
    } else {
        data = tide_acquire_type(p->pool, type, n);
    }
    if (data == NULL) {
        refused(p);
        return;
    }
    claim *c = claim_array(p, data, bytes);
    if (c != NULL)
        c->array = array;
}

static bool is_array(const claim *c)
{
    return (c->holders & BY_ARRAY) != 0;
}

/* The library does it on the pool's stream: what was used last on a declared one is its affair. */
static bool ready_for_library(claim *c, const pool *p)
{
    int last = *world_last(c);
    if (!world_may_use(c, p->stream))
        return false;
    if (world_group(p->stream) != NULL || last == NOBODY || (world_declared(p) >> last & 1) == 0 ||
        w.plant == PLANT_DECLARE)
        world_order(c, p->stream);
    return true;
}

static void used_by_library(claim *c, const pool *p)
{
    world_used(c, p->stream, w.plant == PLANT_DECLARE ? 0 : world_declared(p));
    w.queued += 2;
}

static void fill_frame(const step *s)
{
    claim *c = world_pick(s->a, is_array);
    if (c == NULL || c->pool == NOBODY || !ready_for_library(c, &w.pools[c->pool]))
        return;
    const pool *p = &w.pools[c->pool];
    uint8_t value = ++w.value;
    const tide_part part = {c->data, &value, TIDE_U8, c->bytes};
    if (!passed(p, tide_fill_frame(p->pool, &part, 1)))
        return;
    world_written(c, value);
    used_by_library(c, p);
}

void step_fill(const step *s)
{
    pool *p = pool_of(s->a);
    if (s->c % 2 != 0) {
        fill_frame(s);
        return;
    }
    if (p == NULL)
        return;
    const size_t n = size_of(s->b);
    void *data = tide_zeros_type(p->pool, TIDE_I32, n);
    if (data == NULL) {
        refused(p);
        return;
    }
    claim *c = claim_array(p, data, n * 4);
    if (c != NULL)
        world_written(c, 0);
}

void step_copy(const step *s)
{
    claim *to = world_pick(s->a, is_array), *from = world_pick(s->b, is_array);
    if (to == NULL || to == from || to->pool == NOBODY || from->pool != to->pool)
        return;
    const pool *p = &w.pools[to->pool];
    bool known = p->group != NOBODY ? from->in_graph : from->written;
    if (!known || !ready_for_library(from, p) || !ready_for_library(to, p))
        return;
    size_t bytes = to->bytes < from->bytes ? to->bytes : from->bytes;
    if (!passed(p, tide_copy(p->pool, to->data, from->data, bytes)))
        return;
    used_by_library(from, p);
    used_by_library(to, p);
    world_written(to, to->in_capture ? from->graph_value : from->value);
    to->bytes = bytes; /* of the rest nothing is said any more */
}

void step_transfer(const step *s)
{
    static uint8_t host[64000];
    claim *c = world_pick(s->a, is_array);
    if (c == NULL || c->pool == NOBODY || w.pools[c->pool].group != NOBODY ||
        c->bytes > sizeof host || !ready_for_library(c, &w.pools[c->pool]))
        return;
    const pool *p = &w.pools[c->pool];
    uint8_t value = ++w.value;
    memset(host, value, c->bytes);
    bool up = s->c % 2 == 0 || !c->written;
    tide_status status = up ? tide_upload(p->pool, c->data, host, c->bytes)
                            : tide_download(p->pool, host, c->data, c->bytes);
    memset(host + c->bytes, c->value, 1);
    if (!passed(p, status))
        return;
    used_by_library(c, p);
    if (up)
        world_written(c, value);
    else if (host[0] != c->value || memcmp(host, host + 1, c->bytes - 1) != 0)
        world_wrong("a download brought %u and not %u", host[0], c->value);
    memset(host, 0xEE, c->bytes); /* an upload has what it needs */
}

/* ---- what is given back ---------------------------------------------------------------------- */

/* What was on the pool's stream is over for the host. */
static tide_status wait_and_look(const pool *p)
{
    tide_status status = tide_pool_wait(p->pool);
    for (claim *c = w.claims; c < w.claims + CLAIMS && status == TIDE_OK; c++)
        if (is_array(c) && !c->in_capture && *world_last(c) == p->stream)
            fake_host_uses(c->data, c->bytes, true);
    return status;
}

void step_trim(const step *s)
{
    pool *p = pool_of(s->a);
    if (p == NULL)
        return;
    tide_status status = TIDE_OK;
    switch (s->b % 8) {
    case 0: (void)tide_pool_trim(p->pool, TIDE_ALL_TYPES); break;
    case 1: (void)tide_pool_compact(p->pool, TIDE_ALL_TYPES); break;
    case 2: status = tide_pool_request(p->pool, TIDE_REQUEST_TRIM); break;
    case 3: status = tide_pool_empty(p->pool); break;
    case 4: (void)tide_buffers_trim(w.buffers, 0); break;
    case 5: status = tide_step(); break;
    case 6: status = wait_and_look(p); break;
    default: status = tide_pool_reset(p->pool);
    }
    if (passed(p, status) && (s->b % 8 == 3 || s->b % 8 == 7))
        reset(p);
}
