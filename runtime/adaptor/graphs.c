/* SPDX-License-Identifier: MIT */
/* Pools of captured graphs, and streams that were recorded for memory. */
#include "runtime/adaptor/graphs.h"

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
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
static pthread_cond_t graph_swept = PTHREAD_COND_INITIALIZER;

static void graph_take_lock(void)
{
    static const tide_fork_handlers handlers = {.lock = &graph_lock};
    tide_fork_register(TIDE_FORK_GRAPHS, &handlers);
    tide_lock_take(&graph_lock);
}

/* ---- pools -------------------------------------------------------------------------------------- */

/* Locked. */
static tide_graph_pool *graph_find(const tide_adaptor *of, tide_torch_pool id)
{
    tide_graph_pool *pool = of->pools;
    while (pool != NULL && (pool->id.first != id.first || pool->id.second != id.second))
        pool = pool->next;
    return pool;
}

static bool graph_is_live(tide_buffers *buffers)
{
    tide_buffers_statistics now;
    return tide_buffers_stats(buffers, &now, NULL, 0) != TIDE_OK || now.live != 0;
}

/* Locked. A wait for the device would end a capture, of PyTorch's or of a pool's. */
static bool graph_may_wait(const tide_adaptor *of)
{
    return of->begun == NULL && __atomic_load_n(&of->device->graphs, __ATOMIC_RELAXED) == 0;
}

/* Locked. Takes all out of the list that nobody uses and of which nothing is live. */
static tide_graph_pool *graph_take_unused(tide_adaptor *of)
{
    tide_graph_pool *unused = NULL;
    for (tide_graph_pool **link = &of->pools, *pool; (pool = *link) != NULL;) {
        if (pool->uses != 0 || pool->held != 0 || graph_is_live(pool->buffers)) {
            link = &pool->next;
            continue;
        }
        *link = pool->next;
        pool->next = unused;
        unused = pool;
    }
    return unused;
}

/* NULL: there are none, or nobody may wait now. Until graph_end_sweep no capture to a pool begins. */
static tide_graph_pool *graph_begin_sweep(tide_adaptor *of)
{
    graph_take_lock();
    tide_graph_pool *unused = graph_may_wait(of) ? graph_take_unused(of) : NULL;
    of->sweeps += unused != NULL;
    tide_lock_let_go(&graph_lock);
    return unused;
}

/* These go back into the list. */
static void graph_end_sweep(tide_adaptor *of, tide_graph_pool *kept)
{
    graph_take_lock();
    for (tide_graph_pool *pool; (pool = kept) != NULL;) {
        kept = pool->next;
        pool->next = of->pools;
        of->pools = pool;
    }
    tide_assert(of->sweeps > 0);
    of->sweeps--;
    (void)pthread_cond_broadcast(&graph_swept);
    tide_lock_let_go(&graph_lock);
}

static bool graph_wait(tide_device *device)
{
    return tide_device_lost(device) || device->methods->wait_all(device) == TIDE_OK ||
           tide_device_lost(device);
}

bool tide_graph_sweep(tide_adaptor *of)
{
    tide_graph_pool *unused = graph_begin_sweep(of);
    if (unused == NULL)
        return false;
    const bool waited = graph_wait(of->device);
    graph_end_sweep(of, waited ? NULL : unused);
    for (tide_graph_pool *pool; waited && (pool = unused) != NULL;) {
        unused = pool->next;
        (void)tide_buffers_destroy(pool->buffers);
        tide_os_free(pool);
    }
    return waited;
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
    if (made->buffers == NULL) {
        tide_os_free(made);
        return NULL;
    }
    return made;
}

/* ---- captures ----------------------------------------------------------------------------------- */

/* Into the list, with the pool of that name or, if there is none, with the one made. A sweep that waits for
 * the device would end the capture, so it is over first. */
static void graph_enlist(tide_adaptor *of, graph_begun *begun, tide_graph_pool **made)
{
    graph_take_lock();
    while (of->sweeps != 0)
        tide_lock_wait(&graph_lock, &graph_swept);
    begun->pool = graph_find(of, (*made)->id);
    if (begun->pool == NULL) {
        begun->pool = *made;
        (*made)->next = of->pools;
        of->pools = *made;
        *made = NULL;
    }
    begun->pool->uses++;
    begun->pool->held++;
    begun->next = of->begun;
    __atomic_store_n(&of->begun, begun, __ATOMIC_RELEASE);
    tide_lock_let_go(&graph_lock);
}

tide_status tide_graph_pool_begin(tide_adaptor *of, tide_torch_pool id,
                                  const tide_torch_capture *capture, const char *call)
{
    if (!tide_driver_alive(TIDE_DRIVER_CUDA))
        return tide_driver_refuse(TIDE_DRIVER_CUDA, call);
    graph_begun *begun = tide_os_resize(NULL, sizeof *begun);
    if (begun == NULL)
        return tide_fail(TIDE_ERROR_MEMORY, call, "no memory for a capture");
    tide_graph_pool *made = graph_make(of, id, call);
    if (made == NULL) {
        tide_os_free(begun);
        return tide_error_status();
    }
    *begun = (graph_begun){.capture = *capture, .held = 1};
    graph_enlist(of, begun, &made);
    if (made != NULL) {
        (void)tide_buffers_destroy(made->buffers);
        tide_os_free(made);
    }
    return TIDE_OK;
}

/* The last who has it tells that it is not asked any more. */
static void graph_let_go(tide_adaptor *of, graph_begun *begun)
{
    graph_take_lock();
    tide_assert(begun->held > 0);
    bool last = --begun->held == 0;
    begun->pool->held -= last;
    tide_lock_let_go(&graph_lock);
    if (!last)
        return;
    tide_lock_assert_none();
    if (begun->capture.end != NULL)
        begun->capture.end(begun->capture.user);
    tide_os_free(begun);
    (void)tide_graph_sweep(of);
}

void tide_graph_pool_end(tide_adaptor *of, tide_torch_pool id)
{
    graph_take_lock();
    const tide_graph_pool *pool = graph_find(of, id);
    graph_begun *first = of->begun, **link = &first;
    while (*link != NULL && (*link)->pool != pool)
        link = &(*link)->next;
    graph_begun *ended = *link;
    if (ended != NULL) {
        *link = ended->next;
        ended->ended = true;
        __atomic_store_n(&of->begun, first, __ATOMIC_RELEASE);
    }
    tide_lock_let_go(&graph_lock);
    if (ended != NULL)
        graph_let_go(of, ended);
}

void tide_graph_pool_release(tide_adaptor *of, tide_torch_pool id)
{
    graph_take_lock();
    tide_graph_pool *pool = graph_find(of, id);
    if (pool != NULL && pool->uses > 0)
        pool->uses--;
    tide_lock_let_go(&graph_lock);
    if (pool != NULL)
        (void)tide_graph_sweep(of);
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

static tide_graph_pool *graph_hold(tide_graph_pool *pool)
{
    graph_take_lock();
    pool->held++;
    tide_lock_let_go(&graph_lock);
    return pool;
}

tide_graph_pool *tide_graph_pool_ask(tide_adaptor *of, void *stream)
{
    tide_graph_pool *pool = NULL;
    graph_begun *begun = graph_have_next(of, NULL);
    while (begun != NULL) {
        tide_lock_assert_none();
        if (begun->capture.takes(begun->capture.user, stream))
            pool = graph_hold(begun->pool);
        graph_begun *next = pool == NULL ? graph_have_next(of, begun) : NULL;
        graph_let_go(of, begun);
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

void tide_graph_pool_let_go(tide_adaptor *of, tide_graph_pool *pool)
{
    graph_take_lock();
    tide_assert(pool->held > 0);
    bool unused = --pool->held == 0 && pool->uses == 0;
    tide_lock_let_go(&graph_lock);
    if (unused)
        (void)tide_graph_sweep(of);
}

/* ---- recorded streams ---------------------------------------------------------------------------- */

tide_status tide_graph_record(tide_adaptor *of, void *data, void *stream, const char *call)
{
    graph_recorded *made = tide_os_resize(NULL, sizeof *made);
    if (made == NULL)
        return tide_fail(TIDE_ERROR_MEMORY, call, "no memory to remember a stream of %p", data);
    *made = (graph_recorded){.data = data, .stream = stream};
    graph_take_lock();
    made->next = of->recorded;
    __atomic_store_n(&of->recorded, made, __ATOMIC_RELEASE);
    tide_lock_let_go(&graph_lock);
    return TIDE_OK;
}

/* Takes one stream out that was recorded for the memory; false: there is none. */
static bool graph_take_recorded(tide_adaptor *of, const void *data, void **stream)
{
    graph_take_lock();
    graph_recorded *first = of->recorded, **link = &first;
    while (*link != NULL && (*link)->data != data)
        link = &(*link)->next;
    graph_recorded *taken = *link;
    if (taken != NULL) {
        *link = taken->next;
        *stream = taken->stream;
        __atomic_store_n(&of->recorded, first, __ATOMIC_RELEASE);
    }
    tide_lock_let_go(&graph_lock);
    tide_os_free(taken);
    return taken != NULL;
}

bool tide_graph_order_recorded(tide_adaptor *of, const void *data, void *stream)
{
    const char *call = "tide_torch_free";
    tide_device *device = of->device;
    void *other;
    while (graph_take_recorded(of, data, &other))
        if (!tide_device_lost(device) &&
            (tide_device_check_captures(device, other, device, stream, call) != TIDE_OK ||
             device->methods->order(device, other, stream) != TIDE_OK))
            return false;
    return true;
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

tide_status tide_graph_stats(tide_adaptor *of, tide_torch_statistics *out)
{
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

tide_status tide_graph_blocks(tide_adaptor *of, tide_torch_block *out, size_t room, size_t *count)
{
    graph_blocks blocks = {.out = out, .room = room};
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
