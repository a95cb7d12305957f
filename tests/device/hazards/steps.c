/* SPDX-License-Identifier: MIT */
/* Steps that are the program's own: kernels, buffers, exports, graphs. */
#include <string.h>

#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/device.h>

#include "tests/device/cuda/support.h"
#include "world.h"

/* ---- kernels --------------------------------------------------------------------------------- */

static void launch(int stream, const claim *c, bool writes, uint8_t value)
{
    (writes ? put : expect)(w.streams[stream], c->data, c->bytes, value);
    w.queued++;
}

static bool is_held(const claim *c)
{
    return (c->holders & ~(unsigned)BY_GRAPH) != 0;
}

/* An array is the pool's stream's, and those' that are declared; others may have the stream that
 * they like. */
static int stream_for(const claim *c, uint8_t b)
{
    if ((c->holders & (BY_CONSUMER | BY_PROGRAM)) != 0)
        return b % STREAMS;
    const pool *p = &w.pools[c->pool];
    for (int i = 0; i < STREAMS && b % 8 != 0; i++)
        if ((world_declared(p) >> (b + i) % STREAMS & 1) != 0)
            return (b + i) % STREAMS;
    return p->stream;
}

static void write_on(claim *c, int on)
{
    uint8_t value = ++w.value;
    launch(on, c, true, value);
    world_written(c, value);
}

void step_use(const step *s)
{
    claim *c = world_pick(s->a, is_held);
    if (c == NULL)
        return;
    int on = stream_for(c, s->b);
    if (!world_may_use(c, on))
        return;
    group *g = world_group(on);
    if (g != NULL && ++g->length > 100)
        return;
    world_order(c, on);
    bool known = c->in_capture ? c->in_graph : c->written;
    if (known && s->c % 2 == 0)
        launch(on, c, false, c->in_capture ? c->graph_value : c->value);
    else
        write_on(c, on);
    world_used(c, on, 0);
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* The host writes what it sees at once. */
static void fill_of_host(claim *c)
{
    c->of_host = true;
    fake_host_uses(c->data, c->bytes, true);
    c->value = ++w.value;
    c->written = true;
    c->last = NOBODY;
    memset(c->data, c->value, c->bytes);
}

void step_borrow(const step *s)
{
    int on = s->b % STREAMS;
    const uint32_t kinds[] = {TIDE_BUFFER_DEVICE, TIDE_BUFFER_PINNED, TIDE_BUFFER_MANAGED};
    const uint32_t kind = kinds[s->c % 4 % 3];
    tide_buffer b =
        tide_buffer_acquire_on(w.buffers, 64 + (size_t)(s->a % 4) * 1000, kind, w.streams[on]);
    if (b.generation == 0) {
        if (world_group(on) == NULL || tide_error_status() != TIDE_ERROR_STATE)
            world_wrong("a buffer: %s", tide_error_message());
        return;
    }
    claim *c = world_claim(BY_PROGRAM, NOBODY, tide_buffer_pointer(w.buffers, b),
                           tide_buffer_bytes(w.buffers, b), on);
    if (c == NULL) {
        (void)tide_buffer_release(w.buffers, b);
        return;
    }
    c->buffer = b;
    c->in_capture = world_group(on) != NULL && kind == TIDE_BUFFER_DEVICE;
    if (c->in_capture)
        c->group = (int)(world_group(on) - w.groups);
    if (kind != TIDE_BUFFER_DEVICE)
        fill_of_host(c);
}

static bool is_borrowed(const claim *c)
{
    return c->holders == BY_PROGRAM && c->group == NOBODY;
}

static int free_stream(uint8_t b)
{
    for (int i = 0; i < STREAMS; i++) {
        int on = (b + i) % STREAMS;
        if (world_group(on) == NULL)
            return on;
    }
    return NOBODY;
}

/* In the order of its last use, but not after it. */
void step_return(const step *s)
{
    claim *c = world_pick(s->a, is_borrowed);
    int on = free_stream(s->b);
    if (c == NULL || on == NOBODY || !world_may_use(c, on))
        return;
    world_order(c, on);
    if (tide_buffer_release_on(w.buffers, c->buffer, w.streams[on]) != TIDE_OK)
        world_wrong("a release: %s", tide_error_message());
    world_let_go(c, BY_PROGRAM);
}

/* ---- exports --------------------------------------------------------------------------------- */

static bool can_be_exported(const claim *c)
{
    return c->holders == BY_ARRAY && c->array != NULL && c->group == NOBODY &&
           w.pools[c->pool].group == NOBODY;
}

void step_export(const step *s)
{
    claim *c = world_pick(s->a, can_be_exported);
    if (c == NULL)
        return;
    c->managed = tide_array_export(w.pools[c->pool].pool, c->array);
    if (c->managed == NULL)
        world_wrong("an export: %s", tide_error_message());
    else
        c->holders |= BY_CONSUMER;
}

static bool is_exported(const claim *c)
{
    return (c->holders & BY_CONSUMER) != 0 && (c->group == NOBODY || (c->holders & BY_GRAPH) != 0);
}

/* Before the pool's stream while the array's scope is open, or when all is over. */
void step_drop(const step *s)
{
    claim *c = world_pick(s->a, is_exported);
    if (c == NULL)
        return;
    int own = (c->holders & BY_ARRAY) != 0 ? w.pools[c->pool].stream : NOBODY;
    int last = *world_last(c);
    if (own != NOBODY && world_may_use(c, own)) {
        world_order(c, own);
        world_used(c, own, 0);
    } else if (last != NOBODY && world_group(last) != NULL) {
        return;
    } else if (last != NOBODY) {
        fake_synchronise(w.streams[last]);
        *world_last(c) = NOBODY;
    }
    c->managed->deleter(c->managed);
    c->managed = NULL;
    world_let_go(c, BY_CONSUMER);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static group *free_group(void)
{
    for (group *g = w.groups; g < w.groups + GROUPS; g++)
        if (!g->recording && g->graph == NULL)
            return g;
    return NULL;
}

static void pools_join(group *g)
{
    for (int i = 0; i < POOLS; i++) {
        pool *p = &w.pools[i];
        if (p->pool == NULL || p->stream != g->origin)
            continue;
        if (w.plant != PLANT_GRAPH && tide_capture_begin(p->pool) != TIDE_OK)
            world_wrong("a capture: %s", tide_error_message());
        p->group = (int)(g - w.groups);
    }
}

/* A stream that is declared to a captured pool would have to be in the capture. */
static bool has_declared(int stream)
{
    for (const pool *p = w.pools; p < w.pools + POOLS; p++)
        if (p->pool != NULL && p->stream == stream && world_declared(p) != 0)
            return true;
    return false;
}

void step_capture(const step *s)
{
    int on = free_stream(s->a);
    group *g = free_group();
    if (on == NOBODY || g == NULL || world_is_declared(on) || has_declared(on))
        return;
    *g = (group){.origin = on, .members = 1u << on, .before = 1u << on, .last = on};
    if (s->b % 2 == 0)
        pools_join(g);
    fake_capture_begin_mode(w.streams[on], s->c % 3);
    g->recording = true;
    if (s->b % 2 != 0)
        pools_join(g);
}

/* All that was recorded elsewhere comes before the end; what its launches need is before them. */
static void *record_ends(group *g)
{
    void *graph = NULL;
    for (int i = 0; i < STREAMS; i++)
        if (i != g->origin && (g->members >> i & 1) != 0)
            fake_order(w.streams[i], w.streams[g->origin]);
    if (fake_capture_end(w.streams[g->origin], &graph) != 0)
        world_wrong("a capture of stream %d was ended by the library", g->origin);
    g->recording = false;
    return graph;
}

static void claims_join(group *g)
{
    const int number = (int)(g - w.groups);
    for (claim *c = w.claims; c < w.claims + CLAIMS; c++) {
        bool ours = c->holders != 0 && c->pool != NOBODY && w.pools[c->pool].group == number &&
                    (c->group == NOBODY || c->group == number);
        if (!ours && !(c->holders != 0 && c->group == number))
            continue;
        if (!c->in_capture && c->last != NOBODY)
            g->before |= 1u << c->last;
        c->in_capture = false;
        c->group = number;
        if (c->pool != NOBODY)
            c->holders |= BY_GRAPH;
    }
}

/* Another capture that is in the way ends first. */
static void launches_follow(group *g)
{
    for (int i = 0; i < STREAMS; i++) {
        if (i == g->origin || (g->before >> i & 1) == 0)
            continue;
        if (world_group(i) != NULL)
            graphs_end(world_group(i));
        fake_order(w.streams[i], w.streams[g->origin]);
    }
}

void graphs_end(group *g)
{
    void *graph = record_ends(g);
    claims_join(g);
    launches_follow(g);
    for (int i = 0; i < POOLS; i++) {
        if (w.pools[i].pool == NULL || w.pools[i].group != (int)(g - w.groups))
            continue;
        g->captures[i] = w.plant != PLANT_GRAPH ? tide_capture_end(w.pools[i].pool) : NULL;
        if (g->captures[i] == NULL && w.plant != PLANT_GRAPH)
            world_wrong("a capture's end: %s", tide_error_message());
        w.pools[i].group = NOBODY;
    }
    g->graph = graph;
}

static group *recording(uint8_t a)
{
    for (int i = 0; i < GROUPS; i++)
        if (w.groups[(a + i) % GROUPS].recording)
            return &w.groups[(a + i) % GROUPS];
    return NULL;
}

void step_captured(const step *s)
{
    group *g = recording(s->a);
    if (g != NULL)
        graphs_end(g);
}

static group *with_graph(uint8_t a)
{
    for (int i = 0; i < GROUPS; i++)
        if (w.groups[(a + i) % GROUPS].graph != NULL)
            return &w.groups[(a + i) % GROUPS];
    return NULL;
}

/* Behind all that used what it uses. */
static bool follows(group *g, int on)
{
    bool ordered = g->last == NOBODY || g->last == on || (g->told >> on & 1) != 0;
    if (!ordered && world_group(g->last) != NULL)
        return false;
    if (!ordered)
        fake_order(w.streams[g->last], w.streams[on]);
    g->last = on;
    g->told = 0;
    return true;
}

static void launch_graph(group *g, int on)
{
    if (!follows(g, on))
        return;
    fake_graph_launch(g->graph, w.streams[on]);
    w.queued += g->length;
    for (claim *c = w.claims; c < w.claims + CLAIMS; c++)
        if (c->holders != 0 && c->group == (int)(g - w.groups)) {
            c->written =
                c->in_graph; /* else another array's that was there before may be written */
            c->value = c->graph_value;
        }
}

void step_launch(const step *s)
{
    group *g = with_graph(s->a);
    int on = free_stream(s->b);
    for (int i = 0; g != NULL && on != NOBODY && i < 1 + s->c % 3; i++)
        launch_graph(g, on);
}

/* The claims that only the graph held are free; buffers are the program's again. */
static void claims_part(const group *g)
{
    for (claim *c = w.claims; c < w.claims + CLAIMS; c++) {
        if (c->holders == 0 || c->group != (int)(g - w.groups))
            continue;
        c->last = g->last;
        c->told = g->told;
        c->holders &= ~(unsigned)BY_GRAPH;
        c->group = NOBODY;
        c->in_graph = false;
    }
}

void graphs_discard(group *g)
{
    int on = g->last != NOBODY ? g->last : free_stream(0);
    if (on == NOBODY || world_group(on) != NULL)
        return;
    claims_part(g);
    fake_graph_destroy(g->graph);
    g->graph = NULL;
    for (int i = 0; i < POOLS; i++)
        if (tide_capture_drop(g->captures[i], w.streams[on]) != TIDE_OK)
            world_wrong("a graph's drop: %s", tide_error_message());
}

void step_discard(const step *s)
{
    group *g = with_graph(s->a);
    if (g != NULL)
        graphs_discard(g);
}

/* ---- waits ---------------------------------------------------------------------------------- */

void step_synchronise(const step *s)
{
    int on = free_stream(s->a);
    if (s->b % 3 == 0 && on != NOBODY) {
        fake_synchronise(w.streams[on]);
        return;
    }
    if (recording(0) != NULL)
        return; /* of the context: ends captures */
    fake_synchronise_all();
    world_settled();
}
