/* SPDX-License-Identifier: MIT */
/* Pools of captured graphs, and streams that were recorded for memory. */
#include "runtime/adaptor/graphs.h"

#include <stdio.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/base/ring.h"
#include "runtime/device/budget.h"
#include "runtime/device/device.h"
#include "runtime/device/gate.h"

/* A capture that is under way, and after it until nobody asks it any more. */
typedef struct tide_graph_begun {
    struct tide_graph_begun *next;
    tide_graph_pool *pool;
    tide_torch_capture capture;
    uint32_t held; /* by the list, and by whoever asks it */
    bool ended;    /* it is in no list                    */
} graph_begun;

typedef struct tide_graph_recorded {
    struct tide_graph_recorded *next;
    const void *data;
    void *stream;
} graph_recorded;

static tide_lock graph_lock = TIDE_LOCK(TIDE_FORK_GRAPHS); /* of the lists of all devices */

static void graph_take_lock(void)
{
    static const tide_fork_handlers handlers = {.lock = &graph_lock};
    tide_fork_register(TIDE_FORK_GRAPHS, &handlers);
    tide_lock_take(&graph_lock);
}

/* ---- pools -------------------------------------------------------------------------------------- */

static bool graph_is_named(const tide_graph_pool *pool, tide_torch_pool id)
{
    return pool->id.first == id.first && pool->id.second == id.second;
}

/* Locked. The first of the name: one that is used comes before one that was put back. */
static tide_graph_pool *graph_find(const tide_adaptor *of, tide_torch_pool id)
{
    tide_graph_pool *pool = of->pools;
    while (pool != NULL && !graph_is_named(pool, id))
        pool = pool->next;
    return pool;
}

/* Locked. At the end of the list. */
static void graph_append(tide_adaptor *of, tide_graph_pool *pool)
{
    tide_graph_pool **link = &of->pools;
    while (*link != NULL)
        link = &(*link)->next;
    pool->next = NULL;
    *link = pool;
}

/* NULL: it has failed. */
static tide_graph_pool *graph_make(tide_adaptor *of, tide_torch_pool id, const char *call)
{
    const tide_buffers_options kept = {.name = "graphs", .kept = true};
    tide_graph_pool *made = tide_os_resize(NULL, sizeof *made);
    if (made == NULL) {
        (void)tide_fail(TIDE_ERROR_MEMORY, call, "no memory for a pool of graphs");
        return NULL;
    }
    *made = (tide_graph_pool){.id = id, .buffers = tide_buffers_create(of->device, &kept)};
    if (made->buffers != NULL)
        return made;
    tide_os_free(made);
    return NULL;
}

/* It is in no list. False: not now. */
static bool graph_unmake(tide_graph_pool *pool)
{
    if (tide_buffers_destroy(pool->buffers) != TIDE_OK)
        return false;
    tide_os_free(pool);
    return true;
}

/* ---- their end ---------------------------------------------------------------------------------- */

/* Locked. Was it released, is it in no call's hands, and nothing of it live? Then adds what it keeps. */
static bool graph_is_unused(const tide_graph_pool *pool, size_t *bytes)
{
    tide_buffers_statistics now;
    if (pool->uses != 0 || pool->held != 0 ||
        tide_buffers_stats(pool->buffers, &now, NULL, 0) != TIDE_OK || now.live != 0)
        return false;
    *bytes += now.bytes_cached;
    return true;
}

/* Locked. A wait for the device would end a capture. */
static bool graph_may_wait(const tide_adaptor *of)
{
    return tide_device_lost(of->device) ||
           (of->begun == NULL && __atomic_load_n(&of->device->graphs, __ATOMIC_RELAXED) == 0);
}

/* Takes all that are unused out of the list. */
static tide_graph_pool *graph_take_unused(tide_adaptor *of, size_t *bytes)
{
    tide_graph_pool *unused = NULL, **link = &of->pools;
    graph_take_lock();
    while (*link != NULL && graph_may_wait(of)) {
        tide_graph_pool *pool = *link;
        if (!graph_is_unused(pool, bytes)) {
            link = &pool->next;
            continue;
        }
        *link = pool->next;
        pool->next = unused;
        unused = pool;
    }
    tide_lock_let_go(&graph_lock);
    return unused;
}

/* Ends the pools that were released and have nothing live, after one wait for the device, in which
 * they are in no list. What cannot be ended goes back, for the next time. */
static size_t graph_press(tide_device *device, int memory, size_t wanted)
{
    tide_failure why;
    size_t bytes = 0;
    tide_adaptor *of = tide_budget_is_own(device, memory) ? tide_adaptor_on(device) : NULL;
    tide_graph_pool *unused = of != NULL ? graph_take_unused(of, &bytes) : NULL;
    (void)wanted;
    if (unused == NULL)
        return 0;
    tide_failure_keep(&why);
    tide_lock_assert_none();
    const bool over = device->methods->wait_all(device) == TIDE_OK || tide_device_lost(device);
    for (tide_graph_pool *pool; (pool = unused) != NULL;) {
        unused = pool->next;
        if (over && graph_unmake(pool))
            continue;
        graph_take_lock();
        graph_append(of, pool);
        tide_lock_let_go(&graph_lock);
        bytes = 0;
    }
    tide_failure_restore(&why);
    return bytes;
}

static void graph_tell(const tide_device *device, char *text, size_t room)
{
    const tide_adaptor *of = tide_adaptor_on(device);
    size_t bytes = 0;
    if (of == NULL)
        return;
    graph_take_lock();
    for (const tide_graph_pool *pool = of->pools; pool != NULL; pool = pool->next)
        (void)graph_is_unused(pool, &bytes);
    tide_lock_let_go(&graph_lock);
    if (bytes != 0)
        snprintf(text, room, "graphs that were dropped %zu of these", bytes);
}

const tide_ring tide_ring_adaptor = {.press = graph_press, .trim = graph_press, .tell = graph_tell};

/* ---- captures ----------------------------------------------------------------------------------- */

/* To the pool of that name or, if there is none, to the one made. False: there is one. */
static bool graph_begin(tide_adaptor *of, graph_begun *begun, tide_graph_pool *made)
{
    graph_take_lock();
    tide_graph_pool *pool = graph_find(of, made->id);
    const bool is_new = pool == NULL;
    if (is_new)
        graph_append(of, pool = made);
    pool->uses++;
    pool->held++;
    begun->pool = pool;
    begun->next = of->begun;
    __atomic_store_n(&of->begun, begun, __ATOMIC_RELEASE);
    tide_lock_let_go(&graph_lock);
    return is_new;
}

tide_status tide_torch_pool_begin(int device, tide_torch_pool id, const tide_torch_capture *capture)
{
    const char *call = "tide_torch_pool_begin";
    if (capture == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the capture is NULL");
    tide_adaptor *of = tide_adaptor_ready(device, call);
    if (of == NULL)
        return tide_error_status();
    if (!tide_driver_alive(TIDE_DRIVER_CUDA))
        return tide_driver_refuse(TIDE_DRIVER_CUDA, call);
    graph_begun *begun = tide_os_resize(NULL, sizeof *begun);
    if (begun == NULL)
        return tide_fail(TIDE_ERROR_MEMORY, call, "no memory for a capture");
    *begun = (graph_begun){.capture = *capture, .held = 1};
    tide_graph_pool *made = graph_make(of, id, call);
    if (made == NULL) {
        tide_os_free(begun);
        return tide_error_status();
    }
    if (!graph_begin(of, begun, made))
        (void)graph_unmake(made);
    return TIDE_OK;
}

/* The last who has it tells that it is not asked any more. */
static void graph_let_go(graph_begun *begun)
{
    graph_take_lock();
    tide_assert(begun->held > 0 && begun->pool->held > 0);
    bool last = --begun->held == 0;
    begun->pool->held -= last;
    tide_lock_let_go(&graph_lock);
    if (!last)
        return;
    tide_lock_assert_none();
    if (begun->capture.end != NULL)
        begun->capture.end(begun->capture.user);
    tide_os_free(begun);
}

void tide_torch_pool_end(int device, tide_torch_pool id)
{
    tide_adaptor *of = tide_adaptor_of(device, "tide_torch_pool_end");
    if (of == NULL)
        return;
    graph_take_lock();
    graph_begun *first = of->begun, **link = &first;
    while (*link != NULL && !graph_is_named((*link)->pool, id))
        link = &(*link)->next;
    graph_begun *ended = *link;
    if (ended != NULL) {
        *link = ended->next;
        ended->ended = true;
        __atomic_store_n(&of->begun, first, __ATOMIC_RELEASE);
    }
    tide_lock_let_go(&graph_lock);
    if (ended != NULL)
        graph_let_go(ended);
}

void tide_torch_pool_release(int device, tide_torch_pool id)
{
    tide_adaptor *of = tide_adaptor_of(device, "tide_torch_pool_release");
    if (of == NULL)
        return;
    graph_take_lock();
    tide_graph_pool *pool = graph_find(of, id);
    if (pool != NULL && pool->uses > 0)
        pool->uses--;
    tide_lock_let_go(&graph_lock);
    if (pool != NULL && tide_device_lost(of->device)) /* nobody will be short of it */
        (void)graph_press(of->device, TIDE_MEMORY_DEVICE, SIZE_MAX);
}

/* The first, or the next behind one, had; NULL: there is none. Behind one that has ended meanwhile all
 * are asked again. */
static graph_begun *graph_have_next(tide_adaptor *of, const graph_begun *begun)
{
    graph_take_lock();
    graph_begun *next = begun != NULL && !begun->ended ? begun->next : of->begun;
    if (next != NULL)
        next->held++;
    tide_lock_let_go(&graph_lock);
    return next;
}

tide_graph_pool *tide_graph_pool_for(tide_adaptor *of, void *stream)
{
    tide_graph_pool *pool = NULL;
    graph_begun *begun = graph_have_next(of, NULL);
    while (begun != NULL) {
        tide_lock_assert_none();
        if (begun->capture.takes(begun->capture.user, stream)) {
            graph_take_lock();
            pool = begun->pool;
            pool->held++;
            tide_lock_let_go(&graph_lock);
        }
        graph_begun *next = pool == NULL ? graph_have_next(of, begun) : NULL;
        graph_let_go(begun);
        begun = next;
    }
    return pool;
}

tide_graph_pool *tide_graph_pool_of(tide_adaptor *of, const void *data)
{
    graph_take_lock();
    tide_graph_pool *pool = of->pools;
    while (pool != NULL && tide_buffer_of(pool->buffers, data).generation == 0)
        pool = pool->next;
    if (pool != NULL)
        pool->held++;
    tide_lock_let_go(&graph_lock);
    return pool;
}

void tide_graph_pool_let_go(tide_graph_pool *pool)
{
    graph_take_lock();
    tide_assert(pool->held > 0);
    pool->held--;
    tide_lock_let_go(&graph_lock);
}

/* ---- recorded streams ---------------------------------------------------------------------------- */

static void graph_record(tide_adaptor *of, const void *data, void *stream)
{
    graph_recorded *made = tide_os_resize(NULL, sizeof *made);
    if (made == NULL) {
        (void)tide_fail(TIDE_ERROR_MEMORY, "tide_torch_record_stream",
                        "no memory to remember a stream of %p", data);
        return;
    }
    *made = (graph_recorded){.data = data, .stream = stream};
    graph_take_lock();
    made->next = of->recorded;
    __atomic_store_n(&of->recorded, made, __ATOMIC_RELEASE);
    tide_lock_let_go(&graph_lock);
}

void tide_torch_record_stream(void *data, void *stream)
{
    for (int i = 0; data != NULL && i < TIDE_ADAPTORS; i++)
        if (tide_buffer_of(tide_adaptor_buffers(&tide_adaptors[i]), data).generation != 0)
            graph_record(&tide_adaptors[i], data, stream);
}

/* Takes one out; NULL: there is none. */
static graph_recorded *graph_take_recorded(tide_adaptor *of, const void *data)
{
    graph_take_lock();
    graph_recorded *first = of->recorded, **link = &first;
    while (*link != NULL && (*link)->data != data)
        link = &(*link)->next;
    graph_recorded *taken = *link;
    if (taken != NULL) {
        *link = taken->next;
        __atomic_store_n(&of->recorded, first, __ATOMIC_RELEASE);
    }
    tide_lock_let_go(&graph_lock);
    return taken;
}

bool tide_graph_order_recorded(tide_adaptor *of, const void *data, void *stream)
{
    const char *call = "tide_torch_free";
    tide_device *device = of->device;
    bool can = true;
    for (graph_recorded *one; can && (one = graph_take_recorded(of, data)) != NULL;) {
        can = tide_device_lost(device) ||
              (tide_device_check_captures(device, one->stream, device, stream, call) == TIDE_OK &&
               device->methods->order(device, one->stream, stream) == TIDE_OK);
        tide_os_free(one);
    }
    return can;
}

/* ---- stats ---------------------------------------------------------------------------------------- */

static tide_status graph_add_stats(tide_buffers *buffers, bool graph, tide_torch_statistics *out)
{
    tide_buffers_statistics now;
    TIDE_FORWARD(tide_buffers_stats(buffers, &now, NULL, 0));
    out->live += now.live;
    out->bytes_live += now.bytes_live;
    out->bytes_cached += now.bytes_cached;
    out->bytes_graphs += graph ? now.bytes_live + now.bytes_cached : 0;
    out->hits += now.hits;
    out->misses += now.misses;
    return TIDE_OK;
}

tide_status tide_torch_stats(int device, tide_torch_statistics *out)
{
    const char *call = "tide_torch_stats";
    if (out == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the result is NULL");
    tide_adaptor *of = tide_adaptor_ready(device, call);
    if (of == NULL)
        return tide_error_status();
    *out = (tide_torch_statistics){0};
    TIDE_FORWARD(graph_add_stats(of->buffers, false, out));
    graph_take_lock();
    for (const tide_graph_pool *pool = of->pools; pool != NULL; pool = pool->next, out->pools++)
        (void)graph_add_stats(pool->buffers, true, out);
    tide_lock_let_go(&graph_lock);
    return TIDE_OK;
}

typedef struct graph_blocks {
    tide_torch_block *out;
    size_t room, count;
    tide_torch_pool pool;
} graph_blocks;

static void graph_add_block(void *user, void *data, size_t bytes, bool live)
{
    graph_blocks *blocks = user;
    if (blocks->count < blocks->room)
        blocks->out[blocks->count] =
            (tide_torch_block){.data = data, .bytes = bytes, .live = live, .pool = blocks->pool};
    blocks->count++;
}

tide_status tide_torch_blocks(int device, tide_torch_block *out, size_t room, size_t *count)
{
    const char *call = "tide_torch_blocks";
    graph_blocks blocks = {.out = out, .room = room};
    if (count == NULL || (out == NULL && room != 0))
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the result is NULL");
    tide_adaptor *of = tide_adaptor_ready(device, call);
    if (of == NULL)
        return tide_error_status();
    TIDE_FORWARD(tide_buffer_each(of->buffers, graph_add_block, &blocks));
    graph_take_lock();
    for (const tide_graph_pool *pool = of->pools; pool != NULL; pool = pool->next) {
        blocks.pool = pool->id;
        (void)tide_buffer_each(pool->buffers, graph_add_block, &blocks);
    }
    tide_lock_let_go(&graph_lock);
    *count = blocks.count;
    return TIDE_OK;
}
