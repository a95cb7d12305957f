/* SPDX-License-Identifier: MIT */
#include "world.h"

#include <stdarg.h>
#include <string.h>

#include <tidepool/buffers.h>
#include <tidepool/device.h>

#include "runtime/device/cuda/cuda.h"
#include "runtime/device/device.h"

world w;

void world_wrong(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (w.wrong[0] == '\0')
        vsnprintf(w.wrong, sizeof w.wrong, format, arguments);
    va_end(arguments);
}

/* ---- what is broken on purpose --------------------------------------------------------------- */

static tide_device_methods broken;
static const tide_device_methods *whole;

static tide_status order_nothing(tide_device *device, void *before, void *after)
{
    (void)device, (void)before, (void)after;
    return TIDE_OK;
}

static bool always_done(tide_device *device, void *mark)
{
    (void)device, (void)mark;
    return true;
}

/* For a stream or a mark. */
static tide_status wait_for_nothing(tide_device *device, void *place)
{
    (void)device, (void)place;
    return TIDE_OK;
}

static void release_elsewhere(tide_device *device, void *stream, int memory, void *data,
                              size_t bytes)
{
    (void)stream;
    whole->release(device, device->service, memory, data, bytes);
}

static void plant_it(tide_device *device, enum plant plant)
{
    whole = device->methods;
    broken = *whole;
    switch (plant) {
    case PLANT_ORDER: broken.order = order_nothing; break;
    case PLANT_DONE: broken.mark_done = always_done; break;
    case PLANT_WAIT:
        broken.wait = wait_for_nothing;
        broken.mark_wait = wait_for_nothing;
        break;
    case PLANT_RELEASE: broken.release = release_elsewhere; break;
    default: return;
    }
    device->methods = &broken;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

bool world_begin(uint32_t seed, enum plant plant)
{
    memset(&w, 0, sizeof w);
    fake_reset(1, seed);
    fake_without(seed % 8 == 5 ? FAKE_POOLS : 0); /* some devices have none */
    tide_cuda_driver_set(FAKE_CUDA);
    w.plant = plant;
    w.device = tide_device_open("cuda:0");
    if (w.device == NULL) {
        world_wrong("%s", tide_error_message());
        return false;
    }
    plant_it(w.device, plant);
    for (int i = 0; i < STREAMS; i++)
        w.streams[i] = fake_stream_create(0);
    for (int i = 0; i < GROUPS; i++)
        w.groups[i].origin = NOBODY;
    w.buffers = tide_buffers_create(
        w.device, &(tide_buffers_options){.stream = w.streams[0], .count_max = 1 + seed % 4});
    if (w.buffers == NULL)
        world_wrong("%s", tide_error_message());
    for (int i = 0; i < POOLS && w.wrong[0] == '\0'; i++)
        pools_open(i, i % 3, (uint8_t)(seed >> 3 * i));
    return w.wrong[0] == '\0';
}

static void end_claims(void)
{
    for (claim *c = w.claims; c < w.claims + CLAIMS; c++)
        if ((c->holders & BY_CONSUMER) != 0)
            step_drop(&(step){.a = (uint8_t)(c - w.claims), .c = 255});
    for (claim *c = w.claims; c < w.claims + CLAIMS; c++)
        if ((c->holders & BY_PROGRAM) != 0)
            step_return(&(step){.a = (uint8_t)(c - w.claims), .c = 255});
}

/* Much of it is in flight still. */
void world_end(void)
{
    for (group *g = w.groups; g < w.groups + GROUPS; g++)
        if (g->recording)
            graphs_end(g);
    for (group *g = w.groups; g < w.groups + GROUPS; g++)
        if (g->graph != NULL)
            graphs_discard(g);
    end_claims();
    for (int i = 0; i < POOLS; i++)
        pools_close(i);
    if (tide_buffers_destroy(w.buffers) != TIDE_OK)
        world_wrong("%s", tide_error_message());
    for (int i = 0; i < STREAMS; i++)
        fake_stream_destroy(w.streams[i]);
    fake_synchronise_all();
    if (w.plant != PLANT_NONE)
        w.device->methods = whole;
    if (tide_device_close(w.device) != TIDE_OK)
        world_wrong("%s", tide_error_message());
    fake_use_device(0);
    fake_synchronise_all();
    if (w.wrong[0] == '\0' && fake_live_bytes() != 0)
        world_wrong("%zu bytes of the device are left", fake_live_bytes());
}

/* ---- claims ---------------------------------------------------------------------------------- */

group *world_group(int stream)
{
    for (group *g = w.groups; g < w.groups + GROUPS; g++)
        if (g->recording && (g->members >> stream & 1) != 0)
            return g;
    return NULL;
}

unsigned world_declared(const pool *p)
{
    unsigned all = 0;
    for (int i = 0; i < p->depth; i++)
        all |= p->levels[i].declared;
    return all;
}

bool world_is_declared(int stream)
{
    for (const pool *p = w.pools; p < w.pools + POOLS; p++)
        if (p->pool != NULL && (world_declared(p) >> stream & 1) != 0)
            return true;
    return false;
}

/* Who holds some of these bytes? What a graph uses is its pool's until the capture ends. */
static const claim *holder_of(const char *data, size_t bytes, int of_pool)
{
    for (const claim *c = w.claims; c < w.claims + CLAIMS; c++) {
        bool overlaps = c->holders != 0 && data < c->data + c->bytes && c->data < data + bytes;
        bool own = c->holders == BY_GRAPH && c->pool == of_pool && of_pool != NOBODY &&
                   c->group == w.pools[of_pool].group && w.groups[c->group].graph == NULL;
        if (overlaps && !own)
            return c;
    }
    return NULL;
}

static claim *free_place(void)
{
    for (claim *c = w.claims; c < w.claims + CLAIMS; c++)
        if (c->holders == 0)
            return c;
    return NULL;
}

/* What has just been handed out: nobody else may have it, and no work that uses it may be left that
 * the stream does not come after. NULL: no place; the caller lets it go unused. */
claim *world_claim(unsigned holder, int of_pool, void *data, size_t bytes, int stream)
{
    const claim *other = holder_of(data, bytes, of_pool);
    if (other != NULL)
        world_wrong("%p (%zu bytes) was handed out while claim %d has it (holders %u)", data, bytes,
                    (int)(other - w.claims), other->holders);
    if (world_group(stream) == NULL)
        fake_handed_out(w.streams[stream], data, bytes);
    claim *c = free_place();
    if (c != NULL)
        *c = (claim){.holders = holder,
                     .data = data,
                     .bytes = bytes,
                     .pool = of_pool,
                     .group = NOBODY,
                     .last = stream};
    return c;
}

void world_let_go(claim *c, unsigned holder)
{
    c->holders &= ~holder;
    if (holder == BY_ARRAY && c->group == NOBODY && w.pools[c->pool].group != NOBODY) {
        c->holders |= BY_GRAPH;
        c->group = w.pools[c->pool].group;
    } else if (holder == BY_ARRAY && c->holders == BY_CONSUMER) {
        c->pool = NOBODY;
    }
}

void world_written(claim *c, uint8_t value)
{
    if (c->in_capture) {
        c->in_graph = true;
        c->graph_value = value;
    } else {
        c->written = true;
        c->value = value;
    }
}

/* The one of them that the number means. */
claim *world_pick(uint8_t a, bool (*suits)(const claim *c))
{
    for (unsigned i = 0; i < CLAIMS; i++) {
        claim *c = &w.claims[(a + i) % CLAIMS];
        if (c->holders != 0 && suits(c))
            return c;
    }
    return NULL;
}

/* All that a graph uses, it uses at once. */
static bool is_of_graph(const claim *c)
{
    return c->group != NOBODY && w.groups[c->group].graph != NULL;
}

int *world_last(claim *c)
{
    return is_of_graph(c) ? &w.groups[c->group].last : &c->last;
}

unsigned *world_told(claim *c)
{
    return is_of_graph(c) ? &w.groups[c->group].told : &c->told;
}

static group *recording_group_of(const claim *c)
{
    int of = c->pool != NOBODY ? w.pools[c->pool].group : c->group;
    return of != NOBODY && w.groups[of].recording ? &w.groups[of] : NULL;
}

static bool is_ordered_already(claim *c, int stream)
{
    int last = *world_last(c);
    return last == NOBODY || last == stream || (*world_told(c) >> stream & 1) != 0;
}

/* What is captured uses what the capture will own, or the program keeps for it; nobody else does.
 */
bool world_may_use(claim *c, int stream)
{
    const group *in = world_group(stream), *of = recording_group_of(c);
    if (in != NULL)
        return !is_of_graph(c) && !c->of_host &&
               (of == in || (of == NULL && c->pool == NOBODY && c->group == NOBODY));
    return of == NULL && (is_ordered_already(c, stream) || world_group(*world_last(c)) == NULL);
}

static void order_in_capture(claim *c, group *g, int stream)
{
    if (!c->in_capture && c->last != NOBODY)
        g->before |= 1u << c->last;
    else if (c->in_capture && !is_ordered_already(c, stream))
        fake_order(w.streams[c->last], w.streams[stream]);
    c->in_capture = true;
    if (c->pool == NOBODY)
        c->group = (int)(g - w.groups);
}

void world_order(claim *c, int stream)
{
    group *g = world_group(stream);
    if (g != NULL)
        order_in_capture(c, g, stream);
    else if (!is_ordered_already(c, stream))
        fake_order(w.streams[*world_last(c)], w.streams[stream]);
}

void world_used(claim *c, int stream, unsigned told)
{
    *world_last(c) = stream;
    *world_told(c) = told;
}

void world_settled(void)
{
    for (claim *c = w.claims; c < w.claims + CLAIMS; c++)
        if (!c->in_capture)
            c->last = NOBODY;
    for (group *g = w.groups; g < w.groups + GROUPS; g++)
        if (!g->recording)
            g->last = NOBODY;
    w.queued = 0;
}
