/* SPDX-License-Identifier: MIT */
/* The public functions of buffers, each as a call that can be made to fail. Of the bookkeeping
 * little is needed: without a magazine a thread goes to the depot, and what cannot be kept is given
 * back. */
#include <tidepool/buffers.h>

#include "sweep.h"

static tide_status create(struct fixture *fixture)
{
    (void)fixture;
    tide_buffers *buffers = tide_buffers_create(NULL, NULL);
    return buffers != NULL ? tide_buffers_destroy(buffers) : tide_error_status();
}

static tide_status shared(struct fixture *fixture)
{
    (void)fixture;
    tide_buffers *buffers = tide_buffers_shared(NULL, TIDE_BUFFER_PINNED);
    return buffers != NULL ? tide_buffers_destroy(buffers) : tide_error_status();
}

static void prepare_buffers(struct fixture *fixture)
{
    fixture->buffers = tide_buffers_create(NULL, &(tide_buffers_options){.name = "swept"});
    need(fixture->buffers != NULL, "buffers");
}

static void prepare_live(struct fixture *fixture)
{
    prepare_buffers(fixture);
    fixture->buffer = tide_buffer_acquire(fixture->buffers, 1000);
    need(fixture->buffer.generation != 0, "a buffer");
}

static void prepare_cached(struct fixture *fixture)
{
    prepare_live(fixture);
    need(tide_buffer_release(fixture->buffers, fixture->buffer) == TIDE_OK, "a release");
}

/* Whatever fails, what is acquired can be used and given back, and the counters add up. */
static tide_status acquire_and_release(struct fixture *fixture)
{
    tide_buffers_statistics stats;
    tide_buffer b = tide_buffer_acquire(fixture->buffers, 1000);
    tide_status status = b.generation != 0 ? TIDE_OK : tide_error_status();
    if (status == TIDE_OK) {
        *(char *)tide_buffer_pointer(fixture->buffers, b) = 1;
        status = tide_buffer_release(fixture->buffers, b);
    }
    bool right = tide_buffers_stats(fixture->buffers, &stats, NULL, 0) == TIDE_OK &&
                 stats.live == 0 && stats.hits + stats.misses == stats.releases;
    return right ? status : TIDE_ERROR_STATE;
}

static tide_status release_and_acquire(struct fixture *fixture)
{
    tide_status status = tide_buffer_release(fixture->buffers, fixture->buffer);
    fixture->buffer = tide_buffer_acquire(fixture->buffers, 1000);
    tide_buffers_trim(fixture->buffers, 0);
    return fixture->buffer.generation != 0 ? status : TIDE_ERROR_STATE;
}

static tide_status acquire_pointer(struct fixture *fixture)
{
    void *pointer = fixture;
    tide_buffer b = tide_buffer_acquire_pointer(fixture->buffers, 1000, &pointer);
    if (b.generation == 0)
        return pointer == NULL ? tide_error_status() : TIDE_ERROR_STATE;
    *(char *)pointer = 1;
    return tide_buffer_release(fixture->buffers, b);
}

enum { HELD = 100 }; /* more than a cell has room for: they go to the depot */

static tide_buffer held_many[HELD];

static void prepare_many_live(struct fixture *fixture)
{
    prepare_buffers(fixture);
    need(tide_buffer_acquire_many(fixture->buffers, 1000, HELD, held_many) == TIDE_OK, "buffers");
}

/* Each is kept, and found again; or it has been given back where there is no memory to keep it. */
static tide_status release_many(struct fixture *fixture)
{
    tide_buffers_statistics stats;
    tide_status status = tide_buffer_release_many(fixture->buffers, held_many, HELD);
    bool right = tide_buffers_stats(fixture->buffers, &stats, NULL, 0) == TIDE_OK &&
                 stats.cached + stats.dropped == HELD && stats.live == 0;
    if (status != TIDE_OK || stats.dropped > 0)
        return right ? status : TIDE_ERROR_STATE;
    status = tide_buffer_acquire_many(fixture->buffers, 1000, HELD, held_many);
    right = right && tide_buffers_stats(fixture->buffers, &stats, NULL, 0) == TIDE_OK &&
            stats.misses == HELD;
    return right ? status : TIDE_ERROR_STATE;
}

/* All or none, whichever fails. */
static tide_status acquire_many(struct fixture *fixture)
{
    tide_buffer held[40];
    tide_buffers_statistics stats;
    tide_status status = tide_buffer_acquire_many(fixture->buffers, 1000, 40, held);
    bool right = tide_buffers_stats(fixture->buffers, &stats, NULL, 0) == TIDE_OK &&
                 stats.live == (status == TIDE_OK ? 40 : 0);
    if (status == TIDE_OK)
        right = tide_buffer_release_many(fixture->buffers, held, 40) == TIDE_OK && right;
    return right ? status : TIDE_ERROR_STATE;
}

static tide_status acquire_zeroed(struct fixture *fixture)
{
    tide_buffer b = tide_buffer_acquire_zeroed(fixture->buffers, 3 << 20);
    if (b.generation == 0)
        return tide_error_status();
    void *data = tide_buffer_pointer(fixture->buffers, b);
    tide_buffer found = tide_buffer_of(fixture->buffers, data);
    bool right = ((char *)data)[1 << 20] == 0 && found.generation == b.generation;
    return right ? tide_buffer_release(fixture->buffers, found) : TIDE_ERROR_STATE;
}

static tide_status draw(struct fixture *fixture)
{
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.buffers = fixture->buffers});
    if (pool == NULL)
        return tide_error_status();
    tide_status status = status_of(tide_acquire(pool, double, 1000));
    bool right = tide_pool_reset(pool) == TIDE_OK && tide_pool_destroy(pool) == TIDE_OK;
    return right ? status : TIDE_ERROR_STATE;
}

static const struct fault_case cases[] = {
    {"tide_buffers_create", NULL, create, ASKS, "tide_buffers_create", 0},
    {"tide_buffers_shared", NULL, shared, ASKS, "tide_buffers_create", 0},
    {"tide_buffer_acquire", prepare_buffers, acquire_and_release, ASKS, "tide_buffer_acquire", 0},
    {"tide_buffer_acquire_pointer", prepare_buffers, acquire_pointer, ASKS,
     "tide_buffer_acquire_pointer", 0},
    {"tide_buffer_acquire, cached", prepare_cached, acquire_and_release, NEVER, NULL, 0},
    {"tide_buffer_release", prepare_live, release_and_acquire, NEVER, NULL, 0},
    {"tide_buffer_acquire_many", prepare_buffers, acquire_many, ASKS, "tide_buffer_acquire_many",
     0},
    {"tide_buffer_release_many", prepare_many_live, release_many, ASKS, NULL, 0},
    {"tide_buffer_acquire_zeroed", prepare_buffers, acquire_zeroed, ASKS,
     "tide_buffer_acquire_zeroed", 0},
    {"a pool on buffers", prepare_buffers, draw, ASKS, NULL, 0},
};

const struct fault_list fault_buffers = {cases, sizeof cases / sizeof *cases};
